# What users get, with debug information for profilers.
#   cmake -C tests/presets/release.cmake -B build/release && cmake --build build/release
set(CMAKE_BUILD_TYPE RelWithDebInfo CACHE STRING "")
set(CMAKE_C_FLAGS_RELWITHDEBINFO "-O3 -g -DNDEBUG" CACHE STRING "")
