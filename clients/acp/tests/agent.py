"""An agent of ACP for the tests: answers prompts by their words, and logs nothing.

`tool` makes a call with an update, `plan` makes a plan between two texts, `slow` ends the turn only when it is cancelled, and so
does `ask`, which asks for a permission and says the answer, `terminal` opens a terminal of the editor, `die` ends the process in the middle of a turn, `think` thinks
first, `huge` says 48 MiB at once, `flood` makes as many calls with as many bytes as `FLOOD` says, `show` says the session, its mode, and the whole prompt. `ABOUT` has members of the answer to
`initialize`, `NEW` how many sessions can be made, `MADE` how many were made before, and `LISTS` the ids for `session/list`. `session/load` replays what `HISTORY` says,
and with `REPLAYS_FORKS` so does `session/fork`. `REMEMBERS` is a file with the conversations of its sessions, in which `session/load` and `session/fork` find them, and
`know` says the prompts of the session. `calls` says which sessions were to be closed and deleted. `STALLS` is a method and a file: a second
`session/new` or `session/set_mode`, or a first other one, makes the file and has no answer. With `STRICT` it refuses methods that it has not promised, and prompts
in sessions that it has not opened in this run; with `LATE` it reads further messages while it opens a session; with `IDS` its messages have ids. `COMMANDS` are the names that `session/new` announces. With `CATCHES` it tells the editor each signal of this list that it gets.
"""

import json
import os
import signal
import sys
import threading
import time


def send(message):
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def update(session, **members):
    send({"method": "session/update", "params": {"sessionId": session, "update": members}})


def chunk(session, kind, text):
    ids = {"messageId": f"m{turns}"} if "IDS" in os.environ else {}
    update(session, sessionUpdate=kind, content={"type": "text", "text": text}, **ids)


running = {}
modes = {}
made = int(os.environ.get("MADE", "0"))
turns = 0


asked = []


def memory(change=None):
    """The conversations by their sessions, after a change."""
    path = os.environ.get("REMEMBERS")
    if not path:
        return {}
    known = json.load(open(path)) if os.path.exists(path) else {}
    if change:
        change(known)
        with open(path, "w") as file:
            json.dump(known, file)
    return known


def prompt(request):
    global turns
    turns += 1
    session = request["params"]["sessionId"]
    texts = [block["text"] if "text" in block else block["resource"]["text"] for block in request["params"]["prompt"]]
    text = texts[-1]
    parts = [["user_message_chunk", part] for part in texts] + [["agent_message_chunk", f"You said: {text}"]]
    known = memory(lambda known: known.setdefault(session, []).extend(parts))
    if "know" in text and session in known:
        told = [part for kind, part in known[session] if kind == "user_message_chunk"]
        chunk(session, "agent_message_chunk", "Prompts: " + json.dumps(told))
    if "calls" in text:
        chunk(session, "agent_message_chunk", "Asked: " + json.dumps(asked))
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
    if "flood" in text:
        count, size = map(int, os.environ["FLOOD"].split())
        for number in range(count):
            call = {"toolCallId": f"f{number}", "title": "cat", "kind": "read", "rawInput": {"number": number}}
            update(session, sessionUpdate="tool_call", status="pending", **call)
            content = [{"type": "content", "content": {"type": "text", "text": f"{number} " + "x" * size}}]
            update(session, sessionUpdate="tool_call_update", toolCallId=f"f{number}", status="completed", content=content)
    if "terminal" in text:
        send({"id": 902, "method": "terminal/create", "params": {"sessionId": session, "command": "sleep"}})
        json.loads(sys.stdin.readline())
    if "die" in text:
        time.sleep(0.3)
        os._exit(7)
    if "show" in text:
        shown = [session, modes.get(session), request["params"]["prompt"]]
        chunk(session, "agent_message_chunk", json.dumps(shown, ensure_ascii=False))
    if "ask" in text:
        send({"id": 901, "method": "session/request_permission", "params": {"sessionId": session, "options": []}})
    if "slow" in text or "ask" in text:
        running[session] = request["id"]
        return
    usage = {"totalTokens": 12, "inputTokens": 10, "outputTokens": 2}
    ids = {"userMessageId": f"p{turns}"} if "IDS" in os.environ else {}
    send({"id": request["id"], "result": {"stopReason": "end_turn", "usage": usage, **ids}})


