"""Random trees, continued from a random entry in the real agents: the model must get the path, the agent must list the
session, the source must keep its bytes (protocol.md §3.18), and an import must bring the answer below the entry, once
(session-file.md §5.8, "Home"). With several agents a conversation goes from one to another and back too.

An agent is a module of this folder with NAME and the class Agent; what is special about it here is in HANDOFFS.
"""

import argparse
import contextlib
import importlib
import json
import os
import random
import re
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import model

HERE = Path(__file__).resolve().parent
# The agents of `.ci/run`; tests/long/run has the others too.
AGENTS = ["codex", "opencode"]
# Characters of a text of which only the beginning is compared.
LONG = 8_000
# Longest time for an answer of the daemon, and for its end, in seconds.
PATIENCE = 300
NOT_RUN = "Not run: the branch ends here."
BEGINNING = "(The beginning of this conversation is not part of this session.)"
# A red square.
PNG = "iVBORw0KGgoAAAANSUhEUgAAAAgAAAAICAIAAABLbSncAAAAEklEQVR4nGP4z8CAFWEXHbQSACj/P8Fu7N9hAAAAAElFTkSuQmCC"
# Words of the agents themselves: goose does not believe that the stand-in sees, and Gemini CLI and Claude Code put an answer
# behind a path that ends without one.
OWN_WORDS = [
    "No response requested.",
    "[image omitted: model does not support vision]",
    "[The previous response was interrupted before it completed.]",
]
# Each agent's name of the shell.
SHELLS = {"claude-code": "Bash", "codex": "exec_command", "opencode": "bash", "gemini": "run_shell_command", "goose": "shell", "pi": "bash"}


