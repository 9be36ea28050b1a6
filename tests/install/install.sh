#!/bin/sh
# install.sh MODE ROOT BUILD CMAKE COMPILER PREFIX: installs into a staging folder and builds
# examples/api against what lies there, as another project would.
#
# MODE: cmake_shared, cmake_static, pkgconfig_shared or pkgconfig_static.
mode=${1:?}
root=$2
build=$3
cmake=$4
compiler=$5
prefix=$6

work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
stage=$work/stage
fail() { echo "$*"; exit 1; }

case $mode in
pkgconfig_*) command -v pkg-config >/dev/null || { echo 'no pkg-config'; exit 77; } ;;
esac

DESTDIR=$stage "$cmake" --install "$build" >"$work/log" 2>&1 || { cat "$work/log"; exit 1; }
# Nothing that is installed may know where it was built or staged.
if grep -rIlF -e "$root/src" -e "$build" -e "$stage" "$stage"; then
    fail 'installed text files name the build machine'
fi
libdir=$(dirname "$(find "$stage$prefix" -name libnormdiff.a)")

case $mode in
cmake_*)
    static=OFF
    [ "$mode" = cmake_shared ] || static=ON
    if ! "$cmake" -S "$root/examples/api" -B "$work/api" -DCMAKE_C_COMPILER="$compiler" \
        -DCMAKE_PREFIX_PATH="$stage$prefix" -Dnormdiff_USE_STATIC_LIBS=$static \
        >"$work/log" 2>&1 || ! "$cmake" --build "$work/api" >>"$work/log" 2>&1; then
        cat "$work/log"
        exit 1
    fi
    program=$work/api/compare_two
    ;;
pkgconfig_*)
    program=$work/compare_two
    export PKG_CONFIG_PATH="$libdir/pkgconfig"
    export PKG_CONFIG_ALLOW_SYSTEM_CFLAGS=1 PKG_CONFIG_ALLOW_SYSTEM_LIBS=1
    if [ "$mode" = pkgconfig_shared ]; then
        flags=$(pkg-config --cflags --libs normdiff)
    else
        # The linker prefers a shared library of the same name; this asks for the archive.
        flags=$(pkg-config --static --cflags --libs normdiff |
            sed 's/-lnormdiff/-l:libnormdiff.a/')
    fi
    # shellcheck disable=SC2086
    "$compiler" "$root/examples/api/compare_two.c" -o "$program" $flags || exit 1
    ;;
esac

export LD_LIBRARY_PATH="$libdir"
needs=$(LC_ALL=C readelf -d "$program" | grep -c 'NEEDED.*libnormdiff\.so\.')
case $mode in
*_shared) [ "$needs" -eq 1 ] || fail 'the program was not linked with the shared library' ;;
*_static) [ "$needs" -eq 0 ] || fail 'the program was not linked with the archive' ;;
esac

# The eps pair: a model with one changed eps, which is drift and exit status 1.
"$program" "$root/examples/pairs/eps/gpu.dump" "$root/examples/pairs/eps/npu.dump" >"$work/out"
status=$?
cat "$work/out"
[ $status -eq 1 ] || fail "exit status $status, not 1"
grep -q '^verdict: drift$' "$work/out" || fail 'no verdict "drift"'
grep -q '^first divergence: #' "$work/out" || fail 'no first divergence'

# The installed tool stands alone and says the same.
"$stage$prefix/bin/normdiff" -q "$root/examples/pairs/eps/gpu.dump" \
    "$root/examples/pairs/eps/npu.dump"
status=$?
[ $status -eq 1 ] || fail "the installed tool: exit status $status, not 1"
exit 0
