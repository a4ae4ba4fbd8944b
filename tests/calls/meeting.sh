#!/bin/bash
# SPDX-License-Identifier: MIT
# Two network namespaces that are joined by veth, and one SHUNT_DIR: connections between them are linked. Users who sit on
# names there, or claim what they do not hold, get nothing. Needs root. TAP.
# shellcheck disable=SC2086,SC2154,SC2317	# commands to put before others are several words; coprocess sets variables
# shellcheck source-path=SCRIPTDIR source=lib.sh
set -u
. "$(dirname "$0")/lib.sh"

need unshare nsenter setpriv ip python3
need_shunt
[ "$(id -u)" = 0 ] || { echo "1..0 # SKIP only root can make networks"; exit 77; }
[ "${ALONE-}" = yes ] || { echo "1..0 # SKIP there are no namespaces to be had"; exit 77; }
one=(setpriv --reuid=64001 --regid=64001 --clear-groups)
other=(setpriv --reuid=64002 --regid=64002 --clear-groups)
for python in /usr/bin/python3 python3 ""; do
	"${other[@]}" "$python" -c "import os; os.eventfd" 2> /dev/null && break
done
[ "$python" ] || { echo "1..0 # SKIP another user has no python3 that knows eventfd()"; exit 77; }
if ! "${other[@]}" test -r "$here/meet.py" || ! "${other[@]}" $shunt_run true 2> /dev/null; then
	echo "1..0 # SKIP another user cannot read this tree"
	exit 77
fi
chmod 777 "$work"

# --- the networks ---

# coprocess NAME COMMAND...: sets NAME_pid, NAME_to and NAME_from.
coprocess() {
	local name=$1 to from
	shift
	mkfifo "$work/to" "$work/from"
	"$@" < "$work/to" > "$work/from" &
	printf -v "${name}_pid" %s $!
	children+=($!)
	exec {to}> "$work/to" {from}< "$work/from"
	rm "$work/to" "$work/from"
	printf -v "${name}_to" %s "$to"
	printf -v "${name}_from" %s "$from"
}

# ended NAME: its standard input is closed; its exit status.
ended() {
	local to=${1}_to from=${1}_from pid=${1}_pid
	to=${!to} from=${!from}
	exec {to}>&-
	rest=$(cat <&"$from")
	exec {from}<&-
	wait "${!pid}"
}

coprocess network unshare --net bash -c 'echo made; read -r _'
read -r _ <&"$network_from"
inside=(nsenter "--net=/proc/$network_pid/ns/net")
if ! ip link add near type veth peer name far netns "$network_pid" 2> "$work/why"; then
	echo "1..0 # SKIP two networks cannot be joined: $(cat "$work/why")"
	exit 77
fi
ip address add 10.99.0.1/24 dev near && ip link set near up
"${inside[@]}" ip address add 10.99.0.2/24 dev far && "${inside[@]}" ip link set far up && "${inside[@]}" ip link set lo up
ip -6 address add fd99::1/64 dev near nodad && "${inside[@]}" ip -6 address add fd99::2/64 dev far nodad
for name in meet open; do mkdir -m 1777 "$work/$name"; done
meet=$work/meet
export SHUNT_LOG=info SHUNT_TUNE=${SHUNT_TUNE-},claim_ms=20000,slow_ms=0

# --- both ends ---

port=7300
names() { find "$meet" -type s | wc -l; }
named() { [ -S "$meet/tcp-$1:$port" ]; }

await() { # COMMAND...: which an event of another process makes true
	local until=$((SECONDS + 60))
	until "$@"; do
		[ $SECONDS -lt $until ] || return 1
		sleep 0.01
	done
}

# up NAME ADDRESS [WORKERS]: a shunted server; "${as[@]}" is its user.
as=()
up() {
	port=$((port + 1))
	SHUNT_DIR=$dir SHUNT_LOG_FILE="$work/said.$1.%p" coprocess "$1" "${as[@]}" $shunt_run $python "$here/meet.py" server "$2" $port ${3-}
	local from=${1}_from
	read -r _ <&"${!from}"
}

# asks ADDRESS [COMMAND...]: a client in the other network says what became of its connection.
asks() {
	local address=$1 log
	shift
	log=$(mktemp -u "$work/log.XXXXXX")
	"${inside[@]}" "$@" env SHUNT_DIR="$client_dir" SHUNT_LOG_FILE="$log" $shunt_run \
		$python "$here/meet.py" client "$address" $port "$log" < /dev/null 2>> "$work/errors"
}

linked() {
	local said
	said=$(asks "$@")
	[ "$said" = "on a link; right" ] || { echo "# $said"; return 1; }
}

