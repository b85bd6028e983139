"""Real agents, offline, behind the recorder: a file that the agent changes by its shell is saved at the end of the turn, and goes
back, while the follower runs beside.

The arguments are the daemon, beside which are the other programs, the folder of the installed agents, and the names of agents.
"""

import importlib
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "tests/import"))
from model import Model  # noqa: E402

DAEMON, INSTALLED, *NAMES = sys.argv[1:]
DAEMON, INSTALLED = Path(DAEMON).resolve(), Path(INSTALLED)
# Longest time for anything, in seconds.
PATIENCE = 120
SHELL = "echo of the agent > made; echo changed > own"


def codex(folder, url):
    agent = importlib.import_module("codex")
    configuration = folder / ".codex/config.toml"
    configuration.parent.mkdir()
    configuration.write_text(agent.CONFIG.format(url=url))
    command = [INSTALLED / "codex" / agent.PROGRAM, "exec", "--skip-git-repo-check"]
    command += ["--dangerously-bypass-approvals-and-sandbox"]
    prompt = f"Prompt CALL exec_command {json.dumps({'cmd': SHELL})}"
    return [*command, prompt], {"STUB_KEY": "x"}


def opencode(folder, url):
    configuration = folder / ".config/opencode/opencode.json"
    configuration.parent.mkdir(parents=True)
    configuration.write_text(json.dumps(importlib.import_module("opencode").settings(url)))
    unwanted = ["AUTOUPDATE", "MODELS_FETCH", "LSP_DOWNLOAD", "DEFAULT_PLUGINS"]
    environment = {f"OPENCODE_DISABLE_{setting}": "1" for setting in unwanted}
    prompt = f"Prompt CALL bash {json.dumps({'command': SHELL, 'description': 'd'})}"
    # It puts an argument that has blanks into quotation marks.
    return [INSTALLED / "opencode/bin/opencode", "run", "--model", "stub/stub-1", *prompt.split(" ")], environment


def check(name, folder):
    work, sessions = folder / "work", folder / "sessions"
    work.mkdir()
    (work / "own").write_text("of the user\n")
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(folder),
        "XDG_RUNTIME_DIR": str(folder / "run"),
        "TREELINED_SESSION_DIR": str(sessions),
        "TREELINED_FILES": str(folder / "state"),
        "TREELINED_FILES_FREE": "0",
    }
    (folder / "run").mkdir(mode=0o700)

    def treelined(*arguments):
        ended = subprocess.run(
            [DAEMON, *arguments], cwd=work, env=environment, capture_output=True, text=True, timeout=PATIENCE
        )
        assert ended.returncode == 0, ended
        return ended.stdout

    treelined("files", "on")
    began = time.monotonic()
    watch = subprocess.Popen([DAEMON, "files", "watch"], cwd=work, env=environment, stderr=subprocess.PIPE, text=True)
    try:
        assert "follows" in watch.stderr.readline()
        with Model() as model:
            command, more = globals()[name](folder, model.url)
            ended = subprocess.run(
                command, cwd=work, env={**environment, **more}, stdin=subprocess.DEVNULL, capture_output=True, timeout=PATIENCE
            )
            assert ended.returncode == 0, ended
        assert (work / "made").read_text() == "of the agent\n", ended
        treelined("import", "--final", "--from", name.replace("_", "-"))
        while "1 record" not in treelined("files", "du"):
            assert time.monotonic() - began < PATIENCE, "no record"
            time.sleep(0.1)
        (work / "other").write_text("of the user, later\n")
        (work / "made").write_text("changed since\n")
        shown = treelined("files", "diff")
        assert "replace made" in shown and "changed outside" in shown, shown
        treelined("files", "restore", "--yes")
        assert (work / "made").read_text() == "of the agent\n"
        assert (work / "other").exists()
        treelined("files", "undo", "--yes")
        assert (work / "made").read_text() == "changed since\n"
        there = folder / "there"
        treelined("files", "open", "--into", str(there))
        assert sorted(file.name for file in there.iterdir()) == ["made", "own"]
    finally:
        watch.terminate()
        watch.wait(PATIENCE)
        subprocess.run([DAEMON, "stop"], env=environment, capture_output=True, timeout=PATIENCE)
    print(f"{name}: {time.monotonic() - began:.0f} s")


for agent in NAMES:
    # The agent may still write when it has ended.
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as temporary:
        check(agent, Path(temporary).resolve())
