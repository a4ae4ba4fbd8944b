#!/bin/bash
# SPDX-License-Identifier: MIT
# What so many births leave behind: memory and descriptors of both ends behind the first thousand connections, behind all,
# and when nothing rests any more. Fails where the last is not the first again, or more rests than may. The memory of 256
# spares (2 MiB) is kept for the next ones.
#
#	born_left.sh		in the build tree, like all of tests/bench
#	COUNT=1000000	connections
set -u
# shellcheck source-path=SCRIPTDIR source=../scratch.sh
. "$(dirname "$0")/../scratch.sh"
builddir=${top_builddir:-.}
born=$builddir/tests/bench/born
shunt=$builddir/tools/shunt
export SHUNT_TUNE=${SHUNT_TUNE-},born=auto LEFT=1
: "${COUNT:=1000000}"
scratch born_left ''

SHUNT_STATS=$scratch/server "$shunt" run "$born" serve "$COUNT" > "$scratch/serve" &
server=$!
until read -r _ port 2> /dev/null < "$scratch/serve" && [ -n "$port" ]; do
	sleep 0.1
done
SHUNT_STATS=$scratch/client "$shunt" run "$born" ask "$port" "$COUNT" > "$scratch/ask" || exit 1
wait "$server" || exit 1
sed -i 1d "$scratch/serve"
failed=0
for end in ask serve; do
	awk -v end="$end" -v most=2048 '
		NR <= 3 { all[NR] = $1; own[NR] = $2; fds[NR] = $3 }
		END {
			printf "%-5s KiB %d, %d, %d; not shared %d, %d, %d; descriptors %d, %d, %d\n", end, all[1], all[2], all[3],
			       own[1], own[2], own[3], fds[1], fds[2], fds[3]
			exit NR < 3 || own[3] > own[1] + most || fds[2] > fds[1] + 256 || fds[3] > fds[1] + 2
		}' "$scratch/$end" || failed=1
done
grep -ho '"births_[a-z]*": *[0-9]*' "$scratch/client" "$scratch/server"
exit $failed
