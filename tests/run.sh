#!/bin/sh
# Builds normdiff and runs every test: one command on a fresh machine.
#
#   sh tests/run.sh          a release tree (build/) and one under AddressSanitizer and
#                            UBSan (build/asan); installs Python, NumPy and PyTorch too,
#                            which some tests check the figures against; on Debian also
#                            one for aarch64 (build/aarch64), tested under qemu
#   sh tests/run.sh --fast   the release tree only; installs what the build needs, no more
#
# Closes with ctest's own last lines and one line "N passed, N failed".
set -u
root=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd) || exit 1
. "$root/tests/support/setup.sh"
. "$root/tests/support/aarch64.sh"

fast=no
case ${1:-} in
'') ;;
--fast) fast=yes ;;
*) setup_die "usage: sh tests/run.sh [--fast]" ;;
esac

export PYTHONDONTWRITEBYTECODE=1
passed=0
failed=0
skipped=0

# count PATTERN LOG: how many of ctest's result lines match.
count() { grep -cE "^ *[0-9]+/[0-9]+ Test +#[0-9]+: .*$1" "$2"; }

# run_tests TREE OPTION...: ctest there; adds to the counts and shows its closing lines.
run_tests() {
    tree=$1
    shift
    log=$tree/ctest.log
    setup_say "testing ${tree#"$root"/}/"
    (cd "$tree" && $no_random "$setup_ctest" --output-on-failure --no-label-summary -j "$(setup_jobs)" "$@") \
        >"$log" 2>&1 </dev/null
    status=$?
    good=$(count ' Passed +[0-9.]+ sec' "$log")
    skip=$(count '\*\*\*Skipped ' "$log")
    all=$(count '' "$log")
    bad=$((all - good - skip))
    # Not one result, or a failure that no result shows: ctest itself broke.
    if [ "$all" -eq 0 ] || { [ "$status" -ne 0 ] && [ "$bad" -eq 0 ]; }; then
        bad=$((bad + 1))
    fi
    if [ "$bad" -gt 0 ]; then
        grep -vE '^ *[0-9]+/[0-9]+ .* Passed +[0-9.]+ sec|^ +Start +[0-9]+:' "$log"
    else
        sed -n '/tests passed,/,$p' "$log"
    fi
    passed=$((passed + good))
    failed=$((failed + bad))
    skipped=$((skipped + skip))
}

setup_require compiler make cmake zlib cjson cmocka
no_random=
setup_python=
if [ "$fast" = no ]; then
    setup_want nm cxx pkgconfig sanitizers python numpy torch
fi
setup_find_python numpy torch || setup_find_python numpy || setup_find_python
python_option=${setup_python:+-DNORMDIFF_PYTHON=$(command -v "$setup_python")}

setup_configure "$root/build" -DCMAKE_BUILD_TYPE=Release -DNORMDIFF_TESTS=ON \
    ${python_option:+"$python_option"}
setup_build "$root/build"
run_tests "$root/build"

if [ "$fast" = no ] && setup_has sanitizers; then
    setup_configure "$root/build/asan" -C "$root/tests/presets/asan.cmake" \
        ${python_option:+"$python_option"}
    setup_build "$root/build/asan"
    # Kernels with very wide address randomisation place mappings where AddressSanitizer
    # keeps its shadow; a program then dies at its start, now and then.
    machine=$(uname -m)
    if setarch "$machine" -R true >/dev/null 2>&1; then
        no_random="setarch $machine -R"
    fi
    # Leaks cannot be looked for under every container's ptrace rules.
    if ! $no_random "$setup_probe/sanitizers" >/dev/null 2>&1; then
        setup_say 'no leak checks: this machine does not let a process trace itself'
        export ASAN_OPTIONS="${ASAN_OPTIONS:+$ASAN_OPTIONS:}detect_leaks=0"
    fi
    # The sweep over instruction sets compares bits, which the release tree has done.
    run_tests "$root/build/asan" -LE '^(lint|install|slow|export|sweep)$'
fi

if [ "$fast" = no ] && aarch64_ready; then
    no_random=
    setup_configure "$root/build/aarch64" -DCMAKE_BUILD_TYPE=Release -DNORMDIFF_TESTS=ON \
        -DCMAKE_TOOLCHAIN_FILE="$root/tests/presets/aarch64.cmake" \
        ${python_option:+"$python_option"}
    setup_build "$root/build/aarch64"
    aarch64_wrap "$root/build/aarch64"
    # Whatever is C; the rest is the same on every machine, or takes qemu too long.
    run_tests "$root/build/aarch64" -LE '^(lint|install|slow|export|sweep)$' -E '^against_numpy$'
fi

[ "$skipped" -eq 0 ] || echo "$skipped skipped"
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
