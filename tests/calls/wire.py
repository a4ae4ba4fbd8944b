# SPDX-License-Identifier: MIT
"""What include/shunt/wire.h says, for those who pretend to be a peer."""
import pathlib
import re

_HEADER = pathlib.Path(__file__).resolve().parents[2] / "include" / "shunt" / "wire.h"
MAGIC = 0x53485431
VERSION = int(re.search(r"SHUNT_WIRE_VERSION (\d+)", _HEADER.read_text()).group(1))


def messages():
    """The number of each message by its name without SHUNT_MSG_."""
    numbers, last = {}, 0
    body = re.search(r"enum shunt_message_type \{(.*?)\n\};", _HEADER.read_text(), re.S).group(1)
    for name, value in re.findall(r"^\tSHUNT_MSG_(\w+)(?: = (\d+))?,", body, re.M):
        last = numbers[name] = int(value) if value else last + 1
    return numbers
