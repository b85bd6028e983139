"""opencode, driven through its server."""

import json
import os
import socket
import subprocess
import time
import urllib.request
from pathlib import Path

NAME = "opencode"
PROGRAM = "bin/opencode"
MODEL = {"providerID": "stub", "modelID": "stub-1"}
# Each step of an answer takes a snapshot of the project, which makes the program slow.
SEEDS, OPERATIONS = 2, 20
# Longest time for an answer, in seconds.
PATIENCE = 300


class Agent:
    """One server. Sessions are named by their ids, turns by the ids that their prompts had at first: a fork gives new ones."""

    def __init__(self, installed, folder, model_url):
        self.folder = Path(folder)
        self._program = Path(installed) / NAME / PROGRAM
        self.project = self.folder / "project"
        self.project.mkdir(exist_ok=True)
        configuration = self.folder / "config/opencode/opencode.json"
        configuration.parent.mkdir(parents=True)
        configuration.write_text(json.dumps(settings(model_url)))
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        self.url = f"http://127.0.0.1:{port}"
        self._log = self.folder / "opencode.log"
        with self._log.open("w") as log:
            self._process = subprocess.Popen(
                [self._program, "serve", "--hostname", "127.0.0.1", "--port", str(port)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=self._environment(),
                cwd=self.project,
            )
        # For each session the names of its turns in order.
        self.turns = {}
        self._wait()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._process.terminate()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def start(self):
        session = self._call("POST", "/session", {"title": "Begin"})["id"]
        self.turns[session] = []
        return session

    def turn(self, session, prompt):
        parts = [{"type": "text", "text": prompt}]
        self._call("POST", f"/session/{session}/message", {"model": MODEL, "parts": parts})
        name = self._prompts(session)[-1]
        self.turns[session].append(name)
        return name

    def fork(self, session, turn):
        """A new session with everything up to a turn."""
        count = self.turns[session].index(turn) + 1
        prompt = self._prompts(session)[count - 1]
        users = [message["info"]["id"] for message in self._messages(session) if message["info"]["role"] == "user"]
        # It has all before the next message of the user, which can be the request for a compaction.
        later = users[users.index(prompt) + 1 :]
        body = {"messageID": later[0]} if later else {}
        fork = self._call("POST", f"/session/{session}/fork", body)["id"]
        self.turns[fork] = self.turns[session][:count]
        return fork

    def can_revert(self, _session):
        return True

    def revert(self, session, turn):
        """Takes back a turn and all after it. opencode deletes them once another prompt follows."""
        at = self.turns[session].index(turn)
        self._call("POST", f"/session/{session}/revert", {"messageID": self._prompts(session)[at]})
        del self.turns[session][at:]

    def compact(self, session):
        self._call("POST", f"/session/{session}/summarize", MODEL)

    def take_over(self, continuation):
        """The session that `continue_session` has made, after its step before the last."""
        for step in continuation["steps"][:-1]:
            program = self._program if step[0] == NAME else step[0]
            done = subprocess.run(
                [program, *step[1:]],
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                env=self._environment(),
                cwd=continuation["cwd"],
                timeout=PATIENCE,
            )
            if done.returncode:
                raise AssertionError(f"{step}: {done.stdout}{done.stderr}")
        session = continuation["nativeId"]
        self.turns[session] = self._prompts(session)
        return session

    def listed(self):
        return [session["id"] for session in self._call("GET", "/session")]

    def sources(self):
        return [str(self.folder / "data/opencode")]

    def _prompts(self, session):
        """The ids of the prompts in a session, also of those that were taken back but not yet deleted."""
        prompts = []
        for message in self._messages(session):
            is_request = any(part["type"] == "compaction" for part in message["parts"])
            if message["info"]["role"] == "user" and not is_request:
                prompts.append(message["info"]["id"])
        return prompts

    def _messages(self, session):
        return self._call("GET", f"/session/{session}/message")

    def _environment(self):
        """A small environment: no key and no setting of the user's, and nothing is fetched."""
        homes = {"DATA": "data", "CONFIG": "config", "CACHE": "cache", "STATE": "state"}
        unwanted = ["AUTOUPDATE", "MODELS_FETCH", "LSP_DOWNLOAD", "DEFAULT_PLUGINS"]
        return {
            "PATH": os.environ["PATH"],
            "HOME": str(self.folder),
            **{f"XDG_{kind}_HOME": str(self.folder / name) for kind, name in homes.items()},
            **{f"OPENCODE_DISABLE_{name}": "1" for name in unwanted},
        }

    def _wait(self):
        end = time.monotonic() + PATIENCE
        # A request before this line is never answered.
        while "listening" not in self._log.read_text():
            if self._process.poll() is not None or time.monotonic() > end:
                raise AssertionError(f"opencode does not start: {self._log.read_text()}")
            time.sleep(0.05)

    def _call(self, method, path, body=None):
        data = None if body is None else json.dumps(body).encode()
        headers = {"content-type": "application/json"}
        request = urllib.request.Request(self.url + path, method=method, data=data, headers=headers)
        with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
            return json.loads(answer.read() or b"null")


def settings(model_url):
    provider = {
        "npm": "@ai-sdk/openai-compatible",
        "name": "Stub",
        "options": {"baseURL": model_url, "apiKey": "none"},
        "models": {
            "stub-1": {
                "name": "Stub",
                "limit": {"context": 1_000_000, "output": 1_000},
                "attachment": True,
                "modalities": {"input": ["text", "image"], "output": ["text"]},
            }
        },
    }
    return {
        "autoupdate": False,
        "share": "disabled",
        "model": "stub/stub-1",
        "small_model": "stub/stub-1",
        "permission": "allow",
        "provider": {"stub": provider},
    }
