#!/bin/sh
# Builds normdiff and shows it at work: one command on a fresh machine.
#
#   sh examples/run.sh
#
# Compares two dumps of one small model that differ in the eps of one normalisation.
set -u
root=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd) || exit 1
. "$root/tests/support/setup.sh"

setup_require compiler make cmake zlib cjson
if [ -e "$root/build/CMakeCache.txt" ]; then
    setup_configure "$root/build" -DCMAKE_BUILD_TYPE=Release
else
    setup_configure "$root/build" -DCMAKE_BUILD_TYPE=Release -DNORMDIFF_TESTS=OFF
fi
setup_build "$root/build" normdiff_tool

cd "$root" || exit 1
echo
echo '$ build/normdiff examples/pairs/eps/gpu.dump examples/pairs/eps/npu.dump'
build/normdiff examples/pairs/eps/gpu.dump examples/pairs/eps/npu.dump
status=$?
echo
case $status in
1) echo "(Exit status 1 is right here: the two runs differ, and the report says where and why.)" ;;
*) setup_die "Exit status $status: this pair differs, so 1 was expected." ;;
esac
