#!/usr/bin/env python3
"""Asks several agents the same side question, and lets a person choose an answer.

    ask_agents.py SESSION_ID PROMPT --agent one="opencode acp" --agent two="goose acp"

Each agent speaks the Agent Client Protocol (ACP) and works on a background branch of the session.
The leaf does not move until an answer is chosen. The other answers stay in the tree, with the
reason for the choice. It needs the package and the daemon `treelined`.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import secrets
import shlex
import subprocess
import sys
import threading
from contextlib import closing
from dataclasses import dataclass
from typing import Any

from treelined import Client, TreelinedError

HELLO = {"protocolVersion": 1, "clientCapabilities": {}}


class AgentError(Exception):
    """An agent has ended, or has answered with an error."""


@dataclass
class Candidate:
    """One agent and its branch."""

    name: str
    command: str
    cwd: str
    tip: str = ""
    failure: str = ""


class Agent:
    """A program that speaks ACP, with one message on each line."""

    def __init__(self, command: str, cwd: str, *, allow: bool) -> None:
        self._allow = allow
        self._ids = itertools.count(1)
        self._process = subprocess.Popen(  # noqa: S603
            shlex.split(command),
            cwd=cwd,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            encoding="utf-8",
        )

    def close(self) -> None:
        """Close the input of the program, and wait until the program has ended."""
        if self._process.stdin:
            self._process.stdin.close()
        try:
            self._process.wait(20)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        if self._process.stdout:
            self._process.stdout.close()

    def ask(
        self, method: str, params: dict[str, Any], said: list[dict[str, Any]]
    ) -> dict[str, Any]:
        """Send a request, and wait for its answer. Add the updates until then to `said`."""
        request = next(self._ids)
        self._send({"id": request, "method": method, "params": params})
        for line in self._process.stdout or ():
            try:
                message = json.loads(line)
            except ValueError:
                continue
            if message.get("method") == "session/request_permission":
                self._send({"id": message["id"], "result": {"outcome": self._permit(message)}})
            elif message.get("method") == "session/update":
                said.append(message["params"]["update"])
            elif "method" in message and "id" in message:
                error = {"code": -32601, "message": "not offered"}
                self._send({"id": message["id"], "error": error})
            elif message.get("id") == request:
                if "error" in message:
                    raise AgentError(f"{method}: {message['error'].get('message')}")
                answer: dict[str, Any] = message["result"] or {}
                return answer
        raise AgentError(f"it ended during {method}")

    def _permit(self, message: dict[str, Any]) -> dict[str, str]:
        wanted = ("allow_once", "allow_always") if self._allow else ("reject_once", "reject_always")
        for option in message["params"]["options"]:
            if option.get("kind") in wanted:
                return {"outcome": "selected", "optionId": option["optionId"]}
        return {"outcome": "cancelled"}

    def _send(self, message: dict[str, Any]) -> None:
        if self._process.stdin is None:
            return
        try:
            self._process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
            self._process.stdin.flush()
        except BrokenPipeError as error:
            raise AgentError("it ended") from error


def answered(question: str) -> str:
    """Ask the person. The end of the input counts as an empty answer."""
    try:
        return input(question).strip()
    except EOFError:
        print()
        return ""


def main() -> int:
    """Ask the agents, compare the answers, and choose one. Return exit code 1 without a choice."""
    given = arguments()
    group = f"ask-agents {secrets.token_hex(8)}"
    with Client(client_info={"name": "ask-agents"}) as client:
        client.open_session(session_id=given.session)
        leaf = client.get_leaf()["leafId"]
        before = conversation(client)
        candidates = [candidate(agent, given.cwd) for agent in given.agent]
        threads = [
            threading.Thread(target=work, args=(one, given, leaf, group, before))
            for one in candidates
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        whole = [one for one in candidates if one.tip and not one.failure]
        for one in candidates:
            if one.failure:
                print(f"{one.name}: {one.failure}", file=sys.stderr)
        if not whole:
            return 1
        show(client, whole)
        answer = answered("Which one? (number, empty for none) ")
        if not answer.isdigit() or not 1 <= int(answer) <= len(whole):
            print("Nothing is chosen; the branches stay.")
            return 1
        chosen = whole[int(answer) - 1]
        reason = answered("Why? (empty for no reason) ")
        went = client.choose(tip_id=chosen.tip, reason=reason or None)
        if went["cancelled"]:
            print(f"{went.get('by')} cancelled: {went.get('message')}", file=sys.stderr)
            return 1
        print(f"{chosen.name} is chosen; the conversation goes on at {went['tipId']}.")
    return 0


def arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("session", help="the id of the session")
    parser.add_argument("prompt", help="the question")
    parser.add_argument(
        "--agent", action="append", required=True, metavar="NAME=COMMAND", help="an agent"
    )
    parser.add_argument("--cwd", default=os.getcwd(), help="where the agents work")  # noqa: PTH109
    parser.add_argument("--allow", action="store_true", help="allow what they ask for")
    given = parser.parse_args()
    if any("=" not in agent for agent in given.agent):
        parser.error("an agent is NAME=COMMAND")
    return given


def candidate(agent: str, cwd: str) -> Candidate:
    """Parse NAME=COMMAND."""
    name, command = agent.split("=", maxsplit=1)
    return Candidate(name, command, cwd)


def conversation(client: Client) -> str:
    """Return the conversation so far as text, for agents that do not have it."""
    lines = []
    for message in client.get_context(format="llm")["messages"]:
        content: Any = message.get("content")
        if isinstance(content, list):
            content = "\n".join(block.get("text", "") for block in content)
        if content:
            lines.append(f"{message['role']}: {content}")
    return "\n\n".join(lines)


def work(
    one: Candidate, given: argparse.Namespace, leaf: str | None, group: str, before: str
) -> None:
    """Let an agent answer on a separate branch, over a separate connection."""
    try:
        with Client(client_info={"name": f"ask-agents: {one.name}"}) as client:
            client.open_session(session_id=given.session)
            prompt = {"role": "user", "content": given.prompt}
            begun = client.append_message(
                message=prompt, parent_id=leaf, keep_leaf=True, group=group
            )
            turn = client.begin_turn(entry_id=begun["entryId"])["turnId"]
            heard = hear(one, given, before)
            entries = [{"type": "message", "message": message} for message in messages(heard)]
            if entries:
                one.tip = client.append_entries(
                    entries=entries, parent_id=begun["entryId"], keep_leaf=True
                )["leafId"]
            else:
                one.failure = "it said nothing"
            client.end_turn(turn_id=turn)
    except (AgentError, TreelinedError, OSError) as error:
        one.failure = str(error)


def hear(one: Candidate, given: argparse.Namespace, before: str) -> list[dict[str, Any]]:
    """Run the agent with the question, and return its updates."""
    heard: list[dict[str, Any]] = []
    with closing(Agent(one.command, one.cwd, allow=given.allow)) as agent:
        agent.ask("initialize", HELLO, [])
        place = {"cwd": one.cwd, "mcpServers": []}
        session = agent.ask("session/new", place, [])["sessionId"]
        blocks = [{"type": "text", "text": given.prompt}]
        if before:
            said = f"What was said before:\n\n{before}\n\nNow the question:"
            blocks.insert(0, {"type": "text", "text": said})
        agent.ask("session/prompt", {"sessionId": session, "prompt": blocks}, heard)
    return heard


def messages(heard: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the messages for an agent's updates: its texts, and its calls with their results."""
    found: list[dict[str, Any]] = []
    text = ""

    def spoken() -> None:
        nonlocal text
        if text.strip():
            content = [{"type": "text", "text": text}]
            found.append({"role": "assistant", "content": content})
        text = ""

    names: dict[str, str] = {}
    for update in heard:
        kind, call = update.get("sessionUpdate"), update.get("toolCallId", "")
        if kind == "agent_message_chunk":
            text += update["content"].get("text", "")
        elif kind == "tool_call":
            spoken()
            names[call] = update.get("title") or "tool"
            arguments = update.get("rawInput")
            block = {"type": "toolCall", "id": call, "name": names[call]}
            if isinstance(arguments, dict):
                block["arguments"] = arguments
            found.append({"role": "assistant", "content": [block]})
        elif call in names and update.get("status") in {"completed", "failed"}:
            found.append(result(call, names.pop(call), update))
    spoken()
    return found


