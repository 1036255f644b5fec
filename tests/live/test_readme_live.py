"""What the README shows of the sandbox is what its commands print under the real bubblewrap."""

from __future__ import annotations

from support import readme


def test_readme_outputs_of_the_live_lane() -> None:
    commands = readme.commands("live")
    assert commands
    with readme.project() as where:
        for line, output in commands:
            assert readme.run(line, where) == output, line
