"""Graphs of LangGraph on the saver, beside the saver in memory."""

from __future__ import annotations

import operator
import random
from typing import TYPE_CHECKING, Annotated, Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langgraph.checkpoint.base import empty_checkpoint
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.types import Command, interrupt
from treelined import Client
from typing_extensions import TypedDict

from treelined_langgraph import TreelinedSaver

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from langgraph.checkpoint.base import BaseCheckpointSaver


@pytest.fixture
def client(tmp_path: Path) -> Iterator[Client]:
    with Client(session_dir=str(tmp_path / "sessions")) as client:
        yield client


def talk(saver: BaseCheckpointSaver[Any]) -> Any:
    """Make a graph that answers with a call, its result, and a text, with ids that agree."""

    def answer(state: MessagesState) -> dict[str, Any]:
        count = len(state["messages"])
        call = {"name": "add", "args": {"a": 1}, "id": f"c{count}", "type": "tool_call"}
        return {
            "messages": [
                AIMessage("", tool_calls=[call], id=f"a{count}"),
                ToolMessage("1", tool_call_id=f"c{count}", id=f"t{count}"),
                AIMessage(f"answer {count}", id=f"b{count}"),
            ]
        }

    graph = StateGraph(MessagesState)
    graph.add_node("answer", answer)
    graph.add_edge(START, "answer")
    graph.add_edge("answer", END)
    return graph.compile(checkpointer=saver)


def config(thread: str) -> Any:
    return {"configurable": {"thread_id": thread}}


def say(graph: Any, thread: Any, text: str) -> None:
    graph.invoke({"messages": [HumanMessage(text, id=text)]}, thread)


def history(graph: Any, thread: Any) -> list[Any]:
    return [(state.values, state.metadata["step"]) for state in graph.get_state_history(thread)]


def test_a_conversation_is_that_of_the_saver_in_memory(client: Client) -> None:
    ours, theirs = talk(TreelinedSaver(client)), talk(InMemorySaver())
    for graph in (ours, theirs):
        for text in ("one", "two", "three"):
            say(graph, config("talk"), text)
        # Go back to before "three" and ask otherwise.
        states = list(graph.get_state_history(config("talk")))
        back = next(it for it in states if it.metadata["step"] == 4)
        say(graph, back.config, "otherwise")
    assert history(ours, config("talk")) == history(theirs, config("talk"))
    assert ours.get_state(config("talk")).values == theirs.get_state(config("talk")).values


def test_messages_are_readable_and_time_travel_is_a_branch(client: Client) -> None:
    graph = talk(TreelinedSaver(client))
    for text in ("one", "two"):
        say(graph, config("talk"), text)
    states = list(graph.get_state_history(config("talk")))
    back = next(it for it in states if it.metadata["step"] == 1)
    say(graph, back.config, "otherwise")
    entries = client.get_entries(session_id="talk")["entries"]
    texts = [it["message"]["content"] for it in entries if it["type"] == "message"]
    assert texts[0] == "one"
    assert sum(text == "one" for text in texts) == 1
    assert len(client.list_branches(session_id="talk")["branches"]) == 2
    labels = [it["label"] for it in entries if it["type"] == "label"]
    assert labels == ["time travel at step 1"]


def test_another_process_goes_on_with_an_interrupted_graph(tmp_path: Path) -> None:
    class State(TypedDict):
        words: Annotated[list[str], operator.add]

    def ask(_: State) -> dict[str, Any]:
        return {"words": [interrupt("which?")]}

    def graph(saver: TreelinedSaver) -> Any:
        made = StateGraph(State)
        made.add_node("ask", ask)
        made.add_edge(START, "ask")
        return made.compile(checkpointer=saver)

    folder = str(tmp_path)
    with Client(session_dir=folder) as client:
        asked = graph(TreelinedSaver(client)).invoke({"words": ["a"]}, config("x y"))
        assert asked["__interrupt__"][0].value == "which?"
    with Client(session_dir=folder) as client:
        saver = TreelinedSaver(client)
        assert graph(saver).invoke(Command(resume="b"), config("x y")) == {"words": ["a", "b"]}
        listed = next(saver.list(None))
        assert listed.config["configurable"]["thread_id"] == "x y"


def test_two_savers_see_each_other(tmp_path: Path) -> None:
    folder = str(tmp_path)
    with Client(session_dir=folder) as first, Client(session_dir=folder) as second:
        ours, others = talk(TreelinedSaver(first)), talk(TreelinedSaver(second))
        say(ours, config("t"), "one")
        say(others, config("t"), "two")
        say(ours, config("t"), "three")
        values = others.get_state(config("t")).values["messages"]
        assert [it.content for it in values if it.type == "human"] == ["one", "two", "three"]


