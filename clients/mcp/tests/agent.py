"""Real agents, offline, call tools of the server. A stand-in for their model asks for a search and for a long entry, and
the next request of the agent must have the whole text of the server, unchanged. Only tests/long runs Gemini CLI and Claude Code.
The texts of its requests are recorded in claude-code.json, and must equal the texts that the server sends now.

The arguments are the server, the daemon, the folder of the installed agents, and the names of agents.
"""

import functools
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
# The blocks with results in the recorded requests of Claude Code, by the name of the tool.
RECORDED = Path(__file__).parent / "claude-code.json"
BLOCKS = []
# If an answer is long, some agents leave out its middle or its end. The answer for this long entry must arrive whole.
CALLS = {"search_history": {"query": "cache", "exact": True, "every": True}, "read_entry": {"entry": "long"},
         "what_was_tried": {"topic": "cache"}, "files_history": {"path": "Cargo.toml"}}
# The time limit of the whole conversation, in seconds.
PATIENCE = 300
NOBODY = 65534
# The agents find no settings of the user, and no key.
PATHS = {"PATH": os.environ["PATH"]}


def opencode(folder, url, server, prompt):
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
    # opencode puts an argument that has blanks into quotation marks.
    words = prompt.split(" ")
    return [INSTALLED / "opencode/bin/opencode", "run", "--model", "stub/stub-1", *words], environment


def codex(folder, url, server, prompt):
    agent = importlib.import_module("codex")
    command, *arguments = server
    table = f"[mcp_servers.treelined]\ncommand = {json.dumps(command)}\nargs = {json.dumps(arguments)}\n"
    # Without these settings, on a busy machine, Codex asks the model before the server has listed its tools.
    table += f"required = true\nstartup_timeout_sec = {PATIENCE}\n"
    home = folder / "codex-home"
    home.mkdir()
    (home / "config.toml").write_text(agent.CONFIG.format(url=url) + table)
    command = [INSTALLED / "codex" / agent.PROGRAM, "exec", "--skip-git-repo-check", prompt]
    return command, {"CODEX_HOME": str(home), "STUB_KEY": "x"}


def claude_code(folder, url, server, prompt):
    command, *arguments = server
    servers = {"mcpServers": {"treelined": {"type": "stdio", "command": command, "args": arguments}}}
    environment = {
        "ANTHROPIC_BASE_URL": url.removesuffix("/v1"),
        "ANTHROPIC_API_KEY": "none",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "DISABLE_AUTOUPDATER": "1",
        # With tool search the model would have to search for the tool first.
        "ENABLE_TOOL_SEARCH": "false",
    }
    tools = ",".join(f"mcp__treelined__{tool}" for tool in CALLS)
    settings = ["--strict-mcp-config", "--mcp-config", json.dumps(servers), "--allowedTools", tools]
    return [INSTALLED / "claude-code/claude", "-p", prompt, *settings], environment


def gemini(folder, url, server, prompt):
    agent = importlib.import_module("gemini")
    command, *arguments = server
    # A trusted server is asked without the user's consent.
    servers = {"treelined": {"command": command, "args": arguments, "trust": True}}
    home = folder / ".gemini"
    home.mkdir()
    (home / "settings.json").write_text(json.dumps({**agent.SETTINGS, "mcpServers": servers}))
    environment = {
        "GEMINI_API_KEY": "none",
        "GOOGLE_GEMINI_BASE_URL": url.removesuffix("/v1"),
        "GEMINI_CLI_TRUST_WORKSPACE": "true",
        "NO_COLOR": "1",
    }
    # With the name of a model, no model is asked to choose one.
    return ["node", INSTALLED / "gemini" / agent.PROGRAM, "--model", "stub-1", "-p", prompt], environment


def heard_opencode(request):
    last = request["messages"][-1]
    return last["content"] if last["role"] == "tool" else None


def heard_codex(request):
    last = request["input"][-1]
    # Codex puts a line before the text.
    return last["output"][-1]["text"] if last["type"] == "function_call_output" else None


