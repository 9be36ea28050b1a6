/*
 * normdiff: compares the per-layer tensors that two runs of one model left behind and
 * says where the drift entered and why.  The whole library in two calls:
 *
 *     struct nd_options options;
 *     struct nd_result *result;
 *     struct nd_error   error;
 *
 *     nd_options_init(&options);
 *     if (nd_compare("gpu.dump", "npu.dump", &options, &result, &error) == ND_OK) {
 *         nd_report_write(result, "json", NULL, stdout, &error);
 *         nd_result_free(result);
 *     }
 *
 * The library never prints, exits or installs a signal handler by itself.
 */
#ifndef NORMDIFF_NORMDIFF_H
#define NORMDIFF_NORMDIFF_H

#include "normdiff/options.h"
#include "normdiff/report.h"
#include "normdiff/result.h"
#include "normdiff/status.h"

#ifdef __cplusplus
extern "C" {
#endif

#define ND_VERSION "0.1.0"

const char *nd_version(void);

/*
 * Compares two dumps (files or directories; "-" is standard input, once).  On ND_OK
 * *ret_result is the caller's, to be freed with nd_result_free(); drift is a result,
 * never an error.  On failure *ret_result is untouched and *err says why.
 *
 * candidate NULL: `reference` is the root of an offline comparison that holds both sides.
 */
enum nd_status nd_compare(const char *reference, const char *candidate,
                          const struct nd_options *options, struct nd_result **ret_result,
                          struct nd_error *err);

/* Lists one dump; the same rules. */
enum nd_status nd_list(const char *path, const struct nd_options *options,
                       struct nd_listing **ret_listing, struct nd_error *err);

/*
 * Installs a SIGBUS handler that turns "a mapped file shrank while it was read" into
 * ND_ERR_CHANGED.  The tool calls it; a program that embeds the library may.
 */
void nd_guard_install(void);

#ifdef __cplusplus
}
#endif
#endif
