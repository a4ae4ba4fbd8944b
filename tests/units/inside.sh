#!/bin/bash
# SPDX-License-Identifier: MIT
# Services as Debian ships them, in a system of their own that systemd has booted (tools/package --units): under Shunt they
# start, a client of another user is on the link, after a reload and a restart, too; and they start when Shunt has been
# removed. TAP at standard output.
set -u
shopt -s lastpipe
tests=0
client=

check() { # WHAT COMMAND...
	local what=$1
	shift
	tests=$((tests + 1))
	if "$@" > /tmp/said 2>&1; then
		echo "ok $tests - $what"
	else
		sed 's/^/# /' /tmp/said | tail -n 30
		echo "not ok $tests - $what"
	fi
}

# --- clients: one connection each, and request after request on it ---

# A worker that ends after a reload closes its connections, perhaps under a request.
http() { # PORT [PATH]
	python3 - "$1" "${2:-/}" <<-'END'
		import socket, sys
		port, path = int(sys.argv[1]), sys.argv[2]
		def ask(connection):
		    stream = connection.makefile("rb")
		    for request in range(90):
		        connection.sendall(b"HEAD %s HTTP/1.1\r\nHost: localhost\r\n\r\n" % path.encode())
		        while stream.readline().strip():
		            pass
		while True:
		    with socket.create_connection(("127.0.0.1", port)) as connection:
		        try:
		            ask(connection)
		        except (ConnectionResetError, BrokenPipeError):
		            pass
	END
}

words() { # PORT WORD: asks with a line, and waits for one
	python3 - "$@" <<-'END'
		import socket, sys
		connection = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
		stream = connection.makefile("rb")
		while True:
		    connection.sendall(sys.argv[2].encode() + b"\r\n")
		    stream.readline() or sys.exit(1)
	END
}

mqtt() { # PORT: CONNECT, then PINGREQ
	python3 - "$1" <<-'END'
		import socket, sys
		connection = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
		connection.sendall(bytes([0x10, 13, 0, 4]) + b"MQTT" + bytes([4, 2, 0, 0, 0, 1]) + b"a")
		connection.recv(4)
		while True:
		    connection.sendall(b"\xc0\x00")
		    connection.recv(2) or sys.exit(1)
	END
}

sql() { # COMMAND...: which reads statements
	while echo 'select 1;'; do :; done 2> /dev/null | "$@" > /dev/null
}

ask() { # UNIT
	case $1 in
	nginx) http 80 ;;
	apache2) http 81 ;;
	haproxy) http 7001 ;;
	squid) http 3128 http://127.0.0.1:80/ ;;
	redis-server) words 6379 PING ;;
	memcached) words 11211 version ;;
	mosquitto) mqtt 1883 ;;
	mariadb) sql mariadb -h 127.0.0.1 -u asker -pasked ;;
	postgresql@*) PGPASSWORD=asked sql psql -q -h 127.0.0.1 -U asker postgres ;;
	esac
}

port_of() { # UNIT
	case $1 in
	nginx) echo 80 ;; apache2) echo 81 ;; haproxy) echo 7001 ;; squid) echo 3128 ;; redis-server) echo 6379 ;;
	memcached) echo 11211 ;; mosquitto) echo 1883 ;; mariadb) echo 3306 ;; postgresql@*) echo 5432 ;;
	esac
}

# --- what is looked at ---

within() { # COMMAND...
	local until=$((SECONDS + 30))
	until "$@"; do
		[ $SECONDS -lt $until ] || return 1
		sleep 0.1
	done
}

# A server's connection at this port has had bytes by the link.
linked_at() { # PORT
	shunt stat --json | python3 -c '
import json, sys
rows = [stream for process in json.load(sys.stdin) for stream in process.get("streams", [])]
at = [row for row in rows if row.get("local", "").endswith(":" + sys.argv[1])]
print(*("%s rx %s tx %s %s" % (row["local"], row["rx"], row["tx"], row["reason"]) for row in at[:3]), sep="\n")
sys.exit(not any(row["rx"]["link"] and row["tx"]["link"] for row in at))' "$1"
}

is_linked() { # UNIT: by a client of the user nobody
	local rc=0
	setpriv --reuid=nobody --regid=nogroup --clear-groups shunt run bash "$0" --ask "$1" 2> /tmp/client.err &
	client=$!
	within linked_at "$(port_of "$1")" || rc=1
	pkill -P "$client" 2> /dev/null
	kill "$client" 2> /dev/null
	wait "$client" 2> /dev/null
	[ "$rc" = 0 ] || { cat /tmp/client.err; systemctl status "$1" --no-pager -n 5; }
	return "$rc"
}

answers() { # UNIT
	(echo > "/dev/tcp/127.0.0.1/$(port_of "$1")") 2> /dev/null
}

is_up() { # UNIT
	systemctl is-active --quiet "$1" && within answers "$1" && return
	systemctl status "$1" --no-pager -n 8
	return 1
}

does() { # VERB UNIT
	systemctl "$1" "$2" && is_up "$2"
}

can_reload() { # UNIT
	[ "$(systemctl show -P CanReload "$1")" = yes ]
}

quiet_journal() { # UNIT: the loader has no complaint
	! journalctl -u "$1" -b --no-pager | grep 'ERROR: ld\.so'
}

[ "${1-}" != --ask ] || { ask "$2"; exit; }

# --- the scene: where two are at one port, one has another ---

sed -i 's/^Listen 80$/Listen 81/' /etc/apache2/ports.conf
cat >> /etc/haproxy/haproxy.cfg <<-'END'

	listen web
		bind 127.0.0.1:7001
		http-request return status 200 content-type text/plain string small
END
systemctl restart apache2 haproxy
mariadb -e "create user asker@'%' identified by 'asked'"
su postgres -c "psql -qc \"create role asker login password 'asked'\""
units=(nginx apache2 haproxy squid redis-server memcached mosquitto mariadb "postgresql@$(ls /etc/postgresql)-main")

check "the file system of /run/shunt" mountpoint -q /run/shunt
check "they are enabled" shunt service enable --now "${units[@]}"
for unit in "${units[@]}"; do
	check "$unit: up" is_up "$unit"
	check "$unit: the library is there" quiet_journal "$unit"
	check "$unit: on the link" is_linked "$unit"
	if can_reload "$unit"; then
		check "$unit: up after a reload" does reload "$unit"
		check "$unit: on the link after a reload" is_linked "$unit"
	fi
	check "$unit: up after a restart" does restart "$unit"
	check "$unit: on the link after a restart" is_linked "$unit"
done
cp -r /etc/systemd/system /tmp/enabled
check "the package is removed" dpkg -r shunt
check "no drop-in is left" bash -c '! ls /etc/systemd/system/*.d/shunt.conf 2> /dev/null'
systemctl daemon-reload
for unit in "${units[@]}"; do
	check "$unit: up without Shunt" does restart "$unit"
done
# Somebody keeps the drop-ins all the same.
cp -r /tmp/enabled/. /etc/systemd/system/
systemctl daemon-reload
for unit in "${units[@]}"; do
	check "$unit: up with a drop-in and no library" does restart "$unit"
done
echo "1..$tests"