def heard_gemini(request):
    parts = request["contents"][-1]["parts"]
    results = [part["functionResponse"] for part in parts if "functionResponse" in part]
    if not results:
        return None
    assert len(results) == 1 and set(results[0]["response"]) == {"output"}, results
    # Gemini CLI puts the text of a server between two lines.
    output = results[0]["response"]["output"]
    begin, end = "<untrusted_context>\n", "\n</untrusted_context>"
    assert output.startswith(begin) and output.endswith(end), output
    return output.removeprefix(begin).removesuffix(end)


def heard_claude_code(request):
    last = request["messages"][-1]["content"]
    results = [block for block in last if block["type"] == "tool_result"] if isinstance(last, list) else []
    BLOCKS.extend(results)
    return text_of_result(results[0]) if results else None


def text_of_result(result):
    """The text of a result in Anthropic's API, which must have nothing else."""
    content = result["content"]
    return content if isinstance(content, str) else content[0]["text"] if len(content) == 1 else None


# For each agent, the function that prepares it in a folder, and the function that finds the tool's answer in a request.
AGENTS = {
    "opencode": (opencode, heard_opencode),
    "codex": (codex, heard_codex),
    "gemini": (gemini, heard_gemini),
    "claude-code": (claude_code, heard_claude_code),
}


def text_of(server, folder, tool):
    """The text of the tool's answer, as the server sends it."""
    client = {"name": "test", "version": "0"}
    hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client}
    messages = [
        {"id": 1, "method": "initialize", "params": hello},
        {"method": "notifications/initialized"},
        {"id": 2, "method": "tools/call", "params": {"name": tool, "arguments": CALLS[tool]}},
    ]
    lines = "".join(json.dumps({"jsonrpc": "2.0", **message}) + "\n" for message in messages)
    process = subprocess.Popen(server, cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    process.stdin.write(lines)
    process.stdin.flush()
    answers = iter(process.stdout.readline, "")
    result = next(answer["result"] for line in answers if (answer := json.loads(line)).get("id") == 2)
    process.stdin.close()
    process.wait(10)
    text = result["content"][0]["text"]
    assert text.startswith("Record of an earlier conversation.") and "\n> " in text, text
    return text


def normal_user(folder):
    """Gives the folder to a user who is not root. Returns the arguments of `Popen` for a process of this user."""
    if os.getuid() != 0:
        return {}
    for path in [folder, *folder.rglob("*")]:
        os.chown(path, NOBODY, NOBODY)
    return {"user": NOBODY, "group": NOBODY, "extra_groups": []}


def check(name, tool, folder):
    prepare_agent, heard = AGENTS[name]
    server = [SERVER, *prepare(folder), "--daemon", DAEMON]
    expected = text_of(server, folder, tool)
    with Model() as model:
        prompt = f"Prompt CALL {tool} {json.dumps(CALLS[tool])}"
        command, environment = prepare_agent(folder, model.url, server, prompt)
        ended = subprocess.run(
            command, cwd=folder, env={**PATHS, "HOME": str(folder), **environment},
            stdin=subprocess.DEVNULL, capture_output=True, timeout=PATIENCE, **normal_user(folder),
        )
        answers = [answer for request in model.requests if (answer := heard(request)) is not None]
    assert ended.returncode == 0, ended
    assert answers == [expected], f"{name} tells its model\n{answers}\nand not\n{expected}\n{ended}"
    print(f"{name} tells its model the text of {tool} as it is")


def check_recorded(tool, folder):
    recorded = json.loads(RECORDED.read_text())
    expected = text_of([SERVER, *prepare(folder), "--daemon", DAEMON], folder, tool)
    told = text_of_result(recorded[tool])
    assert told == expected, f"{recorded['program']} told its model\n{told}\nand not\n{expected}\nrun tests/long/claude"
    print(f"{recorded['program']} told its model the text of {tool} as it is")


def of_each_call(check):
    for tool in CALLS:
        with tempfile.TemporaryDirectory() as folder:
            check(tool, Path(folder).resolve())


def main():
    if "claude-code" not in NAMES:
        of_each_call(check_recorded)
    for name in NAMES:
        of_each_call(functools.partial(check, name))
    if BLOCKS:
        package = json.loads((INSTALLED / "claude-code/package.json").read_text())
        recorded = {"program": f"{package['name']}@{package['version']}", **dict(zip(CALLS, BLOCKS, strict=True))}
        RECORDED.write_text(json.dumps(recorded, indent=2) + "\n")


main()
