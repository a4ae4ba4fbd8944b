#!/bin/bash
# SPDX-License-Identifier: MIT
# Numbers that the program has closed are closed, whatever Shunt opens there for an instant: the service thread is asked
# for statistics without end, and makes a descriptor for each. TAP.
# shellcheck disable=SC2086,SC2317	# the command is several words; functions are called by name
# shellcheck source-path=SCRIPTDIR source=lib.sh
set -u
. "$(dirname "$0")/lib.sh"

numbers=$builddir/tests/calls/numbers
need "$numbers" python3
need_shunt

# The program goes on when it has been asked some times, and is asked until it ends.
cat > "$work/drive" << 'END'
import socket, subprocess, sys

sys.dont_write_bytecode = True
sys.path.insert(0, sys.argv.pop(1))
import door

program = subprocess.Popen(sys.argv[2:], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
pid = program.stdout.readline().split()[1]
name = door.find(pid, "stat") if sys.argv[1] == "ask" else None
asked = 0
while sys.argv[1] == "ask":
    try:
        with socket.socket(socket.AF_UNIX) as asking:
            asking.connect(name)
            while asking.recv(65536):
                pass
    except OSError:
        break	# it has ended
    asked += 1
    if asked == 10:
        program.stdin.close()
if not program.stdin.closed:
    program.stdin.close()
print(program.stdout.read(), end="")
sys.exit(program.wait())
END

drive() { # FILE HOW COMMAND...
	python3 "$work/drive" "$here" "${@:2}" > "$work/$1"
}

check "bare: it ends" drive bare leave "$numbers"
check "shunted: it ends" drive shunted ask $shunt_run "$numbers"
check "both say the same" diff "$work/bare" "$work/shunted"
plan
