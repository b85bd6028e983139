"""The Python half for `across.test.ts`: `across.py FOLDER THREAD [TEXT [STEP]]`.

Says the text, after the newest checkpoint with this step if one is named, and prints every
checkpoint of the thread as JSON.
"""

import json
import os
import sys

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langgraph.graph import END, START, MessagesState, StateGraph

from treelined_langgraph import TreelinedSaver


def answer(state: MessagesState) -> dict:
    count = len(state["messages"])
    call = {"name": "add", "args": {"a": 1}, "id": f"c{count}", "type": "tool_call"}
    usage = {"input_tokens": 1, "output_tokens": 2, "total_tokens": 3}
    return {
        "messages": [
            AIMessage("", tool_calls=[call], id=f"a{count}", usage_metadata=usage),
            ToolMessage("1", tool_call_id=f"c{count}", id=f"t{count}", artifact={"n": [1, None]}),
            AIMessage([{"type": "text", "text": f"Größe {count} 🙂"}], id=f"b{count}"),
        ]
    }


def plain(value: object) -> object:
    if isinstance(value, BaseMessage):
        names = ("type", "content", "id", "name", "tool_calls", "usage_metadata", "artifact")
        members = {name: getattr(value, name, None) for name in names}
        return {name: plain(member) for name, member in members.items() if member not in (None, [])}
    if isinstance(value, dict):
        return {name: plain(member) for name, member in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    return value


folder, thread, *rest = sys.argv[1:]
builder = StateGraph(MessagesState)
builder.add_node("answer", answer)
builder.add_edge(START, "answer")
builder.add_edge("answer", END)
with TreelinedSaver(command=os.environ["TREELINED_BIN"], session_dir=folder) as saver:
    graph = builder.compile(checkpointer=saver)
    config = {"configurable": {"thread_id": thread}}
    where = config
    if rest[1:]:
        states = graph.get_state_history(config)
        where = next(it.config for it in states if it.metadata["step"] == int(rest[1]))
    if rest:
        graph.invoke({"messages": [HumanMessage(rest[0], id=rest[0])]}, where)
    tuples = [
        {
            "config": it.config["configurable"],
            "parent": it.parent_config and it.parent_config["configurable"],
            "checkpoint": plain(it.checkpoint),
            "step": it.metadata["step"],
            "writes": plain(it.pending_writes),
        }
        for it in saver.list(config)
    ]
    print(json.dumps(tuples))
