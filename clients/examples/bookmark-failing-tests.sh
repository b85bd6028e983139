#!/bin/sh
# Labels every failed test run of a session, so that it stands out in every view of the tree and
# `labeled-only` lists them. Running it again labels only what is new.
#
#   bookmark-failing-tests.sh SESSION_ID
#
# Needs treelined and jq. A test run is a shell command that names a test runner, called by the
# assistant as a tool or by the user. The leaf stays where it stood.
set -eu

session=${1:?usage: bookmark-failing-tests.sh SESSION_ID}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# Sends the requests in a file to a daemon of their own; fails with the first error.
ask() {
    treelined <"$1" | jq -c 'select(has("id")) | if .error then error(.error.message) else . end'
}

# A request by method and params, the session among them.
request() {
    jq -nc --arg session "$session" --arg id "$1" --arg method "$2" --argjson params "$3" \
        '{jsonrpc: "2.0", $id, $method, params: ($params + {sessionId: $session})}'
}

# All entries, page by page.
since=null
: >"$work/entries"
while [ -n "$since" ]; do
    {
        request open open_session '{}'
        request page get_entries "$(jq -nc --argjson since "$since" '{limit: 10000, $since}')"
    } >"$work/requests"
    ask "$work/requests" >"$work/answers"
    jq -c 'select(.id == "page") | .result.entries[]' "$work/answers" >>"$work/entries"
    since=$(jq -c 'select(.id == "page") | .result.nextCursor // empty' "$work/answers")
done
leaf=$(jq -c 'select(.id == "page") | .result.leafId' "$work/answers")

# Failed test runs without a label, as requests for one.
jq -sc --arg session "$session" '
    def is_test: test("\\b(test|pytest|jest|vitest|rspec|ctest)\\b");
    def labeled: map(select(.type == "label")) | reduce .[] as $l ({}; .[$l.targetId] = $l.label);
    # Calls by id: what each tool call ran.
    def commands: map(select(.type == "message" and .message.role == "assistant")
        | .message.content | arrays[] | select(.type == "toolCall" and .arguments.command?)
        | {key: .id, value: .arguments.command}) | from_entries;
    commands as $commands | labeled as $labels | .[]
    | select(.type == "message" and ($labels[.id] // "") == "")
    | . as $entry | .message
    | if .role == "toolResult" and .isError then $commands[.toolCallId] // empty
      elif .role == "bashExecution" and (.exitCode // 0) != 0 then .command
      else empty end
    | select(is_test)
    | {jsonrpc: "2.0", id: $entry.id, method: "append_label",
       params: {sessionId: $session, targetId: $entry.id, label: "failed: \(gsub("\\s+"; " ")[:60])"}}
' "$work/entries" >"$work/labels"

if [ ! -s "$work/labels" ]; then
    echo "nothing to bookmark"
    exit
fi
{
    request open open_session '{}'
    cat "$work/labels"
    # Labels are entries: whoever appends next shall go on where the conversation stood.
    request leaf set_leaf "$(jq -nc --argjson leafId "$leaf" '{$leafId}')"
} >"$work/requests"
ask "$work/requests" >/dev/null
jq -r '"\(.params.targetId)  \(.params.label)"' "$work/labels"