def test_random_states_come_back_as_from_the_saver_in_memory(client: Client) -> None:
    chance = random.Random(11)  # noqa: S311
    savers: list[Any] = [TreelinedSaver(client), InMemorySaver()]
    values: list[Any] = [
        1, None, "text", 1.5, b"\0\xff", {"a": [1, {"b": None}]}, {1, 2}, ("x",), "\ud800",
        HumanMessage("hi", id="h"), AIMessage("yes", id="a", response_metadata={"model": "m"}),
        HumanMessage([{"type": "text", "text": "a"}, {"type": "image_url", "image_url": "u"}]),
    ]  # fmt: skip
    known: list[Any] = [config("r")]
    versions: dict[str, int] = {}
    states: dict[str, tuple[dict[str, Any], dict[str, str]]] = {"": ({}, {})}
    for step in range(60):
        parent = chance.choice(known)
        name = parent["configurable"].get("checkpoint_id", "")
        state, at = (dict(it) for it in states[name])
        changed = chance.sample(["list", "value", "gone"], chance.randint(1, 3))
        for channel in changed:
            if channel == "list":
                found = state.get("list", [])
                cut = chance.randint(max(0, len(found) - 2), len(found))
                new = [chance.choice(values) for _ in range(chance.randint(0, 3))]
                state["list"] = found[:cut] + new
            elif channel == "gone" and chance.random() < 0.5:
                state.pop("gone", None)
            else:
                state[channel] = chance.choice(values)
            versions[channel] = versions.get(channel, 0) + 1
            at[channel] = f"{versions[channel]:032}.0"
        checkpoint = {
            **empty_checkpoint(),
            "channel_values": state,
            "channel_versions": {it: at[it] for it in state},
        }
        new_versions = {it: at[it] for it in changed if it in state}
        metadata: Any = {"source": "loop", "step": step, "parents": {}}
        start = {"configurable": {"checkpoint_ns": "", **parent["configurable"]}}
        made = [it.put(start, checkpoint, metadata, new_versions) for it in savers]
        again = savers[0].put(start, checkpoint, metadata, new_versions)
        assert again == made[0] == made[1]
        known.append(made[0])
        states[checkpoint["id"]] = state, at
    for where in known:
        ours, theirs = (it.get_tuple(where) for it in savers)
        assert ours.checkpoint["channel_values"] == theirs.checkpoint["channel_values"]
        assert ours == theirs
    size = len(client.get_entries(session_id="r")["entries"])
    assert size < 60 * 6


def test_an_item_that_was_changed_in_place_is_stored_anew(client: Client) -> None:
    """What a list had is not taken for what it has: values that are equal may differ as JSON."""
    saver = TreelinedSaver(client)
    where: Any = {"configurable": {"thread_id": "p", "checkpoint_ns": ""}}
    message = HumanMessage("a", id="m", additional_kwargs={"n": 1, "o": {"x": 1, "y": 2}})
    plain: dict[str, Any] = {"n": 1, "o": {"x": 1, "y": 2}}
    changes: list[Any] = [
        lambda it: it.update(n=True),
        lambda it: it.update(n=1.0),
        lambda it: it.update(n=0.0),
        lambda it: it.update(n=-0.0),
        lambda it: it.update(o={"y": 2, "x": 1}),
        lambda it: it["o"].update(z=[None]),
        lambda it: it["o"]["z"].append("é"),
        lambda it: it.pop("n"),
    ]
    states = []
    for step, change in enumerate(
        [lambda _: None, *changes, lambda _: setattr(message, "id", "n")]
    ):
        for found in (message.additional_kwargs, plain):
            change(found)
        version = {"list": f"{step:032}.0"}
        state = {"channel_values": {"list": [message, plain]}, "channel_versions": version}
        metadata: Any = {"source": "loop", "step": step, "parents": {}}
        where = saver.put(where, {**empty_checkpoint(), **state}, metadata, version)
        states.append((where, repr([message, plain])))
    for at, expected in states:
        found = saver.get_tuple(at)
        assert repr(found.checkpoint["channel_values"]["list"]) == expected


