#!/bin/bash
# SPDX-License-Identifier: MIT
# A core dump of a shunted program has nothing of its link: no mapping that a peer reaches may be in it, or in a child.
set -u
. "${top_srcdir:?}/tests/lib.sh"
started=()
trap 'kill -KILL "${started[@]}" 2>/dev/null; scratch_remove' EXIT

# begin COMMAND…: in the background; its first line is in $said, its process id in $begun.
begin() {
	local in
	exec {in}< <(cd "$work" && ulimit -c unlimited && exec "$@" 2>>"$work/begun")
	begun=$!
	started+=("$begun")
	read -r said <&"$in"
}

load=$(realpath "$top_srcdir/tests/top_load.py")
shunt=$(realpath "$shunt")
begin "$shunt" run python3 "$load" server
server=$begun
begin "$shunt" run python3 "$load" client "$said"
client=$begun
until "$shunt" stat --json "$client" | jq -e '.[0].streams[0].tx.track == "link"' >/dev/null; do
	kill -0 "$client" || { problem "the client has ended: $(cat "$work/begun")"; finish; }
done

# Segments of both ends, here and there: each mapping has dc (not in a child) and dd (not in a dump).
for pid in "$client" "$server"; do
	judged=$(awk '/^[0-9a-f]+-[0-9a-f]+ / { ours = /memfd:shunt/ }
		ours && /^VmFlags:/ { mappings++; if (!/ dc / || !/ dd /) bare++ }
		END { print mappings + 0, bare + 0 }' "/proc/$pid/smaps")
	read -r mappings bare <<<"$judged"
	[ "$mappings" -ge 2 ] || problem "$pid has $mappings mappings of segments"
	[ "$bare" = 0 ] || problem "$pid: $bare of $mappings mappings would be in a dump or in a child"
done

# A segment has a GiB of arena; so has the dump of a program that has none of this.
read -r pattern </proc/sys/kernel/core_pattern
if [ "$pattern" != core ] || [ "$(ulimit -H -c)" != unlimited ]; then
	echo "cores are named $pattern"
	finish
fi
kill -ABRT "$client"
while kill -0 "$client" 2>/dev/null; do
	sleep 0.01
done
cores=("$work"/core*)
[ -s "${cores[0]}" ] || { problem "no core: $(ls "$work")"; finish; }
bytes=$(stat -c %s "${cores[0]}")
[ "$bytes" -lt $((512 << 20)) ] || problem "the core has $bytes bytes"
echo "the core has $bytes bytes"
finish
