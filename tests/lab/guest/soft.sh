# SPDX-License-Identifier: MIT
# limit: 2400
# The soft device inside a guest, where time passes otherwise: the pair that checks each byte, bare and shunted.
# shellcheck shell=bash disable=SC2317 source-path=SCRIPTDIR source=lib.sh
. "${BASH_SOURCE%/*}/lib.sh"

need "$transfer"
need_shunt
export TEST_LIMIT=800

same() {
	TEST_LINK=600000 pair "$work/shunted" "$shunt_run" "$shunt_run" "$@" && cmp "$work/bare" "$work/shunted" >&2
}

for mode in blocking poll epoll-et; do
	check "$mode, bare" pair "$work/bare" "" "" -m $mode -n 2M
	check "$mode, shunted: the same" same -m $mode -n 2M
	check "$mode: upgraded" [ "$(counter upgrades "$work"/shunted.stat.*)" -gt 0 ]
	rm -f "$work"/*.stat.*
done
plan
