"""What a site names inside itself is there, and its reports have a place of their own: else it does not load."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from support.cli import Shell, runtime, shell

from prespawn.policy.errors import ReadError
from prespawn.trusted import read_site

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["runtime", "shell"]  # the fixtures

SITE = """\
prespawn: site/v1
state_dir: /state
workspaces:
  main: {{root: /w, reports: {reports}, toolchains: {names}}}
toolchains: {{node: /opt/node}}
"""


@pytest.mark.parametrize(
    ("names", "shown"), [("[nope]", "nope"), ("[node, nod]", "nod"), ("[node, nope]", "nope")]
)  # fmt: skip
def test_workspace_with_a_toolchain_that_the_site_lacks_does_not_load(names: str, shown: str) -> None:
    with pytest.raises(ReadError) as raised:
        read_site(SITE.format(reports="reports", names=names).encode(), "site.yaml")
    assert (raised.value.id, raised.value.line, raised.value.column > 40) == ("policy-value", 4, True)
    assert f"is `{shown}`" in raised.value.message
    assert "`node`" in raised.value.message


@pytest.mark.parametrize("reports", ["registry.db", "receipts", "approvals", "canaries", "receipts/below"])
def test_reports_where_the_parent_keeps_its_own_do_not_load(reports: str) -> None:
    with pytest.raises(ReadError) as raised:
        read_site(SITE.format(reports=reports, names="[]").encode(), "site.yaml")
    assert (raised.value.id, raised.value.line) == ("policy-value", 4)
    assert raised.value.message == (
        f"`workspaces.main.reports` is `{reports}`, where the parent's own records lie; allowed here: another name, as "
        "`reports`"
    )


def test_site_whose_names_are_all_there_loads() -> None:
    site = read_site(SITE.format(reports="reports", names="[node]").encode(), "site.yaml")
    assert site.workspaces["main"].toolchains == ("node",)


@pytest.mark.usefixtures("runtime")
@pytest.mark.parametrize("named", [{"activated": ["sandbox-v1", "nope-v1"]}, {"argv": {"nope-v1": [["ls"]]}}])
def test_profile_that_is_nowhere_is_an_error_of_the_site(named: Mapping[str, Any], shell: Shell) -> None:
    shell.file("d.yaml")
    shell.write_site(**named)
    result = shell.run("check", "d.yaml")
    assert (result.code, result.out, len(result.errors)) == (2, "", 1)
    assert result.errors[0].startswith(f"{shell.site}:1:")
    assert "`nope-v1`" in result.errors[0]
    assert result.errors[0].endswith(" (policy-unknown-profile)")
    assert result.is_quiet


@pytest.mark.usefixtures("runtime")
def test_profile_of_the_sites_own_may_be_activated(shell: Shell) -> None:
    profile = "prespawn: profile/v1\nid: nope-v1\nextends: sandbox-v1\n"
    shell.file(str(shell.site.parent / "profiles" / "nope.yaml"), profile)
    shell.write_site(activated=["sandbox-v1", "nope-v1"], argv={"nope-v1": [["ls"]]})
    assert shell.run("check", shell.file("d.yaml")).code == 0
