#!/bin/bash
# SPDX-License-Identifier: MIT
# OpenLDAP: entries added, searched, changed and removed, several clients at once.
# shellcheck disable=SC2086,SC2317 # what is put before a command is several words; functions are called by name
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$0")/lib.sh"
requires slapd ldapadd ldapsearch ldapmodify ldapdelete
version=$(slapd -VV 2>&1 | awk '/slapd/ { print $4; exit }')
who="-x -D cn=admin,dc=test -w secret -H ldap://127.0.0.1:7001"

entries() {
	printf 'dn: dc=test\nobjectClass: dcObject\nobjectClass: organization\ndc: test\no: test\n\n'
	for ((i = 0; i < 500; i++)); do
		printf 'dn: ou=unit-%d,dc=test\nobjectClass: organizationalUnit\nou: unit-%d\ndescription: number %d\n\n' $i $i $i
	done
}

ldap() { # COMMAND ARGUMENT...
	timeout $patience $client "$1" $who "${@:2}"
}

add() {
	entries | ldap ldapadd | grep -c 'adding new entry'
}

search() {
	ldap ldapsearch -LLL -b dc=test "${1:-(objectClass=*)}"
}

change() {
	printf 'dn: ou=unit-7,dc=test\nchangetype: modify\nreplace: description\ndescription: changed\n' | ldap ldapmodify
	ldap ldapdelete ou=unit-8,dc=test
	search '(|(ou=unit-7)(ou=unit-8))'
}

together() {
	local i pids=()
	for i in 1 2 3 4; do
		search > "$dir/found.$i" &
		pids+=($!)
	done
	for i in "${pids[@]}"; do wait $i || return; done
	cat "$dir"/found.[1-4] | grep -c ^dn:
}

drive() {
	mkdir -p "$dir/data"
	cat > "$dir/conf" <<-END
		include /etc/ldap/schema/core.schema
		modulepath /usr/lib/ldap
		moduleload back_mdb
		pidfile $dir/pid
		database mdb
		suffix dc=test
		rootdn cn=admin,dc=test
		rootpw secret
		sizelimit 10000
		directory $dir/data
	END
	start slapd $server slapd -d 0 -h ldap://127.0.0.1:7001 -f "$dir/conf"
	up 7001 || return
	same "500 entries are added" add
	marks $pid
	same "all are found" search
	same "one is changed, one removed" change
	same "four clients at once" together
	left $pid
	stop $pid
}

matrix drive
