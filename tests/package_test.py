"""The wheel is what the checkout is: build it, install it into a fresh environment, run the offline lane against it.

``python -P tests/package_test.py`` from the checkout; it needs ``build`` and leaves nothing behind.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
FOLDERS = ("blockers", "checker", "launchers", "policy", "prespawn")
DATA = {".py", ".yaml", ".json", ".typed", ".txt", ".md"}


def main() -> int:
    """Return 0 if the wheel holds every file of the packages and passes the offline lane."""
    with tempfile.TemporaryDirectory() as directory:
        wheel = _built(Path(directory))
        missing = _expected() - _held(wheel)
        if missing:
            print("absent from the wheel:", *sorted(missing), sep="\n  ", file=sys.stderr)
            return 1
        return _tested(wheel, Path(directory) / "environment")


def _built(directory: Path) -> Path:
    """Build the wheel by way of the source distribution, so that both are complete."""
    build = [sys.executable, "-P", "-m", "build", "--outdir", str(directory), str(ROOT)]
    subprocess.run(build, check=True, cwd=directory)
    return next(directory.glob("*.whl"))


def _expected() -> set[str]:
    tracked = subprocess.run(["git", "ls-files", *FOLDERS], cwd=ROOT, stdout=subprocess.PIPE, check=True, text=True)
    files = (Path(name) for name in tracked.stdout.split() if not (ROOT / name).is_symlink())
    names = (name if name.parts[0] == "prespawn" else Path("prespawn", name) for name in files if name.suffix in DATA)
    return {str(name) for name in names if name != Path("prespawn", "bin", "prespawn")}


def _held(wheel: Path) -> set[str]:
    with zipfile.ZipFile(wheel) as archive:
        return set(archive.namelist())


def _tested(wheel: Path, environment: Path) -> int:
    subprocess.run([sys.executable, "-m", "venv", str(environment)], check=True)
    python = environment / "bin" / "python"
    install = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", f"{wheel}[test]"]
    subprocess.run(install, check=True)
    tests = [str(environment / "bin" / "pytest"), "-q", "-p", "no:cacheprovider", "tests/offline"]
    wanted = {**os.environ, "PRESPAWN_WHEEL": "1"}
    return subprocess.run(tests, cwd=ROOT, env=wanted, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
