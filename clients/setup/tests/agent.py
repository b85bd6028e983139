"""Runs real agents, offline, after treelined-setup has set them up. In the best of three attempts a turn is in the tree
within two seconds of its end. The model gets the tools of the MCP server. At the end treelined-setup removes everything.

The arguments are the daemon (treelined-setup must be beside it), the folder of the installed agents, and the names of
agents.
"""

import importlib
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "tests/import"))
from model import Model, answer  # noqa: E402

DAEMON, INSTALLED, *NAMES = sys.argv[1:]
DAEMON, INSTALLED = Path(DAEMON).resolve(), Path(INSTALLED)
PROMPT = "Prompt of the hook"
# The time limit of the whole conversation, the most seconds from the end of a turn until it is in the tree, and the
# number of attempts. The fastest attempt counts, since the machine may be busy.
PATIENCE, LIVE, ATTEMPTS = 120, 2, 3


def codex(folder, url):
    agent = importlib.import_module("codex")
    configuration = folder / ".codex/config.toml"
    configuration.parent.mkdir()
    configuration.write_text(agent.CONFIG.format(url=url))
    command = [INSTALLED / "codex" / agent.PROGRAM, "exec", "--skip-git-repo-check", PROMPT]
    return configuration, command, {"STUB_KEY": "x"}


def opencode(folder, url):
    configuration = folder / ".config/opencode/opencode.json"
    configuration.parent.mkdir(parents=True)
    configuration.write_text(json.dumps(importlib.import_module("opencode").settings(url)))
    unwanted = ["AUTOUPDATE", "MODELS_FETCH", "LSP_DOWNLOAD", "DEFAULT_PLUGINS"]
    environment = {f"OPENCODE_DISABLE_{setting}": "1" for setting in unwanted}
    # opencode waits for a package of types that it installs for plugins.
    environment |= {"npm_config_offline": "true", "npm_config_registry": "http://127.0.0.1:9/"}
    # opencode puts an argument that has blanks into quotation marks.
    command = [INSTALLED / "opencode/bin/opencode", "run", "--model", "stub/stub-1", *PROMPT.split(" ")]
    return configuration, command, environment


class Tree(threading.Thread):
    """Notes when the model was last asked, and when the answer is in the tree."""

    def __init__(self, sessions, model):
        super().__init__(daemon=True)
        self.sessions, self.model = sessions, model
        self.asked = self.found = None
        self.is_over = threading.Event()
        self.start()

    def run(self):
        count = 0
        while self.found is None and not self.is_over.is_set():
            now = time.monotonic()
            if len(self.model.requests) > count:
                count, self.asked = len(self.model.requests), now
            if self._has_answer():
                self.found = now
            time.sleep(0.02)

    def _has_answer(self):
        try:
            files = [file for file in self.sessions.glob("*/*.jsonl") if not file.parent.name.startswith(".")]
            # The last line may be incomplete.
            return any(answer(PROMPT) in file.read_text(errors="replace") for file in files)
        except FileNotFoundError:
            # A file was renamed after it was listed.
            return False


def check(name, folder):
    """Returns the seconds from the end of the program until the turn was in the tree."""
    sessions = folder / "sessions"
    environment = {"PATH": os.environ["PATH"], "HOME": str(folder), "TREELINED_SESSION_DIR": str(sessions)}

    def setup(*options):
        command = [DAEMON, "setup", name, "--yes", "--no-import", *options]
        subprocess.run(command, env=environment, check=True, stdout=subprocess.DEVNULL, timeout=PATIENCE)

    began = time.monotonic()
    with Model() as model:
        configuration, command, more = globals()[name](folder, model.url)
        before = configuration.read_bytes()
        setup()
        tree = Tree(sessions, model)
        # The hook must find the sessions without the variable in the agent's environment.
        del environment["TREELINED_SESSION_DIR"]
        ended = subprocess.run(
            command, cwd=folder, env={**environment, **more}, stdin=subprocess.DEVNULL, capture_output=True, timeout=PATIENCE
        )
        end = time.monotonic()
        assert ended.returncode == 0, ended
        tree.join(PATIENCE)
        tree.is_over.set()
        log = sessions / ".imports/hooks.log"
        assert tree.found, f"{name}: the turn is not in the tree; {log.read_text() if log.exists() else ended}"
        heard = json.dumps(model.requests)
    since_end, since_answer = tree.found - end, tree.found - tree.asked
    assert "search_history" in heard, f"{name} does not know the MCP server"
    assert not log.exists(), log.read_text()
    setup("--remove")
    now = configuration.read_bytes()
    # opencode adds the name of a schema to this file when it starts.
    assert now == before or {**json.loads(before), "$schema": json.loads(now)["$schema"]} == json.loads(now), now
    assert not (configuration.parent / "plugins").exists()
    times = f"{since_answer:.2f} s after the model was asked, {since_end:+.2f} s after the end of the program"
    print(f"{name}: in the tree {times}; {end - began:.0f} s in all")
    return since_end


for agent in NAMES:
    least = float("inf")
    for _ in range(ATTEMPTS):
        # The agent may still write after it has ended.
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as temporary:
            least = min(least, check(agent, Path(temporary).resolve()))
        if least <= LIVE:
            break
    assert least <= LIVE, f"{agent}: the turn was in the tree {least:.1f} s after the end of the program, at the least"
