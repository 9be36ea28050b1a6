#!/bin/sh
# headers.sh ROOT LANGUAGE COMPILER...: every header compiles by itself.
#
# LANGUAGE c: all headers of include and src, as C11.  LANGUAGE c++: the public ones.
# 77 (skip) where the compiler cannot compile an empty file of that language.
root=${1:?usage: headers.sh ROOT LANGUAGE COMPILER...}
language=$2
shift 2

# Bodies that another file includes several times, each time under other macros.
templates='_tmpl\.h$|/load_[a-z0-9]*\.h$'

case $language in
c) flags=-std=c11 folders='include src' ;;
c++) flags=-std=c++11 folders=include ;;
esac
compile() { "$@" -x "$language" "$flags" -fsyntax-only -Wall -Wextra -Werror \
    -Wno-unused-function -Wno-unused-const-variable -I include -I src -; }

cd "$root" || exit 1
compile "$@" </dev/null || exit 77
bad=0
count=0
# shellcheck disable=SC2086
for header in $(find $folders -name '*.h' | grep -vE "$templates" | sort); do
    count=$((count + 1))
    printf '#include "%s"\n' "${header#*/}" | compile "$@" ||
        { echo "$header does not compile alone as $language"; bad=1; }
done
[ $count -gt 0 ] || bad=1
exit $bad
