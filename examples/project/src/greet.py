"""What the examples run: it greets, and says where it thinks it is."""

import os
import pathlib

print(f"hello from {pathlib.Path.cwd()}, uid {os.getuid()}, {len(os.environ)} variables")
