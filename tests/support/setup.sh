# The set-up that examples/run.sh and tests/run.sh share.  POSIX sh; to be sourced, with
# `root` set to the top of the source tree.  Lists of needs and packages are words in one
# string, so they are expanded unquoted throughout.
# shellcheck disable=SC2086,SC2034
#
# What is missing is installed through the system's package manager by root or by a user
# with sudo.  Without either, the missing things are named with the command that installs
# them.  Where everything is there, no package manager is called.

setup_log=${root:?}/build/setup.log
setup_probe=$root/build/probe

# A need, and its packages for apt-get, for dnf and yum, and for apk ("-": none).
setup_table='
compiler   gcc,libc6-dev  gcc,glibc-devel  gcc,musl-dev  a C compiler (gcc 7.3 or clang 10, or newer)
make       make           make             make          make or ninja
cmake      cmake          cmake            cmake         CMake 3.16 or newer
zlib       zlib1g-dev     zlib-devel       zlib-dev      zlib with its header
cjson      libcjson-dev   cjson-devel      cjson-dev     cJSON with its header
cmocka     libcmocka-dev  libcmocka-devel  cmocka-dev    cmocka with its header
sanitizers -              libasan,libubsan -             AddressSanitizer and UBSan
pkgconfig  pkg-config     pkgconfig        pkgconf       pkg-config
cxx        g++            gcc-c++          g++           a C++ compiler
nm         binutils       binutils         binutils      nm
python     python3        python3          python3       Python 3
numpy      python3-numpy  python3-numpy    py3-numpy     NumPy
torch      python3-torch  -                -             PyTorch
'

setup_say() { printf '%s\n' "$*" >&2; }
setup_die() { setup_say "$@"; exit 1; }

# setup_row NEED COLUMN: one cell of the table; column 5 is the name for people.
setup_row() {
    printf '%s\n' "$setup_table" | awk -v need="$1" -v column="$2" '
        $1 == need && column < 5 { gsub(/,/, " ", $column); print $column }
        $1 == need && column == 5 { sub(/^([^ ]+ +)([^ ]+ +)([^ ]+ +)([^ ]+ +)/, ""); print }'
}

# --- what is there ------------------------------------------------------------------------

# setup_compiler_new COMMAND: whether it is gcc >= 7.3 or clang >= 10.
setup_compiler_new() {
    cat >"$setup_probe/compiler.c" <<'END'
#if defined(__clang__)
#if __clang_major__ < 10
#error "clang before 10"
#endif
#elif defined(__GNUC__)
#if __GNUC__ < 7 || (__GNUC__ == 7 && __GNUC_MINOR__ < 3)
#error "gcc before 7.3"
#endif
#else
#error "neither gcc nor clang"
#endif
END
    $1 -E "$setup_probe/compiler.c" >/dev/null 2>&1
}

# setup_compiler_fits COMMAND: whether it can also build a program; C library headers are a
# package of their own.
setup_compiler_fits() {
    setup_compiler_new "$1" || return 1
    printf '#include <stdio.h>\nint main(void) { return puts("") < 0; }\n' >"$setup_probe/links.c"
    $1 -std=c11 "$setup_probe/links.c" -o "$setup_probe/links" >/dev/null 2>&1
}

# Sets setup_cc.  CC is taken at its word: no other compiler is used in its place.
setup_find_compiler() {
    setup_cc=
    if [ -n "${CC:-}" ]; then
        setup_compiler_fits "$CC" || return 1
        setup_cc=$CC
        return 0
    fi
    for candidate in cc gcc clang \
        gcc-15 gcc-14 gcc-13 gcc-12 gcc-11 gcc-10 gcc-9 gcc-8 \
        clang-20 clang-19 clang-18 clang-17 clang-16 clang-15 clang-14 clang-13 clang-12 \
        clang-11 clang-10; do
        command -v "$candidate" >/dev/null 2>&1 || continue
        if setup_compiler_fits "$candidate"; then
            setup_cc=$candidate
            return 0
        fi
    done
    return 1
}

# Sets setup_cmake and setup_ctest.
setup_find_cmake() {
    for suffix in '' 3; do
        version=$("cmake$suffix" --version 2>/dev/null | sed -n '1s/[^0-9]*\([0-9]*\)\.\([0-9]*\).*/\1 \2/p')
        set -- $version
        if [ "${1:-0}" -gt 3 ] || { [ "${1:-0}" -eq 3 ] && [ "${2:-0}" -ge 16 ]; }; then
            setup_cmake=cmake$suffix
            setup_ctest=ctest$suffix
            return 0
        fi
    done
    return 1
}

