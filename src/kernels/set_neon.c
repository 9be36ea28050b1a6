/*
 * The kernels of aarch64.  NEON is part of every one: "base" is the same code under the name
 * that all machines have.
 */
#if defined(__aarch64__)
#include <arm_neon.h>

#include "kernels/set_tmpl.h"

#define TMPL_ISA      neon
#define TMPL_ID       ISA_NEON
#define TMPL_WIDTH    2
#define TMPL_TOGETHER 2
#define TMPL_HALVES   1
#include "kernels/ops_neon_tmpl.h"
#include "kernels/moments_tmpl.h"
#include "kernels/odd_tmpl.h"
#include "kernels/same_tmpl.h"
#include "kernels/bytes_tmpl.h"
#include "kernels/detail_tmpl.h"
#include "kernels/step_tmpl.h"

#define TMPL_ISA      base
#define TMPL_ID       ISA_BASE
#define TMPL_WIDTH    2
#define TMPL_TOGETHER 2
#define TMPL_HALVES   1
#include "kernels/ops_neon_tmpl.h"
#include "kernels/moments_tmpl.h"
#include "kernels/odd_tmpl.h"
#include "kernels/same_tmpl.h"
#include "kernels/bytes_tmpl.h"
#include "kernels/detail_tmpl.h"
#include "kernels/step_tmpl.h"

#else
typedef int set_neon_is_not_for_this_machine; /* a file may not be empty */
#endif
