#!/bin/bash
# SPDX-License-Identifier: MIT
# Haechi, Figure 7: the node's rate by number of clients.
#
#	SCALE=400 PERIODS=3 CLIENTS="1 2 3 4 5 6 7 8 9 10" ha_e2.sh	and the knobs of ha_common.sh
# shellcheck disable=SC2119
# shellcheck source-path=SCRIPTDIR source=ha_common.sh
set -u
PERIODS=${PERIODS:-3} WARM=${WARM:-1}
. "$(dirname "$0")/ha_common.sh"
counts=${CLIENTS:-1 2 3 4 5 6 7 8 9 10}

heading "HA-E2 (Haechi, Figure 7): rate by number of clients" \
	"one-sided: linear up to 4 clients, then slightly less than 1600 KIOPS; two-sided: 430 with 2"
for n in $counts; do
	# More than any client can have.
	demands=$(yes "$((3 * own))" | head -n "$n" | paste -sd,)
	ha "ha_e2.$n" --clients "$n" --demand "$demands"
done
judge "$counts" << 'END'
import ha, sys
counts = [int(n) for n in sys.argv[2].split()]
runs = {n: ha.Run(sys.argv[1], "ha_e2.%d" % n) for n in counts}
print("%7s %10s %10s %12s" % ("clients", "paper", "here", "processors"))
with open(sys.argv[1] + "/ha_e2.dat", "w") as file:
    for n, run in runs.items():
        paper = min(400 * n, 1570)
        print("%7d %10.0f %10.1f %12.2f" % (n, ha.k(paper), run.total(), run.cpus()))
        print(n, ha.k(paper), run.total(), file=file)
print()
for n, run in runs.items():
    paper = ha.k(min(400 * n, 1570))
    if abs(run.total() / paper - 1) > 0.05:
        ha.check(False, "%d clients: %.3f of the paper's rate" % (n, run.total() / paper))
ha.check(not ha.short, "the paper's rates within 5 %, scaled")
ha.end()
END
rc=$?
draw ha_e2 << END
set title "HA-E2: requests a second by clients, 1:$scale" noenhanced
set xlabel 'clients'; set ylabel 'requests a second'; set yrange [0:*]
plot '$out/ha_e2.dat' using 1:3 with linespoints lw 2 title "here", '' using 1:2 with lines dt 2 title "paper, scaled"
END
not_here "two-sided. That the curve levels off at the node's capacity is the model's; that ten processes share it
equally is not."
exit $rc
