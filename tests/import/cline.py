"""Cline's program, driven by one command for each thread. A command cannot continue a session, so each thread has one turn.
Its files have one conversation each, without forks or reverts. It leaves a process behind, the hub, which is ended with the
agent."""

import contextlib
import json
import os
import signal
import subprocess
import time
from pathlib import Path

NAME = "cline"
PROGRAM = "bin/cline"
# Three threads are begun, and no other operation follows.
SEEDS, OPERATIONS = 3, 0
# Longest time for a command, in seconds.
PATIENCE = 300


class Agent:
    """Commands in one project. The program names a session at its first turn, so a thread has a separate name."""

    def __init__(self, installed, folder, model_url):
        self.folder = Path(folder)
        self.project = self.folder / "project"
        self.project.mkdir()
        self.data = self.folder / ".cline" / "data"
        self.program = Path(installed) / "cline" / PROGRAM
        self.model_url = model_url
        self.begun = set()
        self.threads = 0
        self.environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(self.folder),
            "CLINE_DIR": str(self.folder / ".cline"),
        }

    def __enter__(self):
        provider = ["--provider", "openai-compatible", "--apikey", "none", "--modelid", "stub-1"]
        self._run("auth", *provider, "--baseurl", self.model_url)
        return self

    def __exit__(self, *_):
        for lock in self.data.glob("locks/hub/*.json"):
            hub = json.loads(lock.read_text())["pid"]
            deadline = time.monotonic() + PATIENCE
            while self._is_hub(hub) and time.monotonic() < deadline:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(hub, signal.SIGTERM)
                time.sleep(0.2)

    def _is_hub(self, process):
        """Whether a process is still the hub, and not another one with its number."""
        try:
            command = Path(f"/proc/{process}/cmdline").read_text().split("\0")
        except OSError:
            return False
        return "--cline-hub-daemon" in command and str(self.project) in command

    def _run(self, *arguments):
        command = [self.program, *arguments]
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
            raise AssertionError(f"{command}: {done.returncode}\n{done.stdout}\n{done.stderr}")

    def start(self):
        self.threads += 1
        return f"thread {self.threads}"

    def turn(self, thread, prompt):
        if thread in self.begun:
            raise AssertionError(f"a command cannot continue {thread}")
        self._run("--provider", "openai-compatible", "--json", prompt)
        self.begun.add(thread)
        return prompt

    def sources(self):
        return [str(self.data)]
