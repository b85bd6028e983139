"""Copilot CLI, driven by one command for each turn, and by its server for forks. It removes from its files what it goes back
from, so its threads have no reverts. Its terms allow to install and run it, but it is not free software."""

import json
import os
import subprocess
import uuid
from pathlib import Path

NAME = "copilot-cli"
PROGRAM = "copilot"
SEEDS, OPERATIONS = 1, 12
# Longest time for a command, in seconds.
PATIENCE = 300


class Agent:
    """Commands in one project. Threads have the names of their sessions, turns those of their prompts."""

    def __init__(self, installed, folder, model_url):
        self.folder = Path(folder)
        self.project = self.folder / "project"
        self.project.mkdir()
        self.home = self.folder / ".copilot"
        self.program = Path(installed) / "copilot" / PROGRAM
        self.environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(self.folder),
            "COPILOT_HOME": str(self.home),
            "COPILOT_OFFLINE": "true",
            "COPILOT_AUTO_UPDATE": "false",
            "COPILOT_MODEL": "stub-1",
            "COPILOT_PROVIDER_BASE_URL": model_url,
            "COPILOT_PROVIDER_API_KEY": "none",
        }

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def start(self):
        return str(uuid.uuid4())

    def turn(self, thread, prompt):
        command = [self.program, "--session-id", thread, "--allow-all-tools", "--prompt", prompt]
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
        return prompt

    def fork(self, thread, turn):
        """A separate thread that goes on after `turn`: before the event of the next one."""
        events = self.home / "session-state" / thread / "events.jsonl"
        events = [json.loads(line) for line in events.read_text().splitlines()]
        asked = [event for event in events if event["type"] == "user.message"]
        at = next(at for at, event in enumerate(asked) if event["data"]["content"] == turn)
        bound = {"toEventId": asked[at + 1]["id"]} if at + 1 < len(asked) else {}
        return self._ask("sessions.fork", {"sessionId": thread, **bound})["sessionId"]

    def _ask(self, method, params):
        """The answer of the program's server to one request."""
        command = [self.program, "--headless", "--stdio", "--no-auto-update", "--no-auto-login"]
        with subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=self.environment,
            cwd=self.project,
        ) as server:
            request = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).encode()
            server.stdin.write(b"Content-Length: %d\r\n\r\n%s" % (len(request), request))
            server.stdin.flush()
            answer = {}
            while answer.get("id") != 1:
                length = 0
                while line := server.stdout.readline().strip():
                    name, _, value = line.partition(b":")
                    length = int(value) if name.lower() == b"content-length" else length
                if not length:
                    raise AssertionError(f"copilot does not answer {method}")
                answer = json.loads(server.stdout.read(length))
            server.terminate()
        if "result" not in answer:
            raise AssertionError(f"{method}: {answer}")
        return answer["result"]

    def sources(self):
        return [str(self.home)]
