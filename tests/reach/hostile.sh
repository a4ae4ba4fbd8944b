#!/bin/bash
# SPDX-License-Identifier: MIT
# Users who mean no good, beside programs of two others: hostile.py. `make check-all` runs one attack of each kind;
# ALL=1 hostile.sh runs all of them one after another, and compares times (half an hour); hostile.sh NAME... some, with ALL=1 in
# that way. Needs root, to be three users. TAP.
set -u
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source-path=SCRIPTDIR source=../calls/where.sh
. "$here/../calls/where.sh"
# shellcheck source-path=SCRIPTDIR source=../scratch.sh
. "$here/../scratch.sh"

leave_out() {
	echo "1..0 # SKIP $1"
	exit 77
}

[ "$(id -u)" = 0 ] || leave_out "only root can be three users"
other=(setpriv --reuid=64003 --regid=64003 --clear-groups)
for python in /usr/bin/python3 python3 ""; do
	"${other[@]}" "$python" -c "import os; os.eventfd" 2> /dev/null && break
done
[ "$python" ] || leave_out "another user has no python3 that knows eventfd()"
# shellcheck disable=SC2086	# several words
if ! "${other[@]}" test -r "$here/attacks.py" || ! "${other[@]}" $shunt_run true 2> /dev/null; then
	leave_out "another user cannot read this tree"
fi

scratch hostile
chmod 711 "$scratch"
if [ "${ALL:-}" ]; then
	set -- --whole "$@"
elif [ $# -eq 0 ]; then
	set -- --quick
fi
# Doors in SHUNT_DIR are for addresses that are no loopback addresses. A network of our own can have one.
address=10.99.0.1
if [ "${ALONE-}" = yes ]; then
	ip address replace "$address/32" dev lo 2> /dev/null && export ADDRESS=$address
fi
PYTHON=$python BUILD=$builddir SHUNT=$shunt_run "$python" "$here/hostile.py" --keep "$scratch" "$@"
