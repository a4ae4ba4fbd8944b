#!/bin/bash
# SPDX-License-Identifier: MIT
# Runs in the guest: makes the devices, runs the tests of the job, and says on the second serial line
# what comes of them.
#
#	lab: test NAME			what follows is TAP of this test
#	lab: end NAME STATUS SECONDS	124: its time was over
#	lab: freeze MACHINE		said by a test: let it stand still
#	lab: thaw MACHINE		and go on
#	lab: done
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/tmp LC_ALL=C.UTF-8
# shellcheck disable=SC1091
. /tmp/lab/job # lab_source, lab_build, lab_self, lab_kind, lab_tests, lab_modules, LAB_STRICT, LAB_QUICK, LAB_DEVICE, TURNS, SIZES
exec {said}>/dev/ttyS1
stty raw -echo -F /dev/ttyS1
# shellcheck disable=SC2154
export top_srcdir=$lab_source top_builddir=$lab_build lab_self lab_modules LAB_STRICT LAB_QUICK LAB_DEVICE TURNS SIZES

say() {
	echo "$*" >&"$said"
}

# Two ends of a cable, each with an address and an RDMA device. That both are this host's own must not
# make the kernel take the short way between them: packets from one address to the other leave by the
# cable, and are taken when they come from it.
cable_make() {
	local i other
	ip link set lo up
	ip link add v0 type veth peer name v1
	for i in 0 1; do
		other=$((1 - i))
		ip address add "10.77.0.$((i + 1))/24" dev "v$i"
		ip link set "v$i" up
		echo 1 >"/proc/sys/net/ipv4/conf/v$i/accept_local"
		ip route add "10.77.0.$((other + 1))" dev "v$i" table "10$i"
		ip rule add pref 10 from "10.77.0.$((other + 1))" to "10.77.0.$((i + 1))" iif "v$i" lookup local
		ip rule add pref 20 from "10.77.0.$((i + 1))" to "10.77.0.$((other + 1))" lookup "10$i"
		rdma link add "rxe$i" type rxe netdev "v$i" || say "# there is no rxe$i"
	done
	ip rule add pref 100 lookup local
	ip rule del pref 0
}

# The ends of two wires to the other machine: .1 is one, .2 is two. Addresses outlive an `ip link set down`. On the first
# wire there are two networks.
wire_make() {
	local last=1 i
	[ "$lab_self" = one ] || last=2
	ip link set lo up
	echo 1 >/proc/sys/net/ipv6/conf/all/keep_addr_on_down
	ip address add "10.78.0.$last/24" dev eth0
	ip address add "fd78::$last/64" dev eth0 nodad
	ip address add "10.80.0.$last/24" dev eth0
	ip address add "10.79.0.$last/24" dev eth1
	for i in 0 1; do
		ip link set "eth$i" up
		rdma link add "rxe$i" type rxe netdev "eth$i" || say "# there is no rxe$i"
	done
}

run() {
	# shellcheck disable=SC2154
	local name=$1 script=$lab_source/tests/lab/$lab_kind/$1.sh limit start=$SECONDS
	limit=$(sed -n 's/^# limit: //p' "$script")
	say "lab: test $name"
	cd /tmp || return
	timeout -k 5 "${limit:-3000}" bash "$script" </dev/null 2>"/tmp/lab/$name.err" |
		tee "/tmp/lab/$name.tap" >&"$said"
	say "lab: end $name ${PIPESTATUS[0]} $((SECONDS - start))"
}

# shellcheck disable=SC2154
if [ "$lab_kind" = pair ]; then wire_make; else cable_make; fi
say "# $(uname -r), up after $(cut -d ' ' -f 1 /proc/uptime) s"
# shellcheck disable=SC2154
for name in $lab_tests; do
	run "$name"
done
dmesg >/tmp/lab/dmesg
say "lab: done"
stty -F /dev/ttyS1 drain raw -echo # until the line has carried it
