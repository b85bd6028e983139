"""Records the file system calls of a daemon with strace, as a list of events in the order in which they happened.

An event is a tuple: ("write", path, offset, data), ("resize", path, size), ("made", path, "file" or "folder"),
("moved", from, to), ("linked", from, to), ("removed", path), ("sync", number, path), ("synced", number), ("said", data). The offset of an append is
None. A change stands where its call ended, since a power cut before that is one without the change. A sync has its
beginning, since it covers what was written before it, and its end, since it holds from there on. What is said to the client
stands where the call begins: from there on the client may know it.
"""

import json
import os
import re
import subprocess
import time
from pathlib import Path

CALLS = (
    "open,openat,openat2,creat,write,pwrite64,writev,pwritev,pwritev2,lseek,fsync,fdatasync,sync_file_range,sync,syncfs,"
    "rename,renameat,renameat2,link,linkat,unlink,unlinkat,mkdir,mkdirat,rmdir,symlink,symlinkat,ftruncate,truncate,"
    "copy_file_range,sendfile,splice,ioctl,fallocate,msync,io_uring_setup,mknod,mknodat"
)
# These do nothing, or nothing that the model knows. A call of the second list that succeeds below the root is an error.
IGNORED = {"ioctl", "lseek", "sync_file_range", "exit"}
UNKNOWN = {"sync", "syncfs", "splice", "msync", "io_uring_setup", "mknod", "mknodat", "symlink", "symlinkat"}
WAIT = 30

CALL = re.compile(r"^(\d+) +(\w+)\((.*)\) += (-?\d+|0x[0-9a-f]+|\?)(?:<(.*?)>)?(?: .*)?$", re.S)
BEGUN = re.compile(r"^(\d+) +(\w+)\((.*?) ?<unfinished \.\.\.>$", re.S)
RESUMED = re.compile(r"^(\d+) +<\.\.\. (\w+) resumed>(.*)$", re.S)
TEXT = re.compile(r'"((?:\\x[0-9a-f]{2})*)"')
FD = re.compile(r"^(-?\d+|AT_FDCWD)(?:<(.*)>)?$")


class Failed(Exception):
    """The record, or the model of it, cannot be trusted."""


def unescaped(text):
    return bytes.fromhex(text.replace("\\x", ""))


def path_of(text):
    """The path of `-y`; strace escapes it like every other text."""
    if text is None:
        return None
    raw = re.sub(r"((?:\\x[0-9a-f]{2})+)", lambda found: unescaped(found.group(1)).decode("utf-8", "surrogateescape"), text)
    return raw.removesuffix(" (deleted)").removesuffix("(deleted)") if not raw.endswith("(deleted)") else None


