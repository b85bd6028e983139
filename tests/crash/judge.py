"""Opens what a power cut may have left with the program, and compares it with what had been answered."""

import contextlib
import json
import os
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

from record import Failed

# Lines of these kinds are bookkeeping: no list of entries has them (session-file.md §4.1, §4.5, §4.7, §4.8).
RECORDS = {f"treelined.{name}" for name in "leaf trashed restored branch archived unarchived shed tags git".split()}
# A record that stands for the lines of a branch in the cold file. It goes when they come back (session-file.md §4.10).
SHED = b'"treelined.shed"'
# So begins each line that the daemon writes.
BEGINNING = b'{"type":"'


def whole_lines(content):
    """The lines that are a JSON object."""
    return {line.strip() for line in content.split(b"\n") if parsed(line) is not None}


def parsed(line):
    try:
        value = json.loads(line)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def pieces(content):
    """The lines that are a JSON object, and those on damaged lines."""
    found = whole_lines(content)
    for line in set(content.split(b"\n")) - found:
        found.update(BEGINNING + part.strip(b"\0 ") for part in line.split(BEGINNING)[1:])
    return found


def cold_lines(files, path):
    """The lines of shed branches: those in the cold file whose branch has a record in the session file."""
    records = [parsed(line) for line in whole_lines(files[path]) if SHED in line]
    branches = {record["data"]["entryId"] for record in records}
    lines = whole_lines(files.get(path + ".cold") or b"")
    return {line.split(b',"line":', 1)[1][:-1] for line in lines if parsed(line)["of"] in branches}


def header_id(content):
    """The id of the session of a file whose first line is whole."""
    header = parsed(content.split(b"\n", 1)[0])
    return header.get("id") if header and header.get("type") == "session" else None


def is_current(content):
    """Whether a session file has the present version; an earlier one is replaced by the first write."""
    return b'"version":3' in content.split(b"\n", 1)[0]


def place_of(path):
    """`here` for a session file, `trash` for one that was deleted, else None."""
    folder, _, name = path.rpartition("/")
    if folder == ".trash":
        return "trash" if ".jsonl" in name and not name.startswith(".") else None
    if not name.endswith(".jsonl") or name.startswith(".") or folder.startswith(".") or "/" in folder:
        return None
    return "here"


@dataclass
class Seen:
    """A session file as the program shows it."""

    error: str | None = None
    leaf: str | None = None
    entries: dict = field(default_factory=dict)


@dataclass
class Promise:
    """What was answered about a session."""

    lines: set = field(default_factory=set)
    entries: set = field(default_factory=set)
    leaf: str | None = None
    place: str = "here"


