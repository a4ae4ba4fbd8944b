#!/bin/bash
# SPDX-License-Identifier: MIT
# What `shunt service` makes for units of Debian. systemd reads both without a complaint. A list of the
# unit is added to where it has one, and nowhere else. As root: the unit's own command, with its user and the environment
# of both, ends with a server that listens and has the library, whatever wrappers there are between. haproxy is reloaded,
# and still carries connections on the link. It runs without systemd, in namespaces
# where what it writes is thrown away. Units that are not installed are skipped. TAP.
# shellcheck disable=SC2317 # functions are called by name
# shellcheck source-path=SCRIPTDIR source=calls/lib.sh
set -u
. "$(dirname "$0")/calls/lib.sh"
# shellcheck source=tests/units.sh
. "$here/../units.sh"
source=${top_srcdir:-$(cd "$(dirname "$0")/.." && pwd)}
units=${UNITS:-/lib/systemd/system}
chmod 755 "$work"

# Of a file, or of several: the values of a key, those of later files last.
values() { # KEY FILE...
	local key=$1
	shift
	cat "$@" 2> /dev/null | sed -n "s/^$key=//p"
}

drop_in() { # NAME
	"$builddir/tools/shunt" service show "$1"
}

is_read() { # NAME: systemd takes it
	local folder=$work/units
	rm -rf "$folder"
	mkdir -p "$folder/$1.service.d"
	cp "$units/$1.service" "$folder"
	cp "$work/drop-in" "$folder/$1.service.d/shunt.conf"
	SYSTEMD_UNIT_PATH=$folder: systemd-analyze verify --man=no --recursive-errors=no "$folder/$1.service" > "$work/said" 2>&1 &&
		! grep -q 'shunt.conf' "$work/said" && return
	sed 's/^/# /' "$work/said"
	return 1
}