def replay(session):
    for kind, told in memory().get(session, json.loads(os.environ.get("HISTORY", "[]"))):
        if kind == "plan":
            update(session, sessionUpdate=kind, entries=[{"content": told}])
        elif isinstance(told, dict):
            update(session, sessionUpdate=kind, **told)
        else:
            chunk(session, kind, told)


def load(request):
    opened.add(request["params"]["sessionId"])
    replay(request["params"]["sessionId"])
    send({"id": request["id"], "result": None if "NULL" in os.environ else {}})


def catch(name):
    def tell(*_):
        send({"method": "_test/signal", "params": {"name": name}})

    signal.signal(getattr(signal, name), tell)


# The sessions that are open.
opened = set()


def new_id(least):
    """The id of a new session."""
    global made
    made = max(made + 1, least)
    opened.add(f"s{made}")
    return f"s{made}"


def lacks(method):
    """Whether the agent has not promised a method that needs a promise."""
    promised = json.loads(os.environ.get("ABOUT", "{}")).get("agentCapabilities", {})
    sessions = promised.get("sessionCapabilities", {})
    name = method.removeprefix("session/")
    if name == "load":
        return not promised.get("loadSession")
    return name in ("list", "fork", "resume", "close", "delete") and name not in sessions


seen = {}


def stalls(method):
    """Whether the agent never answers this."""
    stalled, _, file = os.environ.get("STALLS", "").partition(" ")
    seen[method] = seen.get(method, 0) + 1
    if method != stalled or seen[method] < (2 if method in ("session/new", "session/set_mode") else 1):
        return False
    open(file, "w").close()
    return True


def main():
    sys.stderr.write("agent starts\n")
    for name in os.environ.get("CATCHES", "").split():
        catch(name)
    for line in sys.stdin:
        request = json.loads(line)
        method = request.get("method")
        if stalls(method):
            continue
        if "STRICT" in os.environ and method and lacks(method):
            send({"id": request["id"], "error": {"code": -32601, "message": f"no {method}"}})
        elif method == "session/prompt" and "STRICT" in os.environ and request["params"]["sessionId"] not in opened:
            send({"id": request["id"], "error": {"code": -32002, "message": "Resource not found"}})
        elif method == "session/prompt":
            prompt(request)
        elif method == "initialize":
            about = json.loads(os.environ.get("ABOUT", "{}"))
            send({"id": request["id"], "result": {"protocolVersion": 1, **about}})
        elif method == "session/new" and made == int(os.environ.get("NEW", "-1")):
            send({"id": request["id"], "error": {"code": -32603, "message": "no more sessions"}})
        elif method == "session/new":
            session = new_id(1)
            send({"id": request["id"], "result": {"sessionId": session}})
            if "COMMANDS" in os.environ:
                commands = [{"name": word, "description": "of the agent"} for word in os.environ["COMMANDS"].split()]
                update(session, sessionUpdate="available_commands_update", availableCommands=commands)
        elif method == "session/fork":
            session, source = new_id(2), request["params"]["sessionId"]
            memory(lambda known: known.update({session: list(known.get(source, []))}))
            if "REPLAYS_FORKS" in os.environ:
                replay(session)
            send({"id": request["id"], "result": {"sessionId": session}})
        elif method == "session/load" and "LATE" in os.environ:
            threading.Timer(0.3, load, [request]).start()
        elif method == "session/load":
            load(request)
        elif method == "session/list" and "LISTS" in os.environ:
            sessions = [{"sessionId": session, "cwd": "/w"} for session in os.environ["LISTS"].split()]
            send({"id": request["id"], "result": {"sessions": sessions}})
        elif method in ("session/close", "session/delete"):
            asked.append([method.removeprefix("session/"), request["params"]["sessionId"]])
            opened.discard(request["params"]["sessionId"])
            if method == "session/delete":
                memory(lambda known: known.pop(request["params"]["sessionId"], None))
            send({"id": request["id"], "result": {}})
        elif method == "session/cancel":
            session = request["params"]["sessionId"]
            send({"id": running.pop(session), "result": {"stopReason": "cancelled"}})
        elif method is None:
            answer = request["result"]["outcome"]["outcome"]
            chunk(next(iter(running), "s1"), "agent_message_chunk", f"The answer is {answer}.")
        elif "id" in request:
            if method == "session/resume":
                opened.add(request["params"]["sessionId"])
            if method == "session/set_mode":
                modes[request["params"]["sessionId"]] = request["params"]["modeId"]
            send({"id": request["id"], "result": {"protocolVersion": 1}})


main()
