"""The README's console blocks: run again, and compared with what stands there.

A block is fenced with ``console`` and stands under ``<!-- offline -->``, ``<!-- live -->`` or ``<!-- not run -->``,
which names the lane. In it, each line that begins with ``$ `` is a command, and what follows is its output, both
streams together. All commands of a lane run in one copy of ``examples/project``; paths, digests and generated run ids
stand in the README as words. ``python tests/support/readme.py`` writes the outputs anew.
"""

from __future__ import annotations

import os
import pwd
import re
import shutil
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

ROOT = Path(__file__).parents[2]
README = ROOT / "README.md"
BLOCK = re.compile(r"<!-- (?P<lane>offline|live|not run) -->\n```console\n(?P<text>.*?)```\n", re.S)
ORDINARY = 1000  # whom the workspace belongs to where the tests run as root


def commands(lane: str) -> list[tuple[str, str]]:
    """Return the commands of a lane, in order, each with the output that stands in the README."""
    blocks = (block["text"] for block in BLOCK.finditer(README.read_text("utf-8")) if block["lane"] == lane)
    parts = (part for block in blocks for part in re.split(r"^\$ ", block, flags=re.M)[1:])
    return [(line, output) for line, _, output in (part.partition("\n") for part in parts)]


@contextmanager
def project() -> Iterator[Path]:
    """Yield a copy of the example project, owned by an ordinary user.

    It lies below the home of the password database: a site file is not believed below a directory that others can
    write, as `/tmp` is.
    """
    with tempfile.TemporaryDirectory(prefix=".prespawn-", dir=pwd.getpwuid(os.geteuid()).pw_dir) as directory:
        copy = Path(directory) / "project"
        shutil.copytree(ROOT / "examples" / "project", copy)
        if os.geteuid() == 0:
            for path in (copy, *copy.rglob("*")):
                os.chown(path, ORDINARY, ORDINARY)
        yield copy


def run(line: str, where: Path) -> str:
    """Run one command line in the project and return its output with everything that varies put into words."""
    state = where.parent / "state"
    state.mkdir(mode=0o700, exist_ok=True)
    environment = {
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "LANG": "C.UTF-8",
        "XDG_STATE_HOME": str(state),
        "XDG_CONFIG_HOME": str(state),
    }
    done = subprocess.run(
        ["bash", "-c", line], cwd=where, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, timeout=60, check=False,
    )  # fmt: skip
    text = done.stdout.decode("utf-8", "backslashreplace")
    for path, word in ((where, "~/project"), (state, "~/.local/state"), (where.parent, "~")):
        text = text.replace(str(path), word)
    text = re.sub(r"[\w./-]*/bwrap\b", "bwrap", text)
    return re.sub(r"sha256:[0-9a-f]{64}", "sha256:…", text)


def main() -> None:
    """Write the README's outputs anew."""
    text = README.read_text("utf-8")
    with project() as where:
        README.write_text(BLOCK.sub(_rewriter(where), text), "utf-8")


def _rewriter(where: Path) -> Callable[[re.Match[str]], str]:
    def rewritten(block: re.Match[str]) -> str:
        if block["lane"] == "not run":
            return block[0]
        lines = [part.partition("\n")[0] for part in re.split(r"^\$ ", block["text"], flags=re.M)[1:]]
        text = "".join(f"$ {line}\n{run(line, where)}" for line in lines)
        return f"<!-- {block['lane']} -->\n```console\n{text}```\n"

    return rewritten


if __name__ == "__main__":
    main()