class Judge:
    """A daemon whose session directory gets one state after another."""

    def __init__(self, program, folder):
        self.folder = Path(folder) / "sessions"
        self.folder.mkdir(mode=0o700)
        environment = {"PATH": os.environ["PATH"], "HOME": str(folder), "LANG": "C.UTF-8"}
        command = [program, "--session-dir", str(self.folder), "--durability", "os", "--summarizer", "outline"]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        self._process = subprocess.Popen(command, env=environment, **pipes)
        self._number, self._there, self._seen = 0, {}, {}
        self.opened = 0

    def end(self):
        self._process.stdin.close()
        self._process.stdout.read()
        if status := self._process.wait(30):
            raise Failed(f"the daemon that opens the states ended with {status}")

    def call(self, method, params):
        self._number += 1
        request = {"jsonrpc": "2.0", "id": self._number, "method": method, "params": params}
        self._process.stdin.write(json.dumps(request).encode() + b"\n")
        self._process.stdin.flush()
        for line in self._process.stdout:
            if not line.startswith(b'{"jsonrpc":"2.0","id":%d,' % self._number):
                continue
            return json.loads(line)
        raise Failed(f"the daemon ended in {method} {params}")

    def lay(self, files):
        """Makes the session directory what `files` says. A changed file is a new one."""
        there = {}
        for path in sorted(self.folder.rglob("*"), reverse=True):
            name = str(path.relative_to(self.folder))
            if name.split("/")[0] == ".cache":
                continue
            key = name + "/" if path.is_dir() else name
            # The daemon may remove a temporary file of a dead process meanwhile.
            with contextlib.suppress(FileNotFoundError):
                if key not in files:
                    path.rmdir() if path.is_dir() else path.unlink()
                elif key.endswith("/"):
                    there[key] = None
                elif self._there.get(key) == (stamp := self._stamp(path.stat()), files[key]):
                    there[key] = (stamp, files[key])
                else:
                    path.unlink()
        for key in sorted(files):
            if key not in there:
                there[key] = self._make(self.folder / key, files[key])
        self._there = there

    @staticmethod
    def _stamp(status):
        return status.st_ino, status.st_size, status.st_ctime_ns

    def _make(self, path, content):
        if content is None:
            path.mkdir(mode=0o700)
            return None
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(content)
            file.flush()
            return self._stamp(os.fstat(file.fileno())), content

    def look(self, files):
        """The rows of the lists, and each session file as it opens. Faults are in the second result."""
        self.lay(files)
        faults, rows = [], {}
        answer = self.call("list_sessions", {"archived": True})
        if "error" in answer:
            faults.append(f"list_sessions: {answer['error']}")
        else:
            rows = {row["sessionId"]: row for row in answer["result"]["sessions"]}
        trash = self.call("list_trash", {})
        if "error" in trash:
            faults.append(f"list_trash: {trash['error']}")
            trash = {"result": {"sessions": []}}
        seen = {}
        for path, content in files.items():
            if content is not None and place_of(path) == "here":
                key = (path, content)
                if key not in self._seen:
                    self._seen[key] = self._open(path, content, faults)
                    self.lay(files)
                seen[path] = self._seen[key]
        return rows, {row["sessionId"] for row in trash["result"]["sessions"]}, seen, faults

    def _open(self, path, content, faults):
        """Opens a file, appends to it, and opens it again."""
        self.opened += 1
        first = self._read(path)
        if first.error is not None:
            return first
        session = first.entries.pop("")
        added = {"message": {"role": "user", "content": "After the power cut."}, "entryId": "after-the-cut"}
        answer = self.call("append_message", {"sessionId": session} | added)
        self.call("close_session", {"sessionId": session})
        if "error" in answer:
            first.error = f"append_message: {answer['error']}"
            return first
        again = self._read(path)
        self.call("close_session", {"sessionId": session})
        new = again.entries.pop("after-the-cut", None)
        again.entries.pop("", None)
        if again.error or new is None or again.entries != first.entries or again.leaf != "after-the-cut":
            faults.append(f"{path}: after an append it opens as {again.error or again}, before it as {first}")
        written = self.folder / path
        if is_current(content) and not written.read_bytes().startswith(content):
            faults.append(f"{path}: the append has changed earlier bytes")
        return first

    def _read(self, path):
        answer = self.call("open_session", {"path": str(self.folder / path)})
        if "error" in answer:
            return Seen(error=answer["error"]["data"]["kind"])
        session = answer["result"]["session"]
        seen = Seen(leaf=session["leafId"], entries={"": session["sessionId"]})
        cursor = {}
        while True:
            page = self.call("get_entries", {"sessionId": session["sessionId"]} | cursor)
            if "error" in page:
                return Seen(error=f"get_entries: {page['error']}")
            seen.entries.update((entry["id"], entry) for entry in page["result"]["entries"])
            if "nextCursor" not in page["result"]:
                return seen
            cursor = {"since": page["result"]["nextCursor"]}

    def import_again(self, files, step):
        """The entries of each session after the import has run once more."""
        self.lay(files)
        answer = self.call("import_sessions", step.asked[0])
        if "error" in answer:
            return f"the next import fails: {answer['error']}"
        found = {}
        for path in sorted(self.folder.glob("*/*.jsonl")):
            name = str(path.relative_to(self.folder))
            if place_of(name) == "here":
                seen = self._read(name)
                if seen.error is None:
                    session = seen.entries.pop("")
                    self.call("close_session", {"sessionId": session})
                    found[session] = set(seen.entries)
        return found


