"""The session of the tests."""

import json
from pathlib import Path

# A text of more than one page.
LONG = "\n".join(f"{number} This is a line of a long text." for number in range(2_000))


def prepare(folder: Path) -> list[str]:
    """Writes a session of this directory with a branch that was left. Returns the arguments of a server that finds it."""
    sessions = folder / "sessions"
    sessions.mkdir(mode=0o700)
    text = (Path(__file__).parent / "build.jsonl").read_text()
    message = {"role": "user", "content": LONG}
    entry = {"type": "message", "id": "long", "parentId": "u3", "timestamp": "2026-01-02T03:04:10.000Z", "message": message}
    text = text.replace("CWD", str(folder)) + json.dumps(entry) + "\n"
    (sessions / "build.jsonl").write_text(text)
    return ["--session-dir", str(sessions)]
