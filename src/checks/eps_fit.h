/*
 * Recovering eps from a norm's input and output: the value under which the formula comes
 * closest to what was dumped, with its uncertainty.
 */
#ifndef ND_CHECKS_EPS_FIT_H
#define ND_CHECKS_EPS_FIT_H

#include "checks/sample.h"
#include "ops/norm.h"

struct eps_fit {
    double eps;
    double sigma;       /* one standard error of eps */
    double upper;       /* eps is below this at three standard errors */
    bool identifiable;  /* sigma is a small part of eps */
    double residual;    /* ||y - f(x, eps)|| / ||f|| at the best eps */
    double typical_var; /* of the rows that carry the information */
    uint64_t rows;
};

/*
 * 45 grid points of log10 eps in [-13, -1] and 30 golden-section steps, then three Newton
 * steps about the best point.  `roundoff` is that of the output.  False where the model has
 * no row statistics to learn from, or without memory.
 */
bool nd_eps_fit(const struct sample *sample, int side, const struct norm_model *model,
                double roundoff, struct eps_fit *ret);

#endif
