"""Reads exported lines with the package that they are for: exports.py atif|verifiers FILE."""

import json
import sys
from pathlib import Path


def atif(line: str) -> str:
    from harbor.models.trajectories import Trajectory

    read = Trajectory.model_validate_json(line)
    assert without_none(json.loads(line)) == read.to_json_dict(), "nothing is lost or added"
    return f"{len(read.steps)} steps"


def verifiers(line: str) -> str:
    from verifiers.v1.trace import WireTrace

    read = WireTrace.model_validate_json(line)
    written = json.loads(line)
    parents = {node["parent"] for node in written["nodes"]}
    leaves = [at for at in range(len(written["nodes"])) if at not in parents]
    assert len(read.branches) == len(leaves)
    for branch, leaf in zip(read.branches, leaves, strict=True):
        path = []
        at = leaf
        while at is not None:
            path.append(written["nodes"][at]["message"]["content"])
            at = written["nodes"][at]["parent"]
        said = [json.loads(message.model_dump_json())["content"] for message in branch.messages]
        assert said == path[::-1]
    assert read.num_turns == sum(node["sampled"] for node in written["nodes"])
    return f"{len(leaves)} branches"


def without_none(value: object) -> object:
    if isinstance(value, dict):
        return {name: without_none(it) for name, it in value.items() if it is not None}
    return [without_none(it) for it in value] if isinstance(value, list) else value


name, path = sys.argv[1:]
read = {"atif": atif, "verifiers": verifiers}[name]
lines = Path(path).read_text().splitlines()
assert len(lines) > 10, len(lines)
for number, line in enumerate(lines, 1):
    try:
        read(line)
    except Exception as error:
        sys.exit(f"{name}, line {number}: {error}")
print(f"{name}: {len(lines)} lines are read")