def result(call: str, name: str, update: dict[str, Any]) -> dict[str, Any]:
    """Return the message for the result of a call."""
    blocks = [block.get("content", {}) for block in update.get("content") or []]
    said = "\n".join(block.get("text", "") for block in blocks)
    return {
        "role": "toolResult",
        "toolCallId": call,
        "toolName": name,
        "content": [{"type": "text", "text": said}],
        "isError": update["status"] == "failed",
    }


def show(client: Client, whole: list[Candidate]) -> None:
    """Print the candidates one after the other, each with the outcome of its branch."""
    tips = [one.tip for one in whole]
    if len(tips) == 1:
        print(f"1. {whole[0].name}")
        entries: Any = client.get_path(entry_id=tips[0])["entries"]
        groups = [at for at, entry in enumerate(entries) if entry.get("group")]
        for own in entries[groups[-1] if groups else 0 :]:
            print_texts(own)
        return
    compared = client.compare_branches(a=tips[0], b=tips[1], more=tips[2:] or None)
    sides = [compared["a"], compared["b"], *compared.get("more", [])]
    for number, (one, side) in enumerate(zip(whole, sides, strict=True), start=1):
        print(f"{number}. {one.name}: {side['outcome']}")
        for entry_id in side["entryIds"]:
            entry: Any = client.get_entry(entry_id=entry_id)["entry"]
            print_texts(entry)
        print()


def print_texts(entry: dict[str, Any]) -> None:
    """Print the texts of an answer."""
    content: Any = entry.get("message", {}).get("content")
    for block in content if isinstance(content, list) else []:
        if block.get("type") == "text" and entry["message"]["role"] == "assistant":
            print("   " + block["text"].strip().replace("\n", "\n   "))


if __name__ == "__main__":
    sys.exit(main())
