"""A tour: the gate on good and bad declarations, then a real command in the sandbox.

It works in a copy of ``examples/project`` and removes it again. Started as root, it gives the copy to an ordinary user:
the worker runs as the workspace's owner.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
PRESPAWN = Path(sys.executable).with_name("prespawn")
ORDINARY = 1000

STOPS = (
    ("a declaration that may run", ("check", "format-and-test.yaml"), 0),
    ("one that may not: every reason at once", ("check", "out-of-bounds.yaml"), 1),
    ("one that asks for more than this host can show", ("check", "too-ambitious.yaml"), 1),
    ("a misspelt key is an error with its place, not a key that is ignored", ("check", "misspelt.yaml"), 2),
    ("what a blocker means", ("explain", "env-key-loader"), 0),
    ("a preview: the exact invocation, and nothing started", ("run", "format-and-test.yaml"), 0),
    ("a real command in the sandbox", ("exec", "--", "python3", "-B", "src/greet.py"), 0),
    (
        "what the command sees of this host",
        ("exec", "--", "sh", "-c", "id; ls -A / /home; env; grep -E 'Cap|NoNew' /proc/self/status"),
        0,
    ),
)


def main() -> int:
    """Walk the tour; the exit status is 0 if every command answered as it should."""
    with tempfile.TemporaryDirectory() as directory:
        project = _copied(Path(directory))
        environment = {**os.environ, "XDG_STATE_HOME": directory}
        wrong = [line for title, line, expected in STOPS if not _walked(title, line, expected, project, environment)]
    for line in wrong:
        print(f"\nunexpected: prespawn {' '.join(line)}", file=sys.stderr)
    return 1 if wrong else 0


def _copied(directory: Path) -> Path:
    project = directory / "project"
    shutil.copytree(HERE / "project", project)
    if os.geteuid() == 0:
        for path in (project, *project.rglob("*")):
            os.chown(path, ORDINARY, ORDINARY)
    return project


def _walked(title: str, line: tuple[str, ...], expected: int, where: Path, environment: dict[str, str]) -> bool:
    print(f"\n# {title}\n$ prespawn {' '.join(line)}", flush=True)
    done = subprocess.run([PRESPAWN, *line], cwd=where, env=environment, stdin=subprocess.DEVNULL, check=False)
    print(f"[exit {done.returncode}]", flush=True)
    return done.returncode == expected


if __name__ == "__main__":
    sys.exit(main())