on_tcp() { # REASON ADDRESS...
	local said reason=$1
	shift
	said=$(asks "$@")
	[[ "$said" = "$reason; right" ]] || { echo "# $said"; return 1; }
}

untrusted="the two processes may not share a link (SHUNT_TRUST)"
elsewhere="the peer is on another host, or in another network namespace"
dir=$meet client_dir=$meet

# --- where there is an address there is a name ---

up exact 10.99.0.1
await named ::ffff:10.99.0.1
check "a listener at an address is linked" linked 10.99.0.1
check "a client of another user is linked" linked 10.99.0.1 "${other[@]}"
check "and one in user and PID namespaces" linked 10.99.0.1 "${other[@]}" unshare --user --map-root-user --pid --fork --kill-child --mount-proc
client_dir=
check "a client without SHUNT_DIR stays on TCP" on_tcp "$elsewhere" 10.99.0.1
client_dir=$meet
check "SHUNT_TRUST=user keeps strangers apart" on_tcp "$untrusted: the peer's rendezvous belongs to another user" 10.99.0.1 "${other[@]}" env SHUNT_TRUST=user
check "the server ends well" ended exact
check "its names end with it" test "$(names)" = 0

up any 0.0.0.0
await named ::ffff:10.99.0.1
check "a listener at 0.0.0.0 is linked" linked 10.99.0.1
ip address add 10.99.0.7/24 dev near
await named ::ffff:10.99.0.7
check "an address that comes later has a name, too" linked 10.99.0.7
ip address del 10.99.0.7/24 dev near
no_name() { ! named ::ffff:10.99.0.7; }
check "and none when it goes" await no_name
check "loopback has none" test ! -e "$meet/tcp-::ffff:127.0.0.1:$port"
check "it ends well" ended any

up v6 ::
await named fd99::1
check "IPv6: a listener at :: is linked" linked fd99::1
check "and its addresses of IPv4" linked 10.99.0.1
check "it ends well (::)" ended v6

as=("${one[@]}")
up workers 10.99.0.1 3
await named ::ffff:10.99.0.1
check "a connection that a worker accepts is redirected to it" linked 10.99.0.1 "${other[@]}"
check "the workers end well" ended workers
as=()

# --- names that stay ---

up killed 10.99.0.1
await named ::ffff:10.99.0.1
{ kill -KILL "$killed_pid"; ended killed; } 2> /dev/null
left=$(names)
check "a process that is killed leaves its names" test "$left" -gt 1
up heir 10.99.0.1
await named ::ffff:10.99.0.1
check "its heir is linked" linked 10.99.0.1
check "and ends well" ended heir
check "and the names of the dead are gone" test "$(names)" = 0

# Who may open the directory may hold its flock: nobody waits for that, and nobody removes names then.
up killed 10.99.0.1
await named ::ffff:10.99.0.1
{ kill -KILL "$killed_pid"; ended killed; } 2> /dev/null
coprocess holder "${other[@]}" flock "$meet" bash -c 'echo held; read -r _'
read -r _ <&"$holder_from"
port=$((port - 1))
up heir 10.99.0.1
check "somebody holds the directory's flock: on TCP" on_tcp "$elsewhere" 10.99.0.1
echo >&"$holder_to"
ended holder
renamed() { linked 10.99.0.1 > /dev/null; }
check "and when it is let go of, the heir gets the name" await renamed
check "and ends well, too" ended heir

# --- directories that will not do ---

refuses() { # both ends say so, and the connection stays on TCP
	rm -f "$work"/log.* "$work"/said.*
	up bad 10.99.0.1
	on_tcp "$elsewhere" 10.99.0.1 && ended bad && grep -q "SHUNT_DIR=$dir cannot be used" "$work"/log.* &&
		grep -q "SHUNT_DIR=$dir cannot be used" "$work"/said.bad.*
}

chmod 777 "$work/open"
dir=$work/open client_dir=$dir
check "a directory that anybody may write in must be sticky" refuses
chmod 1777 "$work/open"
chown 64002 "$work/open"
check "nor may it be another user's" refuses
ln -s "$meet" "$work/link"
dir=$work/link client_dir=$dir
check "nor a symbolic link" refuses
dir=meet client_dir=$dir
check "nor a relative path" refuses
long=$work/$(printf 'd%.0s' {1..120})
mkdir -m 1777 "$long"
dir=$long client_dir=$dir
up long 10.99.0.1
found_long() { [ -S "$long/tcp-::ffff:10.99.0.1:$port" ]; }
await found_long
check "a path may be long" linked 10.99.0.1
check "that server ends well" ended long
dir=$meet client_dir=$meet

# --- who sits on a name ---

