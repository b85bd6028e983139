"""Moves with real agents, offline, behind the recorder with `--live`: after each move the next request to the model must have the
chosen branch, and nothing else of the conversation. Where no sessions of an agent's own kind can be made, it gets the branch as
a text.

Moves by chance depend on TREELINED_TEST_SEED.
"""

import argparse
import json
import os
import random
import tempfile
import time
from pathlib import Path

from agents import AGENTS, FORKING, Peer, bring, said
from model import Model, is_aside

# What the answer to a move says, by the way that was taken.
NATIVE, LEFT = "The agent has what was said before.", "The agent continues its own session of this branch."
NEW, TEXT = "The agent begins an empty conversation.", "The agent gets what was said before as text, with your next prompt."
# No sessions of their own kind are made for these.
BY_TEXT = ["gemini"]


def is_text_of(before, others, request):
    """Whether the text of a request has all prompts and answers of a path, in order, and none of the other prompts."""
    told, at = json.dumps(request, ensure_ascii=False), 0
    if any(other in told for other in others):
        return False
    for _, words in before:
        at = told.find(words, at)
        if at < 0:
            return False
    return True


def parts(request):
    """What a request says of the test's conversation, in order: prompts, answers, calls of the shell and their results."""
    found = []

    def text(role, words):
        # goose puts the time behind a prompt.
        words = words.split("\n<turn-context>")[0].strip()
        if role == "user" and words.startswith("Prompt "):
            found.append(("user", words))
        elif role in ("assistant", "model") and words:
            found.append(("assistant", words))

    def block(role, piece):
        kind = piece.get("type")
        if kind in ("tool_use", "function_call") or "functionCall" in piece:
            found.append(("call", "echo hello" in json.dumps(piece)))
        elif kind in ("tool_result", "function_call_output") or "functionResponse" in piece:
            found.append(("result", "hello" in json.dumps(piece)))
        else:
            text(role, piece.get("text") or "")

    for item in request.get("input") or request.get("messages") or request.get("contents") or []:
        role, content = item.get("role"), item.get("content", item.get("parts"))
        if role == "tool":
            found.append(("result", "hello" in json.dumps(content)))
        elif item.get("type", "message") != "message":
            block(role, item)
        elif isinstance(content, str):
            text(role, content)
        else:
            for piece in content or []:
                block(role, piece)
        found += [("call", "echo hello" in json.dumps(call)) for call in item.get("tool_calls") or []]
    return found


# As Zed says: agents then tell what a command writes in a terminal.
CAPABILITIES = {"_meta": {"terminal_output": True}}