# setup_links HEADER CALL LIBRARY: whether a program that makes the call links.
setup_links() {
    [ -n "$setup_cc" ] || return 1
    printf '#include <stdarg.h>\n#include <stddef.h>\n#include <stdint.h>\n#include <setjmp.h>\n#include <%s>\nint main(void) { %s; return 0; }\n' \
        "$1" "$2" >"$setup_probe/links.c"
    $setup_cc "$setup_probe/links.c" -o "$setup_probe/links" "-l$3" >/dev/null 2>&1
}

setup_sanitizers_work() {
    [ -n "$setup_cc" ] || return 1
    printf 'int main(void) { return 0; }\n' >"$setup_probe/sanitizers.c"
    $setup_cc -fsanitize=address,undefined "$setup_probe/sanitizers.c" \
        -o "$setup_probe/sanitizers" >/dev/null 2>&1 &&
        ASAN_OPTIONS=detect_leaks=0 "$setup_probe/sanitizers" >/dev/null 2>&1
}

# setup_find_python MODULE...: the first interpreter that has them all; sets setup_python.
# Another Python may come before the system's in PATH; packages go to the system's.
setup_find_python() {
    for candidate in "${PYTHON:-python3}" /usr/bin/python3; do
        if "$candidate" -c 'import importlib.util as u, sys
sys.exit(any(u.find_spec(name) is None for name in sys.argv[1:]))' "$@" 2>/dev/null; then
            setup_python=$candidate
            return 0
        fi
    done
    return 1
}

setup_has() {
    case $1 in
    compiler) setup_find_compiler ;;
    make) command -v make >/dev/null 2>&1 || command -v ninja >/dev/null 2>&1 ;;
    cmake) setup_find_cmake ;;
    zlib) setup_links zlib.h 'zlibVersion()' z ;;
    cjson) setup_links cjson/cJSON.h 'cJSON_Version()' cjson ;;
    cmocka) setup_links cmocka.h 'cmocka_set_message_output(CM_OUTPUT_STDOUT)' cmocka ;;
    sanitizers) setup_sanitizers_work ;;
    pkgconfig) command -v pkg-config >/dev/null 2>&1 ;;
    cxx) command -v c++ >/dev/null 2>&1 || command -v clang++ >/dev/null 2>&1 ;;
    nm) command -v nm >/dev/null 2>&1 ;;
    python) setup_find_python ;;
    numpy) setup_find_python numpy ;;
    torch) setup_find_python numpy torch ;;
    esac
}

# setup_look NEED...: sets missing to those that are not there.
setup_look() {
    missing=
    for need in "$@"; do
        setup_has "$need" || missing="$missing $need"
    done
}

# --- installing ---------------------------------------------------------------------------

# Sets setup_manager and setup_column; none is no error here.
setup_find_manager() {
    setup_manager=
    for entry in apt-get:2 dnf:3 yum:3 apk:4; do
        if command -v "${entry%:*}" >/dev/null 2>&1; then
            setup_manager=${entry%:*}
            setup_column=${entry#*:}
            return 0
        fi
    done
}

# Sets setup_as, the words before a command that needs root; 1 if there is no way.
setup_find_root() {
    setup_as=
    [ "$(id -u)" -eq 0 ] && return 0
    command -v sudo >/dev/null 2>&1 || return 1
    if sudo -n true </dev/null >/dev/null 2>&1; then
        setup_as='sudo -n'
    elif [ -t 0 ] && [ "$1" = ask ]; then
        setup_as=sudo
    else
        return 1
    fi
}

setup_packages() {
    for need in "$@"; do
        setup_row "$need" "$setup_column"
    done | tr '\n' ' ' | sed 's/ - / /g; s/^- //; s/ *$//'
}

setup_install_command() {
    case $setup_manager in
    apt-get) printf 'apt-get install -y --no-install-recommends %s' "$*" ;;
    dnf | yum) printf '%s install -y %s' "$setup_manager" "$*" ;;
    apk) printf 'apk add --no-cache %s' "$*" ;;
    esac
}

# setup_run_install PACKAGE...: one call of the package manager, its words in the log.
setup_run_install() {
    command_line=$(setup_install_command "$@")
    $setup_as env DEBIAN_FRONTEND=noninteractive $command_line >>"$setup_log" 2>&1 </dev/null
}

