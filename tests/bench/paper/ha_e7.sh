#!/bin/bash
# SPDX-License-Identifier: MIT
# Haechi, Figures 13 to 15: spike reservations, bursts beside a constant rate.
#
#	SCALE=400 PERIODS=10 DEPTH=8 ha_e7.sh	and the knobs of ha_common.sh
# shellcheck disable=SC2119
# shellcheck source-path=SCRIPTDIR source=ha_common.sh
set -u
DEPTH=${DEPTH:-8}
. "$(dirname "$0")/ha_common.sh"

heading "HA-E7 (Haechi, Figures 13 to 15): spike reservations, 285K and 80K" \
	"bursts: c1 to c3 miss; constant rate: they have more than 285K; the sum -12.9 % and -0.7 %; latencies much lower at a constant rate"
reserved=$(python3 -c "import ha; print(*[285000 // ha.SCALE] * 3, *[80000 // ha.SCALE] * 7, sep=',')")
rules=$(rules "$reserved")
total=$((1580000 / scale))
# The paper's engine has all tokens of a period at its start; ours has them in proportion to time.
ha ha_e7.burst --demand spike --total $total --rules "$rules" --server SHUNT_TUNE=qos_pace=0
ha ha_e7.paced --demand spike --total $total --rules "$rules"
# Latencies of a burst are those of what it keeps outstanding.
ha ha_e7.deep --demand spike --total $total --rules "$rules" --server SHUNT_TUNE=qos_pace=0 --depth 64
ha ha_e7.constant --demand spike --total $total --rules "$rules" --pattern constant
judge "$reserved" << 'END'
import ha, sys
reserved = [int(n) for n in sys.argv[2].split(",")]
names = ["burst", "paced", "constant"]
runs = burst, paced, constant = [ha.Run(sys.argv[1], "ha_e7." + name, reserved) for name in names]
ha.by_client(reserved, dict(zip(names, runs)))
ha.bars(sys.argv[1] + "/ha_e7.dat", {"reserved": reserved, **dict(zip(names, runs))})
keys = ["mean", "p99", "p99.9"]
print("%-22s" % "latency, ms" + "".join("%10s" % key for key in keys))
deep = ha.Run(sys.argv[1], "ha_e7.deep", reserved)
for name, run in [("burst", burst), ("paced", paced), ("burst of 64", deep), ("constant", constant)]:
    for who, clients in [("c1 to c3", run.clients[:3]), ("c4 to c10", run.clients[3:])]:
        print("%-22s" % (name + ", " + who) + "".join(
            "%10.1f" % (max(c["latency_us"][key] for c in clients) / 1000) for key in keys))
print("(the worst of these clients)\n")
ha.processors(runs)
parts = [sum(run.mean(i) for i in range(3)) / 3 / reserved[0] for run in runs]
ha.check(parts[0] < 1, "burst: c1 to c3 have %.3f of their reservation, which is a miss (paper: miss)" % parts[0])
print("       paced: they have %.3f of it" % parts[1])
least = min(min(row[:3]) for row in constant.rows()) / reserved[0]
ha.check(least >= 0.99, "constant: the least of c1 to c3 in a period is %.3f of the reservation (paper: more than 1)" % least)
small = min(min(row[3:]) for run in runs for row in run.rows()) / reserved[9]
ha.check(small >= 0.99, "the least of c4 to c10 is %.3f of the reservation" % small)
for name, run, paper in [("burst", burst, -12.9), ("paced", paced, -12.9), ("constant", constant, -0.7)]:
    print("       %s: the sum is %+.1f %% of the capacity (paper %+.1f %%)" % (name, 100 * (run.total() / ha.NODE - 1), paper))
ha.check(burst.total() < constant.total(), "the sum of bursts is the lower one")
worst = [max(c["latency_us"]["mean"] for c in run.clients[3:]) for run in (deep, constant)]
ha.check(worst[1] < worst[0], "the small clients' mean latency at a constant rate is %.2f of that of bursts of 64" % (worst[1] / worst[0]))
worst = [max(c["latency_us"]["p99.9"] for c in run.clients) for run in (deep, constant)]
ha.check(worst[1] < worst[0], "so is the largest p99.9: %.2f" % (worst[1] / worst[0]))
ha.end()
END
rc=$?
bars ha_e7 "HA-E7: completed each second, 1:$scale" "requests" "$out/ha_e7.dat"
exit $rc
