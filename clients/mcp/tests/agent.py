"""Real agents, offline, call a tool of the server: the stand-in for their model asks for a search, and the next request must
have the server's text, whole and as it is. Of Claude Code, which only tests/long/claude runs, such a request is recorded
in claude-code.json: its text must be what the server sends now.

The arguments are the server, the daemon, the folder of the installed agents, and the names of agents.
"""

import importlib
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from session import prepare

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "tests/import"))
from model import Model  # noqa: E402

SERVER, DAEMON, INSTALLED, *NAMES = sys.argv[1:]
INSTALLED = Path(INSTALLED)
# The request of Claude Code.
RECORDED = Path(__file__).parent / "claude-code.json"
PROMPT = 'Prompt CALL search_history {"query": "cache"}'
# Longest time for the whole conversation, in seconds.
PATIENCE = 90
NOBODY = 65534
# No program finds settings of the user, and none a key.
PATHS = {"PATH": os.environ["PATH"]}


def opencode(folder, url, server):
    settings = importlib.import_module("opencode").settings(url)
    settings["mcp"] = {"treelined": {"type": "local", "command": server, "enabled": True}}
    configuration = folder / "config/opencode/opencode.json"
    configuration.parent.mkdir(parents=True)
    configuration.write_text(json.dumps(settings))
    homes = {"DATA": "data", "CONFIG": "config", "CACHE": "cache", "STATE": "state"}
    unwanted = ["AUTOUPDATE", "MODELS_FETCH", "LSP_DOWNLOAD", "DEFAULT_PLUGINS"]
    environment = {
        **{f"XDG_{kind}_HOME": str(folder / home) for kind, home in homes.items()},
        **{f"OPENCODE_DISABLE_{setting}": "1" for setting in unwanted},
    }
    # It puts an argument that has blanks into quotation marks.
    words = PROMPT.split(" ")
    return [INSTALLED / "opencode/bin/opencode", "run", "--model", "stub/stub-1", *words], environment


def codex(folder, url, server):
    agent = importlib.import_module("codex")
    command, *arguments = server
    table = f"[mcp_servers.treelined]\ncommand = {json.dumps(command)}\nargs = {json.dumps(arguments)}\n"
    home = folder / "codex-home"
    home.mkdir()
    (home / "config.toml").write_text(agent.CONFIG.format(url=url) + table)
    command = [INSTALLED / "codex" / agent.PROGRAM, "exec", "--skip-git-repo-check", PROMPT]
    return command, {"CODEX_HOME": str(home), "STUB_KEY": "x"}


def claude_code(folder, url, server):
    command, *arguments = server
    servers = {"mcpServers": {"treelined": {"type": "stdio", "command": command, "args": arguments}}}
    environment = {
        "ANTHROPIC_BASE_URL": url.removesuffix("/v1"),
        "ANTHROPIC_API_KEY": "none",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "DISABLE_AUTOUPDATER": "1",
        # Else the model has to look for the tool first.
        "ENABLE_TOOL_SEARCH": "false",
    }
    tool = "mcp__treelined__search_history"
    settings = ["--strict-mcp-config", "--mcp-config", json.dumps(servers), "--allowedTools", tool]
    return [INSTALLED / "claude-code/claude", "-p", PROMPT, *settings], environment


def heard_opencode(request):
    last = request["messages"][-1]
    return last["content"] if last["role"] == "tool" else None


def heard_codex(request):
    last = request["input"][-1]
    # A line of its own comes first.
    return last["output"][-1]["text"] if last["type"] == "function_call_output" else None


def heard_claude_code(request):
    last = request["messages"][-1]["content"]
    results = [block for block in last if block["type"] == "tool_result"] if isinstance(last, list) else []
    if not results:
        return None
    package = json.loads((INSTALLED / "claude-code/package.json").read_text())
    recorded = {"program": f"{package['name']}@{package['version']}", "tool_result": results[0]}
    RECORDED.write_text(json.dumps(recorded, indent=2) + "\n")
    return text_of_result(results[0])


def text_of_result(result):
    """The text of a block of Anthropic's interface, which has nothing else."""
    content = result["content"]
    return content if isinstance(content, str) else content[0]["text"] if len(content) == 1 else None


# Each prepares an agent in a folder, and says what a request tells the model of the tool's answer.
AGENTS = {
    "opencode": (opencode, heard_opencode),
    "codex": (codex, heard_codex),
    "claude-code": (claude_code, heard_claude_code),
}


def text_of(server, folder):
    """The text of the tool's answer, as the server sends it."""
    client = {"name": "test", "version": "0"}
    hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client}
    call = {"name": "search_history", "arguments": {"query": "cache"}}
    messages = [
        {"id": 1, "method": "initialize", "params": hello},
        {"method": "notifications/initialized"},
        {"id": 2, "method": "tools/call", "params": call},
    ]
    lines = "".join(json.dumps({"jsonrpc": "2.0", **message}) + "\n" for message in messages)
    process = subprocess.Popen(server, cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    process.stdin.write(lines)
    process.stdin.flush()
    answers = iter(process.stdout.readline, "")
    result = next(answer["result"] for line in answers if (answer := json.loads(line)).get("id") == 2)
    process.stdin.close()
    process.wait(10)
    return result["content"][0]["text"]


def normal_user(folder):
    """Gives the folder to a user who is not root. The arguments for a process of this user."""
    if os.getuid() != 0:
        return {}
    for path in [folder, *folder.rglob("*")]:
        os.chown(path, NOBODY, NOBODY)
    return {"user": NOBODY, "group": NOBODY, "extra_groups": []}


def check(name, folder):
    prepare_agent, heard = AGENTS[name]
    server = [SERVER, *prepare(folder), "--daemon", DAEMON]
    expected = text_of(server, folder)
    assert expected.startswith("Record of an earlier conversation.") and "> Clear the cache." in expected, expected
    with Model() as model:
        command, environment = prepare_agent(folder, model.url, server)
        ended = subprocess.run(
            command, cwd=folder, env={**PATHS, "HOME": str(folder), **environment},
            stdin=subprocess.DEVNULL, capture_output=True, timeout=PATIENCE, **normal_user(folder),
        )
        answers = [answer for request in model.requests if (answer := heard(request)) is not None]
    assert ended.returncode == 0, ended
    assert answers == [expected], f"{name} tells its model\n{answers}\nand not\n{expected}\n{ended}"
    print(f"{name} tells its model the text of search_history as it is")


def check_recorded(folder):
    expected = text_of([SERVER, *prepare(folder), "--daemon", DAEMON], folder)
    recorded = json.loads(RECORDED.read_text())
    told = text_of_result(recorded["tool_result"])
    assert told == expected, f"{recorded['program']} told its model\n{told}\nand not\n{expected}\nrun tests/long/claude"
    print(recorded["program"], "told its model the text of search_history as it is")


def main():
    if "claude-code" not in NAMES:
        with tempfile.TemporaryDirectory() as folder:
            check_recorded(Path(folder).resolve())
    for name in NAMES:
        with tempfile.TemporaryDirectory() as folder:
            check(name, Path(folder).resolve())


main()
