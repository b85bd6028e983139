"""A model of a disk: files, names, and which changes of them a power cut may undo.

A change of a file counts for sure when a sync of the file began after it and has ended, a change of names when such a sync
of one of its folders has ended. Every other change may be on the disk or not, each for itself; the bytes of a write may be
there in part, or be zeros where the file has grown. A rename is there as a whole or not at all. This is weaker than what ext4,
XFS, Btrfs and APFS give.
"""

import hashlib
import itertools
import os
import random
from pathlib import Path

from record import Failed

SECTORS = (512, 4096)
# Up to so many name changes every subset is tried, and up to so many writes of a file every write is dropped, cut and zeroed.
ALL_NAMES, ALL_WRITES = 4, 6


class File:
    def __init__(self, data=b""):
        self.live = bytearray(data)
        self.synced = bytes(data)
        # (number, offset or None for a new length, bytes or length), in the order of the calls.
        self.changes = []


class Folder:
    pass


class NameChange:
    """Entries of folders that change together: (folder, name, node, whether it is there)."""

    def __init__(self, number, entries):
        self.number, self.entries, self.is_synced = number, entries, False

    def apply(self, names):
        for folder, name, node, is_there in self.entries:
            of_folder = names.setdefault(folder, {})
            if is_there:
                of_folder[name] = node
            elif of_folder.get(name) is node:
                del of_folder[name]


