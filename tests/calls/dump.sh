#!/bin/bash
# SPDX-License-Identifier: MIT
# shunt dump: the bytes of streams are in the file, once and in order, over all switches of track. A reader that is
# stopped, gone or a liar neither stops nor harms the program. TAP.
# shellcheck disable=SC2016,SC2086,SC2317	# commands to put before others are several words
# shellcheck source-path=SCRIPTDIR source=lib.sh
set -u
. "$(dirname "$0")/lib.sh"

shunt=$builddir/tools/shunt
reader=$here/dump.py
need "$transfer" "$shunt" python3 jq
need_shunt
export TEST_LIMIT=${TEST_LIMIT:-600}
export SHUNT_CONF=none

# dump FILE ARGUMENTS...: in the background, until it listens; sets dumper.
dump() {
	local file=$1 says line
	shift
	rm -f "$work/says"
	mkfifo "$work/says"
	"$shunt" dump -w "$file" "$@" 2> "$work/says" &
	dumper=$!
	children+=("$dumper")
	exec {says}< "$work/says"
	while read -r line <&"$says"; do
		[[ $line == *listening* ]] && break
		echo "# $line"
	done
	cat <&"$says" > "$work/dump.err" &
	children+=($!)
	exec {says}<&-
	[[ $line == *listening* ]]
}

# Its exit status; what it has counted is in $counted.
end_dump() {
	local rc=0
	kill -INT "$dumper" 2> /dev/null
	wait "$dumper" || rc=1
	within grep -q written "$work/dump.err" || return 1
	counted=$(grep -o '[0-9]* packets written, [0-9]* dropped' "$work/dump.err")
	return $rc
}

# run_pair WRAP OPTIONS...: a transfer whose server is dumped into $work/pair.pcapng, if WRAP is not empty.
run_pair() {
	local wrap=$1 rc=0
	shift
	rm -f "$work/err"
	start_telling $wrap "$transfer" server "$@" 2>> "$work/err"
	if [ -n "$wrap" ]; then
		dump "$work/pair.pcapng" -B 64 "$server_pid" || rc=1
	fi
	timeout "$TEST_LIMIT" $wrap "$transfer" client "$server_port" "$@" > /dev/null 2>> "$work/err" || rc=1
	wait "$server_pid" || rc=1
	exec {in}<&-
	[ -z "$wrap" ] || end_dump || rc=1
	[ $rc = 0 ] || sed 's/^/# /' "$work/err"
	return $rc
}

# found KEY: of what dump.py has last found.
found() {
	grep -o "$1=[^ ]*" "$work/found" | cut -d= -f2
}

checked() {
	python3 "$reader" check "$1" > "$work/found" 2> "$work/found.err" && return
	sed 's/^/# /' "$work/found" "$work/found.err"
	return 1
}