class Reader:
    """Turns the lines of strace into events."""

    def __init__(self, root, pipe):
        self.events = []
        self._root, self._pipe = root + "/", pipe
        self._begun = {}
        self._open = {}
        self._syncs = 0

    def line(self, line):
        if " ???(" in line or "<... ??? " in line:
            # A thread that ended with the process.
            return
        if begun := BEGUN.match(line):
            pid, name, arguments = begun.groups()
            self._begun[pid] = (name, arguments, self._starts(name, arguments.split(", ")))
        elif resumed := RESUMED.match(line):
            pid, name, rest = resumed.groups()
            began, arguments, start = self._begun.pop(pid)
            if began != name:
                raise Failed(f"{name} ends, {began} had begun: {line}")
            self._whole(f"{pid} {name}({arguments}{rest}", start)
        else:
            self._whole(line, None)

    def _whole(self, line, start):
        call = CALL.match(line)
        if call is None:
            # A thread has ended, or a signal came.
            if "+++" in line or "---" in line:
                return
            raise Failed(f"strace wrote a line of another form: {line[:200]}")
        _, name, arguments, result, fd_path = call.groups()
        arguments = arguments.split(", ")
        if start is None:
            start = self._starts(name, arguments)
        has_failed = result == "?" or result.startswith("-")
        if start is not None and start[0] == "said":
            start[1][1] = b"" if has_failed else start[1][1][: int(result)]
        elif has_failed:
            return
        elif start is not None:
            self.events.append(("synced", start[1]))
        elif name not in IGNORED:
            self._ended(name, arguments, int(result, 0), path_of(fd_path))
        elif name == "lseek":
            self._seek(arguments, int(result, 0))
        elif name == "ioctl" and "FICLONE" in arguments[1]:
            raise Failed("the model knows no FICLONE")

    def _fd(self, text):
        found = FD.match(text)
        return (found.group(1), path_of(found.group(2))) if found else (text, None)

    def _is_ours(self, path):
        return path is not None and (path + "/").startswith(self._root)

    def _starts(self, name, arguments):
        """Notes a sync, or what is said; both count from where they begin."""
        if name in ("fsync", "fdatasync"):
            _, path = self._fd(arguments[0])
            if self._is_ours(path):
                self._syncs += 1
                self.events.append(("sync", self._syncs, path))
                return ("sync", self._syncs)
        if name in ("write", "writev", "pwritev2"):
            _, path = self._fd(arguments[0])
            if path == self._pipe:
                said = ["said", self._data(arguments)]
                self.events.append(said)
                return ("said", said)
        return None

    @staticmethod
    def _data(arguments):
        return b"".join(unescaped(found) for found in TEXT.findall(", ".join(arguments)))

    def _seek(self, arguments, result):
        fd, path = self._fd(arguments[0])
        if self._is_ours(path) and fd in self._open:
            self._open[fd][1] = result

    def _named(self, folder, name):
        """The path of a name below a folder handle, or of an absolute path."""
        path = unescaped(name.strip('"')).decode("utf-8", "surrogateescape")
        if folder is None or path.startswith("/"):
            return os.path.normpath(path)
        return os.path.normpath(os.path.join(self._fd(folder)[1] or "/", path))

    def _ended(self, name, arguments, result, opened):
        if name in ("open", "openat", "openat2", "creat"):
            self._opened(", ".join(arguments), str(result), opened)
        elif name in ("write", "writev", "pwrite64", "pwritev", "pwritev2"):
            self._wrote(name, arguments, result)
        elif name in ("copy_file_range", "sendfile"):
            self._copied(name, arguments, result)
        elif name in ("ftruncate", "fallocate"):
            fd, path = self._fd(arguments[0])
            if self._is_ours(path):
                if name == "fallocate":
                    raise Failed("the model knows no fallocate")
                self.events.append(("resize", path, int(arguments[1])))
        elif name in ("mkdir", "mkdirat"):
            self._add("made", self._named(*([None] + arguments if name == "mkdir" else arguments)[:2]), "folder")
        elif name in ("rmdir", "unlink", "unlinkat"):
            self._add("removed", self._named(*([None] + arguments if name != "unlinkat" else arguments)[:2]))
        elif name in ("rename", "renameat", "renameat2"):
            ends = [None, arguments[0], None, arguments[1]] if name == "rename" else arguments
            if "EXCHANGE" in arguments[-1]:
                raise Failed("the model knows no exchange of names")
            self._add("moved", self._named(*ends[:2]), self._named(*ends[2:4]))
        elif name in ("link", "linkat"):
            ends = [None, arguments[0], None, arguments[1]] if name == "link" else arguments
            self._add("linked", self._named(*ends[:2]), self._named(*ends[2:4]))
        elif name in UNKNOWN and any(self._is_ours(path_of(part.strip('"<>'))) for part in arguments):
            raise Failed(f"the model knows no {name}")

    def _add(self, kind, path, *more):
        if self._is_ours(path) or (kind in ("moved", "linked") and self._is_ours(more[0])):
            self.events.append((kind, path, *more))

    def _opened(self, arguments, fd, path):
        if not self._is_ours(path):
            self._open.pop(fd, None)
            return
        self._open[fd] = ["O_APPEND" in arguments, 0]
        if "O_CREAT" in arguments:
            self.events.append(("made", path, "file"))
        if "O_TRUNC" in arguments:
            self.events.append(("resize", path, 0))

    def _wrote(self, name, arguments, result):
        fd, path = self._fd(arguments[0])
        if not self._is_ours(path):
            return
        data = self._data(arguments)[:result]
        if name.startswith("p"):
            raise Failed(f"the model knows no {name}")
        self._placed(fd, path, data)

    def _placed(self, fd, path, data):
        if fd not in self._open:
            raise Failed(f"{path} is written through a handle that was opened before the record")
        append, at = self._open[fd]
        self.events.append(("write", path, None if append else at, data))
        self._open[fd][1] = at + len(data)

    def _copied(self, name, arguments, result):
        out, source = (arguments[2], arguments[0]) if name == "copy_file_range" else (arguments[0], arguments[1])
        fd, path = self._fd(out)
        if not self._is_ours(path) or result == 0:
            return
        source_fd, source_path = self._fd(source)
        state = self._open.get(source_fd, [False, 0])
        self.events.append(("copy", path, source_path, state[1], result))
        state[1] += result
        if fd in self._open:
            self._open[fd][1] += result


