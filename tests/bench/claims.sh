#!/bin/bash
# SPDX-License-Identifier: MIT
# Claims: how long a new connection takes to leave TCP, how many a second do, and what a refusal costs the program.
# Plain TCP and Shunt in turns in every round, with clients of the server's user and, as root, of another; medians.
# It asserts nothing. Any build can be measured: the program that measures is compiled here and knows nothing of Shunt.
#
#	ROUNDS=5 CROWD=1000 USERS=same SHUNT_BUILD=path/to/build claims.sh [--json]
# shellcheck disable=SC2059,SC2086	# formats are variables; commands to put before others are several words
# shellcheck source-path=SCRIPTDIR source=../calls/lib.sh
set -u
. "$(dirname "$0")/../calls/lib.sh"

rounds=${ROUNDS:-5} singles=${SINGLES:-20} crowd=${CROWD:-1000} brief=${BRIEF:-2000} patience=${PATIENCE:-30}
json=''
[ "${1:-}" != --json ] || json=1
claims=$work/claims
need_shunt
gcc -O2 -I"$here/../.." -o "$claims" "$here/../bench/claims.c" "$here/../calls/carried.c" || exit 99
chmod 711 "$work"

users=${USERS:-same two}
other="setpriv --reuid=1234 --regid=1234 --clear-groups"
if [ "$users" != same ] && { [ "$(id -u)" != 0 ] || ! $other $shunt_run true 2> /dev/null; }; then
	users=same
	echo "only root can be two users, and the other must be able to read the build: same user only" >&2
fi

# server [COMMAND...]: starts one; sets server_port.
server() {
	local in
	start_telling "$@" "$claims" server
	exec {in}<&-
}

end_server() {
	kill "$server_pid"
	wait "$server_pid" 2> /dev/null
}

client_of() {
	[ "$1" != two ] || echo "$other"
}

# claiming tcp|shunt same|two: the figures of one client.
claiming() {
	local wrap='' wait=0 words
	[ "$1" = tcp ] || wrap=$shunt_run wait=$patience
	server $wrap
	$(client_of "$2") $wrap "$claims" client "$server_port" "$singles" "$crowd" $wait > "$work/line"
	end_server
	read -ra words < "$work/line"
	set -- "$1" "$2" "${words[@]}"
	while [ $# -gt 2 ]; do
		echo "$4" >> "$work/r.$1.$2.$3"
		set -- "$1" "$2" "${@:5}"
	done
}

# refusing tcp|plain|refused same|two: neither end shunted; the client is, of a plain server; both are, and the server
# lets nobody in but its own user.
refusing() {
	local server='' client=''
	[ "$1" = tcp ] || client=$shunt_run
	[ "$1" != refused ] || server="env SHUNT_TRUST=user $shunt_run"
	server $server
	$(client_of "$2") $client "$claims" brief "$server_port" "$brief" >> "$work/r.$1.$2.brief"
	end_server
}

for ((round = 1; round <= rounds; round++)); do
	for who in $users; do
		echo "round $round of $rounds: $who" >&2
		for kind in tcp shunt; do
			claiming $kind $who
		done
	done
	[ "$users" = same ] || for kind in tcp plain refused; do
		refusing $kind two
	done
done

# m KIND USERS FIGURE
m() {
	median < "$work/r.$1.$2.$3"
}

rate() {
	awk -v n="$crowd" -v t="$1" 'BEGIN { printf "%.0f", t ? n / t * 1e6 : 0 }'
}

row="%-6s %10s %10s %10s %10s %10s %10s %10s %10s %10s\n"

table() {
	local who kind
	printf "$row" users "TCP setup" setup first next "TCP stall" stall "TCP open" open linked
	for who in $users; do
		printf "$row" $who "$(m tcp $who setup)" "$(m shunt $who setup)" "$(m shunt $who first)" \
			"$(m shunt $who single)" "$(m tcp $who stall)" "$(m shunt $who stall)" \
			"$(m tcp $who open)" "$(m shunt $who open)" "$(m shunt $who crowd)"
	done
	echo "us. setup: connect() to accept(); first, next: accept() to the link, without and with one between the two"
	echo "processes; stall: the longest question until then; open, linked: $crowd at once, until the last is accepted,"
	echo "and linked. In that is the asking, which takes $(m shunt same ask) alone."
	for who in $users; do
		echo "$who: $(rate "$(m shunt $who crowd)") claims a second"
	done
	[ "$users" != same ] || return
	echo
	printf '%-28s %10s %10s\n' "connect, ask, close" us "to TCP"
	for kind in tcp plain refused; do
		printf '%-28s %10s %10s\n' $kind "$(m $kind two brief)" "$(ratio "$(m $kind two brief)" "$(m tcp two brief)")"
	done
	echo "plain: a shunted client of a plain server; refused: of one with SHUNT_TRUST=user and another user"
}

objects() {
	local file kind who name separator=''
	printf '['
	for file in "$work"/r.*; do
		IFS=. read -r kind who name <<< "${file##*/r.}"
		printf '%s\n{"kind": "%s", "users": "%s", "figure": "%s", "us": %s}' "$separator" $kind $who $name \
			"$(median < "$file")"
		separator=,
	done
	printf '\n]\n'
}

if [ "$json" ]; then objects; else table; fi
