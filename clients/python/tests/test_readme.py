"""The example of the README."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from conftest import COMMAND

OUTPUT = """\
again: By plane.
Plan a trip to Rome.
By train?
├─ By plane.
│  At noon.
└─ [by plane] A flight at noon; see a2.
entryNotFound {'entryId': 'nothing'}
"""


def test_the_example_of_the_readme_runs(tmp_path: Path) -> None:
    readme = (Path(__file__).parents[1] / "README.md").read_text()
    found = re.search(r"```python\n(.*?)```", readme, re.DOTALL)
    assert found is not None
    example = found[1]
    assert len([line for line in example.splitlines() if line.strip()]) <= 32
    daemon = shutil.which(COMMAND)
    assert daemon is not None
    (tmp_path / "treelined").symlink_to(Path(daemon).resolve())
    env = {
        **os.environ,
        "PATH": f"{tmp_path}:{os.environ['PATH']}",
        "TREELINED_SESSION_DIR": str(tmp_path / "sessions"),
        "PYTHONWARNINGS": "error",
        "PYTHONUTF8": "1",
    }
    ran = subprocess.run(
        [sys.executable, "-c", example], env=env, capture_output=True, text=True, check=False
    )
    assert (ran.stdout, ran.stderr) == (OUTPUT, "")
