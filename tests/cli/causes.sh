#!/bin/sh
# causes.sh ROOT TOOL: docs/causes.md and docs/causes.zh.md are what the catalogue yields.
# UPDATE=1 renews them.
root=${1:?usage: causes.sh ROOT TOOL}
tool=${2:?usage: causes.sh ROOT TOOL}
new=$(mktemp) || exit 1
trap 'rm -f "$new"' EXIT
bad=0
for lang in en zh; do
    page=$root/docs/causes.md
    [ "$lang" = en ] || page=$root/docs/causes.$lang.md
    "$tool" --explain all -f markdown --lang $lang >"$new" || exit 1
    if [ -n "$UPDATE" ]; then
        cat "$new" >"$page"
    elif ! diff "$page" "$new"; then
        echo "$page is not what the catalogue yields; renew it:"
        echo "    UPDATE=1 sh tests/cli/causes.sh . $tool"
        bad=1
    fi
done
exit $bad