class Treelined:
    """A daemon on pipes."""

    def __init__(self, program, sessions, environment):
        self._process = subprocess.Popen(
            [program, "--session-dir", sessions, "--summarizer", "outline"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=environment,
            text=True,
        )
        self._id = 0

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._process.stdin.close()
        try:
            self._process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
            raise

    def call(self, method, **params):
        self._id += 1
        request = {"jsonrpc": "2.0", "id": self._id, "method": method, "params": params}
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        # A daemon that does not answer is killed, which ends the reading.
        timer = threading.Timer(PATIENCE, self._process.kill)
        timer.start()
        try:
            return self._answer(method)
        finally:
            timer.cancel()

    def _answer(self, method):
        for line in self._process.stdout:
            answer = json.loads(line)
            if answer.get("id") == self._id:
                if "error" in answer:
                    raise AssertionError(f"{method}: {answer['error']}")
                return answer["result"]
        raise AssertionError(f"{method}: no answer within {PATIENCE} s, or the daemon has ended")


def grow(daemon, rng, cwd, size):
    """A session with a random tree. Returns its path and, for each entry, the entry."""
    session = daemon.call("create_session", cwd=cwd, name=f"Tree {size}", write="now")["session"]
    entries, names = {}, iter(f"e{number}" for number in range(10_000))
    # Trees that say the same could not be told apart where an agent chooses the id of what it gets.
    mark = f"{rng.randrange(1 << 32):08x}"

    def add(parent, kind, **members):
        name = next(names)
        entry = {"type": kind, "id": name, "parentId": parent, **members}
        daemon.call("append_entries", sessionId=session["sessionId"], entries=[entry])
        entries[name] = entry
        return name

    def said(parent, role, content, **members):
        usage = dict.fromkeys(["input", "output", "cacheRead", "cacheWrite", "totalTokens"], 0)
        cost = dict.fromkeys(["input", "output", "cacheRead", "cacheWrite", "total"], 0)
        answer = {"api": "x", "provider": "stub", "model": "stub-1", "usage": {**usage, "cost": cost}, "stopReason": "stop"}
        own = answer if role == "assistant" else {}
        return add(parent, "message", message={"role": role, "content": content, "timestamp": 1, **own, **members})

    tip = None
    for turn in range(size):
        if entries and rng.random() < 0.3:
            tip = rng.choice(list(entries))
        words = rng.choice(["plain", "two\n\nparagraphs", "quotes \" and \\ and `ticks`", "Ünïcode 🎉 \u2028", "a \ud83d lone one"])
        question = [{"type": "text", "text": f"Question {turn} {mark} {words}"}]
        if rng.random() < 0.15:
            question.append({"type": "image", "data": PNG, "mimeType": "image/png"})
        tip = said(tip, "user", question)
        for step in range(rng.choice([0, 0, 1, 1, 2])):
            blocks = [{"type": "thinking", "thinking": "Hm."}] if rng.random() < 0.4 else []
            if rng.random() < 0.5:
                blocks.append({"type": "text", "text": f"I look {turn}.{step}"})
            calls = [f"call.{turn}.{step}.{number}" for number in range(rng.choice([1, 1, 2, 3]))]
            for number, call in enumerate(calls):
                shell = {"type": "toolCall", "id": call, "name": "Bash", "arguments": {"command": f"ls {number}"}}
                other = {"type": "toolCall", "id": call, "name": "deploy", "arguments": {"to": ["prod", 1.5, None]}}
                blocks.append(other if rng.random() < 0.2 else shell)
            tip = said(tip, "assistant", blocks)
            for call in rng.sample(calls, len(calls)):
                # An open call, and an answer that no call has.
                if rng.random() < 0.1:
                    continue
                output = "x" * (1 << 20) if rng.random() < 0.03 else f"output of {call}"
                tip = said(tip, "toolResult", [{"type": "text", "text": output}], toolCallId=call, toolName="Bash", isError=rng.random() < 0.2)
        if rng.random() < 0.9:
            tip = said(tip, "assistant", [{"type": "text", "text": f"Answer {turn}"}])
        if rng.random() < 0.07:
            tip = add(tip, "compaction", summary=f"Summary {turn} {mark}", firstKeptEntryId=None, tokensBefore=9)
    return session, entries


def path_of(entries, name):
    path = []
    while name is not None:
        path.append(entries[name])
        name = entries[name]["parentId"]
    path.reverse()
    compactions = [at for at, entry in enumerate(path) if entry["type"] == "compaction"]
    return path[compactions[-1] :] if compactions else path


def expected(path, shell):
    """What the model must get, in parts: a letter and a text without white space. The last question is not part of it, and
    None stands for a path on which nobody has answered."""
    # The calls of the last answer with their results.
    parts, calls = [], {}

    def close():
        parts.extend(["r", result or NOT_RUN] for result in calls.values())
        calls.clear()

    for entry in path:
        if entry["type"] == "compaction":
            close()
            parts.append(["s", f"<summary>{entry['summary']}</summary>"])
            continue
        message = entry["message"]
        blocks = [block for block in message["content"] if block["type"] in ("text", "toolCall")]
        if message["role"] == "toolResult":
            if message["toolCallId"] in calls:
                calls[message["toolCallId"]] = blocks[0]["text"]
            continue
        close()
        letter = "u" if message["role"] == "user" else "a"
        for block in blocks:
            if block["type"] == "text":
                # Some agents note an answer without words.
                parts.extend([[letter, block["text"]]] if block["text"].strip() else [])
            else:
                parts.append(["c", {"Bash": shell}.get(block["name"], block["name"])])
                calls[block["id"]] = None
    close()
    while parts and parts[-1][0] == "u":
        parts.pop()
    if parts and parts[0][0] not in "us":
        parts.insert(0, ["u", BEGINNING])
    return joined(parts) if parts else None


def joined(parts):
    """Neighbours of one author are one part, whatever an agent makes of them."""
    whole = []
    for letter, text in parts:
        letter = "u" if letter == "s" else letter
        text = "".join(text.encode("utf-16", "surrogatepass").decode("utf-16", "replace").split())
        if len(text) > LONG:
            # Agents cut long results in their own ways.
            text = text[:100]
        if letter == "u" and "<summary>" in text:
            text = text[text.index("<summary>") :]
        if whole and letter in "ua" and whole[-1][0] == letter:
            whole[-1][1] += text
        else:
            whole.append([letter, text])
    return whole


def asked(request, prompt):
    """The parts of a request to the model, without the agent's own words and the prompt at the end."""
    parts = []
    for item in request.get("input") or request.get("messages") or []:
        kind, role = item.get("type", "message"), item.get("role")
        blocks = item.get("content")
        if isinstance(blocks, list) and any(block.get("type") in ("tool_use", "tool_result") for block in blocks):
            parts.extend(part for block in blocks for part in anthropic(block, role))
            continue
        if kind == "function_call":
            parts.append(["c", item["name"]])
        elif kind == "function_call_output":
            parts.append(["r", text_of(item["output"])])
        elif role == "tool":
            parts.append(["r", text_of(item["content"])])
        elif role == "user":
            # goose adds the time.
            text = text_of(item["content"]).split("\n<turn-context>")[0]
            if not text.lstrip().startswith(("<environment_context", "<user_instructions", "<permissions", "# AGENTS")):
                parts.append(["u", text])
        elif role == "assistant":
            text = text_of(item.get("content"))
            parts.extend([["a", text]] if text.strip() else [])
            parts.extend(["c", call["function"]["name"]] for call in item.get("tool_calls") or [])
    for item in request.get("contents") or []:
        for part in item["parts"]:
            if "functionCall" in part:
                parts.append(["c", part["functionCall"]["name"]])
            elif "functionResponse" in part:
                response = part["functionResponse"]["response"]
                parts.append(["r", response.get("output") or response.get("error") or ""])
            elif "text" in part:
                text = text_of(part["text"]).rpartition("</session_context>")[2]
                parts.append(["a" if item.get("role") == "model" else "u", text])
    whole = joined(parts)
    said = "".join(prompt.split())
    if not whole or not whole[-1][1].endswith(said):
        raise AssertionError(f"the request does not end with the prompt: {whole[-1:]}")
    whole[-1][1] = whole[-1][1].removesuffix(said)
    return [part for part in whole if part[1]]


def anthropic(block, role):
    """The parts of a block of Anthropic's interface."""
    if block["type"] == "tool_use":
        return [["c", block["name"]]]
    if block["type"] == "tool_result":
        return [["r", text_of(block.get("content"))]]
    if block["type"] == "text":
        return [["u" if role == "user" else "a", text_of(block["text"])]]
    return []


def text_of(content):
    if isinstance(content, list):
        return text_of("\n".join(piece.get("text", "") for piece in content))
    content = content or ""
    for words in OWN_WORDS:
        content = content.replace(words, "")
    return re.sub(r"(?s)<system-reminder>.*?</system-reminder>", "", content)


def check(agent, installed, program, seed, trees):
    """Trees, each continued once in one agent."""
    rng = random.Random(seed)
    with tempfile.TemporaryDirectory(prefix="treelined-handoff-") as folder, model.Model() as provider:
        with agent.Agent(installed, folder, provider.url) as running, daemon_in(folder, program) as daemon:
            for tree in range(trees):
                session, *picked = pick(daemon, rng, str(running.project), rng.randint(1, 8))
                prompt = f"Prompt {seed}.{tree}."
                _, answer, *turn = hand_over(agent, running, daemon, provider, prompt, session, *picked)
                if rng.random() < 0.3 and hasattr(running, "fork"):
                    fork_on(agent, running, daemon, f"{prompt}F", Path(session["path"]), answer, *turn)
    print(f"{agent.NAME}, seed {seed}: {trees} trees")


def check_there_and_back(agents, installed, program, seed, trees):
    """Trees that go from one agent to another and back, and stay one session."""
    rng = random.Random(seed)
    with tempfile.TemporaryDirectory(prefix="treelined-handoff-") as folder, contextlib.ExitStack() as stack:
        provider = stack.enter_context(model.Model())
        running = {agent: stack.enter_context(agent.Agent(installed, folder, provider.url)) for agent in agents}
        daemon = stack.enter_context(daemon_in(folder, program))
        for tree in range(trees):
            one, other = rng.sample(agents, 2)
            session, entries, entry = pick(daemon, rng, str(running[one].project), rng.randint(1, 4))
            for hop, agent in enumerate([one, other, one]):
                prompt = f"Prompt {seed}.{tree}.{hop}."
                entries, entry, *_turn = hand_over(agent, running[agent], daemon, provider, prompt, session, entries, entry)
    print(f"{', '.join(agent.NAME for agent in agents)}, seed {seed}: {trees} trees there and back")


def daemon_in(folder, program):
    sessions = f"{folder}/sessions"
    os.mkdir(sessions, 0o700)
    environment = {"PATH": os.environ["PATH"], "HOME": folder, "CODEX_HOME": f"{folder}/codex-home"}
    return Treelined(program, sessions, environment)


def pick(daemon, rng, cwd, size):
    """A session with a random tree, its entries, and the name of one at which a model has answered."""
    while True:
        session, entries = grow(daemon, rng, cwd, size)
        names = [name for name in entries if expected(path_of(entries, name), "") is not None]
        if names:
            return session, entries, rng.choice(names)
        size = 4


def hand_over(agent, running, daemon, provider, prompt, session, entries, entry):
    """Goes on from an entry in an agent, and takes the answer home. Returns the entries then, and the names of the answer, and of
    the agent's thread and turn."""
    file = Path(session["path"])
    wanted = expected(path_of(entries, entry), SHELLS[agent.NAME])
    before = file.read_bytes()
    daemon.call("open_session", path=session["path"])
    result = daemon.call("continue_session", sessionId=session["sessionId"], entryId=entry, tool=agent.NAME, limit=0)
    daemon.call("close_session", sessionId=session["sessionId"])
    after = file.read_bytes()
    if not after.startswith(before) or after[len(before) :].count(b"\n") != 1:
        raise AssertionError(f"{agent.NAME}, {prompt}: more than a record was written")
    native = running.take_over(result)
    turn = running.turn(native, prompt)
    requests = [request for request in provider.requests if not model.is_aside(request)]
    requests = [request for request in requests if prompt in json.dumps(request, ensure_ascii=False)]
    if not requests:
        raise AssertionError(f"{agent.NAME}, {prompt}: no request")
    found = asked(requests[-1], prompt)
    if found != wanted:
        differing = [(want, have) for want, have in zip(wanted, found) if want != have][:3]
        raise AssertionError(f"{agent.NAME}, {prompt}, entry {entry}: {len(wanted)} parts, {len(found)} asked\n{shorten(differing)}\n{shorten(wanted)}\n{shorten(found)}")
    if native not in running.listed():
        raise AssertionError(f"{agent.NAME}, {prompt}: the agent does not list {native}")
    if file.read_bytes() != after:
        raise AssertionError(f"{agent.NAME}, {prompt}: the source has changed")
    handed_over = json.loads(after.splitlines()[-1])["data"]["continuation"]["entryId"]
    try:
        return *come_home(agent, running, daemon, prompt, file, handed_over), native, turn
    except AssertionError as error:
        raise AssertionError(f"{agent.NAME}, {prompt}, entry {entry}: {error}") from error


def fork_on(agent, running, daemon, prompt, file, answer, thread, turn):
    """The agent's own fork of what it got goes on below its answer, in the same tree."""
    running.turn(running.fork(thread, turn), prompt)
    try:
        come_home(agent, running, daemon, prompt, file, answer)
    except AssertionError as error:
        raise AssertionError(f"{agent.NAME}, {prompt}, a fork: {error}") from error


def come_home(agent, running, daemon, prompt, file, above_it):
    """Imports what the agent keeps: below an entry are the prompt and the answer, and nothing else was said. Returns all entries,
    and the name of the answer."""
    before = file.read_bytes()
    report = take_home(agent, running, daemon)
    if report["totals"]["created"] or report["totals"]["failed"]:
        raise AssertionError(f"a separate session: {shorten(report)}")
    lines = file.read_bytes()
    if not lines.startswith(before):
        raise AssertionError("the import has changed what was written")
    take_home(agent, running, daemon)
    if file.read_bytes() != lines:
        raise AssertionError("a second import adds something")
    added = list(messages(lines[len(before) :]))
    texts = [(entry["message"]["role"], words(entry)) for entry in added]
    said = [(role, text) for role, text in texts if text]
    # The stand-in takes a prompt that the agent puts behind another text of the user for a request of a summary.
    answers = [answer for answer in (model.answer(prompt), model.SUMMARY) if said == [("user", prompt), ("assistant", answer)]]
    if not answers:
        raise AssertionError(f"the import adds {shorten(said)}")
    entries = {entry["id"]: entry for entry in entries_of(lines)}
    answer = added[[text for _, text in texts].index(answers[0])]["id"]
    if above_it not in ancestors(entries, answer):
        raise AssertionError(f"the answer is not below {above_it}")
    conversation = {name: entry for name, entry in entries.items() if entry["type"] in ("message", "compaction")}
    for entry in conversation.values():
        # Entries of other kinds are not part of what is handed over.
        above = (name for name in ancestors(entries, entry["parentId"]) if name in conversation)
        entry["parentId"] = next(above, None)
    return conversation, answer


def take_home(agent, running, daemon):
    return daemon.call("import_sessions", **{"from": agent.NAME}, paths=running.sources(), final=True)


def messages(lines):
    return (entry for entry in entries_of(lines) if entry["type"] == "message")


def entries_of(lines):
    """The entries of whole lines, the contents of messages as lists."""
    for line in lines.splitlines():
        entry = json.loads(line)
        if entry["type"] == "message" and isinstance(entry["message"]["content"], str):
            entry["message"]["content"] = [{"type": "text", "text": entry["message"]["content"]}]
        if entry["type"] != "session":
            yield entry


def words(entry):
    """What a message says, without the agent's own words."""
    blocks = entry["message"]["content"]
    return text_of("".join(block["text"] for block in blocks if block["type"] == "text")).strip()


def ancestors(entries, name):
    while name is not None:
        yield name
        name = entries[name]["parentId"]


def shorten(value):
    text = str(value)
    return text if len(text) < 2000 else f"{text[:1000]} … {text[-1000:]}"


def main():
    root = HERE.parent.parent
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("agents", nargs="*", default=AGENTS)
    parser.add_argument("--trees", type=int, default=8, help="number of trees for each agent")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--installed", default=root / "target/import")
    options = parser.parse_args()
    program = os.environ.get("TREELINED_BIN", root / "target/debug/treelined")
    start = time.monotonic()
    agents = [importlib.import_module(name.replace("-", "_")) for name in options.agents]
    # The others only bring conversations in.
    agents = [agent for agent in agents if hasattr(agent.Agent, "take_over")]
    for agent in agents:
        check(agent, options.installed, str(program), options.seed, options.trees)
    if len(agents) > 1:
        check_there_and_back(agents, options.installed, str(program), options.seed, max(options.trees // 4, 1))
    print(f"{time.monotonic() - start:.0f} s")


if __name__ == "__main__":
    sys.exit(main())
