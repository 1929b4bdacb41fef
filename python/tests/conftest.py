# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
import os
from pathlib import Path

ROOT = Path(__file__).parents[2]
TARGET = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
# The command that `make dev` builds, where no wheel is installed.
os.environ.setdefault("LOCKWORKS", str(TARGET / "debug/lockworks"))
