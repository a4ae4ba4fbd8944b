#!/bin/bash
# SPDX-License-Identifier: MIT
# /run/shunt, where each user has a directory: whoever sits on the abstract names there keeps no connection on TCP.
# hostile.sh in a mount namespace of its own. user_dirs.sh [NAME...]: other attacks. Needs root, to be three users. TAP.
set -u
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
if [ "${1-}" = --inside ]; then
	shift
	mount -t tmpfs -o mode=755 none /run && mkdir -m 1777 /run/shunt || exit 99
	[ $# -gt 0 ] || set -- squat-silent squat-plays-along squat-owner
	USER_DIRS=yes exec "$here/hostile.sh" "$@"
fi
if [ "$(id -u)" != 0 ] || ! unshare -m true 2> /dev/null; then
	echo "1..0 # SKIP only root can mount a /run"
	exit 77
fi
exec unshare -m "${BASH_SOURCE[0]}" --inside "$@"
