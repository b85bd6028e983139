"""goose, driven by one command for each turn."""

import os
import sqlite3
import subprocess
from pathlib import Path

NAME = "goose"
PROGRAM = "bin/goose"
SEEDS, OPERATIONS = 2, 30
# Longest time for a command, in seconds.
PATIENCE = 300


class Agent:
    """Commands on one database. Threads have names of their own, turns those of their prompts."""

    # A fork copies the whole session.
    forks_at_turns = False

    def __init__(self, installed, folder, model_url):
        self.folder = Path(folder)
        self.project = self.folder / "project"
        self.project.mkdir(exist_ok=True)
        self.program = Path(installed) / NAME / PROGRAM
        self.environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(self.folder),
            "GOOSE_PATH_ROOT": str(self.folder / "goose"),
            "GOOSE_PROVIDER": "openai",
            "GOOSE_MODEL": "stub-1",
            "GOOSE_MODE": "auto",
            "GOOSE_DISABLE_KEYRING": "1",
            "GOOSE_TELEMETRY_ENABLED": "false",
            "OPENAI_HOST": model_url.removesuffix("/v1"),
            "OPENAI_API_KEY": "none",
        }
        # The session of each thread; none before its first turn.
        self._sessions = {}

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def start(self):
        thread = f"Thread {len(self._sessions)}"
        self._sessions[thread] = None
        return thread

    def turn(self, thread, prompt):
        self._run(thread, prompt)
        return prompt

    def fork(self, thread, _turn):
        fork = self.start()
        self._goose("session", "--resume", "--session-id", self._sessions[thread], "--fork", text="/exit\n")
        self._sessions[fork] = self._newest()
        return fork

    def compact(self, thread):
        self._run(thread, "/compact")

    def take_over(self, continuation):
        """The thread of the session that `continue_session` has made, by the id that the import prints."""
        step = continuation["steps"][0]
        printed = self._goose(*step[1:])
        session = self._newest()
        if session not in printed:
            raise AssertionError(f"{step} does not print {session}: {printed}")
        thread = self.start()
        self._sessions[thread] = session
        return thread

    def listed(self):
        printed = self._goose("session", "list", "--format", "json")
        return [thread for thread, session in self._sessions.items() if session and session in printed]

    def sources(self):
        return [str(self.folder / "goose")]

    def _run(self, thread, text):
        session = self._sessions[thread]
        place = ["--resume", "--session-id", session] if session else ["--name", thread]
        self._goose("run", *place, "--text", text)
        self._sessions[thread] = session or self._newest()

    def _newest(self):
        """The id of the session that was made last."""
        database = f"file:{self.folder}/goose/data/sessions/sessions.db?mode=ro"
        with sqlite3.connect(database, uri=True) as connection:
            return connection.execute("SELECT id FROM sessions ORDER BY rowid DESC").fetchone()[0]

    def _goose(self, *arguments, text=""):
        done = subprocess.run(
            [self.program, *arguments],
            input=text,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            env=self.environment,
            cwd=self.project,
        )
        if done.returncode:
            raise AssertionError(f"goose {arguments}: {done.returncode}\n{done.stdout}\n{done.stderr}")
        return done.stdout
