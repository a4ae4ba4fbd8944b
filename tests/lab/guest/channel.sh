# SPDX-License-Identifier: MIT
# limit: 900
# The channel of a link over TCP: tests/lab/channel, each of whose tests is one of ours.
# shellcheck shell=bash source-path=SCRIPTDIR source=lib.sh
. "${BASH_SOURCE%/*}/lib.sh"

program=$builddir/tests/lab/channel
need "$program"
# Packets to this one leave, and nobody takes them.
ip neighbour replace 10.77.0.50 lladdr 02:00:00:00:00:50 dev v0

cmocka_report 5 < <(timeout 800 "$program" 2>&1)
plan
