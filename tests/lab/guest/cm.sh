# SPDX-License-Identifier: MIT
# limit: 1500
# The connection manager as a rendezvous: tests/lab/cm/, each of whose tests is one of ours.
# shellcheck shell=bash disable=SC2016,SC2317 source-path=SCRIPTDIR source=lib.sh
. "${BASH_SOURCE%/*}/lib.sh"

program=$builddir/tests/lab/cm/cm
need "$program"

# The cable carries IPv6, too, and who has which address is known: the neighbours would not ask their own host.
for i in 0 1; do
	other=$((1 - i))
	ip -6 address add "fd77::$((i + 1))/64" dev "v$i" nodad
	ip -6 neighbour replace "fd77::$((other + 1))" lladdr "$(cat "/sys/class/net/v$other/address")" dev "v$i"
	ip -6 route add "fd77::$((other + 1))" dev "v$i" table "10$i"
	ip -6 rule add pref 10 from "fd77::$((other + 1))" to "fd77::$((i + 1))" iif "v$i" lookup local
	ip -6 rule add pref 20 from "fd77::$((i + 1))" to "fd77::$((other + 1))" lookup "10$i"
done
ip -6 rule add pref 100 lookup local
ip -6 rule del pref 0
# Packets to this one leave, and nobody takes them.
ip neighbour replace 10.77.0.50 lladdr 02:00:00:00:00:50 dev v0
# A device that a test may remove.
ip link add v2 type veth peer name v3
ip address add 10.78.0.1/24 dev v2
ip link set v2 up
ip link set v3 up
ip neighbour replace 10.78.0.50 lladdr 02:00:00:00:00:50 dev v2
rdma link add rxe2 type rxe netdev v2

# The file that the linker would find, hidden from one process.
without_library() {
	unshare -m bash -c 'mount --bind /dev/null "$(realpath "$1")" && exec "$2" hidden' - \
		"$(ldconfig -p | sed -n 's/.*librdmacm\.so\.1 .*=> //p' | head -n 1)" "$program"
}

cmocka_report 21 < <(timeout 1400 "$program" 2>&1)
ip link delete v2
cmocka_report 1 < <(without_library 2>&1)
plan
