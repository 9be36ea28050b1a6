/*
 * Results built by hand, for tests of the reports.
 */
#ifndef ND_TESTS_REPORT_CANNED_H
#define ND_TESTS_REPORT_CANNED_H

#include "normdiff/result.h"

const struct nd_result *nd_canned_drift(void); /* eps differs in layers.3.input_layernorm */
const struct nd_result *nd_canned_clean(void);
const struct nd_result *
nd_canned_incomplete(void); /* a layer is missing, names are hostile */
const struct nd_listing *nd_canned_listing(void);

#endif
