#!/bin/bash
# SPDX-License-Identifier: MIT
# What so many births leave behind: memory and descriptors of both ends behind the first thousand connections, behind all,
# and when nothing rests any more. Fails where the last is not the first again, or more rests than may.
#
#	born_left.sh		in the build tree, like all of tests/bench
#	COUNT=1000000	connections
set -u
# shellcheck source-path=SCRIPTDIR source=../scratch.sh
. "$(dirname "$0")/../scratch.sh"
builddir=${top_builddir:-.}
born=$builddir/tests/bench/born
shunt=$builddir/tools/shunt
export SHUNT_BORN=auto
: "${COUNT:=1000000}"
scratch born_left ''

SHUNT_STATS=$scratch/server "$shunt" run "$born" serve "$COUNT" left > "$scratch/serve" &
server=$!
until read -r _ port 2> /dev/null < "$scratch/serve" && [ -n "$port" ]; do
	sleep 0.1
done
SHUNT_STATS=$scratch/client "$shunt" run "$born" ask "$port" "$COUNT" left > "$scratch/ask" || exit 1
wait "$server" || exit 1
sed -i 1d "$scratch/serve"
failed=0
for end in ask serve; do
	awk -v end="$end" -v most=1024 '
		NR <= 3 { kib[NR] = $1; fds[NR] = $2 }
		END {
			printf "%-5s KiB %d, %d, %d; descriptors %d, %d, %d\n", end, kib[1], kib[2], kib[3], fds[1], fds[2], fds[3]
			exit NR < 3 || kib[3] > kib[1] + most || fds[2] > fds[1] + 256 || fds[3] > fds[1] + 2
		}' "$scratch/$end" || failed=1
done
grep -ho '"births_[a-z]*": *[0-9]*' "$scratch/client" "$scratch/server"
exit $failed
