/*
 * The avx2 kernels; built with -mavx2 -mfma -mf16c.
 */
#if defined(__x86_64__)
#include <immintrin.h>

#include "kernels/set_tmpl.h"

#define TMPL_ISA      avx2
#define TMPL_ID       ISA_AVX2
#define TMPL_WIDTH    4
#define TMPL_TOGETHER 1
#define TMPL_HALVES   1
#include "kernels/ops_avx2_tmpl.h"
#include "kernels/moments_tmpl.h"
#include "kernels/odd_tmpl.h"
#include "kernels/same_tmpl.h"
#include "kernels/bytes_tmpl.h"
#include "kernels/detail_tmpl.h"
#include "kernels/step_tmpl.h"

#else
typedef int set_avx2_is_not_for_this_machine; /* a file may not be empty */
#endif
