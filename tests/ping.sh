#!/bin/bash
# SPDX-License-Identifier: MIT
# shunt ping on one host: a link by the soft device, a service that is no answering end and gets no byte, a server
# without Shunt, a closed port, an older wire version, another user, a network namespace of its own; the mesh of three
# addresses, here and by a command that stands in for ssh; wrong usage. What needs RDMA is tests/lab/pair/ping.sh.
set -u
. "${top_srcdir:?}/tests/lib.sh"
children=()
trap 'kill "${children[@]}" 2>/dev/null; scratch_remove' EXIT

# start COMMAND…: its first line is in $said; it ends with the test.
start() {
	local in
	exec {in}< <(exec "$@" 2>"$work/start.err")
	children+=("$!")
	read -r said <&"$in" || problem "$*: it said nothing: $(cat "$work/start.err")"
}

# serve ADDRESS [COMMAND…]: an answering end there; $port.
serve() {
	local address=$1
	shift
	start "$@" "$shunt" ping --serve "$address:0"
	has "$said" "^shunt ping: answers at .*$address"
	port=${said##*:}
}

# is FILTER: the JSON in $out is such that.
is() {
	jq -e "$1" <<<"$out" >/dev/null || problem "not $1: $out"
}
command -v jq >/dev/null || { echo "no jq" && exit 77; }

expect 2 "$shunt" ping
expect 2 "$shunt" ping 127.0.0.1:0
expect 2 "$shunt" ping 127.0.0.1:70000
expect 2 "$shunt" ping :1
expect 2 "$shunt" ping -c 0 127.0.0.1
expect 2 "$shunt" ping -c 1x 127.0.0.1
expect 2 "$shunt" ping -i -1 127.0.0.1
expect 2 "$shunt" ping -W 0 127.0.0.1
expect 2 "$shunt" ping -B nowhere 127.0.0.1
expect 2 "$shunt" ping --wrong
expect 2 "$shunt" ping --html page 127.0.0.1
expect 2 "$shunt" ping --matrix list 127.0.0.1
expect 2 "$shunt" ping --matrix "$work/nothing"
expect 2 "$shunt" ping --serve 1:2:3
expect 2 "$shunt" ping-end
expect 2 env SHUNT_TUNE=lanes=many "$shunt" ping 127.0.0.1
expect 0 "$shunt" ping --help
narrow "$out"

# A link: each step has a time.
serve 127.0.0.1
expect 0 "$shunt" ping "127.0.0.1:$port"
narrow "$out"
for step in 'TCP connect' 'TCP round trip' 'rendezvous .* wire version' 'link set-up .* soft, 1 queue pair$' \
	'empty WRITE' '64 bytes by the link'; do
	has "$out" "^  $step"
done
expect 0 "$shunt" ping --json -c 3 -i 0.001 "127.0.0.1:$port"
is '.schema == 1 and (.targets | length) == 1'
is '.targets[0] | .verdict == "link" and .cause == "link" and .answering_end and .port == '"$port"
is '.targets[0] | [.tcp.connect_ns, .rendezvous.ns, .link.setup_ns, .link.write_ns, .link.echo_ns, .link.large_ns] | all(. > 0)'
is '.targets[0].rendezvous | .answer == "sound" and .way == "host" and .version > 0'
expect 0 "$shunt" ping --json -c 1 -B 127.0.0.7 "127.0.0.1:$port"

# A WRITE that is answered after the first question for it, is waited for by the next ones.
expect 0 env SHUNT_FAULT=delay:ms=30 "$shunt" ping --json -c 2 "127.0.0.1:$port"
is '.targets[0] | .verdict == "link" and .link.write_ns >= 30000000'

# Variables of either end, and what they cost.
expect 1 env SHUNT_DEVICE=none "$shunt" ping --json "127.0.0.1:$port"
is '.targets[0] | .verdict == "tcp" and .cause == "device-none" and .link.tcp_echo_ns > 0'
expect 1 env SHUNT_ENABLE=0 "$shunt" ping --json "127.0.0.1:$port"
is '.targets[0].cause == "device-none"'
plain_port=$port
serve 127.0.0.1 env SHUNT_DEVICE=none
expect 1 "$shunt" ping --json "127.0.0.1:$port"
is '.targets[0] | .verdict == "tcp" and .cause == "device-none" and (.says | test("there"))'
port=$plain_port

# Nobody, no name, several at once.
expect 1 "$shunt" ping --json "127.0.0.1:$port" 127.0.0.1:1 nobody.invalid
is '[.targets[].cause] == ["link", "refused", "unresolved"]'
is '[.targets[].verdict] == ["link", "unreachable", "unreachable"]'
expect 1 "$shunt" ping 127.0.0.1:1 nobody.invalid
has "$out" '^  why: nobody listens at port 1$'
has "$out" '^  do: '

# A service that would tell of each byte that it gets. The link is measured where its program is shunted.
for wrap in "" "$shunt run"; do
	# shellcheck disable=SC2086
	start $wrap python3 "$top_srcdir/tests/ping_service.py" "$work/heard"
	expect $((!${#wrap})) "$shunt" ping --json -c 2 "127.0.0.1:$said"
	if [ "$wrap" ]; then
		is '.targets[0] | .verdict == "link" and (.answering_end | not) and .link.write_ns > 0 and .link.echo_ns == null'
	else
		is '.targets[0] | .verdict == "tcp" and .cause == "no-shunt"'
	fi
	[ ! -s "$work/heard" ] || problem "the service has got $(cat "$work/heard")"
done

# Another wire version.
start python3 "$top_srcdir/tests/calls/older.py" stay
expect 1 "$shunt" ping --json -c 1 "127.0.0.1:${said#port }"
# shellcheck disable=SC2016 # variables of jq
is '.targets[0] | .cause == "other-version" and .rendezvous.version > 0 and (.rendezvous.version as $v | .says | test("version \($v)"))'

# Ends that lie.
for lie in long garbage hangup flood; do
	start python3 "$top_srcdir/tests/ping_liar.py" "$lie"
	expect 1 "$shunt" ping --json -c 1 -W 0.5 "127.0.0.1:$said"
	is '.targets[0].verdict == "tcp"'
done

# A stranger who sends the answering end nonsense is hung up on, and the others are served.
python3 "$top_srcdir/tests/ping_liar.py" ask "$port" || problem "the answering end has taken nonsense"
expect 0 "$shunt" ping -c 1 "127.0.0.1:$port"

# Another user, where both have to be one.
if [ "$(id -u)" = 0 ]; then
	serve 127.0.0.1 env SHUNT_TRUST=user
	expect 1 env TMPDIR=/tmp setpriv --reuid 65534 --regid 65534 --clear-groups "$shunt" ping --json "127.0.0.1:$port"
	is '.targets[0] | .verdict == "tcp" and .cause == "other-user"'
	port=$plain_port
fi

# network: a network namespace; its process is $made.
network() {
	# shellcheck disable=SC2016 # of that shell
	start unshare --net bash -c 'ip link set lo up; echo $$; read -r _ <"$0"' "$work/never"
	made=$said
}

# Two network namespaces with a wire: without a device that leads from one to the other, and with a directory that both see.
if [ "$(id -u)" = 0 ] && unshare --net true 2>/dev/null; then
	mkfifo "$work/never"
	network
	near=$made
	network
	far=$made
	in_near=(nsenter "--net=/proc/$near/ns/net")
	in_far=(nsenter "--net=/proc/$far/ns/net")
fi
if [ "${far-}" ] && "${in_near[@]}" ip link add near type veth peer name far netns "$far" 2>/dev/null; then
	"${in_near[@]}" ip address add 10.99.0.1/24 dev near && "${in_near[@]}" ip link set near up
	"${in_far[@]}" ip address add 10.99.0.2/24 dev far && "${in_far[@]}" ip link set far up
	serve 10.99.0.2 "${in_far[@]}"
	expect 1 "${in_near[@]}" "$shunt" ping --json "10.99.0.2:$port"
	is '.targets[0] | .verdict == "tcp" and .cause == "namespace" and .interface == "near"'
	mkdir -m 1777 "$work/both"
	export SHUNT_DIR=$work/both
	serve 10.99.0.2 "${in_far[@]}"
	there=$port
	expect 0 "${in_near[@]}" "$shunt" ping --json "10.99.0.2:$port"
	is '.targets[0] | .verdict == "link" and .link.echo_ns > 0'
	serve 10.99.0.1 "${in_near[@]}"
	printf '%s\n' "10.99.0.1:$port" "10.99.0.2:$there" >"$work/list"
	printf '#!/bin/bash\nshift 2\nexec nsenter --net=/proc/%s/ns/net %s "$@"\n' "$far" "$shunt" >"$work/enter"
	chmod +x "$work/enter"
	expect 0 "${in_near[@]}" "$shunt" ping --matrix "$work/list" --ssh "$work/enter" --json
	is '[.ways[].verdict] == ["link", "link"]'
	unset SHUNT_DIR
	port=$plain_port
fi

# The mesh.
cat >"$work/list" <<-END
	127.0.0.1:$port	# the first
	# a comment, and an empty line

	  127.0.0.2:$port
	127.0.0.3:1
END
serve_at=$port
start "$shunt" ping --serve "127.0.0.2:$serve_at"
expect 1 "$shunt" ping --matrix "$work/list" --json
is '.schema == 1 and (.hosts | length) == 3 and (.ways | length) == 6'
is '[.ways[] | select(.verdict == "link")] | length == 4'
is '[.ways[] | select(.to == "127.0.0.3:1") | .cause] == ["refused", "refused"]'
expect 1 "$shunt" ping --matrix "$work/list" --html "$work/page.html"
has "$out" "^  1  127.0.0.1:$port .* L .* X$"
has "$out" "to 127.0.0.3:1: unreachable$"
! grep -q $'\033' <<<"$out" || problem "colours in a file: $out"
python3 - "$work/page.html" <<-END || problem "the page is not sound"
	import html.parser, sys
	class Page(html.parser.HTMLParser):
	    cells = {}
	    def handle_starttag(self, tag, attributes):
	        kind = dict(attributes).get("class")
	        if tag == "td":
	            self.cells[kind] = self.cells.get(kind, 0) + 1
	        assert tag != "script" and not {"src", "href"} & set(dict(attributes))
	page = Page()
	page.feed(open(sys.argv[1]).read())
	assert page.cells == {None: 3, "link": 4, "unreachable": 2}, page.cells
END
if command -v script >/dev/null; then
	out=$(script -qec "env -u NO_COLOR '$shunt' ping --matrix '$work/list'" /dev/null)
	has "$out" $'\033\\[32m .* L '
	has "$out" $'\033\\[31m .* X'
	out=$(script -qec "env NO_COLOR=1 '$shunt' ping --matrix '$work/list'" /dev/null)
	lacks "$out" $'\033'
fi

# Rows of other hosts, by a command; one is not there, and one tells nonsense.
cat >"$work/ssh" <<-END
	#!/bin/bash
	echo "\$@" >>"$work/asked"
	case \$1 in
	far.invalid) shift 2; exec "$shunt" "\$@" ;;
	odd.invalid) echo '{"targets":[{"verdict":"link","link":7},{"verdict":"\\u001b[2J"},4]}' ;;
	*) echo "no \$1 here" >&2; exit 255 ;;
	esac
END
chmod +x "$work/ssh"
printf '%s\n' "127.0.0.1:$port" "far.invalid:7" odd.invalid gone.invalid >"$work/list"
expect 1 "$shunt" ping --matrix "$work/list" --ssh "$work/ssh" --json -c 2
is '.ways | length == 12'
is '[.ways[] | select(.from == "far.invalid:7") | .verdict] == ["link", "unreachable", "unreachable"]'
is '[.ways[] | select(.from == "odd.invalid") | .verdict] == ["link", "unknown", "unknown"]'
is '[.ways[] | select(.from == "gone.invalid") | .says | test("no gone.invalid here")] | all'
grep -q "^far.invalid shunt ping --json -c 2 .* 127.0.0.1:$port odd.invalid gone.invalid$" "$work/asked" ||
	problem "asked: $(cat "$work/asked")"
# shellcheck disable=SC2016
for bad in '$(touch x)' 'a b' '-v' 'a;b' "a'b"; do
	printf '%s\n' 127.0.0.1 "$bad" >"$work/list"
	expect 2 "$shunt" ping --matrix "$work/list"
	has "$err" 'line 2: it is no .*HOST'
done
printf '%s\n' 127.0.0.1 root@127.0.0.2 >"$work/list"
expect 2 "$shunt" ping --matrix "$work/list"
has "$err" '^shunt ping: root@127.0.0.2 is no HOST'

finish