# No complaint of Wireshark's about what a capture lacks, or has twice.
tshark_is_content() {
	local complaints
	complaints=$(tshark -r "$1" -Y 'tcp.analysis.lost_segment || tcp.analysis.ack_lost_segment ||
		tcp.analysis.retransmission || tcp.analysis.out_of_order || tcp.analysis.window_full' 2> /dev/null | head -5)
	[ -z "$complaints" ] && return
	echo "# ${complaints//$'\n'/$'\n'# }"
	return 1
}

by_tshark() {
	if command -v tshark > /dev/null; then
		check "$1" "${@:2}"
	else
		skip "$1" "there is no tshark"
	fi
}

# --- the command line ---

# status STATUS WORDS...: what `shunt dump` ends with.
status() {
	local wanted=$1 got=0
	shift
	"$shunt" dump "$@" > "$work/none" 2> "$work/none.err" || got=$?
	[ $got = "$wanted" ] && return
	sed "s/^/# status $got: /" "$work/none.err"
	return 1
}

check "help" status 0 --help
check "no wider than a terminal" eval '! grep -q ".\{101\}" "$work/none"'
check "no process" status 2
check "a filter alone" status 2 'port 1'
check "two filters" status 2 'port 1' 'port 2' 1
check "an option that there is not" status 2 -x 1
check "an option without its value" status 2 1 -w
for memory in 0 3 2048 -1 1x ""; do
	check "memory of '$memory' MiB" status 2 -B "$memory" 1
done
check "a process that is not shunted" status 1 -w "$work/none" $$
check "no process of that number" status 1 -w "$work/none" 2147483647

# --- the same bytes as in a capture of the same run over TCP ---

# capture OPTIONS...: a plain transfer, in a network of its own; what both ends have sent is in $work/plain.
capture() {
	cat > "$work/capture" <<- END
		ip link set lo up || exit 77
		touch "$work/tcpdump.err"
		mkfifo "$work/plain.port"
		tcpdump -U -Z "\$(id -un)" -B 65536 -i lo -w "$work/plain.pcap" tcp 2> "$work/tcpdump.err" &
		tcpdump=\$!
		until grep -q listening "$work/tcpdump.err"; do kill -0 \$tcpdump || exit 77; done
		"$transfer" server $* > "$work/plain.port" &
		server=\$!
		read -r _ port < "$work/plain.port"
		"$transfer" client \$port $* > /dev/null && wait \$server || exit 1
		# Each end of a connection has a FIN in the capture, once all before it is there.
		until [ "\$(tcpdump -Z "\$(id -un)" -r "$work/plain.pcap" 'tcp[tcpflags] & tcp-fin != 0' 2> /dev/null | wc -l)" -ge 4 ]; do
			kill -0 \$tcpdump || exit 77
		done
		kill -INT \$tcpdump
		wait \$tcpdump
	END
	unshare -n bash "$work/capture" || return
	grep -q '^0 packets dropped by kernel' "$work/tcpdump.err" || return 77
	python3 "$reader" streams "$work/plain.pcap" | sort > "$work/plain"
}

same="-n 5M -s 20 -c 2 --chunk-max 20000"
each=$(((5 << 20) + 1))	# bytes of a direction: transfer sends one more
for address in 127.0.0.1 ::1; do
	export SHUNT_TUNE=flip=20K
	check "10 MB each way of $address, switching tracks" run_pair "$shunt_run" $same -a $address
	unset SHUNT_TUNE
	check "all in order, with right checksums" checked "$work/pair.pcapng"
	sed 's/^/# /' "$work/found"
	check "nothing is dropped" [ "$(found dropped)" = 0 ]
	check "by both tracks" [ "$(found tracks)" = TCP+link ]
	check "and over switches" [ "$(found switches)" -gt 1 ]
	check "each connection has its handshake" [ "$(found syn)" = 4 ]
	check "and both its ends" [ "$(found fin)" = 4 ]
	by_tshark "Wireshark misses nothing" tshark_is_content "$work/pair.pcapng"
	python3 "$reader" streams "$work/pair.pcapng" | sort > "$work/streams.$address"
	check "with all bytes" [ "$(awk '{ sum += $1 + $3 } END { print sum }' "$work/streams.$address")" = $((4 * each)) ]
done
check "IPv4 and IPv6 have carried the same" cmp "$work/streams.127.0.0.1" "$work/streams.::1"
if command -v tcpdump > /dev/null && [ "$(id -u)" = 0 ] && unshare -n true 2> /dev/null; then
	rc=0
	capture $same || rc=$?
	case $rc in
	77) skip "the bytes are those of a capture" "nothing can be captured here" ;;
	*) check "the bytes are those of a capture over TCP" cmp "$work/plain" "$work/streams.127.0.0.1" ;;
	esac
else
	skip "the bytes are those of a capture" "there is no tcpdump, or no network of its own"
fi

# --- all roads: vectors, files, pipes, looks, bytes that are thrown away ---

on_link() {
	[ "$(ask "$1" '.tx.track + .rx.track')" = linklink ]
}

# same_bytes FILE: the dump has what both ends say that they have sent.
same_bytes() {
	local client_said server_said
	read -r client_said < "$work/client"
	read -r server_said <&"$in"
	python3 "$reader" streams "$1" > "$work/streams"
	echo "# the client has sent ${client_said% *} bytes, the server ${server_said% *}"
	[ "$client_said $server_said " = "$(cat "$work/streams")" ]
}

