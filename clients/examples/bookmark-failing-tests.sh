#!/bin/sh
# Labels every failed test run of a session, so that every view of the tree shows it and the filter
# `labeled-only` lists it. A second run labels only new failures.
#
#   bookmark-failing-tests.sh SESSION_ID
#
# Needs treelined and jq. A test run is a shell command that starts a test runner. The assistant has
# called it as a tool, or the user has run it. A search for tests or a commit about tests does not
# count. A test run has failed if its output says so, or if it alone can have caused the exit code
# of a failure. The leaf does not move.
set -eu

session=${1:?usage: bookmark-failing-tests.sh SESSION_ID}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# Sends the requests in a file to a new daemon. Fails at the first error.
ask() {
    treelined <"$1" | jq -c 'select(has("id")) | if .error then error(.error.message) else . end'
}

# Prints a request for the session.
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

# For each failed test run without a label, a request that adds one.
cat >"$work/failed.jq" <<'END'
# The words and operators of a shell command, without here-documents, comments and redirections.
def tokens:
  gsub("\\\\\n"; " ")
  | gsub("<<-?[ \t]*(?<q>['\"]?)(?<end>\\w+)\\k<q>(?<rest>[^\n]*)\n(?:[^\n]*\n)*?[ \t]*\\k<end>(?=\n|$)"; .rest)
  | [match("(?<none>#[^\n]*|[0-9]*[<>]+&?[ \t]*[^\\s;&|<>()]*)"
      + "|(?<next>&&|\\|\\||\\|&?|[;&\n()]+)"
      + "|(?<word>(?:[^\\s;&|<>()'\"\\\\]|\\\\.|'[^']*'|\"(?:[^\"\\\\]|\\\\.)*\")+)"; "g")
    | .captures | map(select(.string != null)) | .[0] // empty];

# The simple commands in it: the words of each, and the operator after it.
def commands: reduce tokens[] as $token ([];
    if $token.name == "word" then
      if length == 0 or .[-1].next then . + [{words: [$token.string]}]
      else .[:-1] + [.[-1] | .words += [$token.string]] end
    elif $token.name == "next" and length > 0 then
      .[:-1] + [.[-1] | .next = (.next // $token.string)]
    else . end);

# A simple command without assignments, and without programs that run their arguments as a program.
def bare: map(gsub("\\s"; "_")) | join(" ")
  | sub("^(?:(?:\\w+=\\S*|sudo(?: -\\S+)*|env|time|nohup|exec|command|if|then|else|do|while|until|!|\\{"
      + "|timeout(?: -\\S+)* \\S+|(?:npx|bunx|pnpx)(?: -\\S+)*|(?:pnpm|yarn|npm) (?:exec|dlx)(?: --)?"
      + "|bundle exec|(?:poetry|uv|pipenv|pdm|hatch) run|python[0-9.]*(?: -[A-Za-z])* -m|python[0-9.]*) )+"; "")
  | sub("^\\S*/(?=[\\w.-]+( |$))"; "./");

def is_test_run:
  "(?>(?: (?:\\+\\S+|-[CfpF] \\S+|-\\S+))*)" as $options
  | bare
  | test("^(?:\\./)?(?:"
      + "(?:cargo|go|deno|dotnet|swift|mix|flutter|dart|lein|stack|cabal|sbt|rails|composer|manage\\.py)\($options) (?:t|test)"
      + "|cargo\($options) (?:nextest\($options) run|miri test)|zig build test|node\($options) --test"
      + "|(?:npm|pnpm|yarn|bun)\($options)(?: run| run-script)?\($options) (?:t|tst|tests?(?:[:_-]\\S*)?)"
      + "|(?:make|just|task|ninja|rake|gradlew?|mvnw?|bazel|nx|turbo)\($options)(?: [\\w-]+)*? (?:\\S*:)?(?:tests?(?:[_-]\\S*)?|spec|verify|[a-z]+Test)"
      + "|(?:make|ninja|gradlew?)\($options) check"
      + "|pytest|py\\.test|unittest|nose2|tox|nox|jest|vitest|mocha|ava|karma|cypress run|playwright test"
      + "|rspec|ctest|phpunit|bats|gotestsum|prove)(?: |$)"
      + "|^(?:(?:ba|z)?sh (?:\\S*/)?|\\./)(?:run[_-])?tests?(?:\\.\\w+)?(?: |$)")
    and (test(" (?:-h|--help|--version|--no-run|--list|--list-?[tT]ests|--collect-only|--co)(?: |$)") | not);

# The test runs in a command. A command that is an argument of a shell is searched too.
def runs: commands as $commands
  | $commands | to_entries[]
  | (.value.words | bare) as $bare
  | if $bare | test("^(?:\\./)?(?:ba|z|da)?sh (?:-\\S+ )*-\\w*c ") then
      .value.words | last | ltrimstr("'") | rtrimstr("'") | ltrimstr("\"") | rtrimstr("\"") | runs
    elif .value.words | is_test_run then
      # Whether the exit code can come only from this run, or from a command before it.
      {run: (.value.words | join(" ") | sub("^(?:(?:if|then|else|do|while|until|!|\\{) )+"; "")), is_last: (.key == ($commands | length) - 1),
       is_masked: ($commands[.key:-1] | any(.next | test("^&&$") | not))}
    else empty end;

def says_failed: test("test result: FAILED|(?:^|[^\\d.])[1-9]\\d* (?:tests? |examples? |specs? )?fail(?:ed|ing|ures?)?\\b"
    + "|\\bfail(?:ed|ures?|s)?[:=] ?[1-9]|(?:^|\n)(?:not ok \\d|--- FAIL|FAIL(?:ED)?\\b|# fail [1-9]|ℹ fail [1-9])|FAILURES!|error: test failed"; "i");
def says_passed: test("test result: ok|\\b[1-9]\\d* (?:tests? |examples? |specs? )?pass(?:ed|ing)?\\b|(?:^|\n)(?:OK|PASS|ok)\\b|\\b0 fail"; "i");
def never_ran: test("command not found|: not found|Command (?:was )?(?:aborted|timed out|cancelled)"; "i");

# The failed test run among these, if there is one: by the output, otherwise by the exit code.
def failed($output; $exit_failed): map(select(
    if $output | says_failed then $exit_failed or .is_masked
    elif $output | never_ran then false
    elif .is_masked or (.is_last | not) and ($output | says_passed) then false
    else $exit_failed end)) | first // empty | .run;

def text: if type == "string" then . else [.[]? | .text? // empty] | join("\n") end;
def command: .command // .cmd // empty
  | if type == "array" then if .[1:2] == ["-c"] or .[1:2] == ["-lc"] then .[2] // "" else join(" ") end
    elif type == "string" then . else empty end;
def labeled: map(select(.type == "label")) | reduce .[] as $l ({}; .[$l.targetId] = $l.label);
# The command of each tool call, by the id of the call.
def called: map(select(.type == "message" and .message.role == "assistant")
    | .message.content | arrays[] | select(.type == "toolCall" and (.arguments | type) == "object")
    | {key: .id, value: (.arguments | command)}) | from_entries;

called as $called | labeled as $labels | .[]
| select(.type == "message" and ($labels[.id] // "") == "")
| . as $entry | .message
| if .role == "toolResult" then
    (.content | text) as $output
    | (.details | if type == "object" then .exitCode // .exit_code else null end) as $code
    | ($called[.toolCallId // ""] // empty)
    | [runs] | failed($output; $entry.message.isError == true or ($code // 0) != 0
        or ($output | test("exit(?:ed with)? (?:code|status):? [1-9]"; "i")))
  elif .role == "bashExecution" and (.cancelled | not) then
    (.output // "") as $output | (.exitCode // 0) as $code
    | .command | [runs] | failed($output; $code != 0)
  else empty end
| {jsonrpc: "2.0", id: $entry.id, method: "append_label",
   params: {sessionId: $session, targetId: $entry.id, label: "failed: \(gsub("\\s+"; " ")[:60])"}}
END
jq -sc --arg session "$session" -f "$work/failed.jq" "$work/entries" >"$work/labels"

if [ ! -s "$work/labels" ]; then
    echo "nothing to bookmark"
    exit
fi
{
    request open open_session '{}'
    cat "$work/labels"
    # Labels are entries, so the leaf is moved back: the next message must follow the conversation.
    request leaf set_leaf "$(jq -nc --argjson leafId "$leaf" '{$leafId}')"
} >"$work/requests"
ask "$work/requests" >/dev/null
jq -r '"\(.params.targetId)  \(.params.label)"' "$work/labels"
