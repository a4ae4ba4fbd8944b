#!/bin/bash
# SPDX-License-Identifier: MIT
# /run/shunt, where each user has a directory: whoever sits on the abstract names there keeps no connection on TCP.
# A user who makes another's directory there first gains no more than a squatter without any. hostile.sh in a mount namespace
# of its own. user_dirs.sh [NAME...]: other attacks. Needs root, to be three users. TAP.
set -u
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
if [ "${1-}" = --inside ]; then
	shift
	mount -t tmpfs -o mode=755 none /run && mkdir -m 1777 /run/shunt || exit 99
	given=("$@")
	[ $# -gt 0 ] || given=(squat-silent squat-plays-along squat-owner)
	said=$(USER_DIRS=yes "$here/hostile.sh" "${given[@]}")
	status=$?
	if [ $status != 0 ] || [ $# != 0 ] || [[ $said == *"# SKIP"* ]]; then
		echo "$said"
		exit $status
	fi
	grep -v '^1\.\.' <<< "$said"
	count=$(grep -cE '^(not )?ok' <<< "$said")
	# The directory of the server's user is another's: the abstract names count, and nobody squats on them; then somebody does.
	rm -rf /run/shunt/64001 && mkdir -m 755 /run/shunt/64001 && chown 64003:64003 /run/shunt/64001 || exit 99
	said=$("$here/hostile.sh" claim-wrong squat-plays-along)
	status=$?
	while read -r line; do
		[[ $line =~ ^((not )?ok)\ ([0-9]+)\ -\ (.*) ]] && line="${BASH_REMATCH[1]} $((count + BASH_REMATCH[3])) - another's directory: ${BASH_REMATCH[4]}"
		[[ $line =~ ^1\.\.([0-9]+) ]] && line=1..$((count + BASH_REMATCH[1]))
		echo "$line"
	done <<< "$said"
	[ -z "$(ls -A /run/shunt/64001)" ] || { echo "# something is in it"; exit 1; }
	exit $status
fi
if [ "$(id -u)" != 0 ] || ! unshare -m true 2> /dev/null; then
	echo "1..0 # SKIP only root can mount a /run"
	exit 77
fi
exec unshare -m "${BASH_SOURCE[0]}" --inside "$@"
