# Data races in the thread pool and everything that runs on it.
#   cmake -C tests/presets/tsan.cmake -B build/tsan && cmake --build build/tsan
set(CMAKE_BUILD_TYPE Debug CACHE STRING "")
set(CMAKE_C_FLAGS_DEBUG "-O1 -g" CACHE STRING "")
set(NORMDIFF_SANITIZE "thread" CACHE STRING "")
