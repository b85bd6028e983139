"""Session files made for questions, and a daemon that is asked (protocol.md §3.16)."""

import datetime
import json
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
NO_COST = {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0, "total": 0}
USAGE = {"input": 1, "output": 1, "cacheRead": 0, "cacheWrite": 0, "totalTokens": 2, "cost": NO_COST}
ANSWER = {"api": "none", "provider": "none", "model": "none", "usage": USAGE, "stopReason": "stop"}


class SessionFile:
    """A session file. Each entry is said `step` seconds after the one before."""

    def __init__(self, session_id, began, cwd="/", step=1):
        self._id, self._began, self._step = session_id, began, datetime.timedelta(seconds=step)
        self._at, self._last = began, None
        header = {"type": "session", "version": 3, "id": session_id, "timestamp": stamp(began), "cwd": cwd}
        self._lines = [header]

    def entry(self, kind, entry_id, *, above=None, **members):
        """Adds an entry, below the last one if `above` is not given."""
        self._at += self._step
        entry = {"type": kind, "id": entry_id, "parentId": above or self._last, "timestamp": stamp(self._at)}
        self._lines.append(entry | members)
        self._last = entry_id

    def message(self, entry_id, role, content, *, above=None, **members):
        """Adds a message; `content` is its text, or its blocks."""
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
        millis = int((self._at + self._step).replace(tzinfo=datetime.timezone.utc).timestamp() * 1000)
        message = {"role": role, "content": blocks, "timestamp": millis} | members
        message |= ANSWER if role == "assistant" else {}
        self.entry("message", entry_id, above=above, message=message)

    def write(self, folder):
        """Writes the file; returns the number of its characters."""
        name = f"{self._began.isoformat().replace(':', '-')}-000Z_{self._id}.jsonl"
        lines = [json.dumps(line, ensure_ascii=False) + "\n" for line in self._lines]
        return (Path(folder) / name).write_text("".join(lines))


def stamp(time):
    return f"{time.isoformat()}.000Z"


class Daemon:
    """A daemon on pipes."""

    def __init__(self, folder, name):
        program = os.environ.get("TREELINED_BIN", ROOT / "target/debug/treelined")
        command = [program, "--session-dir", folder, "--summarizer", "outline"]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
        self.process = subprocess.Popen(command, text=True, **pipes)
        self._name, self._id = name, 0
        self.call("initialize", {"protocolVersion": 1, "clientInfo": {"name": name, "version": "1"}})

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        self.process.wait(60)

    def call(self, method, params):
        self._id += 1
        request = {"jsonrpc": "2.0", "id": self._id, "method": method, "params": params}
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        for line in self.process.stdout:
            answer = json.loads(line)
            if answer.get("id") == self._id and "method" not in answer:
                if "error" in answer:
                    sys.exit(f"{self._name}: {method} {params}: {answer['error']}")
                return answer["result"]
        sys.exit(f"{self._name}: the daemon ended")

    def ask(self, question):
        """The hits of the first 200."""
        return self.call("search", {"query": question, "mode": "ask", "limit": 200})["hits"]
