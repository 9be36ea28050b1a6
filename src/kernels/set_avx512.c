/*
 * The avx512 kernels; built with -mavx512f -mavx512dq -mavx512bw -mavx512vl -mf16c.
 */
#if defined(__x86_64__)
#include <immintrin.h>

#include "kernels/set_tmpl.h"

#define TMPL_ISA      avx512
#define TMPL_ID       ISA_AVX512
#define TMPL_WIDTH    8
#define TMPL_TOGETHER 2
#define TMPL_HALVES   1
#include "kernels/ops_avx512_tmpl.h"
#include "kernels/moments_tmpl.h"
#include "kernels/whole_tmpl.h"
#include "kernels/odd_tmpl.h"
#include "kernels/odd_whole_tmpl.h"
#include "kernels/same_tmpl.h"
#include "kernels/bytes_tmpl.h"
#include "kernels/detail_tmpl.h"
#include "kernels/step_tmpl.h"

#else
typedef int set_avx512_is_not_for_this_machine; /* a file may not be empty */
#endif
