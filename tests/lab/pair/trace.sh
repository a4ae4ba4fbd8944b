# SPDX-License-Identifier: MIT
# limit: 3600
# SHUNT_TRACE over RDMA between two machines, whose clocks are apart: the times of followed sends are right within the error
# that each record bears. A program measures the two clocks by itself, and its own sends (XR-26, XR-30).
# shellcheck shell=bash disable=SC2034,SC2086,SC2154,SC2317 source-path=SCRIPTDIR source=lib.sh
. "${BASH_SOURCE%/*}/lib.sh"

shunt=$builddir/tools/shunt
clocks=${BASH_SOURCE%/*}/clocks.py
export SHUNT_DEVICE=verbs SHUNT_TUNE=${SHUNT_TUNE-},claim_ms=60000,slow_ms=0,dead_ms=10000 SHUNT_LOG=warn
need python3 jq rdma
need_shunt
knows_device verbs || { echo "1..0 # SKIP this build does not know SHUNT_DEVICE=verbs" && exit 77; }

# has_read COUNT: sends of the other machine.
has_read() {
	"$shunt" adm "$server" trace >"$work/trace.new" 2>/dev/null && mv "$work/trace.new" "$work/trace" &&
		jq -e ".counts.read >= $1" "$work/trace" >/dev/null
}

has_stages() {
	"$shunt" trace --json "$server" | jq -e '.stages | .credit.count >= 30 and .program.count >= 30' >/dev/null
}

none_refused() {
	jq -e '.counts.refused == 0' "$work/trace" >/dev/null
}

if [ "$lab_self" = one ]; then
	python3 "$clocks" tell $port &
	children+=($!)
	$shunt_run python3 "$clocks" serve $((port + 1)) "$work/stamps" 2>"$work/err" &
	server=$!
	children+=("$server")
	within somebody_listens $port
	within somebody_listens $((port + 1))
fi
meet listens
if [ "$lab_self" = two ]; then
	SHUNT_TRACE=0 $shunt_run python3 "$clocks" ask $theirs $((port + 1)) 2>"$work/err" &
	children+=($!)
	# Machine one's clock is ahead of ours by the first.
	tell "$(python3 "$clocks" compare $theirs $port)"
	meet over
else
	hear
	read -r ahead error <<<"$heard"
	check "sends are followed over RDMA" within has_read 40
	check "each was called when its program says" python3 "$clocks" check "$work/stamps" "$work/trace" "$ahead" "$error"
	python3 "$clocks" check "$work/stamps" "$work/trace" "$ahead" "$error" | sed 's/^/# /'
	check "no record was refused" none_refused
	check "shunt trace has them" has_stages
	"$shunt" trace "$server" | sed 's/^/# /'
	meet over
fi
plan
