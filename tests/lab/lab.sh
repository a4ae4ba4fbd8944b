#!/bin/bash
# Tests that need RDMA devices, run in a guest whose kernel has software ones (rxe). TAP. README.md tells more.
#
#	lab.sh			all of them
#	lab.sh NAME...		these
#	lab.sh --list		their names
#	LAB_ACCEL=kvm|tcg	how the guest is run
#	LAB_KERNEL=PACKAGE	with which Debian kernel
#	LAB_KEEP=DIR		keeps the logs and results there
# shellcheck disable=SC2317 # called by name
# shellcheck source-path=SCRIPTDIR
set -u
lab_dir=$(cd "$(dirname "$0")" && pwd)
lab_source=$(cd "$lab_dir/../.." && pwd)
lab_build=$(cd "${SHUNT_BUILD:-${top_builddir:-$PWD}}" && pwd) || exit
lab_cache=${LAB_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/shunt-lab}
# shellcheck source=../../tools/build.sh
. "$lab_source/tools/build.sh"
# shellcheck source=kernel.sh
. "$lab_dir/kernel.sh"
# shellcheck source=machine.sh
. "$lab_dir/machine.sh"
boot_limit=120	# seconds, as all limits
slack=30	# for the guest to end a test itself
count=0 failures=0
running='' running_count='' running_plan=''	# the test that the guest is at
ended=" "

ok() {
	count=$((count + 1))
	echo "ok $count - $*"
}

not_ok() {
	count=$((count + 1)) failures=$((failures + 1))
	echo "not ok $count - $*"
}

skip_all() {
	echo "1..0 # SKIP $*"
	exit 77
}

all_tests() {
	local script
	for script in "$lab_dir"/guest/*.sh; do
		script=${script##*/}
		[ "$script" = lib.sh ] || echo "${script%.sh}"
	done
}

test_begin() {
	local limit
	running=$1 running_count=0 running_plan=
	limit=$(sed -n 's/^# limit: //p' "$lab_dir/guest/$1.sh")
	machine_allow one $((${limit:-120} + slack))
}

test_end() { # NAME STATUS SECONDS
	local name=$1 status=$2 took=$3
	if [ "$status" = 124 ] || [ "$status" = 137 ]; then
		not_ok "$name: not over after $took s"
	elif [ -z "$running_plan" ]; then
		not_ok "$name: ended in its midst, with status $status"
	elif [ "$running_plan" != "$running_count" ]; then
		not_ok "$name: $running_count results, planned were $running_plan"
	fi
	[ "$status" = 0 ] || [ "$status" = 77 ] || tail -n 20 "$lab_work/one/share/$name.err" | sed 's/^/#   /'
	echo "# $name took $took s"
	ended+="$name "
	running=
	machine_allow one "$slack"
}

# A line of the guest. Its tests count for themselves, we count on.
heard() {
	local line=$1 name status took
	case $line in
	"lab: test "*) test_begin "${line#lab: test }" ;;
	"lab: end "*) read -r _ _ name status took <<<"$line" && test_end "$name" "$status" "$took" ;;
	1..0*) running_plan=0 && ok "$running # SKIP ${line#*SKIP }" ;;
	1..*) running_plan=${line#1..} && running_plan=${running_plan%% *} ;;
	"ok "*) running_count=$((running_count + 1)) && ok "$running: ${line#ok * - }" ;;
	"not ok "*) running_count=$((running_count + 1)) && not_ok "$running: ${line#not ok * - }" ;;
	"#"*) echo "$line" ;;
	esac
}

# The guest is gone, or has been too slow: whatever has not come to its end has failed.
lost() { # WHY TEST…
	local why=$1 name
	shift
	for name; do
		[[ $ended = *" $name "* ]] || not_ok "$name: $why${running:+ during $running}"
	done
}

finish() {
	trap - EXIT
	machines_stop
	[ -n "${LAB_KEEP:-}" ] || [ "$failures" -gt 0 ] || rm -rf "$lab_work"
}

[ "${1-}" != --list ] || { all_tests && exit; }
# shellcheck disable=SC2046 # names are words
[ $# -gt 0 ] || set -- $(all_tests)
for name; do
	[ -f "$lab_dir/guest/$name.sh" ] || { echo "lab.sh: there is no test $name; see --list" >&2 && exit 2; }
done
[ "$(uname -m)" = x86_64 ] || skip_all "the guest is an x86-64 kernel"
[ -x "$lab_build/tools/shunt" ] || skip_all "$lab_build is no build folder; start this in one"
# shellcheck disable=SC2086 # words
need_packages "to run a guest" $lab_packages >&2 || skip_all "not installed, and cannot be: one of $lab_packages"
command -v qemu-system-x86_64 busybox >/dev/null || skip_all "there is no qemu-system-x86_64 or no busybox"
kernel_find || skip_all "there is no package of a kernel to be had"

lab_work=${LAB_KEEP:-$(mktemp -d "${TMPDIR:-/tmp}/shunt-lab.XXXXXX")}
mkdir -p "$lab_work" || exit
trap finish EXIT
trap 'exit 130' INT TERM
initramfs_make "$lab_work/initramfs.cpio" || { echo "Bail out! no initramfs" && exit 99; }
mkdir -p "$lab_work/one/share"
printf '%s=%q\n' lab_source "$lab_source" lab_build "$lab_build" lab_tests "$*" >"$lab_work/one/share/job"

echo "# ${kernel##*/}, $(machine_accel)"
machine_start one
machine_allow one "$boot_limit"
machine_follow one heard
case $? in
1) lost "the guest died" "$@" ;;
2) lost "the guest did not answer in time" "$@" ;;
*) lost "the guest left it out" "$@" ;;
esac
[ "$failures" = 0 ] || machine_last_words one
echo "1..$count"
exit $((failures > 0))
