#!/bin/bash
# SPDX-License-Identifier: MIT
# Haechi, Figure 8: demands and patterns without tokens.
#
#	SCALE=400 PERIODS=6 DEPTH=8 ha_e3.sh	and the knobs of ha_common.sh
# shellcheck disable=SC2119
# shellcheck source-path=SCRIPTDIR source=ha_common.sh
set -u
PERIODS=${PERIODS:-6} DEPTH=${DEPTH:-8}
. "$(dirname "$0")/ha_common.sh"

heading "HA-E3 (Haechi, Figure 8): demands and patterns, bare" \
	"1580K demanded. Uniform burst: 1570K; spike burst: 278K of 340K for the large, 1380K; spike constant: 332K, 1564K"
demand=$((1580000 / scale))
ha ha_e3.uniform --demand uniform --total $demand
ha ha_e3.burst --demand spike --total $demand
ha ha_e3.constant --demand spike --total $demand --pattern constant
judge << 'END'
import ha, sys
names = ["uniform", "burst", "constant"]
runs = [ha.Run(sys.argv[1], "ha_e3." + n) for n in names]
large = [sum(r.mean(i) for i in range(3)) / 3 for r in runs]
small = [sum(r.mean(i) for i in range(3, 10)) / 7 for r in runs]
paper = [(157, 157, 1570), (278, 80, 1380), (332, 80, 1564)]
print("%-16s | %29s | %29s" % ("", "c1 to c3, each", "all"))
print("%-16s | %9s %9s %9s | %9s %9s %9s" % ("", "demand", "paper", "here", "demand", "paper", "here"))
for n, r, l, p in zip(["uniform burst", "spike burst", "spike constant"], runs, large, paper):
    print("%-16s | %9d %9.0f %9.1f | %9d %9.0f %9.1f" % (
        n, r.clients[0]["demand"], ha.k(p[0]), l, sum(c["demand"] for c in r.clients), ha.k(p[2]), r.total()))
print()
ha.bars(sys.argv[1] + "/ha_e3.dat", dict(zip(names, runs)))
ha.processors(runs)
uniform, burst, constant = runs
ha.check(uniform.total() >= 0.98 * ha.NODE, "uniform burst: %.3f of the node's capacity" % (uniform.total() / ha.NODE))
ha.check(burst.total() < 0.95 * uniform.total(), "spike burst: less, %.3f of uniform (paper 0.879)" % (burst.total() / uniform.total()))
ha.check(large[1] < 0.9 * burst.clients[0]["demand"], "spike burst: the large have %.3f of their demand (paper 0.818)" % (large[1] / burst.clients[0]["demand"]))
ha.check(min(small[1:]) >= 0.98 * burst.clients[9]["demand"], "the small have their demand")
ha.check(large[2] > 0.96 * constant.clients[0]["demand"], "spike constant: the large have %.3f of it (paper 0.976)" % (large[2] / constant.clients[0]["demand"]))
ha.check(constant.total() >= 0.98 * uniform.total(), "spike constant: the sum is %.3f of uniform (paper 0.996)" % (constant.total() / uniform.total()))
ha.end()
END
rc=$?
bars ha_e3 "HA-E3: completed each second, 1:$scale" "requests" "$out/ha_e3.dat"
exit $rc
