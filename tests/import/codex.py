"""Codex, driven through its app server."""

import json
import os
import queue
import subprocess
import threading
from pathlib import Path

NAME = "codex"
PROGRAM = "vendor/x86_64-unknown-linux-musl/bin/codex"
CONFIG = """\
model = "stub-1"
model_provider = "stub"
check_for_update_on_startup = false
[model_providers.stub]
name = "stub"
base_url = "{url}"
wire_api = "responses"
env_key = "STUB_KEY"
"""
# Longest time for an answer, in seconds.
PATIENCE = 30


class Agent:
    """One app server. Threads and turns are named by the ids that Codex gives them."""

    def __init__(self, installed, folder, model_url):
        self.home = Path(folder) / "codex-home"
        self.project = Path(folder) / "project"
        self.home.mkdir()
        self.project.mkdir(exist_ok=True)
        (self.home / "config.toml").write_text(CONFIG.format(url=model_url))
        # A small environment: no key and no setting of the user's.
        environment = {"PATH": os.environ["PATH"], "HOME": str(folder), "CODEX_HOME": str(self.home), "STUB_KEY": "x"}
        self._errors = open(Path(folder) / "codex.err", "w")
        self._process = subprocess.Popen(
            [Path(installed) / "codex" / PROGRAM, "app-server"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            env=environment,
            cwd=self.project,
            text=True,
        )
        self._answers, self._completed, self._id = queue.Queue(), queue.Queue(), 0
        threading.Thread(target=self._read, daemon=True).start()
        info = {"name": "test", "title": "test", "version": "0"}
        self._call("initialize", clientInfo=info, capabilities={"experimentalApi": True})
        self._send({"method": "initialized"})

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._process.stdin.close()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._errors.close()

    def sources(self):
        """What `treelined import` gets."""
        return [str(self.home)]

    def start(self):
        settings = {"model": "stub-1", "modelProvider": "stub", "approvalPolicy": "never"}
        result = self._call("thread/start", cwd=str(self.project), sandbox="danger-full-access", **settings)
        return result["thread"]["id"]

    def turn(self, thread, prompt):
        turn = self._call("turn/start", threadId=thread, input=[{"type": "text", "text": prompt}])["turn"]
        self._completed.get(timeout=PATIENCE)
        return turn["id"]

    def fork(self, thread, turn):
        """A thread of its own that goes on after `turn`."""
        return self._call("thread/fork", threadId=thread, lastTurnId=turn)["thread"]["id"]

    def revert(self, thread, turn):
        """The thread goes on before `turn`."""
        self._call("thread/revert", threadId=thread, beforeTurnId=turn)

    def compact(self, thread):
        self._call("thread/compact/start", threadId=thread)
        self._completed.get(timeout=PATIENCE)

    def rename(self, thread, name):
        self._call("thread/name/set", threadId=thread, name=name)

    def _read(self):
        for line in self._process.stdout:
            message = json.loads(line)
            if "id" in message and ("result" in message or "error" in message):
                self._answers.put(message)
            elif message.get("method") == "turn/completed":
                self._completed.put(message)

    def _send(self, message):
        self._process.stdin.write(json.dumps(message) + "\n")
        self._process.stdin.flush()

    def _call(self, method, **params):
        self._id += 1
        self._send({"id": self._id, "method": method, "params": params})
        answer = self._answers.get(timeout=PATIENCE)
        if "error" in answer:
            raise RuntimeError(f"{method}: {answer['error']}")
        return answer["result"]