class Recorder:
    """A daemon on pipes, below strace."""

    def __init__(self, program, root, options, environment):
        self._file = Path(root).parent / "calls"
        command = ["strace", "-f", "-y", "-xx", "-s", str(1 << 26), "-e", f"trace={CALLS}", "-o", str(self._file), program]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        self._process = subprocess.Popen(command + options, env=environment, **pipes)
        pipe = os.readlink(f"/proc/self/fd/{self._process.stdout.fileno()}")
        self.reader = Reader(str(root), pipe)
        self._next, self._rest, self._at = 0, "", 0
        self.notified = []

    @property
    def events(self):
        return self.reader.events

    def send(self, method, params):
        self._next += 1
        request = {"jsonrpc": "2.0", "id": self._next, "method": method, "params": params}
        self._process.stdin.write(json.dumps(request).encode() + b"\n")
        self._process.stdin.flush()
        return self._next

    def answer(self, number):
        """Waits for the answer of a request; notifications are kept."""
        for line in self._process.stdout:
            message = json.loads(line)
            if message.get("id") == number and "method" not in message:
                return message
            self.notified.append(message)
        raise Failed("the daemon ended before it had answered")

    def answers(self, numbers):
        """The answers of several requests, in the order of the requests."""
        found = {}
        for line in self._process.stdout:
            message = json.loads(line)
            if message.get("id") in numbers and "method" not in message:
                found[message["id"]] = message
                if len(found) == len(numbers):
                    return [found[number] for number in numbers]
        raise Failed("the daemon ended before it had answered")

    def pump(self):
        """Reads what strace has written since."""
        if not self._file.exists():
            return
        with self._file.open() as file:
            file.seek(self._at)
            text = self._rest + file.read()
            self._at = file.tell()
        *lines, self._rest = text.split("\n")
        for line in lines:
            self.reader.line(line)

    def settle(self):
        """Waits until all that was written is synced, and notes this in the record."""
        end = time.monotonic() + WAIT
        while True:
            self.pump()
            if not (late := unsynced(self.events)):
                self.events.append(("settled",))
                return
            if time.monotonic() > end:
                raise Failed(f"after {WAIT} s this is not synced: {sorted(late)}")
            time.sleep(0.01)

    def end(self):
        self._process.stdin.close()
        self._process.stdout.read()
        if status := self._process.wait(WAIT):
            raise Failed(f"the daemon ended with {status}")
        self.pump()


def unsynced(events):
    """The files with bytes, and the folders with names, that no sync has covered. What an import keeps beside the sessions
    is not counted: the next import makes it again."""
    dirty, asked = {}, {}

    def change(path, at):
        if not any(part in path for part in ("/.cache", "/.imports", "/.origins", "/.continuations")):
            dirty[path] = at

    for at, event in enumerate(events):
        match event:
            case ("write" | "copy" | "resize", path, *_):
                change(path, at)
            case ("made" | "removed", path, *_):
                dirty.pop(path, None)
                change(os.path.dirname(path), at)
            case ("moved", old, new):
                if (since := dirty.pop(old, None)) is not None:
                    dirty[new] = since
                change(os.path.dirname(old), at)
                change(os.path.dirname(new), at)
            case ("sync", number, path):
                asked[number] = (path, at)
            case ("synced", number):
                path, began = asked[number]
                if dirty.get(path, began) < began:
                    del dirty[path]
    return dirty
