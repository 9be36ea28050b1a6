#!/bin/sh
# names.sh ROOT: no two files under src share a name, so a name says which file is meant.
cd "${1:?usage: names.sh ROOT}/src" || exit 1
twice=$(find . -name '*.[ch]' -o -name '*.def' | sed 's|.*/||' | sort | uniq -d)
[ -z "$twice" ] && exit 0
echo "file names that occur twice under src:"
for name in $twice; do
    find . -name "$name"
done
exit 1
