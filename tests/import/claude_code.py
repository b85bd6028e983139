"""Claude Code, driven by one command for each turn: tests/long/claude runs it. It is not free software."""

import os
import subprocess
from pathlib import Path

NAME = "claude-code"
PROGRAM = "claude"
# Longest time for a command, in seconds.
PATIENCE = 300


class Agent:
    """Commands in one project. Threads have the ids of their sessions."""

    def __init__(self, installed, folder, model_url):
        self.folder = Path(folder)
        self.project = self.folder / "project"
        self.project.mkdir(exist_ok=True)
        self.program = Path(installed) / NAME / PROGRAM
        self.environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(self.folder),
            "ANTHROPIC_BASE_URL": model_url.removesuffix("/v1"),
            "ANTHROPIC_API_KEY": "none",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "DISABLE_AUTOUPDATER": "1",
        }

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def take_over(self, continuation):
        return continuation["nativeId"]

    def turn(self, thread, prompt):
        done = subprocess.run(
            [self.program, "-p", prompt, "--resume", thread],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            env=self.environment,
            cwd=self.project,
        )
        if done.returncode:
            raise AssertionError(f"claude: {done.returncode}\n{done.stdout}\n{done.stderr}")
        self._prompt = prompt
        return prompt

    def listed(self):
        """The session that the last prompt is in: there is no list without a terminal."""
        files = self.folder.glob(".claude/projects/*/*.jsonl")
        return [file.stem for file in files if self._prompt in file.read_text()]

    def sources(self):
        return [str(self.folder / ".claude")]