class Talk:
    """A conversation of one editor with an agent."""

    def __init__(self, options, name, model, folder):
        self.name, self.model, self.folder, self.daemon = (name, model, folder, options.daemon)
        agent, self.environment, self.store = AGENTS[name](Path(options.installed), folder, model.url)
        self.place = {"cwd": str(folder / "project"), "mcpServers": []}
        self.recorded = folder / "recorded"
        kept = ["--session-dir", str(self.recorded), "--state", str(folder / "acp")]
        self.command = [options.recorder, *kept, "--daemon", self.daemon, "--live", "--", *agent]
        # The prompts on the path to each prompt, by its number, and the id of the answer to it.
        self.paths, self.ids = {0: []}, {}
        # How much of a path the agent has as a text, by its last prompt.
        self.as_text, self.goes_as_text = {}, None
        # Prompts that a call has followed.
        self.called = set()
        self.start()
        self.session = self.editor.ask("session/new", self.place)["sessionId"]

    def start(self):
        self.editor = Peer(self.command, self.folder / "project", self.environment)
        self.editor.ask("initialize", {"protocolVersion": 1, "clientCapabilities": CAPABILITIES})

    def spoken(self, path):
        """The parts of a path of prompts, with their answers."""
        told = []
        for prompt in path:
            told.append(("user", prompt))
            told += [("call", True), ("result", True)] if prompt in self.called else []
            told.append(("assistant", f"You said: {prompt}"))
        return told

    def start_again(self):
        """The next run opens the session. Returns its path."""
        self.editor.end()
        self.start()
        return self.load(self.session)

    def ask(self, before, text, session=None):
        """Goes on behind a path. Returns the new one."""
        session = session or self.session
        self.editor.prompt(session, text)
        path = [*before, text]
        number = len(self.paths)
        self.paths[number] = path
        chunks = [update["update"] for update in self.editor.updates]
        ids = [chunk.get("messageId") for chunk in chunks if chunk["sessionUpdate"] == "agent_message_chunk"]
        self.ids[number] = next((id for id in reversed(ids) if id), None)
        asked = [request for request in self.model.requests if not is_aside(request)]
        pairs = ((parts(request), request) for request in reversed(asked))
        heard, request = next(pair for pair in pairs if ("user", text) in pair[0])
        # goose has no shell in some sessions.
        if " RUN " in text and (self.name != "goose" or heard[-1][0] == "result"):
            self.called.add(text)
        length = self.goes_as_text if self.goes_as_text is not None else self.as_text.get(tuple(before), 0)
        self.as_text[tuple(path)], self.goes_as_text = length, None
        told = [(role, words) for role, words in self.spoken(before[:length]) if role in ("user", "assistant")]
        others = {prompt for other in self.paths.values() for prompt in other} - {*path}
        assert is_text_of(told, others if length else [], request), f"{self.name}: {told} is not in\n{request}"
        wanted = [*self.spoken(before[length:]), *self.spoken([text])[:-1]]
        assert heard == wanted, f"{self.name}: the model got\n{heard}\nand not\n{wanted}"
        return path

    def number(self, prompt):
        return next(number for number, path in self.paths.items() if path and path[-1] == prompt)

    def move(self, line, to):
        """Goes to the path behind a prompt."""
        told = self.editor.prompt(self.session, line)
        path = self.paths[to]
        by = next((way for way in (NATIVE, LEFT, NEW, TEXT) if way in told), None)
        assert by and (by != TEXT or self.name in BY_TEXT), f"{self.name}: {line}: {told}"
        self.goes_as_text = None if by == LEFT else len(path) if by == TEXT else 0
        return path

    def fork(self, number):
        """A copy that ends with the answer to a prompt; the whole conversation without a number."""
        about = {} if number is None else {"_meta": {"treelined": {"messageId": self.ids[number]}}}
        return self.editor.ask("session/fork", {"sessionId": self.session, **self.place, **about})["sessionId"]

    def branches(self):
        """The branches that the list of sessions has beside those of the agent."""
        rows, cursor = [], None
        while True:
            about = {"cursor": cursor} if cursor else {}
            page = self.editor.ask("session/list", {"cwd": self.place["cwd"], **about})
            rows += page["sessions"]
            cursor = page.get("nextCursor")
            if not cursor:
                return [row["sessionId"] for row in rows if row["sessionId"].startswith("treelined:")]

    def load(self, session):
        """Opens a session. Returns the path that it shows."""
        self.editor.updates.clear()
        self.editor.ask("session/load", {"sessionId": session, **self.place})
        updates = [update["update"] for update in self.editor.updates if update["sessionId"] == session]
        shown = [
            (update["sessionUpdate"], update["content"].get("text", ""))
            for update in updates
            if "chunk" in update["sessionUpdate"]
        ]
        path = [text for kind, text in shown if kind == "user_message_chunk"]
        assert path in self.paths.values(), f"{self.name}: {shown}"
        answers = "".join(text for kind, text in shown if kind == "agent_message_chunk")
        for prompt in path:
            assert f"You said: {prompt}" in answers, f"{self.name}: {shown}"
        return path

    def close(self):
        """Ends, and checks the tree against the prompts; an import of the agent's store adds nothing."""
        self.editor.end()
        everything = said(self.daemon, self.folder, self.recorded, "get_entries")
        prompts = sorted(part[1] for part in everything if part[0] == "user")
        assert prompts == sorted(path[-1] for path in self.paths.values() if path), f"{self.name}: {prompts}"
        if self.name in BY_TEXT:
            # An import brings a session that began with a text as another one.
            return
        bring(self.daemon, self.name, self.recorded, self.store, self.environment)
        again = said(self.daemon, self.folder, self.recorded, "get_entries")
        assert again == everything, f"{self.name}, imported:\n{again}\nbefore:\n{everything}"


