"""Gemini CLI, driven by one command for each turn. It goes back only at a terminal, so its threads have no branches."""

import json
import os
import subprocess
import uuid
from pathlib import Path

NAME = "gemini"
PROGRAM = "bundle/gemini.js"
SEEDS, OPERATIONS = 1, 12
# Longest time for a command, in seconds: it starts slowly.
PATIENCE = 300
SETTINGS = {
    "general": {"enableAutoUpdate": False, "sessionRetention": {"enabled": False}},
    "privacy": {"usageStatisticsEnabled": False},
    "security": {"auth": {"selectedType": "gemini-api-key"}, "folderTrust": {"enabled": False}},
}


class Agent:
    """Commands in one project. Threads have the names of their sessions, turns those of their prompts."""

    def __init__(self, installed, folder, model_url):
        self.folder = Path(folder)
        self.project = self.folder / "project"
        self.project.mkdir(exist_ok=True)
        self.program = Path(installed) / NAME / PROGRAM
        home = self.folder / ".gemini"
        home.mkdir()
        (home / "settings.json").write_text(json.dumps(SETTINGS))
        self.environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(self.folder),
            "GEMINI_API_KEY": "none",
            "GOOGLE_GEMINI_BASE_URL": model_url.removesuffix("/v1"),
            "GEMINI_CLI_TRUST_WORKSPACE": "true",
            "NO_COLOR": "1",
        }
        self._begun = set()
        # The files with which threads begin.
        self._files = {}

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def take_over(self, continuation):
        """The thread of the file that `continue_session` has made: the program gives it an id of its own."""
        step = continuation["steps"][-1]
        file = step[step.index("--session-file") + 1]
        self._files[file] = file
        return file

    def listed(self):
        printed = self._gemini("--list-sessions").stdout
        chats = self.folder.glob(".gemini/tmp/*/chats/*.jsonl")
        names = {json.loads(chat.open().readline())["sessionId"] for chat in chats}
        return [*self._files] if len(names) == len(self._files) and all(name in printed for name in names) else []

    def start(self):
        return str(uuid.uuid4())

    def turn(self, thread, prompt):
        option = "--resume" if thread in self._begun else "--session-id"
        option = "--session-file" if thread in self._files else option
        self._begun.add(thread)
        self._gemini(option, thread, "--yolo", "--model", "gemini-2.5-flash", "--prompt", prompt)
        return prompt

    def _gemini(self, *arguments):
        done = subprocess.run(
            ["node", self.program, *arguments],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            env=self.environment,
            cwd=self.project,
        )
        if done.returncode:
            raise AssertionError(f"gemini: {done.returncode}\n{done.stdout}\n{done.stderr}")
        return done

    def sources(self):
        return [str(self.folder / ".gemini")]