adds_to_lists() { # NAME
	local key rc=0
	for key in RestrictAddressFamilies:RestrictAddressFamilies NoExecPaths:ExecPaths; do
		[ "$(values "${key%:*}" "$units/$1.service")" ] && [ ! "$(values "${key#*:}" "$work/drop-in")" ] &&
			echo "# the unit has ${key%:*}=, the drop-in no ${key#*:}=" && rc=1
		[ ! "$(values "${key%:*}" "$units/$1.service")" ] && [ "$(values "${key#*:}" "$work/drop-in")" ] &&
			echo "# the drop-in has ${key#*:}=, and would make a list where the unit has none" && rc=1
	done
	return "$rc"
}

# Options with a path that must be there, or the unit does not start: all but those that say "-" before it.
survives_removal() { # FILE
	! grep -E '^(Read(Write|Only)|Inaccessible|Exec|NoExec|Bind|BindReadOnly)Paths=[^-]|^(EnvironmentFile|WorkingDirectory)=[^-]|^(RootDirectory|RootImage|LoadCredential)=.' "$1" |
		sed 's/^/# /' | grep .
}

# --- what a unit starts, without systemd ---

listeners() { # PORT
	ss -ltnpH "sport = :$1" | grep -o 'pid=[0-9]*' | cut -d= -f2 | sort -u
}

listened() {
	[ "$(listeners "$1")" ]
}

# loaded PORT: "yes" or "no" for each process that listens there, into $library. False: nobody does. The process that
# started a daemon may have ended since it was listed.
loaded() {
	local process maps
	library=
	for process in $(listeners "$1"); do
		maps=$(cat "/proc/$process/maps" 2>/dev/null)
		[ -z "$maps" ] || library+=$(grep -q '/libshunt.so$' <<<"$maps" && echo yes || echo no)
	done
	[ "$library" ]
}

has_library() { # PORT
	within loaded "$1" && [[ $library != *no* ]]
}

# A connection to the PORT that is kept gets to the link, or says why not.
is_linked() {
	timeout "${WITHIN:-120}" env SHUNT_TUNE=claim_ms=60000 "$builddir/tools/shunt" run python3 - "$1" "$builddir/tools/shunt" <<-'END'
		import json, os, socket, subprocess, sys
		connection = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
		while True:
		    for request in range(100):
		        connection.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
		        answer = b""
		        while not answer.endswith(b"small"):
		            answer += connection.recv(4096) or sys.exit("# the server has ended")
		    said = subprocess.run([sys.argv[2], "stat", "--json", str(os.getpid())], stdout=subprocess.PIPE)
		    [stream] = json.loads(said.stdout)[0]["streams"]
		    if stream["rx"]["link"]:
		        sys.exit(0)
		    if stream["reason"]:
		        sys.exit("# on TCP: " + stream["reason"])
	END
}

# reloads PIDFILE PORT: as its unit has it. Other processes listen then, with the listeners of the former.
reloads() {
	local before
	before=$(listeners "$2")
	kill -USR2 "$(cat "$1")" && within are_others "$2" "$before"
}

are_others() { # PORT PIDS
	local now
	now=$(listeners "$1")
	[ "$now" ] && ! grep -qxF -e "$2" <<<"$now"
}

# Folders of services are there as empty ones; databases as they are, and what is written to them is thrown away.
scenery() {
	mount --make-rprivate / && mount -t tmpfs tmpfs /run && mkdir -m 1777 /run/lock || return 77
	mount -t tmpfs -o mode=755 tmpfs /var/log || return 77
	local name
	for name in nginx apache2 redis postgresql memcached haproxy squid; do mkdir -m 777 "/run/$name" "/var/log/$name"; done
	mkdir /run/upper /run/work
	mount -t overlay overlay -o "lowerdir=/var/lib,upperdir=/run/upper,workdir=/run/work" /var/lib || return 77
}

# run_unit FILE DROP-IN PORT [reload]: in namespaces of its own.
run_unit() {
	local user command variable reload=${4:-}
	scenery || return
	while read -r variable; do
		eval "set -- \"\$1\" \"\$2\" \"\$3\" $variable"	# quoted as in a shell
		for variable in "${@:4}"; do export "${variable?}"; done
	done < <(values Environment "$1" "$2")
	[ -z "${OWN_CONFIG:-}" ] || export CONFIG=$OWN_CONFIG
	command=$(values ExecStart "$1" "$2" | tail -n 1)
	command=${command#-}
	command=${command//%i/${INSTANCE:-}}
	user=$(values User "$1" | tail -n 1)
	eval "${user:+$(as_user "$user")} $command" > "$work/started" 2>&1 < /dev/null &
	children+=("$!")
	if has_library "$3"; then
		[ "$reload" ] || return 0
		is_linked "$3" && reloads /run/haproxy.pid "$3" && is_linked "$3" && return
	fi
	echo "# listening at port $3: $(listeners "$3" | paste -sd ' ')"
	sed 's/^/# /' "$work/started" | tail -n 5
	return 1
}

starts() { # UNIT DROP-IN PORT [reload]
	local rc=0
	unshare -m -- bash "$0" --run "$units/$1.service" "${@:2}" || rc=$?
	clean_listeners "$3"
	return "$rc"
}

clean_listeners() { # PORT
	local process
	for process in $(listeners "$1"); do kill "$process"; done
	within nobody_listens "$1"
} 2> /dev/null

nobody_listens() {
	! listened "$1"
}

# pg_ctlcluster gives its server the variables of the cluster's own file. A cluster of the machine, or nothing.
cluster() {
	local files=(/etc/postgresql/*/*/environment) file=
	file=${files[0]}
	[ -e "$file" ] || return
	file=${file#/etc/postgresql/}
	echo "${file%/environment}"
}

cluster_port() { # VERSION/NAME: which pg_ctlcluster waits for, too
	sed -n 's/^port = \([0-9]*\).*/\1/p' "/etc/postgresql/$1/postgresql.conf"
}

run_cluster() { # VERSION/NAME PORT
	scenery || return
	mkdir /run/etc /run/etcwork
	mount -t overlay overlay -o "lowerdir=/etc,upperdir=/run/etc,workdir=/run/etcwork" /etc || return 77
	"$builddir/tools/shunt" service enable "postgresql@${1/\//-}" > /dev/null || return
	LD_PRELOAD='' pg_ctlcluster --skip-systemctl-redirect "${1%/*}" "${1#*/}" start > "$work/started" 2>&1
	has_library "$2" && return
	sed 's/^/# /' "$work/started" | tail -n 5
	return 1
}

starts_cluster() {
	local rc=0
	unshare -m -- bash "$0" --cluster "$1" "$2" || rc=$?
	clean_listeners "$2"
	return "$rc"
}

if [ "${1-}" = --cluster ]; then
	run_cluster "$2" "$3"
	exit
fi
if [ "${1-}" = --run ]; then
	run_unit "${@:2}"
	exit
fi

# --- all of them ---

ports="nginx:80 apache2:80 memcached:11211 redis-server:6379 squid:3128 haproxy:7001"
haproxy_config /var/lib/haproxy > "$work/haproxy.cfg"

start_each() {
	local one name port
	for one in $ports; do
		name=${one%:*} port=${one#*:}
		if [ ! -e "$units/$name.service" ]; then
			skip "$name: its server has the library" "the unit is not installed"
			continue
		fi
		drop_in "$name" > "$work/drop-in"
		if [ "$name" = haproxy ]; then
			OWN_CONFIG=$work/haproxy.cfg check "$name: its server has the library, and a reload's connections are on the link" \
				starts "$name" "$work/drop-in" "$port" reload
			continue
		fi
		check "$name: its server has the library" starts "$name" "$work/drop-in" "$port"
	done
	if [ "$(cluster)" ]; then
		check "postgresql: its server has the library" starts_cluster "$(cluster)" "$(cluster_port "$(cluster)")"
	else
		skip "postgresql: its server has the library" "there is no cluster"
	fi
}

# --- the monitor ---

verifies_units() {
	systemd-analyze verify --man=no --recursive-errors=no "$source/contrib/systemd/shunt-monitor.service" \
		"$source/contrib/systemd/run-shunt.mount" > "$work/said" 2>&1 &&
		[ ! -s "$work/said" ] && return
	sed 's/^/# /' "$work/said"
	return 1
}

monitor_answers() { # the code of its page
	[ "$(python3 -c 'import urllib.request; print(urllib.request.urlopen("http://127.0.0.1:9477/healthz").status)' 2> /dev/null)" = 200 ]
}

# Its unit's own command, where nobody has been named.
starts_monitor() {
	# shellcheck disable=SC2034 # the command has it
	local command rc=0 OPTIONS='' monitor
	command=$(values ExecStart "$source/contrib/systemd/shunt-monitor.service")
	eval "PATH=$builddir/tools:\$PATH $command" > "$work/started" 2>&1 < /dev/null &
	monitor=$!
	within ends_or_answers "$monitor"
	monitor_answers || rc=1
	kill "$monitor" 2> /dev/null
	wait "$monitor" 2> /dev/null
	[ "$rc" = 0 ] || sed 's/^/# /' "$work/started"
	return "$rc"
}

ends_or_answers() { # PID
	! kill -0 "$1" 2> /dev/null || monitor_answers
}

command -v systemd-analyze > /dev/null || { echo "1..0 # SKIP systemd-analyze is missing"; exit 77; }
for name in nginx apache2 haproxy memcached redis-server mariadb mosquitto squid; do
	if [ ! -e "$units/$name.service" ]; then
		skip "$name: its drop-in" "the unit is not installed"
		continue
	fi
	drop_in "$name" > "$work/drop-in"
	check "$name: systemd reads it" is_read "$name"
	check "$name: it adds to lists that the unit has" adds_to_lists "$name"
	check "$name: its unit starts without the library" survives_removal "$work/drop-in"
done
check "shunt-monitor, run-shunt.mount: systemd reads them" verifies_units
if [ "${ALONE:-}" = yes ] && "$builddir/tools/shunt" monitor --help > /dev/null 2>&1; then
	check "shunt-monitor: it serves where no user is let in" starts_monitor
else
	skip "shunt-monitor: it serves where no user is let in" "it is built without libmicrohttpd, or there is no network of its own"
fi
if [ "$(id -u)" = 0 ] && [ "${ALONE:-}" = yes ] && unshare -m true 2> /dev/null; then
	start_each
else
	skip "servers have the library" "only root with a network of its own can start units"
fi
plan
