"""The checkpointer."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import threading
from collections import OrderedDict
from typing import TYPE_CHECKING, Any

from langgraph.checkpoint.base import (
    WRITES_IDX_MAP,
    BaseCheckpointSaver,
    CheckpointTuple,
    get_checkpoint_id,
    get_checkpoint_metadata,
)
from langgraph.checkpoint.memory import InMemorySaver
from treelined import Client, TreelinedError
from treelined.stores import session_id

from ._ids import entry_id
from ._thread import CHECKPOINT, GONE, HEAD, WRITES, Node, Thread
from ._values import Codec, Item

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator, Mapping, Sequence

    from langchain_core.runnables import RunnableConfig
    from langgraph.checkpoint.base import (
        ChannelVersions,
        Checkpoint,
        CheckpointMetadata,
        DeltaChannelHistory,
    )
    from langgraph.checkpoint.serde.base import SerializerProtocol
    from typing_extensions import Self

TAG = "langgraph"
BUDGET = 256 << 20
"""Bytes of the threads that are kept in memory, each by the size of its file."""
BATCH = 500


class TreelinedSaver(BaseCheckpointSaver[str]):
    """Keeps the checkpoints of each thread in a session of treelined, as a tree.

    `client`: a started client; without one the saver starts its own, which `close` ends.
    `durability`: `os`, `interval` or `always`. Threads and tasks may share a saver.
    """

    def __init__(
        self,
        client: Client | None = None,
        *,
        durability: str | None = None,
        serde: SerializerProtocol | None = None,
        **options: Any,  # noqa: ANN401
    ) -> None:
        super().__init__(serde=serde)
        self._own = None if client else Client(**options)
        if self._own:
            self._own.start()
        self.client: Client = client or self._own  # type: ignore[assignment]
        self._policy = {} if durability is None else {"durability": durability}
        self._threads: OrderedDict[str, Thread] = OrderedDict()
        self._lock = threading.Lock()

    def __enter__(self) -> Self:
        """Return the saver."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close."""
        self.close()

    def close(self) -> None:
        """End the client that the saver has started."""
        if self._own:
            self._own.close()

    def get_next_version(self, current: str | None, channel: None) -> str:
        """Return a version greater than the current one."""
        return InMemorySaver.get_next_version(self, current, channel)  # type: ignore[arg-type]

    def get_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """Return the checkpoint that the config names, else the newest one."""
        key, ns, name = _names(config)
        with self._opened(key) as thread:
            if thread is None:
                return None
            node = thread.nodes.get((ns, name)) if name else thread.newest.get(ns)
            return None if node is None or node.is_gone else self._tuple(thread, node)

    def list(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,  # noqa: A002
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> Iterator[CheckpointTuple]:
        """Yield checkpoints, the newest first."""
        keys = [config["configurable"]["thread_id"]] if config else self._keys()
        ns = config["configurable"].get("checkpoint_ns") if config else None
        name = get_checkpoint_id(config) if config else None
        end = get_checkpoint_id(before) if before else None
        for key in keys:
            with self._opened(key) as thread:
                nodes = [] if thread is None else _select(thread, ns, name, end)
            for node in nodes:
                if limit is not None and limit <= 0:
                    return
                with thread.lock:  # type: ignore[union-attr]
                    found = self._tuple(thread, node)  # type: ignore[arg-type]
                if filter and any(found.metadata.get(k) != v for k, v in filter.items()):
                    continue
                limit = None if limit is None else limit - 1
                yield found

    def put(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """Append the checkpoint below its parent."""
        key, ns, parent_id = _names(config)
        codec = Codec(self.serde)
        with self._opened(key, create=True) as thread:
            assert thread is not None  # noqa: S101
            parent = thread.nodes.get((ns, parent_id or ""))
            record: dict[str, Any] = {
                "ns": ns,
                "id": checkpoint["id"],
                **({"parent": parent_id} if parent_id else {}),
                "metadata": codec.encode(get_checkpoint_metadata(config, metadata)),
            }
            above = parent or thread.above(record)
            values = checkpoint["channel_values"]
            rest = {n: v for n, v in checkpoint.items() if n != "channel_values"}
            record["checkpoint"] = codec.encode(rest)
            record["dropped"] = sorted(set(parent.at) - set(values)) if parent else []
            written = {
                name: value
                for name, value in values.items()
                if not _is_same(parent, checkpoint, new_versions, name)
            }
            before = thread.nodes.get((ns, checkpoint["id"]))
            count = thread.versions.get((ns, checkpoint["id"]), 0)
            # With the ids of the last record, a repeated call makes the same record.
            for version in (count - 1, count) if before else (0,):
                seed = ns, checkpoint["id"], version
                batch = _Batch(thread, above, seed)
                record["values"] = {
                    name: self._value(codec, batch, parent, name, value)
                    for name, value in written.items()
                }
                if before is not None and before.record == record:
                    return _config(key, ns, checkpoint["id"])
            name = entry_id("checkpoint", *seed)
            entry = {"type": "custom", "customType": CHECKPOINT, "id": name, "data": record}
            batch.entries.append(entry)
            if parent is not None and parent.has_child:
                step = parent.record["metadata"].get("json", {}).get("step")
                kind = "fork" if metadata.get("source") in ("fork", "update") else "time travel"
                target = next(iter(batch.own.values()), name)
                label = {"type": "label", "targetId": target, "label": f"{kind} at step {step}"}
                batch.entries.append({**label, "id": entry_id("label", *seed)})
            beside = above.entry if above else thread.head
            below = parent.tail if parent else beside
            self._append(thread, batch.entries, below, ns)
            node = thread.nodes[ns, checkpoint["id"]]
            node.own = batch.own
            for name, items in batch.lists.items():
                thread.lists[ns, name] = node, items
        return _config(key, ns, checkpoint["id"])

    def get_delta_channel_history(
        self, *, config: RunnableConfig, channels: Sequence[str]
    ) -> Mapping[str, DeltaChannelHistory]:
        """Return for each channel the writes above a checkpoint, down to its nearest stored value.

        Hidden checkpoints count, since the value of a channel may hang on what was written at one.
        """
        key, ns, name = _names(config)
        codec = Codec(self.serde)
        found: dict[str, DeltaChannelHistory] = {channel: {"writes": []} for channel in channels}
        wanted = set(found)
        with self._opened(key) as thread:
            if thread is None:
                return found
            node = thread.nodes.get((ns, name)) if name else thread.newest.get(ns)
            node = None if node is None or node.is_gone else node.parent
            while node is not None and wanted:
                at = node.record["ns"], node.record["id"]
                for task, channel, value in reversed(thread.ordered(at)):
                    if channel in wanted:
                        write = task, channel, codec.decode(value, thread.messages)
                        found[channel]["writes"].append(write)
                for channel in wanted & set(node.at):
                    found[channel]["seed"] = self._channel(codec, thread, node, channel)
                    wanted.discard(channel)
                node = node.parent
        for history in found.values():
            history["writes"].reverse()
        return found

    async def aget_delta_channel_history(
        self, *, config: RunnableConfig, channels: Sequence[str]
    ) -> Mapping[str, DeltaChannelHistory]:
        """Return for each channel the writes above a checkpoint, down to its stored value."""
        return await asyncio.to_thread(
            lambda: self.get_delta_channel_history(config=config, channels=channels)
        )

    def put_writes(
        self,
        config: RunnableConfig,
        writes: Sequence[tuple[str, Any]],
        task_id: str,
        task_path: str = "",
    ) -> None:
        """Append what a task wrote after a checkpoint."""
        key, ns, name = _names(config)
        codec = Codec(self.serde)
        with self._opened(key, create=True) as thread:
            assert thread is not None  # noqa: S101
            node = thread.nodes.get((ns, name or ""))
            stored = thread.writes.get((ns, name or ""), {})
            new: list[tuple[int, str, Any]] = []
            for place, (channel, value) in enumerate(writes):
                index = WRITES_IDX_MAP.get(channel, place)
                if index >= 0 and (task_id, index) in stored:
                    continue
                new.append((index, channel, codec.encode(value)))
            if not new or all(stored.get((task_id, i)) == (task_path, c, v) for i, c, v in new):
                return
            data = {"ns": ns, "id": name, "task": task_id, "path": task_path, "writes": new}
            seed = "writes", ns, name, task_id, thread.counts.get((ns, name or ""), 0), new
            entry = {"type": "custom", "customType": WRITES, "id": entry_id(*seed), "data": data}
            newest = node or thread.newest.get("")
            self._append(thread, [entry], newest.tail if newest else thread.head, ns)

    def delete_thread(self, thread_id: str) -> None:
        """Move the thread's session to the trash."""
        with self._opened(thread_id) as thread:
            if thread is None:
                return
            try:
                self.client.call("delete_session", {"sessionId": thread.session})
            finally:
                with self._lock:
                    self._threads.pop(thread_id, None)

    def delete_for_runs(self, run_ids: Sequence[str]) -> None:
        """Hide the checkpoints of these runs, in all threads."""
        runs = set(run_ids)
        keys = self._keys() if runs else []
        for key in keys:
            self._hide(
                key,
                lambda thread: [
                    node
                    for node in thread.nodes.values()
                    if Codec(self.serde).decode(node.record["metadata"], {}).get("run_id") in runs
                ],
            )

    def copy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        """Copy a thread with all branches. Safe to repeat: copies keep the ids of their entries."""
        with self._opened(source_thread_id) as source:
            if source is None:
                return
            page: dict[str, Any] = {"nextCursor": ""}
            since: dict[str, Any] = {}
            above: dict[str | None, str | None] = {}
            while "nextCursor" in page:
                params = {"sessionId": source.session, "limit": BATCH, **since}
                page = self.client.call("get_entries", params)
                with self._opened(target_thread_id, create=True) as target:
                    assert target is not None  # noqa: S101
                    above[source.head] = target.head
                    kept = []
                    for entry in page["entries"]:
                        parent = above.get(entry["parentId"], entry["parentId"])
                        if not _is_ours(entry):
                            # An entry of another program: what is below it goes below its parent.
                            above.setdefault(entry["id"], parent)
                            continue
                        entry["parentId"] = parent
                        entry.pop("background", None)
                        kept.append(entry)
                    if kept:
                        params = {"sessionId": target.session, "entries": kept}
                        self.client.call("append_entries", params)
                since = {"since": page["entries"][-1]["id"]} if page["entries"] else {}

    def prune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        """Hide all checkpoints but the newest ones, or move the threads to the trash."""
        if strategy not in ("keep_latest", "delete"):
            raise ValueError(f"no strategy {strategy!r}: use keep_latest or delete")
        for key in thread_ids:
            if strategy == "delete":
                self.delete_thread(key)
            else:
                self._hide(
                    key,
                    lambda thread: [
                        node
                        for node in thread.nodes.values()
                        if thread.newest[node.record["ns"]] is not node
                    ],
                )

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """Return the checkpoint that the config names, else the newest one."""
        return await asyncio.to_thread(self.get_tuple, config)

    async def alist(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,  # noqa: A002
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[CheckpointTuple]:
        """Yield checkpoints, the newest first."""
        found = self.list(config, filter=filter, before=before, limit=limit)
        while (one := await asyncio.to_thread(next, found, None)) is not None:
            yield one

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """Append the checkpoint below its parent."""
        return await asyncio.to_thread(self.put, config, checkpoint, metadata, new_versions)

    async def aput_writes(
        self,
        config: RunnableConfig,
        writes: Sequence[tuple[str, Any]],
        task_id: str,
        task_path: str = "",
    ) -> None:
        """Append what a task wrote after a checkpoint."""
        await asyncio.to_thread(self.put_writes, config, writes, task_id, task_path)

    async def adelete_thread(self, thread_id: str) -> None:
        """Move the thread's session to the trash."""
        await asyncio.to_thread(self.delete_thread, thread_id)

    async def adelete_for_runs(self, run_ids: Sequence[str]) -> None:
        """Hide the checkpoints of these runs, in all threads."""
        await asyncio.to_thread(self.delete_for_runs, run_ids)

    async def acopy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        """Copy a thread with all branches."""
        await asyncio.to_thread(self.copy_thread, source_thread_id, target_thread_id)

    async def aprune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        """Hide all checkpoints but the newest ones, or move the threads to the trash."""
        await asyncio.to_thread(lambda: self.prune(thread_ids, strategy=strategy))

    def _value(
        self,
        codec: Codec,
        batch: _Batch,
        parent: Node | None,
        name: str,
        value: Any,  # noqa: ANN401
    ) -> dict[str, Any]:
        """Encode a value: of a list what is new behind the common beginning."""
        if type(value) is not list or not codec.is_open:
            return codec.encode(value, batch.keep)
        of = parent.at.get(name) if parent else None
        node, known = batch.thread.lists.get((batch.seed[0], name), (None, []))
        seen = [
            codec.see(item, before)
            for item, before in itertools.zip_longest(value, known[: len(value)])
        ]
        batch.lists[name] = seen
        if of is not None and node is of:
            before = [item.digest for item in known]
        else:
            stored = parent.items(name) if parent and of else None
            before = [codec.digest_of(item, batch.thread.messages) for item in stored or ()]
        keep = 0
        for digest, item in zip(before, seen, strict=False):
            if item.digest != digest:
                break
            keep += 1
        items = [
            codec.encode(item, batch.keep, kept.digest)
            for item, kept in zip(value[keep:], seen[keep:], strict=True)
        ]
        return {"keep": keep, "items": items}

    def _channel(self, codec: Codec, thread: Thread, node: Node, name: str) -> Any:  # noqa: ANN401
        """Return the value of a channel at a checkpoint."""
        items = node.items(name)
        whole = node.at[name].record["values"][name] if items is None else {"items": items}
        return codec.decode(whole, thread.messages)

    def _tuple(self, thread: Thread, node: Node) -> CheckpointTuple:
        codec = Codec(self.serde)
        record = node.record
        values = {name: self._channel(codec, thread, node, name) for name in node.at}
        checkpoint = {**codec.decode(record["checkpoint"], {}), "channel_values": values}
        parent = record.get("parent")
        return CheckpointTuple(
            _config(thread.key, record["ns"], record["id"]),
            checkpoint,  # type: ignore[arg-type]
            codec.decode(record["metadata"], {}),
            _config(thread.key, record["ns"], parent) if parent else None,
            [
                (task, channel, codec.decode(value, thread.messages))
                for task, channel, value in thread.ordered((record["ns"], record["id"]))
            ],
        )

    def _append(
        self, thread: Thread, entries: Sequence[dict[str, Any]], below: str | None, ns: str
    ) -> None:
        params: dict[str, Any] = {"sessionId": thread.session, "entries": entries}
        params["parentId"] = below
        if ns:
            # A part of a graph runs beside the conversation.
            params["keepLeaf"] = True
        self.client.call("append_entries", params)
        thread.read(self.client)

    def _hide(self, key: str, choose: Any) -> None:  # noqa: ANN401
        with self._opened(key) as thread:
            if thread is None:
                return
            gone = [(n.record["ns"], n.record["id"]) for n in choose(thread) if not n.is_gone]
            if gone:
                entry = {"type": "custom", "customType": GONE, "data": {"checkpoints": gone}}
                self._append(thread, [entry], thread.head, "beside")

    def _keys(self) -> Sequence[str]:
        keys: list[str] = []
        page: dict[str, Any] = {"nextCursor": None}
        while "nextCursor" in page:
            params = {"tags": [TAG], "archived": True, "cursor": page["nextCursor"]}
            page = self.client.call("list_sessions", params)
            for row in page["sessions"]:
                session = row["sessionId"]
                with contextlib.suppress(TreelinedError), self._session(session) as head:
                    # A fork that treelined has made has the key of its source.
                    if session_id(head) == session:
                        keys.append(head)
        return keys

    @contextlib.contextmanager
    def _session(self, session: str) -> Iterator[str]:
        self.client.call("open_session", {"sessionId": session})
        page = self.client.call("get_entries", {"sessionId": session, "customType": HEAD})
        yield page["entries"][0]["data"]["key"]
        if all(thread.session != session for thread in list(self._threads.values())):
            self.client.call("close_session", {"sessionId": session})

    @contextlib.contextmanager
    def _opened(self, key: str, *, create: bool = False) -> Iterator[Thread | None]:
        """Hold a thread with all that its session has now; None if it does not exist."""
        with self._lock:
            thread = self._threads.get(key) or self._open(key, create=create)
            if thread is not None:
                self._threads[key] = thread
                self._threads.move_to_end(key)
                thread.measure()
                self._shrink(key)
        if thread is None:
            yield None
            return
        with thread.lock:
            if create and not thread.is_tagged:
                # Also for a thread whose process has ended before: a tag is written once.
                self.client.call("tag_session", {"sessionId": thread.session, "add": [TAG]})
                thread.is_tagged = True
            thread.read(self.client)
            yield thread

    def _open(self, key: str, *, create: bool) -> Thread | None:
        session = session_id(key)
        try:
            opened = self.client.call("open_session", {"sessionId": session, **self._policy})
        except TreelinedError as error:
            if error.kind != "sessionNotFound":
                raise
            if not create:
                return None
            params = {"sessionId": session, "write": "first-entry", **self._policy}
            opened = self.client.call("create_session", params)
            named = {"customType": HEAD, "id": entry_id(HEAD, key), "data": {"key": key}}
            head = {"type": "custom", **named}
            self.client.call("append_entries", {"sessionId": session, "entries": [head]})
        page = self.client.call("get_entries", {"sessionId": session, "customType": HEAD})
        if not page["entries"] or page["entries"][0]["data"]["key"] != key:
            raise ValueError(
                f"the session {session} is not of the thread {key!r}: use another thread_id"
            )
        return Thread(key, session, opened["session"].get("path"))

    def _shrink(self, used: str) -> None:
        """Forget the threads that were used the longest ago."""
        while sum(thread.size for thread in self._threads.values()) > BUDGET:
            key = next(iter(self._threads))
            if key == used:
                return
            del self._threads[key]


class _Batch:
    """The entries of one append, and the messages that they or earlier ones have."""

    def __init__(self, thread: Thread, node: Node | None, seed: tuple[Any, ...]) -> None:
        self.thread = thread
        self.node = node
        self.seed = seed
        self.entries: list[dict[str, Any]] = []
        self.own: dict[bytes, str] = {}
        self.lists: dict[str, list[Item]] = {}

    def keep(self, digest: bytes, members: dict[str, Any]) -> str:
        """Return the entry of a message, a new one if the path has none."""
        name = self.own.get(digest) or self.thread.known(self.node, digest)
        if name is None:
            name = entry_id("message", *self.seed, len(self.entries), digest.hex())
            self.entries.append({"type": "message", "id": name, **members})
        self.own[digest] = name
        return name


def _names(config: RunnableConfig) -> tuple[str, str, str | None]:
    configurable = config["configurable"]
    ns = configurable.get("checkpoint_ns") or ""
    return str(configurable["thread_id"]), ns, get_checkpoint_id(config)


def _config(key: str, ns: str, name: str) -> RunnableConfig:
    return {"configurable": {"thread_id": key, "checkpoint_ns": ns, "checkpoint_id": name}}


def _is_same(
    parent: Node | None, checkpoint: Checkpoint, new_versions: ChannelVersions, name: str
) -> bool:
    """Return whether the parent has this version of the channel."""
    if parent is None or name in new_versions or name not in parent.at:
        return False
    before = parent.record["checkpoint"].get("json", {}).get("channel_versions", {})
    return name in before and before[name] == checkpoint["channel_versions"].get(name)


def _is_ours(entry: dict[str, Any]) -> bool:
    if entry["type"] == "custom":
        return entry["customType"] in (CHECKPOINT, WRITES, GONE)
    return "langgraph" in entry or entry["type"] == "label"


def _select(thread: Thread, ns: str | None, name: str | None, end: str | None) -> list[Node]:
    nodes = [
        node
        for (of, at), node in thread.nodes.items()
        if not node.is_gone
        and ns in (None, of)
        and (not name or at == name)
        and (not end or at < end)
    ]
    return sorted(nodes, key=lambda node: node.record["id"], reverse=True)
