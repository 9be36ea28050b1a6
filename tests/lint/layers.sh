#!/bin/sh
# layers.sh ROOT: every #include obeys the arrows of docs/architecture.md.
#
# A folder may include its own headers, base, the C library, and what its row names: a
# folder, or one header.  src/normdiff.c, where the parts meet, may include anything.
arrows='
base
tensor
kernels   tensor
metrics   kernels/moments.h
formats   tensor
ops       tensor
compare   formats kernels metrics tensor normdiff
checks    normdiff/result.h metrics ops kernels tensor
text
report    normdiff text
cli       normdiff text
'
# Open to every folder.
common='base normdiff/status.h normdiff/types.h'
# Libraries that are not C's own, and the one folder that may use them.
foreign='zlib.h cjson/cJSON.h'
foreign_folder=formats

cd "${1:?usage: layers.sh ROOT}" || exit 1
find src -mindepth 2 -name '*.[ch]' | sort | while read -r file; do
    grep -nE '^[ 	]*#[ 	]*include' "$file" | sed "s|^|$file:|"
done | awk -v arrows="$arrows" -v common="$common" -v foreign="$foreign" \
    -v foreign_folder="$foreign_folder" '
    BEGIN {
        rows = split(arrows, row, "\n")
        for (i = 1; i <= rows; i++) {
            cells = split(row[i], cell, " ")
            if (cells) known[cell[1]] = 1
            for (k = 2; k <= cells; k++) allowed[cell[1], cell[k]] = 1
        }
        cells = split(common, cell, " ")
        for (name in known) {
            allowed[name, name] = 1
            for (k = 1; k <= cells; k++) allowed[name, cell[k]] = 1
        }
        cells = split(foreign, cell, " ")
        for (k = 1; k <= cells; k++) guarded[cell[k]] = 1
    }
    function complain(what) { print place ": " what; bad = 1 }
    {
        split($0, part, ":")
        place = part[1] ":" part[2]
        folder = part[1]; sub(/^src\//, "", folder); sub(/\/.*/, "", folder)
        header = $0; sub(/^.*#[ \t]*include[ \t]*/, "", header)
        quoted = substr(header, 1, 1) == "\""
        header = substr(header, 2); sub(/[">].*$/, "", header)
        top = header; sub(/\/.*/, "", top)
        seen++
        if (!(folder in known)) complain("folder " folder " has no row in the table of arrows")
        else if (quoted && top == header) complain(header " is included without its folder")
        else if (quoted && !((folder, top) in allowed) && !((folder, header) in allowed))
            complain(folder " may not include " header)
        else if (!quoted && header in guarded && folder != foreign_folder)
            complain("only " foreign_folder " may include " header)
        else if (!quoted && (top in known || top == "normdiff"))
            complain(header " is ours: include it with quotes")
    }
    END {
        if (!seen) { print "no #include found under src: wrong ROOT?"; bad = 1 }
        exit bad
    }'
