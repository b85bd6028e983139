#!/usr/bin/env python3
"""Measures lists of many small sessions: `measure.py PROGRAM [SESSIONS [DIR]]` (default: 100,000).

Makes the session directory, in DIR if that is given, where it stays, starts PROGRAM on it, and prints the median of the calls in milliseconds, after three
calls that warm it up. Each call is measured once as it is, and once after another program has appended to a session.
"""

import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

FOLDERS = 50
ROUNDS = 15
WARM = 3


def make(directory: pathlib.Path, sessions: int) -> pathlib.Path:
    for number in range(sessions):
        cwd = f"/home/ada/project-{number % FOLDERS}"
        folder = directory / f"--{cwd[1:].replace('/', '-')}--"
        folder.mkdir(exist_ok=True)
        ident = f"0198c1f0-5e00-7000-8000-{number:012x}"
        stamp = f"2026-01-{1 + number % 28:02}T{number % 24:02}:{number % 60:02}:00.000Z"
        lines = [
            {"type": "session", "version": 3, "id": ident, "timestamp": stamp, "cwd": cwd},
            {
                "type": "message",
                "id": "a1",
                "parentId": None,
                "timestamp": stamp,
                "message": {"role": "user", "content": f"Question {number}"},
            },
        ]
        path = folder / f"{stamp.replace(':', '-').replace('.', '-')}_{ident}.jsonl"
        if path.exists():
            continue
        path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


class Daemon:
    def __init__(self, program: str, directory: pathlib.Path) -> None:
        environment = {**os.environ, "TREELINED_SESSION_DIR": str(directory)}
        pipe = subprocess.PIPE
        self.process = subprocess.Popen([program], stdin=pipe, stdout=pipe, env=environment)
        self.number = 0
        self.call("initialize", {"protocolVersion": 1, "cwd": "/tmp"})

    def call(self, method: str, params: dict) -> dict:
        self.number += 1
        request = {"jsonrpc": "2.0", "id": self.number, "method": method, "params": params}
        self.process.stdin.write(json.dumps(request).encode() + b"\n")
        self.process.stdin.flush()
        while True:
            message = json.loads(self.process.stdout.readline())
            if message.get("id") == self.number:
                if "error" in message:
                    raise SystemExit(f"{method}: {message['error']}")
                return message["result"]


def main() -> None:
    program = sys.argv[1]
    sessions = int(sys.argv[2]) if len(sys.argv) > 2 else 100_000
    with tempfile.TemporaryDirectory() as made:
        directory = pathlib.Path(sys.argv[3] if len(sys.argv) > 3 else made)
        last = make(directory, sessions)
        daemon = Daemon(program, directory)
        count = 0

        def ident() -> str:
            nonlocal count
            count += 1
            return f"0198c1f0-5e00-7000-8000-{(count * 7919) % sessions:012x}"

        def fresh() -> str:
            nonlocal count
            count += 1
            return f"fresh-{count}"

        calls = {
            "list_sessions, 200": lambda: daemon.call("list_sessions", {"limit": 200}),
            "list_sessions, query": lambda: daemon.call("list_sessions", {"limit": 200, "query": "question 777"}),
            "open_session by id": lambda: daemon.call("open_session", {"sessionId": ident()}),
            "create_session with id": lambda: daemon.call(
                "create_session", {"sessionId": fresh(), "cwd": "/home/ada/project-1", "write": "now"}
            ),
            "watch_sessions": lambda: daemon.call("watch_sessions", {}),
        }
        print(f"{sessions} sessions; milliseconds: first, median warm, median after a change, most")
        for name, call in calls.items():
            times = []
            for number in range(WARM + 2 * ROUNDS):
                if number >= WARM + ROUNDS:
                    with last.open("a") as file:
                        entry = {"type": "label", "id": f"l{count}-{number}", "parentId": "a1", "targetId": "a1", "label": "x"}
                        file.write(json.dumps(entry) + "\n")
                begun = time.perf_counter()
                call()
                times.append(1000 * (time.perf_counter() - begun))
            warm, changed = times[WARM : WARM + ROUNDS], times[WARM + ROUNDS :]
            print(
                f"{name:24} {times[0]:8.1f} {statistics.median(warm):8.2f} "
                f"{statistics.median(changed):8.2f} {max(times[WARM:]):8.1f}",
                flush=True,
            )
        daemon.process.stdin.close()
        daemon.process.wait()


if __name__ == "__main__":
    main()
