/*
 * The base kernels of x86-64.
 */
#if defined(__x86_64__)
#include <emmintrin.h>

#include "kernels/set_tmpl.h"

#define TMPL_ISA      base
#define TMPL_ID       ISA_BASE
#define TMPL_WIDTH    2
#define TMPL_TOGETHER 1
#define TMPL_HALVES   0
#include "kernels/ops_sse2_tmpl.h"
#include "kernels/moments_tmpl.h"
#include "kernels/odd_tmpl.h"
#include "kernels/same_tmpl.h"
#include "kernels/bytes_tmpl.h"
#include "kernels/detail_tmpl.h"
#include "kernels/step_tmpl.h"

#else
typedef int set_sse2_is_not_for_this_machine; /* a file may not be empty */
#endif
