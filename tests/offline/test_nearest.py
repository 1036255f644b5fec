"""Hints for misspelt words."""

from __future__ import annotations

import time

import pytest

from prespawn.policy.nearest import nearest

KEYS = ("env_keys", "execute", "execution", "id", "maxTokens", "network", "profile", "readOnly", "workspace")


@pytest.mark.parametrize(
    ("word", "meant"),
    [
        ("readOnyl", "readOnly"),
        ("netwrok", "network"),
        ("max_tokens", "maxTokens"),
        ("Read-Only", "readOnly"),
        ("envkeys", "env_keys"),
        ("\u0440rofile", "profile"),
        ("profile", "profile"),
        ("profil", "profile"),
        ("execut", "execute"),
        ("workpsaec", "workspace"),
        ("ID", "id"),
    ],
)
def test_nearest_names_what_was_meant(word: str, meant: str) -> None:
    assert nearest(word, KEYS) == meant


@pytest.mark.parametrize("word", ["", "x", "ie", "colour", "netless", "xxecuxx", "workshop keeper"])
def test_nearest_is_silent_when_no_word_is_near(word: str) -> None:
    assert nearest(word, KEYS) is None


def test_nearest_without_known_words_is_silent() -> None:
    assert nearest("profile", ()) is None


def test_nearest_does_not_depend_on_the_order_of_known_words() -> None:
    assert nearest("cat", ("hat", "bat")) == nearest("cat", ("bat", "hat")) == "bat"


def test_nearest_prefers_fewer_mistakes_to_alphabetical_order() -> None:
    assert nearest("workspaces", ("workplaces", "workspace")) == "workspace"


def test_nearest_of_a_huge_word_is_cheap() -> None:
    start = time.perf_counter()
    assert nearest("k" * 1_000_000, KEYS) is None
    assert time.perf_counter() - start < 0.1
