"""Talk, go back to before the second question, and ask otherwise. Needs no model."""

import os

from langchain_core.messages import AIMessage
from langgraph.graph import END, START, MessagesState, StateGraph

from treelined_langgraph import TreelinedSaver


def answer(state: MessagesState) -> dict:
    return {"messages": [AIMessage(f"You said: {state['messages'][-1].content}")]}


builder = StateGraph(MessagesState)
builder.add_node("answer", answer)
builder.add_edge(START, "answer")
builder.add_edge("answer", END)

with TreelinedSaver(command=os.environ.get("TREELINED_BIN")) as saver:
    graph = builder.compile(checkpointer=saver)
    thread = {"configurable": {"thread_id": "trip"}}
    graph.invoke({"messages": [("user", "Plan a trip to Rome.")]}, thread)
    graph.invoke({"messages": [("user", "By plane.")]}, thread)

    states = list(graph.get_state_history(thread))
    before = next(state for state in states if state.metadata["step"] == 1)
    graph.invoke({"messages": [("user", "By train, at night.")]}, before.config)

    for branch in saver.client.list_branches(session_id="trip")["branches"]:
        print("*" if branch["isActive"] else " ", branch["name"])
