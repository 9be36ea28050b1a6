# nd_warnings(<target>): our warnings, on our targets only; -Werror comes from presets.
include(CheckCCompilerFlag)
set(nd_warning_flags -Wall -Wextra -Wpedantic -Wshadow -Wconversion
    -Wstrict-prototypes -Wmissing-prototypes -Wvla -Wundef -Wcast-qual -Wpointer-arith
    -Wformat=2 -Wimplicit-fallthrough)
if(CMAKE_C_COMPILER_ID STREQUAL "GNU")
    # clang counts the standard macros NAN and INFINITY as promotions, so this is gcc's only.
    list(APPEND nd_warning_flags -Wdouble-promotion -Wlogical-op -Wduplicated-cond -Wduplicated-branches)
endif()
function(nd_warnings target)
    target_compile_options(${target} PRIVATE ${nd_warning_flags})
endfunction()
