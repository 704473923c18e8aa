# Runs the commands of a page: the files $BLOCKS/*.sh, in order and in one shell, as a reader would type them. Ends at
# the first block that fails; each one that did not has a file *.done. Statuses and answers of curl are kept beside it.
set -o pipefail
trap 'kill $(jobs -p) 2>/dev/null' EXIT

curl() {
    local answer
    answer=$(mktemp "$BLOCK.answer.XXXXXX")
    command curl -sS --max-time 60 -o "$answer" -w '%{http_code}\n' "$@" >>"$BLOCK.statuses" || return
    cat "$answer"
}

for BLOCK in "$BLOCKS"/*.sh; do
    : >"$BLOCK.statuses"
    set -e
    . "$BLOCK" >"$BLOCK.out" 2>"$BLOCK.err"
    set +e
    : >"$BLOCK.done"
done
