#!/bin/bash
# SPDX-License-Identifier: MIT
# The simulator, and the fuzzers that have a world, while another process has every name of the product which they could
# want and takes all who come, and the machine has the addresses of other hosts: they meet none of it. TAP.
set -u
[ "${BESIDE-}" = here ] || BESIDE=here exec "$(dirname "$0")/../alone.sh" "$0"
ip address add 192.0.2.1/32 dev lo 2> /dev/null && ip address add 192.0.2.2/32 dev lo	# TEST-NET-1, as remote.c has it
build=${top_builddir:-.}
here=$(cd "$(dirname "$0")" && pwd)
n=0

# beside NAME COMMAND...
beside() {
	local name=$1 said
	shift
	n=$((n + 1))
	if said=$(python3 "$here/taken.py" "$@" 2>&1); then
		echo "ok $n - $name"
	else
		tail -n 20 <<< "$said" | sed 's/^/# /'
		echo "not ok $n - $name"
		failed=1
	fi
}

beside "the simulator" "$build/tests/sim/sim" --here --seeds "${SEEDS:-500}"
for name in remote link peer; do
	mapfile -d '' inputs < <(find "$here/../fuzz/corpus/$name" -type f -print0 | sort -z | head -z -n 100)
	beside "fuzz/$name, ${#inputs[@]} inputs" "$build/tests/fuzz/$name" "${inputs[@]}"
done
echo "1..$n"
[ -z "${failed-}" ]
