"""Every hostile input of the threat list gets its right answer from the gate, on a real tree, and nothing else does."""

from __future__ import annotations

import base64
import json
import os
from typing import TYPE_CHECKING, Any

import pytest
from support.cli import Shell, shell  # noqa: F401  # a fixture

from prespawn import Gate

if TYPE_CHECKING:
    from pathlib import Path

ROWS = [
    json.loads(line)
    for line in (__import__("pathlib").Path(__file__).parents[1] / "data" / "payloads.jsonl").read_text().splitlines()
]
