"""The session of the tests."""

from pathlib import Path


def prepare(folder: Path) -> list[str]:
    """Writes a session of this directory with a branch that was left. The arguments of a server that finds it."""
    sessions = folder / "sessions"
    sessions.mkdir(mode=0o700)
    text = (Path(__file__).parent / "build.jsonl").read_text()
    (sessions / "build.jsonl").write_text(text.replace("CWD", str(folder)))
    return ["--session-dir", str(sessions)]
