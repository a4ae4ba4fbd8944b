# SPDX-License-Identifier: MIT
# Do the usual test programs work, without us?
# shellcheck shell=bash source-path=SCRIPTDIR source=lib.sh
. "${BASH_SOURCE%/*}/lib.sh"

sent() {
	cat /sys/class/net/v0/statistics/tx_packets
}

check "ibv_rc_pingpong, one device" pingpong "" rxe0 rxe0
before=$(sent)
check "ibv_rc_pingpong, between two devices" pingpong "" rxe0 rxe1
check "which went over the cable" [ $(($(sent) - before)) -gt 1000 ]
check "ibv_rc_pingpong with events, messages of 16 KiB" pingpong "" rxe0 rxe1 -e -s 16384 -n 200
before=$(sent)
check "rping" rping_pair ""
check "which went over the cable" [ $(($(sent) - before)) -gt 300 ]
check "what was sent is what came" [ "$(cat /sys/class/infiniband/rxe0/ports/1/hw_counters/send_err)" = 0 ]
plan
