"""Random conversations with the real agents, imported and compared with what was done.

An agent is a module with NAME and a class Agent with the methods start, turn and sources, and those of the methods
interrupted_turn, fork (forks_at_turns is False if it copies whole threads), revert (with can_revert), compact, rename and
restart that the program has. It can have SEEDS and OPERATIONS of its own.
"""

import argparse
import collections
import importlib
import itertools
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import model

HERE = Path(__file__).resolve().parent
# The agents of `.ci/run`; tests/long/run has goose and Gemini CLI too.
AGENTS = ["codex", "opencode"]
COMPACTION = "compaction"

Step = collections.namedtuple("Step", "parent texts turn")


class Expected:
    """The tree that an import must have: steps, each a turn or a compaction, and the path of each thread."""

    def __init__(self):
        self.steps, self.paths = [], {}
        # Of each thread the one that its family began with, and of this one the thread that was used last.
        self.family, self.latest = {}, {}

    def start(self, thread, path=(), parent=None):
        self.paths[thread] = list(path)
        self.family[thread] = self.family.get(parent, thread)
        self.use(thread)

    def use(self, thread):
        self.latest[self.family[thread]] = thread

    def add(self, thread, texts, turn=None):
        self.use(thread)
        path = self.paths[thread]
        self.steps.append(Step(path[-1] if path else None, texts, turn))
        path.append(len(self.steps) - 1)

    def turns(self, thread):
        """Positions in the path of a thread that are turns."""
        return [at for at, step in enumerate(self.paths[thread]) if self.steps[step].turn]

    def conversations(self):
        """The texts from the beginning to each tip."""
        inner = {step.parent for step in self.steps}
        return sorted(self.texts(at) for at in range(len(self.steps)) if at not in inner)

    def leaves(self):
        """Of each family, the texts from the beginning to the place at which the latest thread goes on."""
        return sorted(self.texts(self.paths[thread][-1]) for thread in self.latest.values())

    def texts(self, at):
        steps = []
        while at is not None:
            steps.append(self.steps[at].texts)
            at = self.steps[at].parent
        return [text for texts in reversed(steps) for text in texts]


def converse(agent, expected, rng, operations, between):
    """Does random things with an agent, and notes what they must lead to."""
    prompts = itertools.count()

    def turn(thread):
        prompt = f"Prompt {next(prompts)}" + (" RUN" if rng.random() < 0.3 else "")
        called = ["call", "result"] if "RUN" in prompt else []
        name = agent.turn(thread, prompt)
        expected.add(thread, [f"user {prompt}", *called, f"assistant {model.answer(prompt)}"], name)

    def begin():
        thread = agent.start()
        expected.start(thread)
        turn(thread)

    for _ in range(3):
        begin()
    for operation in range(operations):
        thread = rng.choice(list(expected.paths))
        path, turns = expected.paths[thread], expected.turns(thread)
        chance = rng.random()
        if chance < 0.04:
            begin()
        elif chance < 0.2 and turns and hasattr(agent, "fork"):
            forks_at_turns = getattr(agent, "forks_at_turns", True)
            at = rng.choice(turns) if forks_at_turns else len(path) - 1
            fork = agent.fork(thread, expected.steps[path[at]].turn)
            expected.start(fork, path[: at + 1], thread)
            if rng.random() < 0.9:
                turn(fork)
        elif chance < 0.4 and len(turns) > 1 and hasattr(agent, "revert") and agent.can_revert(thread):
            at = rng.choice(turns[1:])
            agent.revert(thread, expected.steps[path[at]].turn)
            del path[at:]
            expected.use(thread)
            if rng.random() < 0.8:
                turn(thread)
        elif chance < 0.47 and turns and hasattr(agent, "compact"):
            agent.compact(thread)
            expected.add(thread, [COMPACTION])
        elif chance < 0.5 and hasattr(agent, "rename"):
            agent.rename(thread, f"Name {operation}")
        elif chance < 0.53 and hasattr(agent, "restart"):
            agent.restart()
        elif chance < 0.57 and hasattr(agent, "interrupted_turn"):
            prompt = f"Prompt {next(prompts)} SLOW"
            expected.add(thread, [f"user {prompt}"], agent.interrupted_turn(thread, prompt))
        else:
            turn(thread)
        between(operation)


def run_import(program, agent, sessions, *options):
    """Imports an agent's conversations; returns the report."""
    command = [program, "--session-dir", sessions, "import", "--from", agent.NAME, "--json", *options]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=300)
    if done.returncode:
        raise AssertionError(f"{command}: {done.returncode}\n{done.stdout}\n{done.stderr}")
    return json.loads(done.stdout)


