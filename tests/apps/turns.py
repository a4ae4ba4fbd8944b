#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""turns.py FILE COMMAND...: what the command is given comes back. A piece at a time: both ends of an echo may be in a
blocking write when more is on its way than buffers hold, also without Shunt."""
import subprocess
import sys

PIECE = 50000

with open(sys.argv[1], "rb") as file, subprocess.Popen(sys.argv[2:], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as command:
    while piece := file.read(PIECE):
        command.stdin.write(piece)
        command.stdin.flush()
        back = command.stdout.read(len(piece))
        assert back == piece, f"{len(back)} bytes of {len(piece)}, up to {file.tell()}"
    command.stdin.close()
    assert command.stdout.read() == b"", "more than was sent"
sys.exit(command.returncode)
