# Memory errors, leaks and undefined behaviour end the test that shows them.
#   cmake -C tests/presets/asan.cmake -B build/asan && cmake --build build/asan
# -O1 keeps stack traces readable and the corpus fast; assertions stay on.
set(CMAKE_BUILD_TYPE Debug CACHE STRING "")
set(CMAKE_C_FLAGS_DEBUG "-O1 -g" CACHE STRING "")
set(NORMDIFF_SANITIZE "address,undefined" CACHE STRING "")
