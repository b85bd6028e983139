"""An agent of ACP for the tests: answers prompts by their words, and logs nothing.

`tool` makes a call with an update, `plan` makes a plan between two texts, `slow` never ends the turn, `die` ends the
process in the middle of a turn, `think` thinks first, `huge` says 48 MiB at once. `session/load` replays what `HISTORY` says,
and with `REPLAYS_FORKS` so does `session/fork`. `COMMANDS` are the names that `session/new` announces. With `CATCHES` it tells the editor each signal of this list that it gets.
"""

import json
import os
import signal
import sys
import time


def send(message):
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def update(session, **members):
    send({"method": "session/update", "params": {"sessionId": session, "update": members}})


def chunk(session, kind, text):
    update(session, sessionUpdate=kind, content={"type": "text", "text": text})


def prompt(request):
    session = request["params"]["sessionId"]
    text = request["params"]["prompt"][0]["text"]
    if "think" in text:
        chunk(session, "agent_thought_chunk", "Let me ")
        chunk(session, "agent_thought_chunk", "think.")
    if "huge" in text:
        chunk(session, "agent_message_chunk", "x" * (48 << 20))
    for part in ("You said: ", text):
        chunk(session, "agent_message_chunk", part)
    if "plan" in text:
        update(session, sessionUpdate="plan", entries=[{"content": text, "priority": "high", "status": "pending"}])
        chunk(session, "agent_message_chunk", "Then that.")
    if "tool" in text:
        call = {"toolCallId": "c1", "title": "ls -l", "kind": "execute", "status": "pending", "name": "bash"}
        update(session, sessionUpdate="tool_call", **call)
        send({"id": 900, "method": "session/request_permission", "params": {"sessionId": session, "toolCall": {"toolCallId": "c1"}, "options": []}})
        json.loads(sys.stdin.readline())
        update(session, sessionUpdate="tool_call_update", toolCallId="c1", rawInput={"command": "ls -l"})
        content = [{"type": "content", "content": {"type": "text", "text": "total 0"}}]
        update(session, sessionUpdate="tool_call_update", toolCallId="c1", status="completed", content=content)
        chunk(session, "agent_message_chunk", "It is empty.")
    if "die" in text:
        time.sleep(0.3)
        os._exit(7)
    if "slow" in text:
        return
    usage = {"totalTokens": 12, "inputTokens": 10, "outputTokens": 2}
    send({"id": request["id"], "result": {"stopReason": "end_turn", "usage": usage}})


def replay(session):
    for kind, told in json.loads(os.environ["HISTORY"]):
        if kind == "plan":
            update(session, sessionUpdate=kind, entries=[{"content": told}])
        elif isinstance(told, dict):
            update(session, sessionUpdate=kind, **told)
        else:
            chunk(session, kind, told)


def catch(name):
    def tell(*_):
        send({"method": "_test/signal", "params": {"name": name}})

    signal.signal(getattr(signal, name), tell)


def main():
    sys.stderr.write("agent starts\n")
    for name in os.environ.get("CATCHES", "").split():
        catch(name)
    for line in sys.stdin:
        request = json.loads(line)
        method = request.get("method")
        if method == "session/prompt":
            prompt(request)
        elif method == "session/new":
            send({"id": request["id"], "result": {"sessionId": "s1"}})
            if "COMMANDS" in os.environ:
                commands = [{"name": name, "description": "of the agent"} for name in os.environ["COMMANDS"].split()]
                update("s1", sessionUpdate="available_commands_update", availableCommands=commands)
        elif method == "session/fork":
            if "REPLAYS_FORKS" in os.environ:
                replay("s2")
            send({"id": request["id"], "result": {"sessionId": "s2"}})
        elif method == "session/load":
            replay(request["params"]["sessionId"])
            send({"id": request["id"], "result": None if "NULL" in os.environ else {}})
        elif "id" in request:
            send({"id": request["id"], "result": {"protocolVersion": 1}})


main()
