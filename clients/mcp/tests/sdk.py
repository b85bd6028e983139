"""Calls every tool through the Python SDK, which checks results against the tools' output schemas."""

import asyncio
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from mcp import ClientSession, StdioServerParameters, stdio_client


def prepare(daemon: str, folder: Path) -> None:
    """Writes a session with a branch that was left."""
    requests = [
        ("create_session", {"sessionId": "s1", "cwd": str(folder), "name": "the build"}),
        ("append_message", {"entryId": "u1", "message": {"role": "user", "content": "Why does the build fail?"}}),
        ("append_message", {"entryId": "u2", "message": {"role": "user", "content": "Clear the cache."}}),
        ("branch", {"entryId": "u1", "summary": {"summary": "The cache was not it."}}),
        ("append_message", {"entryId": "u3", "message": {"role": "user", "content": "Add the import."}}),
    ]
    lines = [
        json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params})
        for number, (method, params) in enumerate(requests)
    ]
    command = [daemon, "--session-dir", str(folder / "sessions")]
    done = subprocess.run(command, input="\n".join(lines) + "\n", text=True, capture_output=True, check=True)
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    failed = [answer for answer in answers if "error" in answer]
    assert not failed, failed


CALLS = {
    "search_history": {"query": "cache"},
    "list_sessions": {},
    "list_branches": {"session": "s1"},
    "read_branch": {"tip": "u2"},
    "read_entry": {"entry": "u1"},
    "compare_branches": {"a": "u2", "b": "u3"},
    "why_left": {"branch": "u2"},
    "label_entry": {"entry": "u2", "label": "dead end"},
    "leave_note": {"entry": "u2", "reason": "The cache is empty.", "outcome": "abandoned"},
    "name_session": {"name": "the import"},
}


async def main(server_program: str, daemon: str) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name).resolve()
        (folder / "sessions").mkdir(mode=0o700)
        prepare(daemon, folder)
        arguments = ["--session-dir", str(folder / "sessions"), "--daemon", daemon, "--allow-notes"]
        server = StdioServerParameters(command=server_program, args=arguments, cwd=str(folder), env=dict(os.environ))
        async with stdio_client(server) as (reader, writer), ClientSession(reader, writer) as session:
            await session.initialize()
            tools = {tool.name for tool in (await session.list_tools()).tools}
            assert tools == set(CALLS), tools ^ set(CALLS)
            for tool, arguments in CALLS.items():
                result = await session.call_tool(tool, arguments)
                assert not result.is_error, (tool, result)
                assert result.structured_content is not None, (tool, result)
                print(tool, "ok")


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