class Promises:
    """What has been answered so far, and whether a state keeps it."""

    def __init__(self, truth, originals, old_files):
        """`originals` has the entries, `old_files` the bytes, of the sessions that were there before the record."""
        self.sessions, self.pinned, self.truth, self.originals, self.old_files = {}, {}, truth, originals, old_files
        self.version = 0

    def promise(self, session, content, leaf, place="here"):
        lines = whole_lines(content)
        if not is_current(content):
            lines = set()
        entries = set(self.originals.get(session, ()))
        if SHED in content and session in self.sessions:
            lines |= self.sessions[session].lines
        lines = {line for line in lines if SHED not in line}
        for value in filter(None, map(parsed, lines)):
            if value.get("type") != "session" and value.get("customType") not in RECORDS and "id" in value:
                entries.add(value["id"])
        self.sessions[session] = Promise(lines, entries, leaf, place)
        self.version += 1

    def promise_lines(self, session, content, ids):
        """Only the lines with these ids: other requests were under way."""
        known = self.sessions.setdefault(session, Promise())
        for line in whole_lines(content):
            value = parsed(line)
            if value and value.get("id") in ids:
                known.lines.add(line)
                known.entries.add(value["id"])
        # The leaf is that of one of the requests.
        known.leaf = None
        self.version += 1

    def broken(self, files, looked, live):
        """What a state has lost, or has too much of. `live` is what the running program sees at this moment."""
        rows, trash, seen, faults = looked
        faults = list(faults)
        places = {}
        for path, content in files.items():
            if content is None or (place := place_of(path)) is None:
                continue
            session = header_id(content)
            places.setdefault(session, []).append((place, path))
            if place == "here":
                faults += self._strange(session, path, seen[path])
        for session, promise in self.sessions.items():
            faults += self._lost(session, promise, files, (places.get(session, []), rows, trash, seen), live)
        for session, pinned in self.pinned.items():
            allowed = {pinned, self._marked(live, session)}
            if session in rows and bool(rows[session].get("pinned")) not in allowed:
                faults.append(f"{session}: its mark is lost")
        return faults

    @staticmethod
    def _marked(live, session):
        marks = [value for line in live.get(".marks.jsonl", b"").split(b"\n") if (value := parsed(line))]
        return bool(next((mark.get("pinned") for mark in reversed(marks) if mark.get("sessionId") == session), False))

    def _strange(self, session, path, seen):
        if seen.error is not None:
            if session in self.sessions or seen.error != "headerMissing":
                yield f"{path}: cannot be opened: {seen.error}"
            return
        for entry_id, entry in seen.entries.items():
            if entry not in self.truth.get((session, entry_id), []):
                yield f"{path}: has an entry that nobody wrote: {json.dumps(entry)[:300]}"

    def _lost(self, session, promise, files, found, live):
        places, rows, trash, seen = found
        allowed = {promise.place} | {
            place for path, content in live.items() if content and (place := place_of(path)) and header_id(content) == session
        }
        if len(places) != 1 or places[0][0] not in allowed:
            yield f"{session}: was promised in {sorted(allowed)}, is in {places}"
            return
        place, path = places[0]
        if place == "trash" and session not in trash or place == "here" and session not in rows:
            yield f"{session}: no list has it"
        cold = cold_lines(files, path)
        lines = whole_lines(files[path]) | cold
        if lost := promise.lines - lines:
            yield f"{session}: lost what was answered: {sorted(lost)[0][:300]}"
        original = self.old_files.get(session)
        if original is not None and not is_current(original) and is_current(files[path]):
            if not any(content == original and name.startswith(path + ".v") for name, content in files.items()):
                yield f"{session}: was migrated, and the original is lost"
        if place == "trash" or seen[path].error is not None:
            return
        if lost := promise.entries - set(seen[path].entries) - {parsed(line)["id"] for line in cold} - {""}:
            yield f"{session}: the program does not show {sorted(lost)}"
        yield from self._moved(session, promise, files[path], seen[path])

    @staticmethod
    def _moved(session, promise, content, seen):
        """The leaf is where it was promised, or where a later line puts it."""
        if promise.leaf is None and promise.lines:
            return
        later = [value for line in pieces(content) - promise.lines if (value := parsed(line))]
        places = {value.get("parentId") for value in later}
        # A record of a move to a line that is lost means the empty position.
        lost = {None} if places - set(seen.entries) else set()
        allowed = {promise.leaf} | places | lost | (set(seen.entries) - promise.entries)
        if seen.leaf not in allowed:
            yield f"{session}: opens at {seen.leaf}, was promised at {promise.leaf}"
