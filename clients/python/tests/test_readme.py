"""The examples of the README."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from conftest import COMMAND

FIRST = """\
again: By plane.
Plan a trip to Rome.
By train?
├─ By plane.
│  At noon.
└─ [by plane] A flight at noon; see a2.
entryNotFound {'entryId': 'nothing'}
"""


SHARED = """\
host asks: Release 1.0?
released 1.0
host asks: Release 2.0?
commandFailed nobody agreed
⚑ version 1.0
"""


@pytest.mark.parametrize(("number", "output"), [(0, FIRST), (1, SHARED)])
def test_the_examples_of_the_readme_run(number: int, output: str) -> None:
    readme = (Path(__file__).parents[1] / "README.md").read_text()
    example = re.findall(r"```python\n(.*?)```", readme, re.DOTALL)[number]
    assert len([line for line in example.splitlines() if line.strip()]) <= 34
    daemon = shutil.which(COMMAND)
    assert daemon is not None
    # `tmp_path` is too long for the path of a socket.
    folder = Path(tempfile.mkdtemp(prefix="treelined-"))
    (folder / "treelined").symlink_to(Path(daemon).resolve())
    env = {
        **os.environ,
        "PATH": f"{folder}:{os.environ['PATH']}",
        "TREELINED_SESSION_DIR": str(folder / "sessions"),
        "TREELINED_SOCKET": str(folder / "daemon.sock"),
        "PYTHONWARNINGS": "error",
        "PYTHONUTF8": "1",
    }
    ran = subprocess.run(
        [sys.executable, "-c", example], env=env, capture_output=True, text=True, check=False
    )
    subprocess.run([COMMAND, "stop"], env=env, capture_output=True, check=False)
    shutil.rmtree(folder)
    assert (ran.stdout, ran.returncode) == (output, 0)
    # The failure of the command is logged too.
    assert number == 1 or ran.stderr == ""
