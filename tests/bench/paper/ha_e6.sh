#!/bin/bash
# SPDX-License-Identifier: MIT
# Haechi, Figure 12: 50 to 90 % of the node reserved.
#
#	SCALE=400 PERIODS=5 PERCENTS="50 60 70 80 90" ha_e6.sh	and the knobs of ha_common.sh
# shellcheck disable=SC2119
# shellcheck source-path=SCRIPTDIR source=ha_common.sh
set -u
PERIODS=${PERIODS:-5}
. "$(dirname "$0")/ha_common.sh"
percents=${PERCENTS:-50 60 70 80 90}

heading "HA-E6 (Haechi, Figure 12): 50 to 90 % reserved" \
	"all have their reservation; the sum is 1570K for uniform, and drops for Zipf where much is reserved (no numbers)"
for distribution in uniform zipf; do
	for part in $percents; do
		reserved=$(shares $distribution "$(percent "$part")")
		demand=$(plus "$reserved" "$(percent $((100 - part)))")
		ha "ha_e6.$distribution.$part" --demand "$demand" --rules "$(rules "$reserved")"
	done
done
judge "$percents" << 'END'
import ha, sys
print("%9s | %21s | %21s" % ("", "uniform", "zipf"))
print("%9s | %10s %10s | %10s %10s" % ("reserved", "sum", "worst", "sum", "worst"))
all_runs, bad = [], []
with open(sys.argv[1] + "/ha_e6.dat", "w") as file:
    for part in [int(p) for p in sys.argv[2].split()]:
        runs = [ha.Run(sys.argv[1], "ha_e6.%s.%d" % (name, part), ha.shares(name, ha.NODE * part // 100)) for name in ["uniform", "zipf"]]
        print("%8d%% | %10.1f %10.3f | %10.1f %10.3f" % (part, runs[0].total(), runs[0].worst(), runs[1].total(), runs[1].worst()))
        print(part, runs[0].total(), runs[1].total(), file=file)
        bad += ["%d %% %s" % (part, name) for run, name in zip(runs, ["uniform", "zipf"]) if run.worst() < 0.99]
        all_runs += runs
print("\nworst: the smallest part of its reservation that a client had in a period\n")
ha.processors(all_runs)
ha.check(not bad, "all reservations met (>= 0.99)" if not bad else "reservations missed: " + ", ".join(bad))
ha.check(all(run.total() >= 0.98 * ha.NODE for run in all_runs[::2]), "uniform: the sum stays within 2 % of the capacity")
ha.end()
END
rc=$?
draw ha_e6 << END
set title "HA-E6: requests a second by what is reserved, 1:$scale" noenhanced
set xlabel '% reserved'; set ylabel 'requests a second'; set yrange [0:*]
plot '$out/ha_e6.dat' using 1:2 with linespoints lw 2 title "uniform", '' using 1:3 with linespoints lw 2 title "Zipf"
END
exit $rc
