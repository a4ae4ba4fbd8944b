# SPDX-License-Identifier: MIT
# limit: 3600
# Plain programs over RDMA: their transcripts are those of a bare run. One case or two of each kind; all of them
# (tests/calls/diff.sh) take a quarter of an hour in a guest without hardware help.
# None is about times: the clock of such a guest ends a bare recv() too early now and then.
# shellcheck shell=bash disable=SC2154 source-path=SCRIPTDIR source=lib.sh
. "${BASH_SOURCE%/*}/lib.sh"

cases="connect_nonblocking|accept_much_first|stream_big|stream_toggled|stream_held|receive_peek|receive_waitall"
cases+="|shut_half|shut_wakes_rd|reset_after_data|reset_killed|epoll_level|epoll_edge_in|epoll_oneshot"
cases+="|epoll_nested|poll_table|signal_restart|vector_some|file_sendfile|file_splice|fd_dup|close_under_recv"
cases+="|process_child_takes_over|process_exec|process_passed|thread_two_writers|many_at_once"

need_device "$lab_device"
rm -rf /tmp/calls
export TEST_WARM=1 TEST_LINK=200000	# ms: until it is on the link
PASSES="cold warm" JOBS=1 CALLS_OUT=/tmp/calls "$top_srcdir/tests/calls/diff.sh" "^($cases)$" >"$work/tap" 2>&1
while IFS= read -r line; do
	case $line in
	"ok "*) ok "${line#ok * - }" ;;
	"not ok "*" # TODO "*) todo "${line#not ok * - }" ;;
	"not ok "*) not_ok "${line#not ok * - }" ;;
	"# "*) echo "$line" ;;
	esac
done <"$work/tap"
check "all of them have run" [ "$tests" -ge 50 ]
upgraded=$(grep -l '"upgrades":[1-9]' /tmp/calls/*.warm.stat.* | sed 's/\.warm.*//' | sort -u | wc -l)
check "streams of 8 warm cases were upgraded ($upgraded)" [ "$upgraded" -ge 8 ]
check_device "the link is over RDMA" /tmp/calls/*.stat.*
plan
