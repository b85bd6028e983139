"""`/undo files` with real agents, offline: a file that the agent has changed by its shell goes back with the prompt, while
`treelined files watch` saves the turns.

The arguments are the recorder, the daemon, beside which are the other programs, the folder of the installed agents, and the names
of agents.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from agents import AGENTS, Peer
from model import Model

# Longest time for a record of the files, in seconds.
PATIENCE = 120
SHELL = "echo of the agent > own; echo new > made"
# The shell of each agent, and its arguments.
CALLS = {
    "opencode": ("bash", {"command": SHELL, "description": "d"}),
    "codex-acp": ("exec_command", {"cmd": SHELL}),
}


def check(recorder, daemon, installed, name, model_url, folder):
    agent, environment, _ = AGENTS[name](installed, folder, model_url)
    project, began = folder / "project", time.monotonic()
    (project / "own").write_text("of the user\n")
    (folder / "run").mkdir(mode=0o700)
    environment = {
        **environment,
        "XDG_RUNTIME_DIR": str(folder / "run"),
        "TREELINED_BIN": daemon,
        "TREELINED_SESSION_DIR": str(folder / "sessions"),
        "TREELINED_FILES": str(folder / "files"),
        "TREELINED_FILES_FREE": "0",
    }

    def treelined(*arguments):
        command = [daemon, *arguments]
        ended = subprocess.run(
            command, cwd=project, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=PATIENCE
        )
        assert ended.returncode == 0, ended
        return ended.stdout

    treelined("files", "on")
    watch = subprocess.Popen([daemon, "files", "watch"], cwd=project, env=environment, stderr=subprocess.PIPE, text=True)
    try:
        assert "follows" in watch.stderr.readline()
        command = [recorder, "--state", str(folder / "acp"), "--daemon", daemon, "--live", "--", *agent]
        editor = Peer(command, project, environment)
        editor.ask("initialize", {"protocolVersion": 1, "clientCapabilities": {}})
        session = editor.ask("session/new", {"cwd": str(project), "mcpServers": []})["sessionId"]
        editor.prompt(session, "Prompt one")
        tool, arguments = CALLS[name]
        editor.prompt(session, f"Prompt CALL {tool} {json.dumps(arguments)}")
        assert (project / "made").exists()
        # A command is answered when everything before it is recorded.
        editor.prompt(session, "/tree")
        # The files at the end of the first turn are saved.
        while "0 records" in treelined("files", "du"):
            assert time.monotonic() - began < PATIENCE, "no record"
            time.sleep(0.1)
        told = editor.prompt(session, "/undo files")
        assert "The files went back too" in told, told
        assert (project / "own").read_text() == "of the user\n", told
        assert not (project / "made").exists(), told
        editor.end()
    finally:
        watch.terminate()
        watch.wait(PATIENCE)
        subprocess.run([daemon, "stop"], env=environment, capture_output=True, timeout=PATIENCE)
    print(f"{name}: the files went back with a prompt, {time.monotonic() - began:.0f} s")


def main():
    recorder, daemon, installed = map(os.path.abspath, sys.argv[1:4])
    for name in sys.argv[4:]:
        with Model() as model, tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
            check(recorder, daemon, Path(installed), name, model.url, Path(folder).resolve())


if __name__ == "__main__":
    main()