class Disk:
    def __init__(self, root, before):
        """A disk whose files are those of the folder `before`, and whose paths begin with `root`."""
        self.root, self.top = str(root), Folder()
        self._numbers = itertools.count()
        self._live, self._asked, self._pending = {self.top: {}}, {}, []
        self._read(Path(before), self.top)
        self._synced = {folder: dict(names) for folder, names in self._live.items()}

    def _read(self, path, folder):
        for entry in sorted(path.iterdir()):
            if entry.is_dir():
                node = Folder()
                self._live[node] = {}
                self._read(entry, node)
            else:
                node = File(entry.read_bytes())
            self._live[folder][entry.name] = node

    def _parts(self, path):
        below = os.path.relpath(path, self.root)
        return [] if below == "." else below.split("/")

    def node(self, path):
        node = self.top
        for name in self._parts(path):
            node = self._live.get(node, {}).get(name)
            if node is None:
                return None
        return node

    def _place(self, path):
        folder = self.node(os.path.dirname(path))
        if folder is None:
            raise Failed(f"the model has no folder of {path}")
        return folder, os.path.basename(path)

    def _file(self, path):
        node = self.node(path)
        if not isinstance(node, File):
            raise Failed(f"the model has no file {path}")
        return node

    def apply(self, event):
        """Follows one event. Returns whether the disk may have other content after a power cut than before."""
        match event:
            case ("write", path, at, data):
                file = self._file(path)
                self._write(file, len(file.live) if at is None else at, data)
            case ("copy", path, source, at, length):
                file, of = self._file(path), self.node(source)
                data = bytes(of.live) if isinstance(of, File) else Path(source).read_bytes()
                self._write(file, len(file.live), data[at : at + length])
            case ("resize", path, size):
                file = self._file(path)
                file.changes.append((next(self._numbers), None, size))
                self._resize(file.live, size)
            case ("made", path, kind):
                folder, name = self._place(path)
                if name in self._live[folder]:
                    return False
                node = Folder() if kind == "folder" else File()
                if kind == "folder":
                    self._live[node], self._synced[node] = {}, {}
                self._rename([(folder, name, node, True)])
            case ("removed", path):
                folder, name = self._place(path)
                self._rename([(folder, name, self._live[folder][name], False)])
            case ("moved", old, new):
                (folder, name), (to, new_name) = self._place(old), self._place(new)
                node = self._live[folder][name]
                self._rename([(to, new_name, node, True), (folder, name, node, False)])
            case ("linked", old, new):
                folder, name = self._place(new)
                self._rename([(folder, name, self._file(old), True)])
            case ("sync", number, path):
                node = self.node(path)
                self._asked[number] = (node, next(self._numbers))
                return False
            case ("synced", number):
                self._sync(*self._asked.pop(number))
            case _:
                return False
        return True

    def _write(self, file, at, data):
        file.changes.append((next(self._numbers), at, data))
        self._put(file.live, at, data)

    @staticmethod
    def _put(content, at, data):
        if len(content) < at:
            content.extend(bytes(at - len(content)))
        content[at : at + len(data)] = data

    @staticmethod
    def _resize(content, size):
        del content[size:]
        content.extend(bytes(size - len(content)))

    def _rename(self, entries):
        change = NameChange(next(self._numbers), entries)
        change.apply(self._live)
        self._pending.append(change)

    def _sync(self, node, began):
        if isinstance(node, File):
            content = bytearray(node.synced)
            for change in node.changes:
                if change[0] < began:
                    self._change(content, change)
            node.synced = bytes(content)
            node.changes = [change for change in node.changes if change[0] > began]
        for change in self._pending:
            if change.number < began and any(folder is node for folder, *_ in change.entries):
                change.is_synced = True
        while self._pending and self._pending[0].is_synced:
            self._pending.pop(0).apply(self._synced)

    def _change(self, content, change):
        _, at, what = change
        if at is None:
            self._resize(content, what)
        else:
            self._put(content, at, what)

    def live(self, below=""):
        """The files as the running program sees them."""
        return self._files(self._live, lambda file: bytes(file.live), below)

    def is_clean(self):
        """Whether a power cut changes nothing."""
        return all(change.is_synced for change in self._pending) and not self._dirty()

    def _dirty(self):
        found = []

        def look(folder):
            for node in self._live[folder].values():
                if isinstance(node, Folder):
                    look(node)
                elif node.changes:
                    found.append(node)

        look(self.top)
        return found

    def _files(self, names, content, below=""):
        found = {}

        def look(folder, path):
            for name, node in names.get(folder, {}).items():
                # Files in `.cache` may be missing or damaged at any time (session-file.md §2.9).
                if name == ".cache":
                    continue
                if isinstance(node, File):
                    found[path + name] = content(node)
                else:
                    found[path + name + "/"] = None
                    look(node, path + name + "/")

        look(self.top, "")
        return {path[len(below) :]: data for path, data in found.items() if path.startswith(below) and path != below}

    def states(self, limit, seed, below=""):
        """What may be on the disk after a power cut now: distinct dictionaries of path and content, at most `limit`."""
        names = self._name_states()
        every = self._files_of(names)
        variants = {file: self._contents(file) for file in every if file.changes}
        seen = set()
        for tree, chosen in self._combinations(names, variants, limit, seed):
            files = self._files(tree, lambda file, chosen=chosen: chosen.get(file, file.synced), below)
            key = state_key(files)
            if key not in seen:
                seen.add(key)
                yield key, files

    def _files_of(self, names):
        found = {}
        for tree in names:
            for of_folder in tree.values():
                found.update((node, None) for node in of_folder.values() if isinstance(node, File))
        return list(found)

    def _name_states(self):
        open_changes = [change for change in self._pending if not change.is_synced]
        count = len(open_changes)
        if count <= ALL_NAMES:
            chosen = [set(some) for size in range(count + 1) for some in itertools.combinations(range(count), size)]
        else:
            chosen = [set(range(size)) for size in range(count + 1)]
            chosen += [set(range(count)) - {at} for at in range(count)] + [{at} for at in range(count)]
        trees = []
        # All of them first: it is what the running program sees.
        for numbers in sorted(chosen, key=lambda some: (-len(some), sorted(some))):
            tree = {folder: dict(of_folder) for folder, of_folder in self._synced.items()}
            wanted = {id(open_changes[number]) for number in numbers}
            for change in self._pending:
                if change.is_synced or id(change) in wanted:
                    change.apply(tree)
            trees.append(tree)
        return trees

    def _contents(self, file):
        """The contents that a file may have, the live one first, the synced one second."""
        changes = file.changes
        made = [self._with(file, changes), file.synced]
        last = len(changes)
        picked = range(last) if last <= ALL_WRITES else sorted({0, 1, last // 2, last - 2, last - 1})
        for at in picked:
            made.append(self._with(file, changes[:at]))
            made.append(self._with(file, changes[:at] + changes[at + 1 :]))
            number, offset, what = changes[at]
            if offset is None:
                continue
            for piece in self._pieces(offset, what):
                made.append(self._with(file, changes[:at] + [(number, *piece)]))
                made.append(self._with(file, changes[:at] + [(number, *piece)] + changes[at + 1 :]))
            zeros = (number, offset, bytes(len(what)))
            made.append(self._with(file, changes[:at] + [zeros] + changes[at + 1 :]))
        return list(dict.fromkeys(made))

    @staticmethod
    def _pieces(offset, data):
        """The parts of a write that may be there alone: up to a sector, from a sector on, up to the middle."""
        cuts = {len(data) // 2}
        for sector in SECTORS:
            all_cuts = range(sector - offset % sector, len(data), sector)
            cuts.update({*all_cuts[:1], *all_cuts[-1:], *all_cuts[len(all_cuts) // 2 :][:1]})
        for cut in sorted(cuts - {0}):
            yield offset, data[:cut]
            yield offset, data[:cut] + bytes(len(data) - cut)
            yield offset, bytes(cut) + data[cut:]

    def _with(self, file, changes):
        content = bytearray(file.synced)
        for change in changes:
            self._change(content, change)
        return bytes(content)

    @staticmethod
    def _combinations(names, variants, limit, seed):
        files = list(variants)
        product = len(names)
        for file in files:
            product *= len(variants[file])
        if product <= limit:
            for tree, *contents in itertools.product(names, *(variants[file] for file in files)):
                yield tree, dict(zip(files, contents, strict=True))
            return
        live = {file: variants[file][0] for file in files}
        synced = {file: variants[file][1 if len(variants[file]) > 1 else 0] for file in files}
        yield names[0], live
        yield names[-1], synced
        yield names[0], synced
        yield names[-1], live
        chance = random.Random(seed)
        single = [(tree, base) for base in (live, synced) for tree in names[1:-1]]
        single += [(names[0], base | {file: one}) for base in (live, synced) for file in files for one in variants[file]]
        yield from chance.sample(single, min(len(single), limit - 4))
        for _ in range(limit - 4 - len(single)):
            yield chance.choice(names), {file: chance.choice(variants[file]) for file in files}


def state_key(files):
    hashed = hashlib.sha256()
    for path in sorted(files):
        data = files[path]
        hashed.update(path.encode("utf-8", "surrogateescape") + b"\0")
        hashed.update(b"/" if data is None else hashlib.sha256(data).digest())
    return hashed.digest()
