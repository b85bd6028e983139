"""Calls every tool through the Python SDK: each answer is one text."""

import asyncio
import os
import sys
import tempfile
from pathlib import Path

from mcp import ClientSession, StdioServerParameters, stdio_client

from session import prepare


CALLS = {
    "search_history": {"query": "cache"},
    "what_was_tried": {"topic": "cache"},
    "files_history": {"path": "src/a.rs"},
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
        arguments = [*prepare(folder), "--daemon", daemon, "--allow-notes"]
        server = StdioServerParameters(command=server_program, args=arguments, cwd=str(folder), env=dict(os.environ))
        async with stdio_client(server) as (reader, writer), ClientSession(reader, writer) as session:
            await session.initialize()
            tools = {tool.name: tool.output_schema for tool in (await session.list_tools()).tools}
            assert set(tools) == set(CALLS), set(tools) ^ set(CALLS)
            assert not any(tools.values()), tools
            for tool, arguments in CALLS.items():
                result = await session.call_tool(tool, arguments)
                assert not result.is_error, (tool, result)
                assert result.structured_content is None, (tool, result)
                assert [block.type for block in result.content] == ["text"], (tool, result)
                print(tool, "ok")


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
