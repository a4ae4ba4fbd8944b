#!/bin/bash
# SPDX-License-Identifier: MIT
# The layouts in which services really run: users, services after setuid, namespaces, containers.
# For each layout and program: which share of the bytes is on the link, the speed beside plain TCP,
# and why what stays on TCP does so.
#
#	reach.sh [--json] [--write FILE] [--seconds N] [--quick] [LAYOUT...]
#	--json		rows as a JSON array instead of TAP
#	--write FILE	docs/dev/REACH.md, whole
#	--seconds N	how long each of the three turns of either kind lasts (1)
#	--quick		no figures of speed: one connection for each program, which waits for the link or the reason, and then
#			transfers. Without LAYOUT: those that are as they should be now
#
# Each layout has network, mount and PID namespaces of its own (tests/alone.sh), and all its
# processes end with it. TAP; a row of a layout that is `todo` is no failure, unless bytes are
# wrong. Needs root.
# shellcheck disable=SC2015,SC2034,SC2086,SC2154,SC2317	# commands to put before others are several words; layouts are called by name
# shellcheck source-path=SCRIPTDIR source=lib.sh
set -u

# A layout: its name, what is expected, whether it is so `now` or is `todo`, and what it is.
# Expected are
#	link	at least 95 % of the bytes after the first 256 KiB are on the link
#	tcp	all are on TCP, with a reason that is true
#	either	one of the two
# When a layout has got what is expected, its `todo` becomes `now`: here, and nowhere else.
layouts="
one-user                link    now   both root
two-users               link    now   users 1234 and 1235
root-server             link    now   root and user 1235
root-client             link    now   user 1234 and root
service-nginx           link    now   nginx: root's master, workers of www-data; user 1235
service-apache-event    link    now   Apache with mpm_event: root's master, children of www-data; user 1235
service-apache-prefork  link    now   Apache with mpm_prefork: root's master, children of www-data; user 1235
service-haproxy         link    now   haproxy in its chroot as haproxy, nginx behind it; user 1235
service-memcached       link    now   memcached -u memcache with few capabilities; user 1235
service-postgresql      link    now   PostgreSQL as postgres; user 1235
service-redis           link    now   redis as redis, no capabilities, no_new_privs, a user namespace (PrivateUsers); user 1235
pid-one-same            link    now   both process 1 of a PID namespace, both root
pid-one-other           link    now   both process 1 of a PID namespace, users 1234 and 1235
userns-unmapped         link    now   user 1234 in a user namespace without a mapping; user 1235
userns-root             link    now   user 1234, who is root in a user namespace; user 1235 outside
veth                    tcp     now   two network namespaces that are joined by veth
veth-dir                link    now   the same, with one SHUNT_DIR for both
veth-dir-users          link    now   the same; users 1234 and 1235
veth-dir-containers     link    now   the same; each of the two users is root in user and PID namespaces of its own
dnat                    either  now   the client's port is translated into the server's by nftables; both root
ipv6                    link    now   ::1, both root
rlimit-as               link    now   a server with 400 MB of address space (RLIMIT_AS); both root
bubblewrap              link    now   user 1234 in bwrap with PID and IPC namespaces; user 1235 outside
podman                  link    now   root in a container on the host's network; user 1235 outside
"

# --- layouts, one function each ---

one_user() {
	programs iperf3 redis nginx
}

two_users() {
	server=("${one[@]}") client=("${other[@]}")
	programs iperf3 redis nginx
}

root_server() {
	client=("${other[@]}")
	programs iperf3 redis nginx
}

root_client() {
	server=("${one[@]}")
	programs iperf3 redis nginx
}

service_nginx() {
	client=("${other[@]}")
	programs nginx_service
}

service_apache_event() {
	client=("${other[@]}") mpm=event
	programs apache
}

service_apache_prefork() {
	client=("${other[@]}") mpm=prefork
	programs apache
}

service_haproxy() {
	client=("${other[@]}")
	programs haproxy
}

service_memcached() {
	server=(setpriv --no-new-privs --bounding-set="-all,+setgid,+setuid") client=("${other[@]}")
	programs memcached
}

service_postgresql() {
	server=(setpriv --reuid=postgres --regid=postgres --init-groups) client=("${other[@]}")
	programs postgresql
}

service_redis() {
	server=(setpriv --reuid=redis --regid=redis --init-groups unshare --user --map-current-user
		setpriv --no-new-privs --bounding-set=-all --inh-caps=-all)
	client=("${other[@]}")
	programs redis_service
}

apart=(unshare --pid --fork --kill-child --mount-proc)

pid_one_same() {
	server=("${apart[@]}") client=("${apart[@]}")
	programs iperf3 redis nginx
}

