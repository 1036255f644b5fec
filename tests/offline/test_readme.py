"""What the README shows is what its commands print."""

from __future__ import annotations

import subprocess
import sys

from support import readme


def test_readme_begins_with_the_two_commands() -> None:
    text = readme.README.read_text("utf-8")
    first = text.split("```")[1]
    assert [line.split("#")[0].strip() for line in first.splitlines()[1:]] == ["make run", "make test"]


def test_readme_outputs_of_the_offline_lane() -> None:
    commands = readme.commands("offline")
    assert commands
    with readme.project() as where:
        for line, output in commands:
            assert readme.run(line, where) == output, line


def test_readme_python_example_compiles_and_names_what_there_is() -> None:
    text = readme.README.read_text("utf-8")
    example = text.split("```python\n")[1].split("```")[0]
    compile(example, "README.md", "exec")
    code = "import prespawn; assert all(getattr(prespawn, name).__doc__ for name in prespawn.__all__)"
    subprocess.run([sys.executable, "-P", "-c", code], check=True)
