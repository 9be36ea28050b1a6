#!/bin/sh
# machine.sh ROOT: what examples/run.sh does on machines that lack everything, played with a
# PATH of its own: the right words to the package manager, or the right words to the user.
root=${1:?usage: machine.sh ROOT}
bad=0

work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT

# machine USER-ID MANAGER: a bare machine in $work, where the manager only writes down how
# it was called.
machine() {
    rm -rf "${work:?}/bin" "$work/tree"
    mkdir -p "$work/bin" "$work/tree/tests/support" "$work/tree/examples"
    cp "$root/examples/run.sh" "$work/tree/examples/"
    cp "$root/tests/support/setup.sh" "$work/tree/tests/support/"
    for tool in sh awk sed tr grep env tail head cat mkdir dirname getconf; do
        ln -s "$(command -v $tool)" "$work/bin/$tool"
    done
    : >"$work/calls"
    script id "echo $1"
    script "$2" "echo \"$2 \$*\" >>'$work/calls'; exit 1"
}
script() {
    printf '#!/bin/sh\n%s\n' "$2" >"$work/bin/$1"
    chmod +x "$work/bin/$1"
}

# run TITLE FILE LINE...: run.sh must fail, and FILE (said or calls) must hold the lines.
run() {
    title=$1
    file=$work/$2
    shift 2
    if PATH=$work/bin env -u CC sh "$work/tree/examples/run.sh" >"$work/said" 2>&1; then
        echo "$title: succeeded with nothing there"
        bad=1
    fi
    for line in "$@"; do
        grep -qxF -- "$line" "$file" && continue
        echo "$title: no line \"$line\" in:"
        cat "$file"
        bad=1
    done
}

machine 1000 apt-get
run 'a user without sudo' said \
    '  a C compiler (gcc 7.3 or clang 10, or newer)' \
    '  CMake 3.16 or newer' \
    '  cJSON with its header' \
    '  apt-get update && apt-get install -y --no-install-recommends gcc libc6-dev make cmake zlib1g-dev libcjson-dev'
[ ! -s "$work/calls" ] || { echo 'a user without sudo: apt-get was called'; bad=1; }

machine 1000 apt-get
script sudo 'shift; "$@"'
run 'a user with sudo' calls \
    'apt-get install -y --no-install-recommends gcc libc6-dev make cmake zlib1g-dev libcjson-dev' \
    'apt-get update'

machine 0 dnf
run 'root with dnf' calls \
    'dnf install -y gcc glibc-devel make cmake zlib-devel cjson-devel'

machine 0 apk
run 'root with apk' calls 'apk add --no-cache gcc musl-dev make cmake zlib-dev cjson-dev'

machine 0 true
run 'root without a known package manager' said '  zlib with its header'
exit $bad
