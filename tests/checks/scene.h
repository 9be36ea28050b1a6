/*
 * A small model run by two sides, for the tests of the diagnosis: layers and slots given as
 * arrays, the comparison's figures worked out here in plain loops.
 */
#ifndef ND_TESTS_SCENE_H
#define ND_TESTS_SCENE_H

#include "checks/check.h"

struct scene;

struct scene *scene_new(void);
void scene_free(struct scene *scene);

/* Adds a layer; what follows is about the last one added. */
void scene_layer(struct scene *scene, const char *name, const char *type);
void scene_number(struct scene *scene, int side, const char *key, double value);
void scene_container(struct scene *scene);
void scene_step(struct scene *scene, int64_t step);
void scene_backward(struct scene *scene);
/* So many agreeing positions of the last slot were masked. */
void scene_masked(struct scene *scene, uint64_t count);
/* How many positions of a sample count: of the last slot, said by the candidate. */
void scene_valid(struct scene *scene, const uint64_t *valid, size_t count);

/* Adds a float32 slot (values rounded to it, or to bfloat16 with real_dtype saying so);
 * candidate NULL: the reference alone has it. */
void scene_slot(struct scene *scene, const char *name, enum nd_dtype real, uint32_t rank,
                const uint64_t *dim, const double *reference, const double *candidate);

/* An integer slot of which `differ` positions differ; no values. */
void scene_integers(struct scene *scene, const char *name, uint64_t n, uint64_t differ);

/* Runs the diagnosis; the result lives as long as the scene. */
const struct diagnosis *scene_diagnose(struct scene *scene);
const struct nd_finding *scene_finding(const struct diagnosis *diagnosis, const char *id);
/* A parameter of a cause; NAN: not there. */
double scene_parameter(const struct nd_cause *cause, const char *key);

/* Numbers that look normal, the same on every machine: a sum of twelve uniform ones less 6.
 */
double scene_normal(uint64_t *state);

#endif