pid_one_other() {
	server=("${apart[@]}" "${one[@]}") client=("${apart[@]}" "${other[@]}")
	programs iperf3 redis nginx
}

userns_unmapped() {
	server=("${one[@]}" unshare --user) client=("${other[@]}")
	programs iperf3 redis nginx
}

userns_root() {
	server=("${one[@]}" unshare --user --map-root-user) client=("${other[@]}")
	programs iperf3 redis nginx
}

# The client's network is that of a process of its own.
join_networks() {
	start network unshare --net sleep infinity
	network=$pid children=()	# it stays until the layout ends
	until_true other_network $pid && ip link add server type veth peer name client netns $pid || return
	client_net=(nsenter "--net=/proc/$pid/ns/net")
	client=("${client_net[@]}" "${client[@]}")
	address=10.99.0.1
	ip address add $address/24 dev server && ip link set server up &&
		"${client_net[@]}" ip address add 10.99.0.2/24 dev client && "${client_net[@]}" ip link set client up &&
		"${client_net[@]}" ip link set lo up
}

other_network() {
	[ "$(readlink /proc/$1/ns/net)" != "$(readlink /proc/self/ns/net)" ]
}

veth() {
	dir=$work
	network=
	join_networks || { unavailable "two networks could not be joined by veth"; return; }
	programs iperf3 redis nginx
	kill $network
}

veth_dir() {
	mkdir -m 1777 "$work/meet"
	export SHUNT_DIR=$work/meet
	veth
}

veth_dir_users() {
	server=("${one[@]}") client=("${other[@]}")
	veth_dir
}

veth_dir_containers() {
	local inside=(unshare --user --map-root-user "${apart[@]:1}")
	server=("${one[@]}" "${inside[@]}") client=("${other[@]}" "${inside[@]}")
	veth_dir
}

dnat() {
	has nft && nft -f - 2> /dev/null <<-END || { unavailable "nft cannot translate addresses"; return; }
		table ip reach {
			chain output {
				type nat hook output priority -100
				tcp dport $((tcp_port + 50)) dnat to 127.0.0.1:$tcp_port
				tcp dport $((shunt_port + 50)) dnat to 127.0.0.1:$shunt_port
			}
		}
	END
	translated=50
	programs iperf3 redis nginx
}

ipv6() {
	ip -6 address show dev lo | grep -q ::1 || { unavailable "no IPv6"; return; }
	address=::1
	programs iperf3 redis nginx
}

rlimit_as() {
	server=(prlimit --as=400000000)
	programs iperf3 redis nginx
}

bubblewrap() {
	server=("${one[@]}" bwrap --unshare-user --unshare-pid --unshare-ipc --ro-bind / / --bind "$work" "$work" --dev /dev --proc /proc)
	"${server[@]}" true 2> "$work/why" || { unavailable "$(head -n 1 "$work/why")"; return; }
	client=("${other[@]}")
	programs iperf3 redis nginx
}

# The container's files are the machine's, read-only, and the scratch folder. A cgroup hierarchy
# that podman does not know is replaced: the mount namespace is ours.
podman_in_container() {
	local files=$work/root folder
	for folder in usr etc tmp proc sys dev run var; do mkdir -p "$files/$folder"; done
	for folder in bin sbin lib lib64; do [ ! -L /$folder ] || ln -s "usr/$folder" "$files/$folder"; done
	server=(podman --root "$work/storage" --runroot "$work/podman" --tmpdir "$work/podman" --storage-driver vfs
		--cgroup-manager cgroupfs --events-backend none --log-level error
		run --rm --network host --cgroups disabled --ulimit nofile=4096:4096 --ulimit nproc=4096:4096
		--volume /usr:/usr:ro --volume /etc:/etc:ro --volume "$REACH_BIN:$REACH_BIN:ro" --volume "$work:$work" --rootfs "$files")
	has podman || { unavailable "podman is not installed"; return; }
	[ "$(stat -fc %T /sys/fs/cgroup)" = cgroup2fs ] ||
		{ umount -R /sys/fs/cgroup && mount -t cgroup2 none /sys/fs/cgroup; } 2> /dev/null
	"${server[@]}" true > "$work/why" 2>&1 || { unavailable "$(tail -n 1 "$work/why" | tr -s '\n' ' ')"; return; }
	client=("${other[@]}")
	programs iperf3 redis nginx
}

# --- one layout, in namespaces of its own ---

