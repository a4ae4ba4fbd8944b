# SPDX-License-Identifier: MIT
# limit: 2400
# Explicit huge pages for the memory of links (XR-39h) in a guest that has some: the blocks that rxe has registered have
# them, and give them back. Then a link in a guest without any: ordinary pages, and one line in the log.
# shellcheck shell=bash disable=SC2086,SC2154,SC2317 source-path=SCRIPTDIR source=lib.sh
. "${BASH_SOURCE%/*}/lib.sh"

need "$transfer" "$builddir/tests/unit/guard_test" "$builddir/tests/unit/arena_test" jq
pool=/sys/kernel/mm/hugepages/hugepages-2048kB

# set_pool COUNT: the guest has so many.
set_pool() {
	echo "$1" > $pool/nr_hugepages
	[ "$(cat $pool/free_hugepages)" = "$1" ]
}

has_huge() {
	grep -qs '^VmFlags:.* ht' /proc/[0-9]*/smaps
}

all_free() {
	[ "$(cat $pool/free_hugepages)" = 32 ]
}

# transfer_pages NAME: each byte is checked.
transfer_pages() {
	rm -f "$work"/run.stat.*
	SHUNT_LOG=warn pair "$work/run" "$shunt_run" "$shunt_run" -m blocking -n 2M --one-way -c 2 2> "$work/log"
}

check "the guest has 32 huge pages" set_pool 32
check "mappings have them, and give them back" "$builddir/tests/unit/guard_test"
check "blocks of an arena do" "$builddir/tests/unit/arena_test"
if ! knows_device "$lab_device"; then
	skip "links" "this build does not know SHUNT_DEVICE=$lab_device"
	plan
fi
need_device "$lab_device"
export TEST_LINK=600000 TEST_LIMIT=800 SHUNT_TUNE=${SHUNT_TUNE-},pages=huge
transfer_pages &
job=$!
! is_verbs || check "registered memory of a link has them" within has_huge
wait "$job"
check "a transfer, each byte checked" test $? = 0
check_share "with huge pages" 90 "$work"/run.stat.*
check_device "with huge pages" "$work"/run.stat.*
check "all are given back" within all_free
check "nobody was told of ordinary ones" test -z "$(grep -h 'ordinary pages' "$work"/log "$work"/run* 2> /dev/null)"
check "the guest has none" set_pool 0
check "a transfer without them, each byte checked" transfer_pages
check_share "without huge pages" 90 "$work"/run.stat.*
! is_verbs || check "a process says so once" test -n "$(grep -h 'ordinary pages' "$work"/log "$work"/run* 2> /dev/null)"
plan