# setup_install NEED...: all at once, then what is still missing one by one, since one
# package that a distribution lacks must not keep the others out.
setup_install() {
    packages=$(setup_packages "$@")
    [ -n "$packages" ] || return 0
    setup_say "installing $packages with $setup_manager (details in build/setup.log)"
    setup_run_install $packages && return 0
    if [ "$setup_manager" = apt-get ] && [ -z "${setup_updated:-}" ]; then
        setup_updated=yes # a fresh machine has no package lists, an old one has stale ones
        $setup_as apt-get update >>"$setup_log" 2>&1 </dev/null
        setup_run_install $packages && return 0
    fi
    [ $# -gt 1 ] || return 0
    for need in "$@"; do
        # shellcheck disable=SC2046
        setup_has "$need" || setup_run_install $(setup_packages "$need")
    done
}

# setup_name_missing NEED...: what is missing, and what would install it.
setup_name_missing() {
    setup_say 'missing:'
    for need in "$@"; do
        setup_say "  $(setup_row "$need" 5)"
    done
    if [ -n "$setup_manager" ]; then
        setup_say 'as root, this installs it:'
        update=
        [ "$setup_manager" != apt-get ] || update='apt-get update && '
        setup_say "  $update$(setup_install_command "$(setup_packages "$@")")"
    fi
}

# setup_require NEED...: installs what is missing or ends the script, naming it.
setup_require() {
    if ! mkdir -p "$setup_probe" || [ ! -w "$setup_probe" ] || [ ! -w "$root/build" ]; then
        setup_die "$root/build cannot be written: remove it, or run from a copy that is yours"
    fi
    # A gcc that is not there yet is installed below; other compilers are for whoever set CC.
    case ${CC:-gcc} in
    gcc | cc) ;;
    *) setup_compiler_new "$CC" ||
        setup_die "CC is \"$CC\", which is not there, or is neither gcc 7.3 nor clang 10 or newer" ;;
    esac
    setup_look "$@"
    [ -n "$missing" ] || return 0
    setup_find_manager
    if [ -n "$setup_manager" ] && setup_find_root ask; then
        : >"$setup_log"
        if [ "$setup_as" = sudo ]; then
            setup_say "sudo asks for your password to install: $(setup_packages $missing)"
            sudo true
        fi
        setup_install $missing
        setup_look "$@"
        [ -n "$missing" ] || return 0
        setup_say "the installation did not succeed; the end of build/setup.log:"
        tail -n 15 "$setup_log" >&2
    fi
    setup_name_missing $missing
    exit 1
}

# setup_want NEED...: installs what is missing where that asks nobody anything; what is
# then still missing only makes tests skip, and is not tried again.
setup_want() {
    tried=$root/build/setup.tried
    setup_look "$@"
    [ -n "$missing" ] || return 0
    setup_find_manager
    if [ -n "$setup_manager" ] && setup_find_root silent; then
        for need in $missing; do
            grep -qx "$need" "$tried" 2>/dev/null && continue
            setup_install "$need"
            setup_has "$need" || printf '%s\n' "$need" >>"$tried"
        done
        setup_look "$@"
    fi
    for need in $missing; do
        setup_say "not here: $(setup_row "$need" 5); the tests that need it are skipped"
    done
}

# --- building -----------------------------------------------------------------------------

setup_jobs() { getconf _NPROCESSORS_ONLN 2>/dev/null || echo 2; }

# setup_logged TITLE LOG COMMAND...: runs quietly; the end of the log is shown on failure.
setup_logged() {
    title=$1
    log=$2
    shift 2
    setup_say "$title"
    "$@" >"$log" 2>&1 </dev/null && return 0
    tail -n 40 "$log" >&2
    setup_die "$title: failed; the whole log is $log"
}

# setup_configure TREE OPTION...: a tree that another compiler or another folder
# configured is configured afresh, as CMake would keep the old answers.
setup_configure() {
    tree=$1
    shift
    mkdir -p "$tree"
    identity="$root
$setup_cc
$($setup_cc --version 2>/dev/null | head -n 1)"
    if [ -e "$tree/CMakeCache.txt" ] && [ "$identity" != "$(cat "$tree/setup.id" 2>/dev/null)" ]; then
        rm -rf "$tree/CMakeCache.txt" "$tree/CMakeFiles"
    fi
    generator='Unix Makefiles'
    command -v make >/dev/null 2>&1 || generator=Ninja
    CC=$setup_cc setup_logged "configuring ${tree#"$root"/}/" "$tree/configure.log" \
        "$setup_cmake" -G "$generator" "$@" -S "$root" -B "$tree"
    printf '%s\n' "$identity" >"$tree/setup.id"
}

# setup_build TREE [TARGET]
setup_build() {
    setup_logged "building ${1#"$root"/}/" "$1/build.log" \
        "$setup_cmake" --build "$1" ${2:+--target "$2"} -j "$(setup_jobs)"
}
