#!/bin/sh
# Prints speeds beside ceilings and peers of the same run; on a quiet machine.
#
#   sh tests/bench/run.sh [BUILD-FOLDER]      default: build/
#
# NORMDIFF_BENCH_LARGE=1 goes on to pairs of 20 GB and of 11 GB (the diagnosis);
# NORMDIFF_BENCH_QUICK=1 takes small files;
# NORMDIFF_MSPROBE names the msprobe program (package mindstudio-probe) of a virtual
# environment where it is not in PATH.  TMPDIR says where the files go.
set -eu
root=$(CDPATH='' cd -- "$(dirname -- "$0")/../.." && pwd)
build=${1:-$root/build}
bench=$root/tests/bench
export PYTHONDONTWRITEBYTECODE=1
cmake --build "$build" --target bench normdiff_tool test_check_kernels >/dev/null
msprobe=${NORMDIFF_MSPROBE:-$(command -v msprobe || true)}
python=python3
"$python" -c 'import numpy, h5py' 2>/dev/null || python=/usr/bin/python3
size=536870912
[ -z "${NORMDIFF_BENCH_QUICK:-}" ] || size=33554432

uname -srm
sed -n 's/^model name.*: //p' /proc/cpuinfo | sort | uniq -c
"$python" "$bench/whole.py" "$build/normdiff" "$build/tests/bench/bench_read" --bytes "$size" \
    ${msprobe:+--msprobe "$msprobe"}
"$python" "$bench/growth.py" "$build/normdiff" "$build/tests/bench/bench_index" \
    "$build/tests/bench/bench_inflate" ${NORMDIFF_BENCH_LARGE:+--large} \
    ${msprobe:+--msprobe "$msprobe"}
with_torch=python3
"$with_torch" -c 'import torch' 2>/dev/null || with_torch=/usr/bin/python3
"$with_torch" "$bench/diagnosis.py" "$build/tests/bench/bench_diagnosis" \
    ${NORMDIFF_BENCH_QUICK:+--quick} ${NORMDIFF_BENCH_LARGE:+--large}
echo '== kernels, from cache and from memory'
"$build/tests/kernels/test_check_kernels" --bench 2>/dev/null | head -n 60
echo '== device layouts beside contiguous bytes'
"$build/tests/bench/bench_layouts"
