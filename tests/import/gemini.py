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
PATIENCE = 120
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

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def start(self):
        return str(uuid.uuid4())

    def turn(self, thread, prompt):
        option = "--resume" if thread in self._begun else "--session-id"
        self._begun.add(thread)
        command = ["node", self.program, option, thread, "--yolo", "--model", "gemini-2.5-flash", "--prompt", prompt]
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            env=self.environment,
            cwd=self.project,
        )
        if done.returncode:
            raise AssertionError(f"gemini: {done.returncode}\n{done.stdout}\n{done.stderr}")
        return prompt

    def sources(self):
        return [str(self.folder / ".gemini")]
