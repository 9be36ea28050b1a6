/*
 * Options checked, and their effective values.
 */
#ifndef ND_COMPARE_POLICY_H
#define ND_COMPARE_POLICY_H

#include "compare/compare.h"
#include "metrics/metric.h"

/* ND_ERR_USAGE or ND_ERR_UNSUPPORTED with the option as the place. */
enum nd_status nd_policy_check(const struct nd_options *options, const struct metric **ret_metric,
                               struct nd_error *err);
/* The kernels of --isa, or the best this machine has. */
enum nd_status nd_policy_kernels(const struct nd_options *options,
                                 const struct kernel_set **ret_set, struct nd_error *err);
enum nd_status nd_policy_freeze(struct arena *arena, const struct nd_options *options,
                                const struct metric *metric, struct nd_policy *ret,
                                struct nd_error *err);
/* What the report's head says of a dump. */
struct nd_dump_info nd_dump_info_of(const struct dump *dump, const struct nd_options *options);

#endif
