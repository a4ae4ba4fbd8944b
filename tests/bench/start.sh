#!/bin/bash
# SPDX-License-Identifier: MIT
# What the library adds to a start: a program that listens and ends, bare, with SHUNT_ENABLE=0, and by SHUNT_GATE. The runs
# take turns; medians, and how much longer than bare.
#
#	ROUNDS=7 STARTS=100 start.sh
set -u
# shellcheck source-path=SCRIPTDIR source=../scratch.sh
. "$(dirname "$0")/../scratch.sh"
scratch start ''
cat > "$scratch/listens.c" <<'EOC'
#include <sys/socket.h>

int main(void)
{
	return listen(socket(AF_INET, SOCK_STREAM, 0), 1);
}
EOC
"${CC:-cc}" -O2 -o "$scratch/listens" "$scratch/listens.c" || exit
python3 - "$scratch/listens" "$(realpath "${top_builddir:-.}")/.libs/libshunt.so" "${ROUNDS:-7}" "${STARTS:-100}" <<'EOP'
import os
import statistics
import sys
import time

program, library, rounds, starts = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
bare = {"PATH": os.environ["PATH"], "SHUNT_CONF": "none"}
ways = {"bare": bare, "off": {**bare, "LD_PRELOAD": library, "SHUNT_ENABLE": "0"}}
for gate in "names", "auto", "calls":
    ways[gate] = {**bare, "LD_PRELOAD": library, "SHUNT_GATE": gate}
times = {way: [] for way in ways}
for _ in range(rounds):
    for way, environment in ways.items():
        begun = time.perf_counter()
        for _ in range(starts):
            os.waitpid(os.posix_spawn(program, [program], environment), 0)
        times[way].append((time.perf_counter() - begun) / starts * 1e3)
base = statistics.median(times["bare"])
for way in ways:
    median = statistics.median(times[way])
    print(f"{way:6} {median:6.2f} ms, {median - base:+.2f}")
EOP