for end in server client; do
	mkfifo "$work/asks"
	start_telling $shunt_run python3 "$reader" server
	server=$server_pid
	if [ $end = server ]; then
		check "all roads of a server" dump "$work/roads.pcapng" -B 64 "$server"
	fi
	$shunt_run python3 "$reader" client "$server_port" < "$work/asks" > "$work/client" &
	client=$!
	children+=("$client")
	exec {asks}> "$work/asks"
	if [ $end = client ]; then	# it is under way: of the first bytes nothing is known
		within on_link "$client"
		check "all roads of a client" dump "$work/roads.pcapng" -B 64 "$client"
		check "it is still on the link" on_link "$client"
	fi
	within on_link "$server"
	echo >&"$asks"
	exec {asks}>&-
	rm "$work/asks"
	check "the client is content" wait "$client"
	check "the dump ends" end_dump
	check "all is in order" checked "$work/roads.pcapng"
	sed 's/^/# /' "$work/found"
	check "nothing is dropped" [ "$(found dropped)" = 0 ]
	by_tshark "Wireshark misses nothing" tshark_is_content "$work/roads.pcapng"
	if [ $end = server ]; then
		check "all bytes, once" same_bytes "$work/roads.pcapng"
	fi
	exec {in}<&-
	wait "$server"
done

# --- protocols ---

# decoded FILE PORT NAME FILTER: Wireshark sees that protocol in it.
decoded() {
	local seen
	seen=$(tshark -r "$1" -d "tcp.port==$2,$3" -Y "$4" 2> /dev/null | wc -l)
	echo "# $seen packets of $3"
	[ "$seen" -gt 0 ]
}

# requests URL: some on one connection, by a shunted client.
requests() {
	timeout "$TEST_LIMIT" $shunt_run python3 - "$1" <<- 'END'
		import http.client, sys
		connection = http.client.HTTPConnection("127.0.0.1", int(sys.argv[1]))
		for _ in range(200):
		    connection.request("GET", "/text")
		    assert connection.getresponse().read() == b"text" * 5000
	END
}

python3 -c 'print("text" * 5000, end="")' > "$work/text"
cat > "$work/serve.py" << 'END'
import functools, http.server, socketserver, sys
class Forking(socketserver.ForkingMixIn, http.server.HTTPServer):
    pass
handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=sys.argv[1])
handler.func.protocol_version = "HTTP/1.1"
kind = Forking if sys.argv[2] == "forking" else http.server.ThreadingHTTPServer
kind(("127.0.0.1", int(sys.argv[3])), handler).serve_forever()
END
start_server $shunt_run python3 "$work/serve.py" "$work" threading
check "a server of HTTP is dumped" dump "$work/http.pcapng" "$server_pid"
check "200 requests" requests "$server_port"
check "the dump ends" end_dump
check "it is in order" checked "$work/http.pcapng"
check "the link has carried some of it" grep -q link "$work/found"
check "nothing is dropped" [ "$(found dropped)" = 0 ]
by_tshark "Wireshark decodes HTTP" decoded "$work/http.pcapng" "$server_port" http http.response.code==200
by_tshark "and misses nothing" tshark_is_content "$work/http.pcapng"
# A pipe, with a filter: the answers alone.
check "a filter is one of tcpdump's" eval "[ \"\$(\"$shunt\" dump -w \"$work/none\" 'port port' $server_pid 2>&1 > /dev/null | grep -c filter)\" = 1 ]"
if command -v tcpdump > /dev/null; then
	"$shunt" dump -i "src port $server_port and greater 100" "$server_pid" 2> "$work/pipe.err" |
		tcpdump -Z "$(id -un)" -nr - -c 5 > "$work/pipe" 2> /dev/null &
	within grep -q listening "$work/pipe.err"
	check "requests while tcpdump reads" requests "$server_port"
	check "tcpdump ends the dump" wait $!
	check "and has had what was asked for" [ "$(grep -c "127.0.0.1.$server_port > " "$work/pipe")" = 5 ]
fi
kill "$server_pid"

# A child of the program that is dumped is not, and does not know of it.
start_server $shunt_run python3 "$work/serve.py" "$work" forking
check "a server that forks is dumped" dump "$work/forks.pcapng" "$server_pid"
check "its children answer" requests "$server_port"
check "and again" requests "$server_port"
check "the dump ends" end_dump
check "it is in order" checked "$work/forks.pcapng"
check "nothing is dropped" [ "$(found dropped)" = 0 ]
kill "$server_pid"

