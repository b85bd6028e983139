"""pi, as tests/interchange/install has installed it, driven by one command for each turn. It goes on in a path that was handed over;
its own conversations are those of tests/interchange."""

import json
import os
import subprocess
from pathlib import Path

NAME = "pi"
PROGRAM = "pi/dist/bundle/cli.js"
# Longest time for a command, in seconds.
PATIENCE = 300


class Agent:
    """Commands in one project. Threads have the names of their sessions, turns those of their prompts."""

    def __init__(self, installed, folder, model_url):
        self.folder = Path(folder)
        self.project = self.folder / "project"
        self.project.mkdir(exist_ok=True)
        self.installed = Path(installed).parent / "interchange"
        agent = self.folder / ".pi/agent"
        agent.mkdir(parents=True)
        model = {"id": "stub-1", "input": ["text", "image"], "contextWindow": 10_000_000}
        provider = {"baseUrl": model_url, "apiKey": "none", "api": "openai-completions", "models": [model]}
        (agent / "models.json").write_text(json.dumps({"providers": {"stub": provider}}))
        self.environment = {"PATH": os.environ["PATH"], "HOME": str(self.folder), "NO_COLOR": "1"}
        self._threads = []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def take_over(self, continuation):
        return continuation["nativeId"]

    def turn(self, thread, prompt):
        """The session is named by its id, which pi looks for among its own."""
        self._pi("--session", thread, "--provider", "stub", "--model", "stub-1", "--print", prompt)
        self._threads.append(thread)
        return prompt

    def listed(self):
        """pi lists sessions at a terminal only: those that it has found by their ids, and to which it has added a turn."""
        files = {file.stem.rpartition("_")[2]: file for file in self.folder.glob(".pi/agent/sessions/*/*.jsonl")}
        return [thread for thread in self._threads if thread in files]

    def _pi(self, *arguments):
        node = self.installed / "node/bin/node"
        done = subprocess.run(
            [node if node.is_file() else "node", self.installed / PROGRAM, "--offline", *arguments],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            env=self.environment,
            cwd=self.project,
        )
        if done.returncode:
            raise AssertionError(f"pi: {done.returncode}\n{done.stdout}\n{done.stderr}")
        return done

    def sources(self):
        return [str(self.folder / ".pi")]
