#!/bin/bash
# SPDX-License-Identifier: MIT
# Programs in what systemd units may confine them with (docs/SERVICES.md), without systemd: hardened.c does what it would do.
# A server under each option, with a client without it and with one that has it, too. Every request is answered, nobody
# dies, and connections are on the link; or they are on TCP, and a reason is told. TAP; what came of each is in comments.
# shellcheck disable=SC2086,SC2317	# commands to put before others are several words
# shellcheck source-path=SCRIPTDIR source=lib.sh
set -u
. "$(dirname "$0")/lib.sh"

many=${MANY:-$builddir/tests/calls/many}
hardened=${HARDENED:-$builddir/tests/calls/hardened}
need "$many" "$hardened" jq
need_shunt
chmod 755 "$work"
# LeakSanitizer would have to trace a process that has confined itself, and waits for that for ever.
export ASAN_OPTIONS=${ASAN_OPTIONS-}:detect_leaks=0

# As a unit's Environment= has it. (The command would look for itself in /proc.)
preload() {
	echo "env LD_PRELOAD=$builddir/.libs/libshunt.so ASAN_OPTIONS=${ASAN_OPTIONS-}:verify_asan_link_order=0"
}

# served OPTIONS-OF-SERVER OPTIONS-OF-CLIENT REQUESTS MILLISECONDS-TO-REACH-THE-LINK: by five connections. Sets $upgrades and $reasons.
served() {
	local in rc=0 run=$shunt_run
	[[ $1 != *no-proc* ]] || run=$(preload)
	rm -rf "$work/stats"
	mkdir -m 1777 "$work/stats"
	export SHUNT_STATS=$work/stats/%p
	start_telling "$hardened" $1 -- $run "$many" server 2> "$work/server.err"
	TEST_LINK=$4 "$hardened" $2 -- $run "$many" client "$server_port" 5 "$3" > "$work/served" 2> "$work/client.err" || rc=1
	exec {in}<&-
	wait "$server_pid" || rc=1
	grep -q '^served' "$work/served" || rc=1
	[ $rc = 0 ] || sed 's/^/# /' "$work/server.err" "$work/client.err"
	upgrades=$(counter upgrades "$work"/stats/*)
	reasons=$(jq -r '.reasons | keys[]' "$work"/stats/* 2> /dev/null | sort -u | paste -sd ';')
	return $rc
}

linked() { # OPTIONS OPTIONS
	SHUNT_TUNE=${SHUNT_TUNE-},claim_ms=60000 served "$1" "$2" 500 60000 && [ "$upgrades" -gt 0 ] && return
	echo "# $upgrades connections have come to the link: ${reasons:-no reason}"
	return 1
}

told() { # OPTIONS OPTIONS
	served "$1" "$2" 1500 0 || return
	echo "# ${1%%=/*}, ${2%%=/*}: $([ "$upgrades" -gt 0 ] && echo "on the link" || echo "on TCP: $reasons")"
	[ "$upgrades" -gt 0 ] || [ "$reasons" ]
}

# Where the machine does not allow an option, it is skipped.
both_ways() { # linked|told OPTIONS
	local said status=0
	said=$("$hardened" $2 -- "$many" 2>&1) || status=$?
	if [ $status = 77 ]; then
		skip "$2" "$said"
		return
	fi
	check "${2/=\/*/}, and a client without" "$1" "$2" nothing
	check "${2/=\/*/} at both ends" "$1" "$2" "$2"
}

# The calls of a unit's SystemCallFilter=, by number: @system-service without @privileged and @resources, which redis has.
members() { # GROUP
	local name
	systemd-analyze syscall-filter "$1" | sed -n 's/^ *\([@a-z_][a-z_0-9-]*\)$/\1/p' | tail -n +2 | while read -r name; do
		case $name in
		@*) members "$name" ;;
		*) echo "$name" ;;
		esac
	done
}

service_calls() {
	members @system-service | sort -u > "$work/all"
	{ members @privileged && members @resources; } | sort -u > "$work/refused"
	comm -23 "$work/all" "$work/refused" > "$work/names"
	${CC:-cc} -E -dM -include sys/syscall.h -x c /dev/null | awk '
		FNR == NR { allowed[$1]; next }
		$2 ~ /^__NR_/ && substr($2, 6) in allowed { print $3 }' "$work/names" - > "$work/calls"
	[ -s "$work/calls" ]
}

for option in nothing no-new-privileges mdwe write-xor-execute memlock=0 restrict-namespaces locked private-mounts private-devices; do
	both_ways linked "$option"
done
if command -v systemd-analyze > /dev/null && service_calls; then
	both_ways linked "calls=$work/calls"
else
	skip "a filter of system calls" "systemd-analyze is missing"
fi
# Trust decides where they are: the rule is in docs/dev/PROTOCOL.md, what it needs in docs/SERVICES.md.
for option in families=inet,inet6,unix families=inet,inet6,unix,netlink families=inet,inet6 no-capabilities private-users user=61184 \
	proc-invisible proc-pid "user=61184 families=inet,inet6,unix" "private-users families=inet,inet6,unix,netlink"; do
	both_ways told "$option"
done
# AddressSanitizer finds its settings in /proc.
if ! grep -q -- '-fsanitize=[a-z,]*address' "${top_builddir:-$builddir}/Makefile"; then
	both_ways told no-proc
	both_ways linked "no-proc user=61184"
fi
plan
