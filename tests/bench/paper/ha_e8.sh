#!/bin/bash
# SPDX-License-Identifier: MIT
# Haechi, Figures 16 to 19: the node's capacity falls, and rises again; 80 % reserved, the capacity estimated.
#
#	SCALE=400 LEFT=92 DOWN=5 UP=13 PERIODS=22 ha_e8.sh	and the knobs of ha_common.sh
# shellcheck disable=SC2119
# shellcheck source-path=SCRIPTDIR source=ha_common.sh
set -u
down=${DOWN:-5} up=${UP:-13} left=${LEFT:-92}
PERIODS=${PERIODS:-22}
. "$(dirname "$0")/ha_common.sh"

heading "HA-E8 (Haechi, Figures 16 to 19): congestion comes and goes" \
	"the estimate follows; Zipf: c1 misses for some periods, then has its reservation; nobody misses when it is underestimated"
for distribution in uniform zipf; do
	reserved=$(shares $distribution "$(percent 80)")
	ha ha_e8.$distribution --demand "$(plus "$reserved" "$(percent 20)")" \
		--rules "$(rules "$reserved" "auto $(kops "$node") 5%")" \
		--at "$down:$(sink_says "$left"); $shunt stat --json \$SERVER_PID > '$out/ha_e8.$distribution.down.json'" \
		--at "$up:$(sink_says 100); $shunt stat --json \$SERVER_PID > '$out/ha_e8.$distribution.up.json'"
done
judge "$down" "$up" "$left" << 'END'
import json, ha, sys
out, down, up, left = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
M = 8
for name in ["uniform", "zipf"]:
    reserved = ha.shares(name, ha.NODE * 80 // 100)
    run = ha.Run(out, "ha_e8." + name, reserved)
    if not run.node:
        ha.check(False, name + ": the node tells no periods")
        continue
    # Numbers of the node's periods in which the capacity changed.
    steps = [ha.find_qos(json.load(open("%s/ha_e8.%s.%s.json" % (out, name, which))))["period"] for which in ("down", "up")]
    rows = [row for row in reversed(run.node["periods"][1:]) if row["number"] > steps[0] - down]
    print("%s\n%6s %9s %9s %9s %9s %9s" % (name, "period", "capacity", "estimate", "sum", "c1", "c10"))
    after, outside, missed = [None, None], [0, 0], [0, 0, 0]
    with open(out + "/ha_e8.%s.dat" % name, "w") as file:
        for row in rows:
            taken = [t for _, t in row["classes"]]
            phase = (row["number"] > steps[0]) + (row["number"] > steps[1])
            real = ha.NODE * left // 100 if phase == 1 else ha.NODE
            worst = min(t / r for t, r in zip(taken, reserved))
            missed[phase] += worst < 0.99
            print("%6d %9d %9d %9d %9d %9d%s" % (row["number"], real, row["capacity"], sum(taken), taken[0], taken[9], "  missed: %.3f" % worst if worst < 0.99 else ""))
            print(row["number"], real, row["capacity"], sum(taken), taken[0], file=file)
            if phase and abs(row["capacity"] / real - 1) <= 0.03:
                after[phase - 1] = after[phase - 1] or row["number"] - steps[phase - 1]
            elif phase and after[phase - 1]:
                outside[phase - 1] += 1
    print()
    ha.processors([run])
    for which, periods, later in zip(["down", "up"], after, outside):
        ha.check(periods and periods <= M, "%s: the estimate is within 3 %% in period %s after the step %s (at most %d); outside in %d later ones" % (name, periods, which, M, later))
    print("       %s: periods in which somebody missed: %d before, %d congested, %d after" % (name, *missed))
    ha.check(not missed[2], "%s: nobody misses while the capacity is underestimated" % name)
    print()
ha.end()
END
rc=$?
for distribution in uniform zipf; do
	draw ha_e8.$distribution << END
set title "HA-E8: the capacity and its estimate, $distribution, 1:$scale" noenhanced
set xlabel 'period'; set ylabel 'requests'; set yrange [0:*]
plot '$out/ha_e8.$distribution.dat' using 1:2 with steps lw 2 title "capacity", '' using 1:3 with linespoints lw 2 title "estimate", \
	'' using 1:4 with linespoints title "completed", '' using 1:5 with linespoints title "c1"
END
done
exit $rc
