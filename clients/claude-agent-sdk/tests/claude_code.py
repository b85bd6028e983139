"""A stand-in for the program Claude Code, which the SDK runs. It answers with the path of prompts.

It implements the part of the protocol that a query needs. Like Claude Code it writes its transcript
to its folder, and sends it to the SDK in frames. It imports no SDK, so that it starts at once.
`STUB_PROJECT` is the SDK's name of the project.
"""

from __future__ import annotations

import json
import os
import sys
import uuid
from pathlib import Path
from typing import Any

OPTIONS = dict(arg.split("=", 1) for arg in sys.argv if arg.startswith("--resume"))
SESSION = OPTIONS.get("--resume") or str(uuid.uuid4())
HOME = Path(os.environ["CLAUDE_CONFIG_DIR"])
FILE = HOME / "projects" / os.environ["STUB_PROJECT"] / f"{SESSION}.jsonl"


def send(message: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()


def record(parent: str | None, role: str, content: Any) -> dict[str, Any]:
    return {
        "parentUuid": parent,
        "isSidechain": False,
        "cwd": str(Path.cwd()),
        "sessionId": SESSION,
        "type": role,
        "message": {"role": role, "content": content},
        "uuid": str(uuid.uuid4()),
        "timestamp": "2026-03-01T09:30:00.000Z",
    }


def answer(prompt: str) -> None:
    lines = FILE.read_text().splitlines() if FILE.exists() else []
    known = {line["uuid"]: line for line in map(json.loads, lines)}
    last = OPTIONS.get("--resume-session-at") or (list(known)[-1] if known else None)
    asked = record(last, "user", prompt)
    said: list[str] = []
    at: dict[str, Any] | None = asked
    while at is not None:
        said += [at["message"]["content"]] if at["type"] == "user" else []
        at = known.get(at["parentUuid"])
    text = " / ".join(reversed(said))
    replied = record(asked["uuid"], "assistant", [{"type": "text", "text": text}])
    replied["message"]["model"] = "stub"
    FILE.parent.mkdir(parents=True, exist_ok=True)
    with FILE.open("a") as file:
        file.writelines(json.dumps(line) + "\n" for line in (asked, replied))
    send({"type": "transcript_mirror", "filePath": str(FILE), "entries": [asked, replied]})
    about = {"session_id": SESSION, "uuid": replied["uuid"]}
    send({"type": "assistant", "message": replied["message"], "parent_tool_use_id": None, **about})
    counts = {"duration_ms": 1, "duration_api_ms": 1, "num_turns": 1, "is_error": False}
    send({"type": "result", "subtype": "success", "result": text, **counts, **about})


if "-v" in sys.argv:
    sys.exit("2.1.300 (Claude Code)")
for line in sys.stdin:
    message = json.loads(line)
    if message["type"] == "control_request":
        response = {"subtype": "success", "request_id": message["request_id"], "response": {}}
        send({"type": "control_response", "response": response})
    elif message["type"] == "user":
        answer(message["message"]["content"])