squats() { # HOW REASON
	port=$((port + 1))
	coprocess squatter "${other[@]}" $python "$here/meet.py" squat "$meet" 10.99.0.1 $port "$1"
	read -r _ <&"$squatter_from"
	port=$((port - 1))
	up victim 10.99.0.1
	on_tcp "$2" 10.99.0.1 && ended victim && ended squatter || return
	rm -f "$meet/tcp-::ffff:10.99.0.1:$port" "$meet/elsewhere" "$meet"/link-00*
}

silent="$untrusted: the peer's process does not let this one in"
export SHUNT_TUNE=${SHUNT_TUNE-},refused_ms=100
check "a squatter that hangs up: on TCP" squats hang-up "$silent"
check "one that speaks noise: on TCP" squats noise "$silent"
check "one that says nothing: on TCP" squats silent "$silent"
check "one that refuses claims: on TCP" squats refuse "the peer does not have the connection"
check "one that sends elsewhere: on TCP" squats elsewhere "the peer runs without Shunt"
check "one that sends in circles: on TCP" squats circle "no link to the peer could be made: redirected twice"
check "one that accepts with what cannot be: on TCP" squats accept "no link to the peer could be made: it broke during the claim"
check "a file of the name: on TCP" squats file "$elsewhere"
check "a symbolic link is not followed" squats link "$elsewhere"
check "nobody came there" test "${rest-}" = "came 0"
as=("${one[@]}")
check "another user's dead socket: on TCP" squats dead "$elsewhere"
as=()
check "root takes its place" squats dead "on a link"

# --- who claims what it does not hold ---

up server 10.99.0.1
await named ::ffff:10.99.0.1
call_plainly() { # sets $plain, its port
	plain=$("${inside[@]}" $python -c "import socket; s = socket.socket(); s.bind(('10.99.0.2', 0)); print(s.getsockname()[1])")
	coprocess plain "${inside[@]}" $python -c "
import os, socket, sys
s = socket.create_connection(('10.99.0.1', $port), source_address=('10.99.0.2', $plain))
for line in sys.stdin.buffer:
	s.sendall(line)
	if line == b'nonce\n':
		data = s.recv(16 + len(line), socket.MSG_WAITALL)
		line = b'%d bytes first\n' % (len(data) - len(line)) if data.endswith(line) else b'other bytes\n'
	else:
		line = s.makefile('rb').readline()
	sys.stdout.buffer.write(line)
	sys.stdout.flush()"
}
call_plainly
answers() { # LINE
	local line
	echo "$1" >&"$plain_to" && read -r line <&"$plain_from" && [ "$line" = "$1" ]
}
claims() { # WHAT [ADDRESS PORT]
	coprocess claimant "${other[@]}" $python "$here/meet.py" claim "$meet/tcp-::ffff:10.99.0.1:$port" 10.99.0.1 $port "${@:2}"
	read -r said <&"$claimant_from"
	[ "$said" = "$1" ] || { echo "# $said"; return 1; }
}
check "the plain client is served" answers first
check "a claim of its connection is heard" claims accepted 10.99.0.2 $plain
check "and nothing changes for it" answers second
check "nor after" answers third
hung_up() {
	local said
	echo ask >&"$claimant_to" && read -r said <&"$claimant_from" && [ "$said" = "hung up" ]
}
check "no other proof is to be had there: the link ends" hung_up
ended claimant
check "nor when the claimant has gone" answers fourth
exec {local}<> /dev/tcp/10.99.0.1/$port
echo here >&"$local" && read -r _ <&"$local"
here_port=$(ss -Htn "dport = :$port and src 10.99.0.1" | awk '{ sub(/.*:/, "", $4); print $4 }' | head -n 1)
check "a connection of the acceptor's own network is refused" claims "refused 0" 10.99.0.1 "$here_port"
ended claimant
exec {local}>&-
check "honest clients are linked still" linked 10.99.0.1
ended plain
# The nonce is known to its claimant when it is read, not before: it cannot choose the bytes, and gets none of the stream.
call_plainly
answers first
claims accepted 10.99.0.2 $plain
echo expect >&"$claimant_to" && read -r said <&"$claimant_from"
check "a claimant that goes on makes the server say where its nonce is" test "$said" = "told its place"
echo nonce >&"$plain_to" && read -r said <&"$plain_from"
check "the plain client reads 16 bytes of it, and its own" test "$said" = "16 bytes first"
check "and then its own alone" answers second
echo end >&"$claimant_to"
ended claimant
check "nor has it a byte of the nonce's when the claimant has gone" answers third
ended plain
check "and the server ends well" ended server

[ ! -s "$work/errors" ] || sed 's/^/# /' "$work/errors" | head -n 20
plan
