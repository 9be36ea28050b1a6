#!/bin/sh
# bites.sh LINT-FOLDER COMPILER: each lint passes a sound little tree and fails it once the
# fault that it exists for is put in.
lint=${1:?usage: bites.sh LINT-FOLDER COMPILER}
compiler=$2
bad=0

work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT

# A tree that every lint passes.
sound() {
    rm -rf "$work/tree"
    mkdir -p "$work/tree/src/base" "$work/tree/src/report" "$work/tree/src/cmake" \
        "$work/tree/include/normdiff" "$work/tree/tests" "$work/tree/examples" \
        "$work/tree/docs"
    cd "$work/tree" || exit 1
    : >CMakeLists.txt
    : >README.md
    echo 'int nd_version(void);' >include/normdiff/normdiff.h
    printf '{\n nd_version;\n}\n' >src/cmake/exports.map
    echo 'struct out { int at; };' >src/base/out.h
    printf '#include "normdiff/normdiff.h"\n#include "base/out.h"\nint nd_version(void) { return 1; }\n' \
        >src/report/report.c
}
# The archive of the tree as it is now.
archive() { "$compiler" -c -Iinclude -Isrc src/report/report.c -o report.o &&
    rm -f lib.a && ar rc lib.a report.o; }

# passes NAME COMMAND... / fails NAME COMMAND...
passes() { name=$1; shift; "$@" >log 2>&1 || { echo "a sound tree fails: $name"; cat log; bad=1; }; }
fails() { name=$1; shift; "$@" >log 2>&1 && { echo "not noticed: $name"; bad=1; }; }

sound
passes layers sh "$lint/layers.sh" .
passes names sh "$lint/names.sh" .
passes size sh "$lint/size.sh" .
passes words sh "$lint/words.sh" .
passes headers sh "$lint/headers.sh" . c "$compiler"
archive && passes symbols sh "$lint/symbols.sh" . nm lib.a

echo '#include "report/x.h"' >>src/base/out.h
fails 'base includes report' sh "$lint/layers.sh" .
sound
echo '#include <zlib.h>' >>src/report/report.c
fails 'report includes zlib' sh "$lint/layers.sh" .
sound
cp src/base/out.h src/report/out.h
fails 'two files of one name' sh "$lint/names.sh" .
sound
awk 'BEGIN { for (i = 0; i < 401; i++) print "/* */" }' >src/base/long.c
fails 'a file of 401 lines' sh "$lint/size.sh" .
sound
printf 'see /%s/main\n' work >docs/page.md
fails "a machine's folder" sh "$lint/words.sh" .
sound
echo 'size_t nd_size(void);' >>src/base/out.h
fails 'a header that needs another' sh "$lint/headers.sh" . c "$compiler"
sound
echo 'int stray(void) { return 0; }' >>src/report/report.c
archive && fails 'a symbol without prefix' sh "$lint/symbols.sh" . nm lib.a
sound
echo 'int nd_list(void);' >>include/normdiff/normdiff.h
archive && fails 'a function that the map lacks' sh "$lint/symbols.sh" . nm lib.a
exit $bad
