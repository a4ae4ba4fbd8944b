#!/bin/bash
# SPDX-License-Identifier: MIT
# Haechi, Figure 9: 90 % of the node reserved, bare and with tokens.
#
#	SCALE=400 PERIODS=10 ha_e4.sh	and the knobs of ha_common.sh
# shellcheck disable=SC2119
# shellcheck source-path=SCRIPTDIR source=ha_common.sh
set -u
. "$(dirname "$0")/ha_common.sh"

heading "HA-E4 (Haechi, Figure 9): 90 % reserved" \
	"Zipf, bare: c1 and c2 have 4742K of 7080K in 30 s (0.67); with tokens all have their reservation, at less than 0.1 % of the rate"
for distribution in uniform zipf; do
	reserved=$(shares $distribution "$(percent 90)")
	demand=$(plus "$reserved" "$(percent 10)")	# the reservation and the initial pool
	ha ha_e4.$distribution.bare --demand "$demand"
	ha ha_e4.$distribution.tokens --demand "$demand" --rules "$(rules "$reserved")"
done
judge << 'END'
import ha, sys
for name in ["uniform", "zipf"]:
    reserved = ha.shares(name, ha.NODE * 90 // 100)
    bare, tokens = [ha.Run(sys.argv[1], "ha_e4.%s.%s" % (name, kind), reserved) for kind in ["bare", "tokens"]]
    print(name)
    ha.by_client(reserved, {"bare": bare, "tokens": tokens})
    ha.bars(sys.argv[1] + "/ha_e4.%s.dat" % name, {"reserved": reserved, "tokens": tokens, "bare": bare})
    ha.processors([bare, tokens])
    if name == "zipf":
        parts = [bare.mean(i) / reserved[i] for i in (0, 1)]
        ha.check(max(parts) < 0.75, "zipf, bare: the two largest have %.2f and %.2f of their reservation (paper 0.67)" % tuple(parts))
    ha.check(tokens.worst() >= 0.99, "%s, tokens: the least of a client in a period is %.3f of its reservation (>= 0.99)" % (name, tokens.worst()))
    part = tokens.total() / bare.total()
    ha.check(part >= 0.99, "%s: the sum with tokens is %.3f of bare (>= 0.99; paper 0.999)" % (name, part))
    print()
ha.end()
END
rc=$?
for distribution in uniform zipf; do
	bars ha_e4.$distribution "HA-E4: completed each second, $distribution, 1:$scale" "requests" "$out/ha_e4.$distribution.dat"
done
exit $rc
