#!/bin/sh
# package.sh KIND CPACK CONFIG: makes packages of one kind and looks into them.
#
# KIND: TGZ, DEB or RPM; 77 (skip) where the tool for it is missing.
kind=${1:?usage: package.sh KIND CPACK CONFIG}
cpack=$2
config=$3

work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
fail() { echo "$*"; exit 1; }

case $kind in
DEB) command -v dpkg-deb >/dev/null || { echo 'no dpkg-deb'; exit 77; } ;;
RPM) command -v rpmbuild >/dev/null || { echo 'no rpmbuild'; exit 77; } ;;
esac
"$cpack" -G "$kind" --config "$config" -B "$work" >"$work/log" 2>&1 ||
    { cat "$work/log"; exit 1; }

# holds LIST PATTERN...: each pattern matches a line of the list.
holds() {
    list=$1
    shift
    for pattern in "$@"; do
        grep -qE "$pattern" "$list" || { cat "$list"; fail "$kind: nothing like $pattern"; }
    done
}
# files PACKAGE-PATTERN: the list of files in the one package of that name.
files() {
    # shellcheck disable=SC2086
    set -- "$work"/$1
    { [ $# -eq 1 ] && [ -f "$1" ]; } || fail "$kind: not one package $1"
    case $kind in
    TGZ) tar -tzf "$1" ;;
    DEB) dpkg-deb -c "$1" | awk '{ print $6 }' ;;
    RPM) rpm -qlp "$1" ;;
    esac
}

tool='bin/normdiff$ man1/normdiff.1 LICENSE$ bash-completion/completions/normdiff$'
lib='libnormdiff\.so\.0$ libnormdiff\.so\.0\.'
dev='libnormdiff\.a$ libnormdiff\.so$ normdiff/normdiff\.h$ normdiff\.pc$ normdiffConfig\.cmake$'
# shellcheck disable=SC2086
case $kind in
TGZ)
    files '*.tar.gz' >"$work/list" || exit 1
    holds "$work/list" $tool $lib $dev
    ;;
DEB)
    files 'normdiff_*.deb' >"$work/list" && holds "$work/list" $tool || exit 1
    files 'libnormdiff0_*.deb' >"$work/list" && holds "$work/list" $lib || exit 1
    files 'libnormdiff-dev_*.deb' >"$work/list" && holds "$work/list" $dev || exit 1
    ;;
RPM)
    files 'normdiff-[0-9]*.rpm' >"$work/list" && holds "$work/list" $tool || exit 1
    files 'libnormdiff0-*.rpm' >"$work/list" && holds "$work/list" $lib || exit 1
    files 'normdiff-devel-*.rpm' >"$work/list" && holds "$work/list" $dev || exit 1
    ;;
esac
exit 0
