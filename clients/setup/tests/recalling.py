"""Real agents, offline, that `treelined setup --recall` has set up: their model hears what an earlier conversation said, as another
one begins and after a command that failed, and of nothing from another directory or from an export.

The arguments are the daemon, the folder of the installed agents, and the names of agents.
"""

import importlib
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "tests/import"))
from model import Model, is_aside  # noqa: E402

DAEMON, INSTALLED, *NAMES = sys.argv[1:]
DAEMON, INSTALLED = Path(DAEMON).resolve(), Path(INSTALLED).absolute()
# Longest time for the whole conversation, in seconds. A recall ends after four, which a busy machine needs for other work.
PATIENCE, ATTEMPTS = 240, 4
ERROR = "error: the zebra cache must be clear"
COMMAND = f"echo '{ERROR}'; exit 3"
TIME = "2026-01-02T03:04:05.000Z"


def call(tool, arguments):
    return f"Prompt CALL {tool} {json.dumps(arguments)}"


def codex(folder, url):
    agent = importlib.import_module("codex")
    (folder / ".codex").mkdir()
    (folder / ".codex/config.toml").write_text(agent.CONFIG.format(url=url))
    # A person reviews the hooks (`/hooks`), which no program can.
    options = ["exec", "--skip-git-repo-check", "--dangerously-bypass-hook-trust"]
    return [INSTALLED / "codex" / agent.PROGRAM, *options, call("exec_command", {"cmd": COMMAND})], {"STUB_KEY": "x"}


def opencode(folder, url):
    configuration = folder / ".config/opencode/opencode.json"
    configuration.parent.mkdir(parents=True)
    configuration.write_text(json.dumps(importlib.import_module("opencode").settings(url)))
    unwanted = ["AUTOUPDATE", "MODELS_FETCH", "LSP_DOWNLOAD", "DEFAULT_PLUGINS"]
    environment = {f"OPENCODE_DISABLE_{setting}": "1" for setting in unwanted}
    # It waits for a package of types that it installs for plugins.
    environment |= {"npm_config_offline": "true", "npm_config_registry": "http://127.0.0.1:9/"}
    words = call("bash", {"command": COMMAND, "description": "cross"}).split(" ")
    return [INSTALLED / "opencode/bin/opencode", "run", "--model", "stub/stub-1", *words], environment


def gemini(folder, url):
    agent = importlib.import_module("gemini")
    (folder / ".gemini").mkdir()
    (folder / ".gemini/settings.json").write_text(json.dumps(agent.SETTINGS))
    environment = {
        "GEMINI_API_KEY": "none",
        "GOOGLE_GEMINI_BASE_URL": url.removesuffix("/v1"),
        "GEMINI_CLI_TRUST_WORKSPACE": "true",
        "NO_COLOR": "1",
    }
    prompt = call("run_shell_command", {"command": COMMAND, "description": "cross"})
    return ["node", INSTALLED / "gemini" / agent.PROGRAM, "--yolo", "--model", "gemini-2.5-flash", "--prompt", prompt], environment


def pi(folder, url):
    agent = importlib.import_module("pi")
    home = folder / ".pi/agent"
    home.mkdir(parents=True)
    model = {"id": "stub-1", "contextWindow": 10_000_000}
    provider = {"baseUrl": url, "apiKey": "none", "api": "openai-completions", "models": [model]}
    (home / "models.json").write_text(json.dumps({"providers": {"stub": provider}}))
    installed = INSTALLED.parent / "interchange"
    node = installed / "node/bin/node"
    command = [node if node.is_file() else "node", installed / agent.PROGRAM, "--offline"]
    return [*command, "--provider", "stub", "--model", "stub-1", "--print", call("bash", {"command": COMMAND})], {}


def session(sessions, cwd, name, said):
    """Writes a session with one turn."""
    header = {"type": "session", "version": 3, "id": name, "timestamp": TIME, "cwd": str(cwd)}
    question = {"role": "user", "content": f"What is this? {ERROR}"}
    answer = {"role": "assistant", "content": [{"type": "text", "text": said}]}
    entries = [
        {"type": "message", "id": number, "parentId": above, "timestamp": TIME, "message": message}
        for number, above, message in [("u1", None, question), ("a1", "u1", answer)]
    ]
    text = "".join(json.dumps(line) + "\n" for line in [header, *entries])
    (sessions / f"2026-01-02T03-04-05-000Z_{name}.jsonl").write_text(text)


def export(folder, cwd, environment):
    """Imports a conversation that another person has given us."""
    name = "019a0000-0000-7000-8000-000000000001"
    meta = {"id": name, "timestamp": TIME, "cwd": str(cwd), "originator": "codex", "cli_version": "0.169.0"}
    content = [{"type": "input_text", "text": f"GIVEN {ERROR}"}]
    message = {"type": "message", "role": "user", "content": content}
    lines = [("session_meta", meta), ("response_item", message)]
    file = folder / f"given/rollout-2026-01-02T03-04-05-{name}.jsonl"
    file.parent.mkdir()
    file.write_text("".join(json.dumps({"timestamp": TIME, "type": kind, "payload": it}) + "\n" for kind, it in lines))
    command = [DAEMON, "import", "--from", "codex", "--final", file]
    subprocess.run(command, env=environment, check=True, stdout=subprocess.DEVNULL, timeout=PATIENCE)


def check(name, folder):
    """Returns what the model has not heard."""
    sessions, work = folder / "sessions", folder / "work"
    sessions.mkdir(mode=0o700)
    work.mkdir()
    environment = {"PATH": os.environ["PATH"], "HOME": str(folder)}
    setup_environment = {**environment, "TREELINED_SESSION_DIR": str(sessions)}
    session(sessions, work, "here", "HERE Clear the zebra cache by hand.")
    session(sessions, folder / "elsewhere", "there", "THERE Clear the zebra cache by hand.")
    export(folder, work, setup_environment)

    def setup(*options):
        command = [DAEMON, "setup", name, "--yes", "--no-import", *options]
        subprocess.run(command, env=setup_environment, check=True, stdout=subprocess.DEVNULL, timeout=PATIENCE)

    with Model() as model:
        command, more = globals()[name](folder, model.url)
        before = {path for path in folder.rglob("*") if path.is_file()}
        setup("--recall")
        ended = subprocess.run(
            command, cwd=work, env={**environment, **more}, stdin=subprocess.DEVNULL, capture_output=True, timeout=PATIENCE
        )
        assert ended.returncode == 0, ended
        heard = [json.dumps(request) for request in model.requests]
        titles = [json.dumps(request) for request in model.requests if is_aside(request)]
    # Neither another directory's conversation nor an export.
    assert not any("THERE" in request or "GIVEN" in request for request in heard), heard
    # A title is of this conversation, not of an earlier one.
    assert not any("treelined recalls this" in request for request in titles), titles
    assert titles or name != "opencode", heard
    setup("--remove")
    left = {path for path in folder.rglob("treelined*") if path.is_file()} - before
    left = {path for path in left if path.suffix in (".js", ".service")}
    assert not left, left
    missing = []
    for why in ["as a conversation begins", "since a command failed"]:
        told = [request for request in heard if f"treelined recalls this {why}" in request]
        assert all("session here" in request for request in told), told
        if not told:
            missing.append(f"{name} does not tell its model, {why}: {ended}")
    return missing


for agent in NAMES:
    for _ in range(ATTEMPTS):
        # The agent may still write when it has ended.
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as temporary:
            faults = check(agent, Path(temporary).resolve())
        if not faults:
            break
    assert not faults, faults
    print(f"{agent} tells its model what is recalled")
