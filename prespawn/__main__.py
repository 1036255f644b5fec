"""``python -m prespawn``."""

from __future__ import annotations

import os
import sys

from .cli import main

os._exit(main(sys.argv[1:]))  # all is written; a broken standard output is not met again
