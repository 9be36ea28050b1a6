#!/bin/sh
# phrases.sh ROOT: the catalogue (src/text/*.def) and the code agree.  Every text that the
# code names stands in it; every text in it is used; every cause has a title, a whole page,
# advice, and phrases to search for.  (That both languages are there, test_catalogue.c says.)
cd "${1:?usage: phrases.sh ROOT}" || exit 1
folder=$(mktemp -d) || exit 1
trap 'rm -rf "$folder"' EXIT

# What stands in the tables, and every quoted word of the code.
cat src/text/*.def | sed -n 's/^ND_TEXT(\([^,]*\),.*/\1/p' | sort >"$folder/texts"
{
    find src -name '*.[ch]' -o -name '*.def' ! -path 'src/text/*' | LC_ALL=C sort |
        xargs grep -ohE '"[A-Za-z0-9_.-]+"' | tr -d '"'
    sed -n 's/^ND_OPTION(\([a-z]*\),.*/\1/p' src/cli/options.def
} | sort -u >"$folder/words"
[ -s "$folder/texts" ] && [ -s "$folder/words" ] || {
    echo "nothing under src: wrong ROOT?"
    exit 1
}

awk -v texts="$folder/texts" '
    BEGIN {
        while ((getline id < texts) > 0) {
            known[id] = 1
            order[++count] = id
            split(id, part, ".")
            family[part[1]] = 1
        }
    }
    { word[$0] = 1 }
    END {
        # 1. Named in the code, so it must be there.
        for (w in word)
            if (split(w, part, ".") > 1 && part[1] ~ /^(why|finding|advice|step|summary|cause|note|reason|warning|report|tool|help|order|explain|causes|tier|role|column)$/ &&
                w !~ /\.$/ && !(w in known) && w !~ /\.(c|h|def|json|csv|md|npy|pt|bin|data)$/) {
                print "no such text: " w
                bad = 1
            }
        # 2. Causes: those with a title, a page, or a summary.
        for (i = 1; i <= count; i++) {
            n = split(order[i], part, ".")
            if (part[1] == "summary" || (part[1] == "cause" && part[2] != "status" && n > 2))
                cause[part[2]] = 1
        }
        parts = split("title what looks proof unlike advice pytorch torch_npu cann search.1 search.2", need, " ")
        for (id in cause) {
            causes++
            for (k = 1; k <= parts; k++)
                if (!(("cause." id "." need[k]) in known)) {
                    print "no such text: cause." id "." need[k]
                    bad = 1
                }
        }
        if (causes < 55) {
            print "only " causes " causes: one was lost, or the pattern above is wrong"
            bad = 1
        }
        # 3. In the tables, so something must use it: by its whole id, or by what the code
        # puts together, the words after a family ("note.squeezed" by "squeezed").
        for (i = 1; i <= count; i++) {
            id = rest = order[i]
            sub(/\.(meaning|both)$/, "", rest)
            if (id in word || rest in word || id ~ /^causes\.group\./)
                continue
            n = split(rest, part, ".")
            if (part[1] == "cause" && (part[2] in cause))
                continue
            sub(/^[a-z]+\./, "", rest)
            if (rest in word)
                continue
            sub(/^(status|metric)\./, "", rest)
            if (rest in word)
                continue
            print "unused text: " id
            bad = 1
        }
        exit bad
    }' "$folder/words"