def each_kind(talk, is_short):
    path = talk.ask(talk.ask([], "Prompt alpha"), "Prompt RUN beta")
    talk.ask(path, "Prompt gamma")
    assert "gamma" in talk.editor.prompt(talk.session, "/tree")
    talk.ask(talk.move("/back 2", 1), "Prompt delta")
    talk.ask(talk.ask(talk.move("/go 3", 3), "Prompt epsilon"), "Prompt zeta")
    talk.ask(talk.move("/go 2", 2), "Prompt eta")
    talk.ask(talk.move("/go 4", 4), "Prompt theta")
    talk.ask(talk.move("/go 6", 6), "Prompt iota")
    talk.ask(talk.move("/undo", 6), "Prompt kappa")
    # Four more between branches that end in sessions of the agent: ten in all.
    talk.ask(talk.move("/go 7", 7), "Prompt one")
    talk.ask(talk.move("/back 1", 7), "Prompt two")
    talk.ask(talk.move("/go 11", 11), "Prompt three")
    talk.ask(talk.move("/go 12", 12), "Prompt four")
    if not is_short and talk.name not in BY_TEXT:
        others(talk)
    talk.close()


def others(talk):
    """Copies, branches as sessions of the list, and the next run."""
    # A copy that ends at a message goes on beside the conversation. Not every agent has ids of messages.
    fork = talk.fork(2) if talk.ids[2] else None
    path = talk.ask(talk.move("/go 2", 2), "Prompt lambda")
    if fork:
        talk.ask(talk.paths[2], "Prompt RUN mu", fork)
    talk.ask(path, "Prompt nu")
    branches = talk.branches()
    if not branches:
        # The agent lists a session of its own for each.
        talk.editor.ask("session/delete", {"sessionId": fork})
        branches = talk.branches()
    talk.session = branches[-1]
    path = talk.ask(talk.load(talk.session), "Prompt xi")
    talk.ask(path, "Prompt RUN omicron")
    path = talk.start_again()
    assert path[-1] == "Prompt RUN omicron", path
    path = talk.ask(path, "Prompt pi")
    # The agent's own copy.
    talk.ask(path, "Prompt rho", talk.fork(None))
    talk.ask(talk.move("/back 2", talk.number("Prompt xi")), "Prompt sigma")


def by_chance(talk, chance, count):
    """Makes moves. Says from time to time how many contexts were right, as a run takes long."""
    started = time.monotonic()

    def ask(path):
        return talk.ask(path, f"Prompt {'RUN ' if chance.random() < 0.2 else ''}{len(talk.paths)}.")

    path = ask(ask(ask([])))
    for made in range(1, count + 1):
        # The agent tells the text with the history that follows it.
        if talk.name not in BY_TEXT and chance.random() < 0.05:
            assert talk.start_again() == path, talk.name
            path = ask(path)
        here = talk.number(path[-1])
        kind, back = (chance.choice(["/undo", "/back", "/go", "/go"]), chance.randint(1, min(3, len(path))))
        if kind == "/go":
            to = chance.choice([number for number in talk.paths if number not in (0, here)])
            line = f"/go {to}"
        else:
            back = 1 if kind == "/undo" else back
            to = next(number for number, other in talk.paths.items() if other == path[:-back])
            line = kind if kind == "/undo" else f"/back {back}"
        path = ask(talk.move(line, to))
        if made % 20 == 0 or made == count:
            took = time.monotonic() - started
            print(f"{talk.name}: {made} moves, {took:.0f} s, no wrong context", flush=True)
    talk.close()


def main():
    options = argparse.ArgumentParser(description=__doc__)
    for name in ("recorder", "daemon", "installed"):
        options.add_argument(name, type=lambda path: str(Path(path).resolve()))
    options.add_argument("names", nargs="+", choices=[*FORKING, *BY_TEXT])
    options.add_argument("--short", action="store_true", help="leave copies, branches of the list and the next run out")
    options.add_argument("--random", type=int, metavar="COUNT", help="make so many moves by chance")
    options = options.parse_args()
    seed = int(os.environ.get("TREELINED_TEST_SEED", "1"))
    for name in options.names:
        with Model() as model, tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
            talk = Talk(options, name, model, Path(folder).resolve())
            if options.random:
                by_chance(talk, random.Random(seed), options.random)
                print(f"{name}: {options.random} moves by chance, seed {seed}")
            else:
                each_kind(talk, options.short)
                print(f"{name}: {len(talk.paths) - 1} prompts on their branches")


if __name__ == "__main__":
    main()
