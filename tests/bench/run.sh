#!/bin/sh
# Prints speeds beside ceilings and peers of the same run; on a quiet machine.
#
#   sh tests/bench/run.sh [BUILD-FOLDER]      default: build/
set -eu
root=$(CDPATH='' cd -- "$(dirname -- "$0")/../.." && pwd)
build=${1:-$root/build}
cmake --build "$build" --target bench normdiff_tool >/dev/null
python=python3
"$python" -c 'import numpy' 2>/dev/null || python=/usr/bin/python3
echo '== whole process'
"$python" "$root/tests/bench/whole.py" "$build/normdiff" "$build/tests/bench/bench_read"
echo '== kernels, from cache and from memory'
"$build/tests/kernels/test_check_kernels" --bench 2>/dev/null | head -n 40
echo '== device layouts beside contiguous bytes'
"$build/tests/bench/bench_layouts"
