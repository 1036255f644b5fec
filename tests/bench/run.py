"""All benches, on an installed wheel: ``make bench``, or ``python tests/bench/run.py [NAME…]``.

A wheel is built and installed into an environment of its own, for a checkout that is installed in place starts slower
than anything a user has. Each bench runs there as a program of its own, one after the other; the exit status is 1 if a
bar was missed by more than the noise.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import venv
from pathlib import Path

ROOT = Path(__file__).parents[2]
BENCHES = Path(__file__).parent


def main(names: list[str]) -> int:
    """Run the named benches, or all of them."""
    found = {path.stem.removeprefix("bench_"): path for path in sorted(BENCHES.glob("bench_*.py"))}
    if unknown := sorted(set(names) - found.keys()):
        sys.stderr.write(f"no bench `{unknown[0]}`; allowed: {', '.join(found)}\n")
        return 2
    with tempfile.TemporaryDirectory(prefix="prespawn-bench-", dir="/var/tmp") as directory:
        Path(directory).chmod(0o755)  # as root some things are measured as an ordinary user
        python = installed(Path(directory))
        codes = [run(python, found[name]) for name in (names or found)]
    return max(codes)


def installed(directory: Path) -> Path:
    """Build the wheel, install it with what the benches need, and return the interpreter of that environment."""
    build: list[str | Path] = [sys.executable, "-m", "build", "--wheel", "--outdir", directory, ROOT]
    subprocess.run(build, check=True, stdout=subprocess.DEVNULL)
    (wheel,) = directory.glob("*.whl")
    venv.create(directory / "venv", with_pip=True)
    python = directory / "venv" / "bin" / "python"
    pip: list[str | Path] = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, f"{wheel}[test]"], check=True)
    return python


def run(python: Path, bench: Path) -> int:
    """Run one bench there and return its exit status; what it prints is the table."""
    sys.stdout.write(f"\n{bench.stem.removeprefix('bench_')}\n")
    sys.stdout.flush()
    return subprocess.run([python, "-P", bench], cwd="/", check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
