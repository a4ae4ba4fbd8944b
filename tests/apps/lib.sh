# SPDX-License-Identifier: MIT
# shellcheck shell=bash disable=SC2034,SC2086
# For the scripts of real programs: one function drives a program, and `matrix` runs it in four configurations:
# bare, both ends shunted, only the server, only the client. Sourced. What a script may use:
#
#	$server, $client	to be put before the commands of either end ("" or "shunt run")
#	$dir			scratch folder of this configuration
#	start NAME COMMAND...	a server, in the background; sets $pid; its output is in $dir/NAME.out
#	up PORT			waits until somebody listens there
#	try WHAT COMMAND...	one check: the command must succeed
#	same WHAT COMMAND...	... and print what it printed bare
#	fetch OPTION...		curl; file URL: of the large file, several times
#	load NAME CONNECTIONS URL OPTION...	wrk for a second, which must not see an error
#	cut_off ...		a statement of a database that is ended by another client
#	marks PID, left PID	descriptors the program has before its clients come, and when they have gone
#	stop PID [SIGNAL]	ends a server; it must end as it does bare
#	give_root_up		both ends run as nobody: for servers whose workers would, while a link is between processes of
#				one user
#	endure ROUND		instead of all that, for $ENDURE seconds: ROUND NUMBER again and again
#
# CONFIGURATIONS="bare both" runs only these. KEEP=1 keeps the scratch folder. SHUNT_* variables are taken over.

# The kernel's own count of what went over TCP needs a network of our own; ports are free there, too.
[ "${APPS_ALONE:-}" ] || APPS_ALONE=asked exec "$(dirname "${BASH_SOURCE[0]}")/../alone.sh" bash "$0" "$@"

# From anywhere: the usual build folder, where nothing else is said.
[ -x tools/shunt ] || [ "${top_builddir:-}" ] || top_builddir=$(cd "$(dirname "${BASH_SOURCE[0]}")/../../build" && pwd)
# shellcheck source=tests/calls/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/../calls/lib.sh"
apps=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
program=$(basename "$0" .sh)
configurations=${CONFIGURATIONS:-bare both server client}
patience=${PATIENCE:-300}	# seconds until a check is taken to hang
version=
why=		# why the share may be low, in the script's words
passed=()
chmod 755 "$work"
# Names of the host are looked up in files, and no proxy is asked.
unset http_proxy https_proxy HTTP_PROXY HTTPS_PROXY ALL_PROXY no_proxy
export LC_ALL=C.UTF-8 LANG=C.UTF-8

# requires COMMAND...: without them the program is skipped, and said to be.
requires() {
	local f
	for f in "$@"; do
		PATH=$PATH:/usr/sbin:/sbin command -v "$f" > /dev/null && continue
		row "-" "skipped: $f is not installed" "-"
		echo "1..0 # SKIP $f is not installed"
		exit 77
	done
	PATH=$PATH:/usr/sbin:/sbin
}

# row CONFIGURATIONS SHARE WHY: for the table.
row() {
	[ "${APPS_ROWS:-}" ] || return 0
	printf '| %s | %s | %s | %s | %s |\n' "$program" "${version:--}" "$1" "$2" "$3" > "$APPS_ROWS/$program"
}

# Bytes that this network's TCP has carried. The kernel counts packets with their headers.
tcp_bytes() {
	cat /proc/net/netstat /proc/net/snmp /proc/net/snmp6 | awk '
		/^(IpExt|Tcp):/ { if ($1 in names) { split(names[$1], n); for (i = 2; i <= NF; i++) v[$1 n[i]] = $i } names[$1] = $0 }
		/^Ip6Out(Octets|Requests)/ { v[$1] = $2 }
		END { printf "%.0f\n", v["IpExt:OutOctets"] + v["Ip6OutOctets"] - 52 * v["Tcp:OutSegs"] - 20 * v["Ip6OutRequests"] }'
}

# --- servers ---

start() { # NAME COMMAND...
	local name=$1
	shift
	(cd "$dir" && exec "$@") > "$dir/$name.out" 2>&1 < /dev/null &
	pid=$!
	names[pid]=$name
	children+=("$pid")
}
names=()

up() { # PORT
	local i
	for ((i = 0; i < 6000; i++)); do
		grep -q ":$(printf %04X "$1") 0*:0000 0A" /proc/net/tcp /proc/net/tcp6 && return 0
		kill -0 "$pid" 2> /dev/null || break
		sleep 0.02
	done
	not_ok "$configuration: ${names[pid]} listens on port $1"
	said "$dir/${names[pid]}.out"
	return 1
}

