# For writing code: assertions on, no optimisation, a warning is an error.
#   cmake -C tests/presets/dev.cmake -B build/dev && cmake --build build/dev
set(CMAKE_BUILD_TYPE Debug CACHE STRING "")
set(CMAKE_C_FLAGS "-Werror" CACHE STRING "")
set(CMAKE_EXPORT_COMPILE_COMMANDS ON CACHE BOOL "")
