"""Frozen values can be copied and pickled, and nothing is made that way which its constructor would refuse."""

from __future__ import annotations

import copy
import pickle
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from support import plans
from support.cli import DECLARATION, Shell, runtime, shell

from prespawn import Gate
from prespawn.policy.known import ABSENT, Unknown

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["runtime", "shell"]  # the fixtures


def pickled(value: Any) -> Any:
    return pickle.loads(pickle.dumps(value))


COPIES = [copy.copy, copy.deepcopy, pickled]


@pytest.mark.usefixtures("runtime")
@pytest.mark.parametrize("copied", COPIES)
def test_verdict_is_equal_to_its_copy(copied: Callable[[Any], Any], shell: Shell) -> None:
    shell.file("d.yaml")
    checked = Gate.load().check(yaml.safe_load(DECLARATION))
    again = copied(checked)
    assert again == checked
    assert type(again) is type(checked)
    assert again.document() == checked.document()
    assert again.facts is not None
    assert again.facts.log is ABSENT


@pytest.mark.parametrize("copied", COPIES)
def test_absent_stays_the_one_there_is(copied: Callable[[Any], Any]) -> None:
    assert copied(ABSENT) is ABSENT
    assert copied(Unknown(reason="x")) == Unknown(reason="x")


@pytest.mark.parametrize("copied", COPIES)
def test_approved_plan_is_made_by_approval_alone(copied: Callable[[Any], Any]) -> None:
    with pytest.raises(TypeError, match="a plan is made by"):
        copied(plans.plan())
