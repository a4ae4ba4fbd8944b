# SPDX-License-Identifier: MIT
"""What include/shunt/wire.h says, for those who pretend to be a peer."""
import pathlib
import re

_HEADER = pathlib.Path(__file__).resolve().parents[2] / "include" / "shunt" / "wire.h"
MAGIC = 0x53485431
VERSION = int(re.search(r"SHUNT_WIRE_VERSION (\d+)", _HEADER.read_text()).group(1))
