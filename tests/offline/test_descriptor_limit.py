"""The limit of open files, where it is what stands in the way: named as that, with what is needed."""

from __future__ import annotations

import errno
import os
import resource
from typing import TYPE_CHECKING

import pytest

from prespawn.descriptors import limited

if TYPE_CHECKING:
    from collections.abc import Iterator

LIMIT = 200


@pytest.fixture
def few() -> Iterator[None]:
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (LIMIT, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, before)


@pytest.mark.usefixtures("few")
def test_one_file_too_many_names_the_limit_and_what_is_needed() -> None:
    opened = []
    try:
        with pytest.raises(OSError, match="Too many open files") as raised:
            while True:
                opened.append(os.open("/", os.O_PATH))
        named = limited(raised.value, 7)
    finally:
        for fd in opened:
            os.close(fd)
    assert named is not None
    assert named.id == "descriptor-limit"
    assert str(named) == (
        f"the limit of open files is {LIMIT}, and needed here are {LIMIT + 8} or more; raise it, as with "
        f"`ulimit -n {LIMIT + 8}`"
    )


def test_number_above_a_limit_that_was_lowered_names_the_limit() -> None:
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    high = os.open("/", os.O_PATH)
    os.dup2(high, 400)
    resource.setrlimit(resource.RLIMIT_NOFILE, (LIMIT, before[1]))
    try:
        named = limited(OSError(errno.EBADF, "bad file descriptor"), 0)
        others = [limited(OSError(number, "x"), 0) for number in (errno.ENOENT, errno.EACCES)]
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
        os.close(400)
        os.close(high)
    assert named is not None
    assert "is 200, and needed here are 401 or more" in str(named)
    assert others == [None, None]


def test_other_errors_are_not_the_limits() -> None:
    assert limited(OSError(errno.EBADF, "bad file descriptor"), 0) is None
    assert limited(None, 0) is None
    assert limited(ValueError("x"), 0) is None