def test_a_hidden_checkpoint_does_not_cut_the_history_of_a_channel(client: Client) -> None:
    """Pruning hid the checkpoints between a channel's writes and its value."""
    saver = TreelinedSaver(client)
    where: Any = {"configurable": {"thread_id": "d", "checkpoint_ns": ""}}
    for step in range(3):
        checkpoint = empty_checkpoint()
        if step == 0:
            checkpoint["channel_values"] = {"c": ["seed"]}
            checkpoint["channel_versions"] = {"c": "1"}
        metadata: Any = {"source": "loop", "step": step, "parents": {}}
        where = saver.put(where, checkpoint, metadata, checkpoint["channel_versions"])
        saver.put_writes(where, [("c", step)], f"task {step}")
    before = saver.get_delta_channel_history(config=where, channels=["c"])
    assert before["c"] == {"writes": [("task 0", "c", 0), ("task 1", "c", 1)], "seed": ["seed"]}
    saver.prune(["d"])
    assert len(list(saver.list(config("d")))) == 1
    assert saver.get_delta_channel_history(config=where, channels=["c"]) == before


def test_checkpoints_that_come_to_stand_among_known_ones_are_read(tmp_path: Path) -> None:
    """Those of another machine stand in front of the own ones that waited for the team."""
    folder = tmp_path / "sessions"
    with Client(session_dir=str(folder)) as here:
        graph = talk(TreelinedSaver(here))
        say(graph, config("a"), "one")
        (path,) = folder.glob("*/*.jsonl")

        def said_behind(text: str, graph: Any) -> str:
            """Say something behind the first state, and return the lines of it alone."""
            before = path.read_text(encoding="utf-8")
            say(graph, config("a"), text)
            return path.read_text(encoding="utf-8").removeprefix(before)

        def replace(text: str) -> None:
            made = tmp_path / "made"
            made.write_text(text, encoding="utf-8")
            made.replace(path)

        first = path.read_text(encoding="utf-8")
        with Client(session_dir=str(folder)) as there:
            theirs = said_behind("theirs", talk(TreelinedSaver(there)))
        replace(first)
        ours = said_behind("ours", graph)
        replace(first + theirs + ours)
        with Client(session_dir=str(folder)) as third:
            expected = history(talk(TreelinedSaver(third)), config("a"))
        assert "theirs" in repr(expected)
        assert history(graph, config("a")) == expected


def test_a_copy_of_a_thread_passes_over_entries_of_others(client: Client) -> None:
    saver = TreelinedSaver(client)
    graph = talk(saver)
    say(graph, config("a"), "one")
    client.append_message(message={"role": "user", "content": "by hand"}, session_id="a")
    say(graph, config("a"), "two")
    saver.copy_thread("a", "b")
    assert history(graph, config("b")) == history(graph, config("a"))


def test_a_session_of_another_program_is_not_a_thread(client: Client) -> None:
    client.create_session(session_id="taken", write="now")
    client.append_message(message={"role": "user", "content": "x"}, session_id="taken")
    with pytest.raises(ValueError, match="another thread_id"):
        say(talk(TreelinedSaver(client)), config("taken"), "one")


def test_writes_at_one_place_may_change_to_and_fro(client: Client) -> None:
    """The third change had the id of the first one."""
    saver = TreelinedSaver(client)
    where: Any = {"configurable": {"thread_id": "w", "checkpoint_ns": ""}}
    metadata: Any = {"source": "loop", "step": 0, "parents": {}}
    where = saver.put(where, empty_checkpoint(), metadata, {})
    for value in ("a", "b", "a", "b", "b"):
        saver.put_writes(where, [("__error__", value)], "task")
        found = saver.get_tuple(where)
        assert found is not None
        assert found.pending_writes == [("task", "__error__", value)]


def test_messages_in_writes_and_in_objects_are_readable(client: Client) -> None:
    graph = talk(TreelinedSaver(client))
    say(graph, config("m"), "one")
    entries = client.get_entries(session_id="m")["entries"]
    data = [entry["data"] for entry in entries if entry["type"] == "custom"]
    assert "base64" not in repr(data)


def test_each_thread_is_listed_once(client: Client) -> None:
    """A fork was listed as its source, and a thread without its tag never."""
    saver = TreelinedSaver(client)
    say(talk(saver), config("a"), "one")
    newest = client.get_entries(session_id="a")["entries"][-1]["id"]
    fork = client.fork_session(session_id="a", entry_id=newest)["session"]["sessionId"]
    client.tag_session(session_id=fork, add=["langgraph"])
    client.tag_session(session_id="a", remove=["langgraph"])
    say(talk(TreelinedSaver(client)), config("a"), "two")
    assert {it.config["configurable"]["thread_id"] for it in saver.list(None)} == {"a"}
