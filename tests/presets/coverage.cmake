# Which lines the tests reach.
#   cmake -C tests/presets/coverage.cmake -B build/coverage && cmake --build build/coverage
#   cd build/coverage && ctest && gcovr -r ../.. . --filter ../../src/formats
set(CMAKE_BUILD_TYPE Debug CACHE STRING "")
set(CMAKE_C_FLAGS "--coverage" CACHE STRING "")
