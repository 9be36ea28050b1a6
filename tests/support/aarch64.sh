# The part of tests/run.sh that is about 64-bit Arm.  POSIX sh; to be sourced after setup.sh.
#
# On a Debian x86-64 machine whose packages this run may install, everything that is C is
# built for aarch64 and its tests run under qemu's user mode, the NEON kernels included.
# Libraries come from the arm64 packages and lie where an Arm machine has them: with the
# cross compiler's own C library in their place (qemu-aarch64 -L) threads do not start.

aarch64_packages='gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user libcjson-dev:arm64 zlib1g-dev:arm64 libcmocka-dev:arm64'

aarch64_find_qemu() {
    for candidate in qemu-aarch64 qemu-aarch64-static; do
        aarch64_qemu=$(command -v "$candidate" 2>/dev/null) && return 0
    done
    return 1
}

# Whether a program with all libraries links and starts a thread.
aarch64_works() {
    aarch64_find_qemu && command -v aarch64-linux-gnu-gcc >/dev/null 2>&1 || return 1
    mkdir -p "$setup_probe"
    cat >"$setup_probe/aarch64.c" <<'END'
#include <cjson/cJSON.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <zlib.h>
#include <cmocka.h>
static void *run(void *argument) { return argument; }
int main(void)
{
    pthread_t thread;
    cmocka_set_message_output(CM_OUTPUT_STDOUT);
    return pthread_create(&thread, NULL, run, NULL) != 0 || pthread_join(thread, NULL) != 0 ||
           zlibVersion()[0] == 0 || cJSON_Version()[0] == 0;
}
END
    aarch64-linux-gnu-gcc "$setup_probe/aarch64.c" -o "$setup_probe/aarch64" -pthread \
        -lcmocka -lcjson -lz >/dev/null 2>&1 &&
        timeout 60 "$aarch64_qemu" "$setup_probe/aarch64" >/dev/null 2>&1
}

# Installs what is missing; puts the machine's list of architectures back on failure.
aarch64_install() {
    case $(. /etc/os-release 2>/dev/null && echo "${ID:-} ${ID_LIKE:-}") in
    *debian*) ;;
    *) return 1 ;;
    esac
    setup_find_manager
    [ "$setup_manager" = apt-get ] && setup_find_root silent || return 1
    grep -qx aarch64 "$root/build/setup.tried" 2>/dev/null && return 1
    setup_say "installing $aarch64_packages with apt-get (details in build/setup.log)"
    added=
    if ! dpkg --print-foreign-architectures | grep -qx arm64; then
        $setup_as dpkg --add-architecture arm64 >>"$setup_log" 2>&1 || return 1
        added=yes
    fi
    $setup_as apt-get update >>"$setup_log" 2>&1 </dev/null
    # shellcheck disable=SC2086
    setup_run_install $aarch64_packages && return 0
    printf 'aarch64\n' >>"$root/build/setup.tried"
    [ -z "$added" ] || $setup_as dpkg --remove-architecture arm64 >>"$setup_log" 2>&1
    return 1
}

# The tool as the tests start it: a script that calls qemu, beside the program itself.
aarch64_wrap() {
    head -c 4 "$1/normdiff" | grep -q ELF || return 0
    mv "$1/normdiff" "$1/normdiff.aarch64"
    printf '#!/bin/sh\nexec "%s" "%s" "$@"\n' "$aarch64_qemu" "$1/normdiff.aarch64" >"$1/normdiff"
    chmod +x "$1/normdiff"
}

# Whether the tests can run here; says why not.
aarch64_ready() {
    if [ "$(uname -s) $(uname -m)" != 'Linux x86_64' ]; then
        setup_say 'skipped: aarch64 under qemu (it is tried on x86-64)'
        return 1
    fi
    aarch64_works && return 0
    if aarch64_install && aarch64_works; then
        return 0
    fi
    setup_say "skipped: aarch64 under qemu (on Debian it needs $aarch64_packages)"
    return 1
}
