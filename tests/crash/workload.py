"""The calls whose file system calls are recorded: every method that may write, and who may not.

A step is what the client did and what it knows after it: the number of the request, the method, the session that it is about,
and the leaf of this session then.
"""

import json
from dataclasses import dataclass, field

# These are in the scope of methods that write, and write nothing that a power cut may take. The reason is printed.
EXCEPTIONS = {
    "begin_turn": "a turn lives in memory, and its messages are appended by other steps",
    "close_session": "opening and closing write nothing (session-file.md §2.1)",
    "erase_session": "a daemon without a team erases nothing",
    "get_family": "reads",
    "get_usage": "reads, and keeps what it has counted in .cache",
    "list_sessions": "reads, and keeps its rows in .cache",
    "list_trash": "reads",
    "open_session": "opening writes nothing (session-file.md §2.1)",
    "search": "reads, and keeps its index in .cache",
    "watch_sessions": "reads",
}


def writing(table):
    """The names of the methods that may write: those that are neither immediate nor readers of one session."""
    return {row["name"] for row in table["methods"] if row["scope"] not in ("immediate", "session.read")}


@dataclass
class Step:
    request: int
    method: str
    session: str | None
    result: dict
    leaf: str | None = None
    # Whether it was answered while no other request waited.
    alone: bool = True
    asked: list = field(default_factory=list)


class Workload:
    def __init__(self, recorder, settles):
        self.recorder, self.settles = recorder, settles
        self.steps, self.open = [], set()

    def called(self):
        return {step.method for step in self.steps}

    def do(self, method, params, session="s"):
        """One call, and a look at the leaf after it."""
        params = ({"sessionId": session} if session else {}) | params
        number = self.recorder.send(method, params)
        result = self._ok(method, params, self.recorder.answer(number))
        about = session or params.get("sessionId") or (result.get("session") or {}).get("sessionId")
        step = Step(number, method, about, result, asked=[params])
        self._note(step)
        return result

    def together(self, calls, session="s"):
        """Several calls that are sent before the first is answered."""
        calls = [(method, {"sessionId": session} | params) for method, params in calls]
        numbers = [self.recorder.send(method, params) for method, params in calls]
        answers = self.recorder.answers(numbers)
        steps = []
        for number, (method, params), answer in zip(numbers, calls, answers, strict=True):
            result = self._ok(method, params, answer)
            steps.append(Step(number, method, session, result, alone=False, asked=[params]))
        steps[-1].alone = True
        for step in steps[:-1]:
            self.steps.append(step)
        self._note(steps[-1])

    def _ok(self, method, params, answer):
        if "error" in answer:
            raise SystemExit(f"{method} {json.dumps(params)[:300]}: {answer['error']}")
        if answer["result"].get("cancelled"):
            raise SystemExit(f"{method}: cancelled: {answer['result']}")
        return answer["result"]

    def _note(self, step):
        if step.method in ("create_session", "open_session", "fork_session"):
            step.session = step.result["session"]["sessionId"]
            self.open.add(step.session)
        if step.method in ("delete_session", "close_session"):
            self.open.discard(step.session)
        if step.session in self.open:
            number = self.recorder.send("get_leaf", {"sessionId": step.session})
            step.leaf = self.recorder.answer(number)["result"]["leafId"]
        self.steps.append(step)
        if self.settles:
            self.recorder.settle()


def message(text, entry_id, role="user", **more):
    content = text if role == "user" else [{"type": "text", "text": text}]
    return {"entryId": entry_id, "message": {"role": role, "content": content}} | more


def conversation(work, long_text):
    """A session with two branches."""
    do = work.do
    do("create_session", {"sessionId": "s", "cwd": str(work.cwd), "write": "now", "name": "The build"}, None)
    do("append_message", message("Why does the build fail?", "u1"))
    do("append_message", message("An import is missing.", "a1", "assistant"))
    do("append_message", message(long_text, "u2"))
    do("append_message", message("It is the cache.", "a2", "assistant"))
    entries = [{"type": "custom", "customType": "it", "id": f"c{n}", "data": {"n": n}} for n in range(3)]
    do("append_entries", {"entries": entries})
    do("append_label", {"targetId": "a1", "label": "two ideas", "entryId": "l1"})
    do("set_session_name", {"name": "The build, again"})
    do("tag_session", {"add": ["build", "cache"]})
    work.together([("append_message", message(f"Message {n}. " + "x" * 200 * n, f"p{n}")) for n in range(4)])


