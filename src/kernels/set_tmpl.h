/*
 * What the kernels of all instruction sets need before their templates.  Each set has a file
 * of its own (set_*.c), built with the compiler flags of that set alone: a compiler that
 * knows the vectors of a whole file passes them in registers.
 *
 *   set_tmpl.h, ops_*_tmpl.h, moments_tmpl.h     in this order; then parts that some steps
 *   need (whole, odd, same ...), detail_tmpl.h and step_tmpl.h
 */
#include <float.h>
#include <math.h>
#include <string.h>

#include "kernels/kernel_set.h"
#include "kernels/load.h"
#include "kernels/pair_c64.h"

/* Which rows of dtypes.def the kernels decode themselves. */
#define TMPL_IF_ND_KIND_FLOAT(...) __VA_ARGS__
#define TMPL_IF_ND_KIND_INT(...)   __VA_ARGS__
#define TMPL_IF_ND_KIND_BOOL(...)  __VA_ARGS__
#define TMPL_IF_ND_KIND_COMPLEX(...)

/* gcc unrolls the loops over a step whole, and then runs out of registers. */
#if defined(__GNUC__) && !defined(__clang__) && __GNUC__ >= 8
#define TMPL_KEEP_LOOP _Pragma("GCC unroll 1")
#define TMPL_UNROLL    _Pragma("GCC unroll 4")
#else
#define TMPL_KEEP_LOOP
#define TMPL_UNROLL
#endif

#define TMPL_PASTE_(name, isa) name##_##isa
#define TMPL_PASTE(name, isa)  TMPL_PASTE_(name, isa)
#define TMPL(name)             TMPL_PASTE(name, TMPL_ISA)