# until_true COMMAND...: it becomes true within two minutes.
until_true() {
	local i
	for ((i = 0; i < 2400; i++)); do
		"$@" > /dev/null 2>&1 && return 0
		sleep 0.05
	done
	return 1
}

# The statistics of everything here now: who is killed writes none.
snapshot() {
	[ "$configuration" = bare ] && return
	snapshots=$((snapshots + 1))
	$builddir/tools/shunt stat --json > "$dir/stats/snapshot.$snapshots" 2> /dev/null
}
snapshots=0

gone() {
	! kill -0 "$1" 2> /dev/null
}

stop() { # PID [SIGNAL]
	local name=${names[$1]} status=0
	snapshot
	kill -"${2:-TERM}" "$1" 2> /dev/null
	if ! until_true gone "$1"; then
		not_ok "$configuration: $name ends"
		kill -KILL "$1"
	fi
	{ wait "$1" || status=$?; } 2> /dev/null
	expected "$name.status" <(echo $status) || {
		not_ok "$configuration: $name ends as bare, not with status $status"
		said "$dir/$name.out"
	}
}

# --- checks ---

said() { # FILE: its end, as a comment
	tail -n "${2:-12}" "$1" | cut -c 1-300 | sed 's/^/#   /'
}

# expected KEY FILE: what the bare run gave, or gives now.
expected() {
	local kept=$work/expected/$1
	if [ "$configuration" = bare ]; then
		cat "$2" > "$kept"
	elif [ -e "$kept" ]; then
		cat "$2" > "$dir/got"
		cmp -s "$kept" "$dir/got"
	fi
}

# judge WHAT STATUS
judge() {
	if [ "$2" = 0 ]; then
		ok "$configuration: $1"
		return 0
	fi
	[ "$2" = 124 ] && echo "# after $patience seconds:"
	not_ok "$configuration: $1"
	return 1
}

run() { # COMMAND...: a function or a program
	if [ "$(type -t "$1")" = function ]; then
		"$@"
	else
		timeout -k 5 "$patience" "$@"
	fi
}

try() { # WHAT COMMAND...
	local what=$1 status=0
	shift
	run "$@" > "$dir/out" 2> "$dir/err" < /dev/null || status=$?
	judge "$what" $status || { said "$dir/out" && said "$dir/err"; } || return 1
	return $status
}

same() { # WHAT COMMAND...
	local what=$1 status=0
	shift
	run "$@" > "$dir/out" 2> "$dir/err" < /dev/null || status=$?
	if [ $status = 0 ] && ! expected "${what//\//.}" "$dir/out"; then
		diff -u "$work/expected/${what//\//.}" "$dir/out" | head -20 | sed 's/^/# /'
		status=1
	fi
	judge "$what" $status || { said "$dir/out" && said "$dir/err"; } || return 1
	return $status
}

give_root_up() {
	local as="setpriv --reuid=nobody --regid=nogroup --clear-groups"
	[ "$(id -u)" = 0 ] || return 0
	server="$as $server" client="$as $client"
	chmod 777 "$dir"
}

# --- clients of several programs ---

fetch() {
	timeout $patience $client curl -sS --fail --noproxy '*' --cacert "$dir/cert" "$@"
}

file() { # URL: $dir/www/large, three times over one connection
	fetch -o "$dir/a" -o "$dir/b" -o "$dir/c" "$1" "$1" "$1" && cmp "$dir/a" "$dir/www/large" &&
		cmp "$dir/b" "$dir/www/large" && cmp "$dir/c" "$dir/www/large"
}

load() { # NAME CONNECTIONS URL OPTION...
	timeout $patience $client wrk -t 2 -c "$2" -d 1 "${@:4}" "$3" > "$dir/load.$1" 2>&1
	grep -q Requests/sec "$dir/load.$1" && ! grep -q 'Socket errors\|Non-2xx' "$dir/load.$1" && return
	cat "$dir/load.$1"
	return 1
}

# cut_off STATEMENT END WORDS: a client of `sql` is at a STATEMENT that takes long; END, with what `sleeps` says in place of
# its %s, is a statement that ends it. The client gets an error with these WORDS, not silence.
cut_off() {
	sql <<< "$1" > "$dir/sleeper" 2>&1 &
	# shellcheck disable=SC2059 # a format on purpose
	until_true sleeps && sql <<< "$(printf "$2" "$(sleeps)")"
	wait $! && return 1
	grep -o "$3" "$dir/sleeper"
}

