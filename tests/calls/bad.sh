#!/bin/bash
# SPDX-License-Identifier: MIT
# Bad input and bad times: wrong settings, a hostile process, no descriptors, no memory. TAP.
# shellcheck disable=SC2086,SC2317	# commands to put before others are several words
# shellcheck source-path=SCRIPTDIR source=lib.sh
set -u
. "$(dirname "$0")/lib.sh"

many=${MANY:-$builddir/tests/calls/many}
library=${LIBSHUNT:-$builddir/.libs/libshunt.so}
need "$transfer" "$many" prlimit python3
need_shunt

# names_it FILE VARIABLE VALUE: one line of the file has both, and what is allowed.
names_it() {
	if [ "$(grep -F -- "$2" "$1" | grep -F -- "$3" | grep -c allowed)" != 1 ]; then
		echo "# $2=$3: instead of one line that names both and what is allowed:"
		sed 's/^/#   /' "$1"
		return 1
	fi
}

# refused VARIABLE VALUE: shunt run exits with 2 and says why.
refused() {
	env "$1=$2" $shunt_run true > "$work/bad.out" 2> "$work/bad.err"
	local rc=$?
	[ $rc = 2 ] || echo "# $1=$2: exit status $rc"
	names_it "$work/bad.err" "$1" "$2" && [ $rc = 2 ]
}

# preloaded VARIABLE VALUE: the library says it, asked to by SHUNT_LOG, and goes on with the default.
preloaded() {
	env SHUNT_LOG=warn "$1=$2" "LD_PRELOAD=$library" "$transfer" server -n 0 > "$work/bad.out" 2> "$work/bad.err" &
	local pid=$!
	children+=("$pid")
	while ! grep -q port "$work/bad.out"; do
		kill -0 $pid 2> /dev/null || break
		sleep 0.01
	done
	"$transfer" client "$(cut -d' ' -f2 "$work/bad.out")" -n 0 > /dev/null 2>&1
	wait $pid || return 1
	sed -i '/^transfer server/d' "$work/bad.err"
	[ "$(wc -l < "$work/bad.err")" = 1 ] || echo "# $1: more than one line"
	names_it "$work/bad.err" "$1" "$2"
}

settings() {
	local pair
	for pair in SHUNT_TUNE=spin_us=soon SHUNT_TUNE=spin_us=99999 SHUNT_TUNE=spin_us=-1 SHUNT_DEVICE=carrier-pigeon \
		SHUNT_LOG=loud SHUNT_ENABLE=perhaps SHUNT_TUNE=ring_min=1 SHUNT_TUNE=ring_max=1T \
		SHUNT_TUNE=flip=2G SHUNT_TUNE=rq=0 SHUNT_TUNE=seed=0x SHUNT_SOFT_MODEL=fast; do
		check "$pair: shunt run refuses" refused "${pair%%=*}" "${pair#*=}"
		check "$pair: the library uses the default" preloaded "${pair%%=*}" "${pair#*=}"
	done
}

# same_as_bare SERVER-LIMIT CLIENT-LIMIT: the transfer is what it is without Shunt and limits.
same_as_bare() {
	if pair "$work/shunted" "$1 $shunt_run" "$2 $shunt_run" -n 3M --chunk-max 64K -m epoll-lt --no-sendfile &&
		cmp "$work/shunted" "$work/bare"; then
		return 0
	fi
	cat "$work"/shunted*.err | head -6 | sed 's/^/# /'
	return 1
}

# AddressSanitizer maps 15 TiB before the program begins: no limit of the address space goes with it.
limits() {
	local limit spaces="--as=40000000 --as=100000000 --as=150000000 --as=300000000 --as=1100000000"
	! grep -q -- '-fsanitize=[a-z,]*address' "$top_builddir/Makefile" || spaces=
	pair "$work/bare" "" "" -n 3M --chunk-max 64K -m epoll-lt --no-sendfile || not_ok "bare transfer"
	for limit in --nofile=16 --nofile=20 --nofile=24 --nofile=32 --nofile=48 $spaces \
		--fsize=1000 --fsize=100000 --memlock=0; do
		check "$limit: both ends" same_as_bare "prlimit $limit" "prlimit $limit"
		check "$limit: the server" same_as_bare "prlimit $limit" ""
		check "$limit: the client" same_as_bare "" "prlimit $limit"
	done
}

descriptors_of() {
	find "/proc/$1/fd" -mindepth 1 | wc -l
}

# A server, clients before, during and after the attack; it serves all and keeps nothing.
hostile() {
	local in before after hits rc=0 n
	SHUNT_STATS=$work/hostile.stat.%p start_telling $shunt_run "$many" server 2> "$work/hostile.err"
	exec {in}<&-
	# the server ends with its last connection, so one stays
	exec {in}<> /dev/tcp/127.0.0.1/"$server_port"
	$shunt_run "$many" client "$server_port" 20 50 > "$work/hostile.out" || rc=1
	sleep 0.5
	before=$(descriptors_of "$server_pid")
	python3 "$here/hostile.py" 4 "$server_port" "$server_pid" > "$work/hits" &
	hits=$!
	children+=("$hits")
	for ((n = 0; n < 5; n++)); do
		$shunt_run "$many" client "$server_port" 20 500 >> "$work/hostile.out" || rc=1
	done
	wait $hits || rc=1
	$shunt_run "$many" client "$server_port" 20 50 >> "$work/hostile.out" || rc=1
	sleep 0.5
	if ! kill -0 "$server_pid" 2> /dev/null; then
		wait "$server_pid"
		echo "# the server ended with status $?: $(head -1 "$work/hostile.err")"
		return 1
	fi
	after=$(descriptors_of "$server_pid")
	exec {in}<&-
	wait "$server_pid" || rc=1
	read -r n _ < "$work/hits"
	echo "# sockets found and strikes: $(cat "$work/hits"); descriptors before and after: $before $after;" \
		"upgrades of the server: $(counter upgrades "$work"/hostile.stat.*)"
	[ "$(sort -u "$work/hostile.out" | tr '\n' ' ')" = "served 1000 served 10000 " ] || rc=1
	[ "$n" -gt 0 ] || { echo "# no socket @shunt/ was found"; rc=1; }
	[ "$after" -le $((before + 3)) ] || rc=1
	return $rc
}

settings
limits
check "a hostile process at the rendezvous changes nothing" hostile
plan
