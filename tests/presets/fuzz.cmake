# libFuzzer targets, one per format; needs clang.
#   CC=clang cmake -C tests/presets/fuzz.cmake -B build/fuzz && cmake --build build/fuzz
set(CMAKE_C_COMPILER clang CACHE STRING "")
set(CMAKE_BUILD_TYPE Debug CACHE STRING "")
set(CMAKE_C_FLAGS_DEBUG "-O1 -g" CACHE STRING "")
set(NORMDIFF_SANITIZE "address,undefined" CACHE STRING "")
set(NORMDIFF_FUZZ ON CACHE BOOL "")
