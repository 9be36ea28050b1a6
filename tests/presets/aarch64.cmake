# A tool chain file, not a preset: builds for 64-bit Arm on another machine and runs the
# tests under qemu.  On Debian:
#   dpkg --add-architecture arm64 && apt-get update
#   apt-get install gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user libcjson-dev:arm64 zlib1g-dev:arm64 \
#       libcmocka-dev:arm64
#   cmake -DCMAKE_TOOLCHAIN_FILE=tests/presets/aarch64.cmake -B build/aarch64
# Tests that start the tool themselves (cli, contract, examples) need qemu registered with the
# kernel (package qemu-user-binfmt), or a script in the tool's place: tests/run.sh makes one.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)
find_program(NORMDIFF_QEMU NAMES qemu-aarch64 qemu-aarch64-static)
if(NORMDIFF_QEMU)
    set(CMAKE_CROSSCOMPILING_EMULATOR ${NORMDIFF_QEMU})
endif()
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(ENV{PKG_CONFIG_LIBDIR} /usr/lib/aarch64-linux-gnu/pkgconfig)