def moves(work):
    """Each move of the leaf."""
    do = work.do
    do("set_leaf", {"leafId": "a1"})
    do("undo_navigation", {})
    do("redo_navigation", {})
    do("cherry_pick", {"entryIds": ["u2"]})
    do("branch", {"entryId": "a1"})
    do("append_message", message("Is it the clock?", "u3"))
    do("append_message", message("No.", "a3", "assistant"))
    do("branch", {"entryId": "a1", "summary": {"summary": "The clock was right."}})
    do("merge_branch", {"tipId": "a2"})
    do("navigate_tree", {"targetId": "a3", "summarize": True, "label": "left"})
    do("pop", {"summarize": False})
    do("navigate_tree", {"targetId": "p3", "summarize": False})
    do("compact", {"keepRecentTokens": 1})


def branches(work):
    """Names, archives, background branches, and messages of plugins."""
    do = work.do
    do("name_branch", {"entryId": "u3", "name": "the clock"})
    do("archive_branch", {"entryId": "u3"})
    do("unarchive_branch", {"entryId": "u3"})
    do("append_message", message("Is it the disk?", "g1", parentId="a1", keepLeaf=True, group="why"))
    do("append_message", message("It is full.", "h1", "assistant", parentId="g1", keepLeaf=True))
    do("append_message", message("Is it the cable?", "k1", parentId="a1", keepLeaf=True))
    do("append_message", message("It is plugged in.", "k2", "assistant", parentId="k1", keepLeaf=True))
    do("archive_branch", {"entryId": "k1"})
    if len(do("shed_branches", {"entryIds": ["k1"]})["shed"]) != 1:
        raise SystemExit("shed_branches has moved no branch")
    do("append_message", message("Said while a branch is in the cold file.", "w1"))
    do("append_message", message("It is the cable.", "k3", parentId="k2", keepLeaf=True))
    do("archive_branch", {"entryId": "k1"})
    do("shed_branches", {"entryIds": ["k1"]})
    do("unshed_branches", {})
    do("keep_branch", {"entryId": "g1"})
    do("choose", {"tipId": "h1", "reason": "It fits."})
    do("send_message", {"customType": "it", "content": "Three are open.", "display": True, "entryId": "m1"})
    do("begin_turn", {})
    do("send_message", {"customType": "it", "content": "Queued.", "display": True, "entryId": "m2"})
    do("end_turn", {})


def copies(work):
    """Forks, a session in the trash and back, marks, and a continuation in another agent."""
    do = work.do
    do("fork_session", {"newSessionId": "branch", "entryId": "a2", "position": "at"})
    do("append_message", message("On the fork.", "f1"), "branch")
    do("fork_session", {"newSessionId": "tree", "scope": "tree"})
    do("mark_session", {"pinned": True}, "tree")
    do("mark_session", {"pinned": True}, "s")
    do("mark_session", {"pinned": False}, "tree")
    do("delete_session", {}, "branch")
    do("restore_session", {}, "branch")
    do("open_session", {}, "branch")
    do("append_message", message("After the trash.", "f2"), "branch")
    do("close_session", {}, "branch")
    do("archive_branch", {"entryId": "k1"}, "tree")
    if len(do("shed_branches", {}, "tree")["shed"]) != 1:
        raise SystemExit("shed_branches has moved no branch of the copy")
    do("delete_session", {}, "tree")
    do("restore_session", {}, "tree")
    do("delete_session", {}, "tree")
    continued = do("continue_session", {"tool": "goose"})
    do("continuation_started", {"continuationId": continued["continuationId"], "nativeId": "20261124_1"})


def first_writes(work):
    """Sessions that begin with their first entry, and files of the earlier versions and with a torn end."""
    do = work.do
    do("create_session", {"sessionId": "late", "cwd": str(work.cwd / "deeper"), "write": "first-entry"}, None)
    do("append_message", message("The first.", "late1"), "late")
    do("append_message", message("The second.", "late2", "assistant"), "late")
    for session in ("v1", "v2", "torn-tail"):
        do("open_session", {}, session)
        do("append_message", message("After the old ones.", f"{session}-new"), session)
        do("append_message", message("And an answer.", f"{session}-more", "assistant"), session)


def imports(work):
    for path in work.sources:
        work.do("import_sessions", {"from": path.parent.name, "paths": [str(path)], "final": True}, None)


def play(work):
    """The whole workload. Fails if a method of the table that writes has no step."""
    conversation(work, "It says: no such file. " * 180)
    moves(work)
    branches(work)
    copies(work)
    first_writes(work)
    imports(work)


def missing(work, table):
    """What keeps the workload from being whole, as sentences."""
    wanted = writing(table)
    faults = [f"{name} may write and has no step" for name in sorted(wanted - set(EXCEPTIONS) - work.called())]
    faults += [f"{name} is an exception, and the table has no such writing method" for name in sorted(set(EXCEPTIONS) - wanted)]
    return faults