# --- leaks ---

# How many descriptors a process has itself, but for pipes, which some pool (Go, for splice), and files of its own, which
# databases keep open. Shunt's are high.
program_fds() {
	local floor	# core/fd/own_fds.c's
	floor=$(awk '/^Max open files/ { print $4 / 2 < 1920 ? int($4 / 2) : 1920 }' "/proc/$1/limits")
	find "/proc/$1/fd" -type l ! -lname 'pipe:*' ! -lname "$dir/*" 2> /dev/null | awk -F/ -v floor="$floor" '$NF < floor' | wc -l
}

# Memory that it shares with peers of links.
links_of() {
	grep -c '/memfd:shunt' "/proc/$1/maps"
}

marks() { # PID
	marked[$1]=$(program_fds "$1")
	links_marked[$1]=$(links_of "$1")
}
marked=() links_marked=()

no_more_than_marked() {
	[ "$(program_fds "$1")" -le "${marked[$1]}" ] && [ "$(links_of "$1")" -le "${links_marked[$1]}" ]
}

left() { # PID
	until_true no_more_than_marked "$1"
	judge "${names[$1]} has no descriptor and no link left over" $? && return
	echo "#   descriptors ${marked[$1]} -> $(program_fds "$1"), mappings of links ${links_marked[$1]} -> $(links_of "$1")"
	# shellcheck disable=SC2012 # for people
	ls -l "/proc/$1/fd" | tail -n 40 | sed 's/^/#   /'
}

# --- for long (endure.sh) ---

# What the server $pid, which a round may start anew, has now.
state_of() {
	local fds links threads
	fds=$(find "/proc/$pid/fd" -mindepth 1 2> /dev/null | wc -l)
	links=$(links_of "$pid")
	threads=$(awk '/^Threads/ { print $2 }' "/proc/$pid/status")
	awk '/^VmRSS/ { printf "%d MB", $2 / 1024 }' "/proc/$pid/status"
	echo ", $fds descriptors, $threads threads, $links mappings of links"
}

endure() { # ROUND
	local began=$SECONDS round=0 said=0
	while [ $((SECONDS - began)) -lt "$ENDURE" ]; do
		round=$((round + 1))
		"$1" $round > "$dir/round" 2>&1 || { judge "round $round" $? ; said "$dir/round" 40; return 1; }
		[ $(((SECONDS - began) / 60)) = $said ] && [ $round -gt 2 ] && continue
		said=$(((SECONDS - began) / 60))
		echo "# $program: $((SECONDS - began)) s, $round rounds: $(state_of)"
	done
	judge "$round rounds in $((SECONDS - began)) s" 0
}

# --- the matrix ---

has_messages() {
	[ "$(find "$dir/messages" -type f -size +0)" ]
}

one_configuration() { # FUNCTION
	local before child
	server='' client=''
	case $configuration in
	both) server=$shunt_run client=$shunt_run ;;
	server) server=$shunt_run ;;
	client) client=$shunt_run ;;
	esac
	dir=$work/$configuration
	mkdir -p "$dir/stats" "$dir/messages"
	chmod 777 "$dir" "$dir/stats" "$dir/messages"
	export SHUNT_STATS=$dir/stats/%p SHUNT_LOG_FILE=$dir/messages/%p
	before=$(tcp_bytes)
	"$1"
	snapshot
	tcp_carried=$(($(tcp_bytes) - before))
	for child in "${children[@]}"; do
		kill "$child" 2> /dev/null && until_true gone "$child"
	done
	children=()
	! has_messages || { echo "# Shunt said:" && cat "$dir"/messages/* | sort | uniq -c | said /dev/stdin; }
}

matrix() { # FUNCTION
	local before all share=- reasons=-
	need_shunt
	mkdir -p "$work/expected"
	for configuration in $configurations; do
		before=$failures
		one_configuration "$1"
		[ $failures = "$before" ] && passed+=("$configuration")
		[ "$configuration" = both ] || continue
		[ "${ALONE:-}" = yes ] || tcp_carried=
		read -r share reasons < <(python3 "$apps/share.py" "$dir/stats" $tcp_carried)
		echo "# $program: $share of the bytes on the link${reasons:+; $reasons}"
	done
	# Why is told where there is something to tell.
	awk -v share="$share" 'BEGIN { exit !(share + 0 < 95) }' || why='' reasons=''
	[ "$why" ] && reasons=$why
	all=$(printf '%s, ' "${passed[@]}")
	row "${all%, }" "$share" "$reasons"
	plan
}