if [ "${1-}" = --one ]; then
	layout=$2 expected=$3 state=$4 seconds=$REACH_SECONDS
	[ "${ALONE-}" = yes ] || exit 77
	. "$(dirname "$0")/lib.sh"
	for python in python3 /usr/bin/python3; do
		"${other[@]}" $python -c '' 2> /dev/null && break
	done
	layout_function=${layout//-/_}
	[ $layout != podman ] || layout_function=podman_in_container
	$layout_function
	exit
fi

# --- all of them ---

usage() {
	sed -n '/^#	reach.sh/,/^#$/s/^#	\{0,1\}//p' "$0"
}

json='' document='' chosen=() begun=$SECONDS
export REACH_SECONDS=1 REACH_QUICK='' REACH_TURNS=3
while [ $# -gt 0 ]; do
	case $1 in
	--json) json=yes ;;
	--quick) REACH_QUICK=yes ;;
	--write) document=${2:?--write needs a file}; shift ;;
	--seconds) REACH_SECONDS=${2:?--seconds needs a number}; shift ;;
	-*) usage; exit 2 ;;
	*) chosen+=("$1") ;;
	esac
	shift
done

# A line of the table: sets $expected and $state.
find_layout() { # NAME
	read -r _ expected state _ < <(grep "^$1 " <<< "$layouts")
	[ "${state-}" ]
}

if [ ${#chosen[@]} = 0 ]; then
	mapfile -t chosen < <(awk -v quick="$REACH_QUICK" 'NF && (quick == "" || $3 == "now") { print $1 }' <<< "$layouts")
fi
for layout in "${chosen[@]}"; do
	find_layout "$layout" || { echo "Bail out! there is no layout $layout"; exit 99; }
done
[ -z "$document" ] || [ -d "$(dirname "$document")" ] || { echo "Bail out! there is no folder for $document"; exit 99; }
[ -z "$document" ] || document=$(cd "$(dirname "$document")" && pwd)/$(basename "$document")
APPS_ALONE=asked
# shellcheck source-path=SCRIPTDIR source=../calls/lib.sh
[ -x tools/shunt ] || [ "${top_builddir:-}" ] || top_builddir=$(cd "$(dirname "$0")/../../build" && pwd)
. "$(dirname "$0")/../calls/lib.sh"
folder=$(cd "$(dirname "$0")" && pwd)
[ "$(id -u)" = 0 ] || { echo "1..0 # SKIP only root can be several users"; exit 77; }
need unshare setpriv python3 jq ss ip
[ "$("$folder/../alone.sh" printenv ALONE 2> /dev/null)" = yes ] || { echo "1..0 # SKIP there are no namespaces to be had"; exit 77; }

# What other users run must be readable for them.
export REACH_BIN=$work/bin REACH_TOOL=$work/bin/tools/shunt REACH_ROWS=$work/rows top_builddir
chmod 755 "$work"
mkdir -p "$REACH_BIN/tools" "$REACH_BIN/.libs"
cp "$builddir/tools/shunt" "$REACH_BIN/tools/"
cp "$builddir/.libs/libshunt.so" "$REACH_BIN/.libs/"
cp "$folder/talk.py" "$folder/../apps/memcached.py" "$REACH_BIN/"
chmod -R a+rX "$REACH_BIN"
"$REACH_TOOL" run true || { echo "Bail out! shunt run does not work"; exit 99; }

tell() { # VERDICT TEXT [WHY]
	case $1 in
	skip) skip "$2" "$3" ;;
	todo)
		tests=$((tests + 1))
		echo "not ok $tests - $2 # TODO" ;;
	now)
		ok "$2 # TODO is as it should be: \`now\`" ;;
	*) $1 "$2" ;;
	esac
}

: > "$work/all"
[ -z "$json" ] || exec {out}>&1 > "$work/tap"
for layout in "${chosen[@]}"; do
	find_layout $layout
	: > "$REACH_ROWS"
	TMPDIR=$work timeout -k 30 ${LIMIT:-300} "$folder/../alone.sh" bash "$folder/reach.sh" --one $layout $expected $state || {
		status=$?
		not_ok "$layout: its function comes to its end, not to status $status"
	}
	[ -s "$REACH_ROWS" ] || [ "$REACH_QUICK" ] || not_ok "$layout: it has rows"
	cat "$REACH_ROWS" >> "$work/all"
	while IFS=$'\t' read -r verdict text why; do
		tell $verdict "$text" "$why"
	done < <(python3 "$folder/figures.py" verdicts "$REACH_ROWS")
done
echo "# $((SECONDS - begun)) s"
[ -z "$document" ] || python3 "$folder/figures.py" document "$work/all" "$layouts" > "$document"
[ -z "$json" ] || python3 "$folder/figures.py" json "$work/all" >&"$out"
plan