def conversations(sessions):
    """The texts from the beginning to each tip of all sessions, and to each leaf, read from their files without
    treelined."""
    found, leaves = [], []
    for file in sorted(Path(sessions).rglob("*.jsonl")):
        if any(part.startswith(".") for part in file.relative_to(sessions).parts):
            continue
        lines = [json.loads(line) for line in file.read_text().splitlines()]
        entries = {}
        for entry in lines[1:]:
            if entry["id"] in entries:
                raise AssertionError(f"{file}: {entry['id']} twice")
            if entry["parentId"] is not None and entry["parentId"] not in entries:
                raise AssertionError(f"{file}: {entry['id']} before its parent")
            if entry.get("customType") == "import.gap":
                raise AssertionError(f"{file}: a gap")
            entries[entry["id"]] = entry
        shown = {name: text for name, entry in entries.items() if (text := texts_of(entry))}
        inner = set()
        for name in shown:
            inner.update(ancestors(entries, entries[name]["parentId"]))
        for tip in shown.keys() - inner:
            found.append(said(entries, shown, tip))
        moves = [entry for entry in entries.values() if entry.get("customType") == "treelined.leaf"]
        leaves.append(said(entries, shown, moves[-1]["parentId"]))
    return sorted(found), sorted(leaves)


def said(entries, shown, tip):
    path = list(ancestors(entries, tip))
    return [text for name in reversed(path) for text in shown.get(name, [])]


def ancestors(entries, name):
    while name is not None:
        yield name
        name = entries[name]["parentId"]


def texts_of(entry):
    """An entry of the conversation in words; nothing for one that is not a part of it."""
    if entry["type"] == "compaction":
        return [COMPACTION]
    if entry["type"] != "message":
        return []
    message = entry["message"]
    if message["role"] == "toolResult":
        return ["result"]
    texts = []
    for block in message["content"]:
        if block["type"] == "toolCall":
            texts.append("call")
        elif block["type"] == "text":
            texts.append(f"{message['role']} {block['text']}")
    return texts


def check(agent, installed, program, seed, operations):
    """One random conversation, imported while it grows, at its end, and again."""
    rng = random.Random(seed)
    expected = Expected()
    with tempfile.TemporaryDirectory(prefix="treelined-import-") as folder, model.Model() as provider:
        growing, whole = f"{folder}/growing", f"{folder}/whole"
        for sessions in (growing, whole):
            os.mkdir(sessions)

        with agent.Agent(installed, folder, provider.url) as running:

            def between(operation):
                if operation % 10 == 9:
                    run_import(program, agent, growing, *running.sources())

            converse(running, expected, rng, operations, between)
            sources = running.sources()
        wanted, wanted_leaves = expected.conversations(), expected.leaves()
        for sessions in (whole, growing):
            run_import(program, agent, sessions, "--final", *sources)
            name = f"{agent.NAME}, seed {seed}, {Path(sessions).name}"
            found, leaves = conversations(sessions)
            compare(wanted, found, name)
            compare(wanted_leaves, leaves, f"{name}, leaves")
            before = files(sessions)
            run_import(program, agent, sessions, "--final", *sources)
            if files(sessions) != before:
                raise AssertionError(f"{agent.NAME}, seed {seed}: a second import changes sessions")
    print(f"{agent.NAME}, seed {seed}: {len(expected.paths)} threads, {len(expected.steps)} steps, {len(wanted)} tips")


def files(sessions):
    return {str(file): file.read_bytes() for file in Path(sessions).rglob("*.jsonl") if ".import" not in str(file)}


def compare(wanted, found, name):
    if wanted == found:
        return
    shown = [f"- {text}" for text in wanted if text not in found] + [f"+ {text}" for text in found if text not in wanted]
    raise AssertionError("\n".join([f"{name}: {len(wanted)} conversations, imported {len(found)}", *shown]))


def main():
    root = HERE.parent.parent
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("agents", nargs="*", default=AGENTS)
    parser.add_argument("--seeds", type=int, help="number of random conversations with each agent")
    parser.add_argument("--first", type=int, default=1, help="the first seed")
    parser.add_argument("--operations", type=int)
    parser.add_argument("--installed", default=root / "target/import")
    options = parser.parse_args()
    program = os.environ.get("TREELINED_BIN", root / "target/debug/treelined")
    start = time.monotonic()
    for name in options.agents:
        agent = importlib.import_module(name)
        seeds = options.seeds or getattr(agent, "SEEDS", 3)
        operations = options.operations or getattr(agent, "OPERATIONS", 40)
        for seed in range(options.first, options.first + seeds):
            check(agent, options.installed, str(program), seed, operations)
    print(f"{time.monotonic() - start:.0f} s")


if __name__ == "__main__":
    sys.exit(main())
