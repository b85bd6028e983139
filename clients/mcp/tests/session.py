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
    call = {"type": "toolCall", "id": "c1", "name": "edit", "arguments": {"path": "Cargo.toml"}}
    messages = [
        ("a1", "u3", "2026-01-02T03:04:09.500Z", {"role": "assistant", "content": [call]}),
        ("long", "a1", "2026-01-02T03:04:10.000Z", {"role": "user", "content": LONG}),
    ]
    entries = [
        {"type": "message", "id": entry, "parentId": parent, "timestamp": time, "message": message}
        for entry, parent, time, message in messages
    ]
    text = text.replace("CWD", str(folder)) + "".join(json.dumps(entry) + "\n" for entry in entries)
    (sessions / "build.jsonl").write_text(text)
    return ["--session-dir", str(sessions)]
