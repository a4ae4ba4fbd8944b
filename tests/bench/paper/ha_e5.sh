#!/bin/bash
# SPDX-License-Identifier: MIT
# Haechi, Figures 10 and 11: two clients that use half of what they have reserved.
#
#	SCALE=400 PERIODS=8 ha_e5.sh	and the knobs of ha_common.sh
# shellcheck disable=SC2119
# shellcheck source-path=SCRIPTDIR source=ha_common.sh
set -u
PERIODS=${PERIODS:-8}
. "$(dirname "$0")/ha_common.sh"

heading "HA-E5 (Haechi, Figures 10 and 11): c1 and c2 demand less than they reserve" \
	"Basic Haechi wastes the rest; with conversion c3 to c10 have it, and the sum is comparable to bare (no numbers)"
for distribution in uniform zipf; do
	reserved=$(shares $distribution "$(percent 90)")
	demand=$(plus "$reserved" "$(percent 10)")
	half=$((${reserved%%,*} / 2))
	demand=$half,$half,$(cut -d, -f3- <<< "$demand")
	rules=$(rules "$reserved")
	ha ha_e5.$distribution.bare --demand "$demand"
	ha ha_e5.$distribution.basic --demand "$demand" --rules "$rules" --server SHUNT_TUNE=qos_convert=0
	ha ha_e5.$distribution.haechi --demand "$demand" --rules "$rules"
done
judge << 'END'
import ha, sys
with open(sys.argv[1] + "/ha_e5.dat", "w") as file:
    print("distribution bare basic haechi", file=file)
    for name in ["uniform", "zipf"]:
        reserved = ha.shares(name, ha.NODE * 90 // 100)
        bare, basic, haechi = [ha.Run(sys.argv[1], "ha_e5.%s.%s" % (name, kind), reserved) for kind in ["bare", "basic", "haechi"]]
        print("%s; c1 and c2 demand %d each" % (name, bare.clients[0]["demand"]))
        ha.by_client(reserved, {"bare": bare, "basic": basic, "haechi": haechi})
        print(name, bare.total(), basic.total(), haechi.total(), file=file)
        ha.processors([bare, basic, haechi])
        part, wasted = haechi.total() / bare.total(), basic.total() / bare.total()
        ha.check(part >= 0.97, "%s: the sum with conversion is %.3f of bare (>= 0.97)" % (name, part))
        ha.check(haechi.total() > basic.total(), "%s: basic is %.3f of bare, which is less" % (name, wasted))
        least = min(haechi.least(i) / reserved[i] for i in range(2, 10))
        ha.check(least >= 0.99, "%s: the least of c3 to c10 in a period is %.3f of the reservation (>= 0.99)" % (name, least))
        print()
ha.end()
END
rc=$?
bars ha_e5 "HA-E5: completed each second by all, 1:$scale" "requests" "$out/ha_e5.dat"
exit $rc
