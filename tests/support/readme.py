"""The README's console blocks: run again, and compared with what stands there.

A block is fenced with ``console``; each line that begins with ``$ `` is a command, what follows it is its output, both
streams together. Blocks after ``<!-- not run -->`` are skipped. All commands of one lane run in one copy of
``examples/project``; its path, the site's path, digests and generated run ids stand in the README as words.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
README = ROOT / "README.md"
FENCE = re.compile(r"(?P<before>[^\n]*)\n```console\n(?P<block>.*?)```\n", re.S)


class Command:
    """One command of the README, its output there, and the lane that can run it."""

    def __init__(self, line: str, output: str, live: bool) -> None:
        self.line, self.output, self.live = line, output, live


def commands() -> list[Command]:
    """Return the README's commands in order."""
    found = []
    for match in FENCE.finditer(README.read_text("utf-8")):
        if "not run" in match["before"]:
            continue
        for part in re.split(r"^\$ ", match["block"], flags=re.M)[1:]:
            line, _, output = part.partition("\n")
            found.append(Command(line, output, "live" in match["before"]))
    return found


def project(directory: Path) -> Path:
    """Copy the example project, as the newcomer's own, below a directory."""
    copy = directory / "project"
    shutil.copytree(ROOT / "examples" / "project", copy)
    return copy


def run(line: str, where: Path, state: Path) -> str:
    """Run one command line in the project and return its output with everything that varies put into words."""
    programs = Path(sys.executable).parent
    environment = {
        "PATH": f"{programs}:{os.environ['PATH']}",
        "LANG": "C.UTF-8",
        "XDG_STATE_HOME": str(state),
        "XDG_CONFIG_HOME": str(state / "config"),
    }
    done = subprocess.run(
        ["bash", "-c", line], cwd=where, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, timeout=60, check=False,
    )  # fmt: skip
    text = done.stdout.decode("utf-8", "backslashreplace")
    text = text.replace(str(where), "~/project").replace(str(state), "~/.local/state")
    text = re.sub(r"sha256:[0-9a-f]{64}", "sha256:…", text)
    return re.sub(r"\b\d{8}-\d{6}-[0-9a-f]{10}\b", "20260101-120000-0123456789", text)
