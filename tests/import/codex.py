"""Codex, driven through its app server."""

import json
import os
import queue
import subprocess
import threading
import time
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
PATIENCE = 300


class Agent:
    """An app server. Threads and turns are named by the ids that Codex gives them.

    Every third thread has the older, legacy form of history: forks are copies, and there are no reverts.
    """

    def __init__(self, installed, folder, model_url):
        self._program = Path(installed) / "codex" / PROGRAM
        self._folder = Path(folder)
        self.home = self._folder / "codex-home"
        self.project = self._folder / "project"
        self.home.mkdir()
        self.project.mkdir()
        (self.home / "config.toml").write_text(CONFIG.format(url=model_url))
        self._started, self._legacy = 0, set()
        self._launch()

    def _launch(self):
        # A small environment: no key and no setting of the user's.
        environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(self._folder),
            "CODEX_HOME": str(self.home),
            "STUB_KEY": "x",
        }
        self._errors = open(self._folder / "codex.err", "a")
        self._process = subprocess.Popen(
            [self._program, "app-server"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            env=environment,
            cwd=self.project,
            text=True,
        )
        self._answers, self._completed, self._id = queue.Queue(), queue.Queue(), 0
        # Threads that this process has read.
        self._loaded = set()
        threading.Thread(target=self._read, args=(self._process, self._answers, self._completed), daemon=True).start()
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

    def restart(self):
        self.__exit__()
        self._launch()

    def sources(self):
        """What `treelined import` gets."""
        return [str(self.home)]

    def start(self):
        settings = {"model": "stub-1", "modelProvider": "stub", "approvalPolicy": "never"}
        self._started += 1
        is_legacy = self._started % 3 == 0
        settings["historyMode"] = "legacy" if is_legacy else "paginated"
        result = self._call("thread/start", cwd=str(self.project), sandbox="danger-full-access", **settings)
        return self._opened(result["thread"]["id"], is_legacy)

    def turn(self, thread, prompt):
        self._load(thread)
        turn = self._call("turn/start", threadId=thread, input=[{"type": "text", "text": prompt}])["turn"]
        self._completed.get(timeout=PATIENCE)
        return turn["id"]

    def interrupted_turn(self, thread, prompt):
        """A turn that ends before the answer."""
        self._load(thread)
        turn = self._call("turn/start", threadId=thread, input=[{"type": "text", "text": prompt}])["turn"]
        deadline = time.monotonic() + PATIENCE
        while not self._is_written(prompt):
            if time.monotonic() > deadline:
                raise AssertionError(f"codex has not written the prompt {prompt!r}")
            time.sleep(0.05)
        self._call("turn/interrupt", threadId=thread, turnId=turn["id"])
        self._completed.get(timeout=PATIENCE)
        return turn["id"]

    def _is_written(self, prompt):
        """Whether a rollout has the prompt, which Codex writes before it asks the model."""
        rollouts = (self.home / "sessions").rglob("*.jsonl")
        return any(prompt in rollout.read_text(errors="replace") for rollout in rollouts)

    def fork(self, thread, turn):
        """A separate thread that goes on after `turn`."""
        self._load(thread)
        fork = self._call("thread/fork", threadId=thread, lastTurnId=turn)["thread"]["id"]
        return self._opened(fork, thread in self._legacy)

    def can_revert(self, thread):
        return thread not in self._legacy

    def revert(self, thread, turn):
        """The thread goes on before `turn`."""
        self._load(thread)
        self._call("thread/revert", threadId=thread, beforeTurnId=turn)

    def compact(self, thread):
        self._load(thread)
        self._call("thread/compact/start", threadId=thread)
        self._completed.get(timeout=PATIENCE)

    def take_over(self, continuation):
        """The thread that `continue_session` has made."""
        return continuation["nativeId"]

    def listed(self):
        threads = self._call("thread/list", limit=100)["data"]
        return [thread["id"] for thread in threads]

    def rename(self, thread, name):
        self._call("thread/name/set", threadId=thread, name=name)

    def _opened(self, thread, is_legacy):
        self._loaded.add(thread)
        if is_legacy:
            self._legacy.add(thread)
        return thread

    def _load(self, thread):
        if thread not in self._loaded:
            self._call("thread/resume", threadId=thread)
            self._loaded.add(thread)

    @staticmethod
    def _read(process, answers, completed):
        for line in process.stdout:
            message = json.loads(line)
            if "id" in message and ("result" in message or "error" in message):
                answers.put(message)
            elif message.get("method") == "turn/completed":
                completed.put(message)

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