benchmark() {
	$shunt_run redis-benchmark -p "$server_port" -n 3000 -c 10 -t set,get -q > /dev/null
}

if command -v redis-server > /dev/null && command -v redis-benchmark > /dev/null; then
	start_redis "$shunt_run"
	check "redis is dumped" dump "$work/redis.pcapng" "$server_pid"
	check "redis-benchmark" benchmark
	check "the dump ends" end_dump
	check "it is in order" checked "$work/redis.pcapng"
	check "nothing is dropped" [ "$(found dropped)" = 0 ]
	by_tshark "Wireshark decodes RESP" decoded "$work/redis.pcapng" "$server_port" resp resp
	by_tshark "and misses nothing" tshark_is_content "$work/redis.pcapng"
	kill "$server_pid"
else
	skip "redis" "it is not installed"
fi

# --- a listener that does not listen ---

# What no longer listens is no part of the process: its memory has gone.
is_left() {
	! grep -q 'memfd:shunt dump' "/proc/$1/maps"
}

start_pair -n 200M -s 3 -c 2
check "a pair runs" within on_link "$server"
check "it is dumped, with little memory" dump "$work/slow.pcapng" -B 1 "$server"
kill -STOP "$dumper"
check "a dump that is stopped stops nobody" end_pair
kill -CONT "$dumper"
check "it ends" end_dump
echo "# $counted"
check "what had no room is counted" [ "${counted#*written, }" != "0 dropped" ]
check "and shows in the file" checked "$work/slow.pcapng"
sed 's/^/# /' "$work/found"
check "with the same count" [ "$(found dropped) dropped" = "${counted#*written, }" ]

start_pair -n 1000G -s 4
check "another pair" within on_link "$server"
check "is dumped" dump "$work/gone.pcapng" "$server"
check "there is one listener" eval "! \"$shunt\" dump -w \"$work/other\" $server 2> /dev/null"
kill -KILL "$dumper"
wait "$dumper" 2> /dev/null
check "one that was killed has left" within is_left "$server"
check "another one may come" within dump "$work/gone.pcapng" "$server"
check "and leave" end_dump
check "and has left" within is_left "$server"
if [ "$(id -u)" = 0 ] && setpriv --reuid 65534 --clear-groups true 2> /dev/null; then
	check "another user may not" eval "! setpriv --reuid 65534 --regid 65534 --clear-groups \"$shunt\" dump -w /dev/null $server 2> /dev/null"
else
	skip "another user may not" "not root"
fi
mkfifo "$work/liar" "$work/liar.says"
python3 "$reader" liar "$server" < "$work/liar" > "$work/liar.says" &
liar=$!
children+=("$liar")
exec {lies}> "$work/liar" {says}< "$work/liar.says"
check "a liar is let in once it has memory" eval 'read -r line <&"$says" && [ "$line" = listening ]'
moved() { [ "$(ask "$server" '.rx.link')" -gt $(($1 + 500000000)) ]; }
check "the pair goes on" within moved "$(ask "$server" '.rx.link')"
exec {lies}>&-
check "the liar has lied" eval 'read -r line <&"$says" && echo "# $line"'
wait "$liar"
check "it has left" within is_left "$server"
check "both ends are there" kill -0 "$client" "$server"
leave_pair

# An engine that lies: the command says so, or writes what it was given, and does not end by a signal.
survives_lie() {
	local identity rc=0 says
	exec {says}< <(exec python3 "$reader" engine "$1")
	read -r identity <&"$says"
	timeout -s INT 1 "$shunt" dump -B 1 -w "$work/lies.$1" "$identity" 2> "$work/lies.$1.err" || rc=$?
	exec {says}<&-
	grep -q ' packets written' "$work/lies.$1.err" && [ $rc -le 124 ] && return
	echo "# seed $1: exit status $rc"
	sed 's/^/# /' "$work/lies.$1.err"
	return 1
}

lies_survive() {
	local seed survivors=() rc=0
	for seed in {1..20}; do
		survives_lie "$seed" &
		survivors+=($!)
	done
	children+=("${survivors[@]}")
	for seed in "${survivors[@]}"; do wait "$seed" || rc=1; done
	return $rc
}

check "an engine that lies harms no dump" lies_survive
plan
