#!/bin/bash
# SPDX-License-Identifier: MIT
# Haechi, Figure 6: what one client alone can have.
#
#	SCALE=400 PERIODS=5 ha_e1.sh	and the knobs of ha_common.sh
# shellcheck disable=SC2119
# shellcheck source-path=SCRIPTDIR source=ha_common.sh
set -u
PERIODS=${PERIODS:-5}
. "$(dirname "$0")/ha_common.sh"

heading "HA-E1 (Haechi, Figure 6): one client alone" "one-sided about 400 KIOPS, two-sided about 327"
ha ha_e1 --clients 1 --demand "$((3 * own))"
judge << 'END'
import ha, sys
run = ha.Run(sys.argv[1], "ha_e1")
print("%-12s %10s %10s %10s" % ("", "paper", "scaled", "here"))
print("%-12s %10s %10.0f %10.1f" % ("one-sided", "400K", ha.k(400), run.total()))
print("%-12s %10s %10.0f %10s" % ("two-sided", "327K", ha.k(327), "-"))
print()
ha.processors([run])
ha.check(abs(run.total() / ha.k(400) - 1) < 0.05, "a client alone has its own rate within 5 %%: %.3f of it" % (run.total() / ha.k(400)))
ha.end()
END
rc=$?
not_here "two-sided. Shunt writes into its peer's memory in any case, and a receiver that has to be asked first is none of
its modes. The rate itself is set by the model (block): the run shows that the engine reaches it."
exit $rc
