#!/bin/bash
# SPDX-License-Identifier: MIT
# Tests that need RDMA devices, run in guests whose kernel has software ones (rxe): those of guest/ in one, those
# of pair/ in two that are joined by a wire. TAP. README.md tells more.
#
#	lab.sh			all of them
#	lab.sh NAME...		these
#	lab.sh --list		their names
#	LAB_ACCEL=kvm|tcg	how the guest is run
#	LAB_KERNEL=PACKAGE	with which Debian kernel
#	LAB_KEEP=DIR		keeps the logs and results there
#	LAB_STRICT=1		a peer that is faster than it should be is a failure
#	LAB_QUICK=1		tests that can be shorter are
#	TURNS=N SIZES="8 64…"	of a measurement; the test says what it does without
#	LAB_INSTALL=no		only with the packages that are installed; the kernel's, which is not installed, may be fetched
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
# shellcheck source=../scratch.sh
. "$lab_source/tests/scratch.sh"
boot_limit=600	# seconds, as all limits
slack=600	# for a guest to end a test itself
count=0 failures=0
# Of each machine: the test that it is at, its results and its plan; the tests that it has ended.
declare -A running=() running_count=() running_plan=() ended=()

ok() {
	count=$((count + 1))
	echo "ok $count - $*"
}

todo() {
	count=$((count + 1))
	echo "not ok $count - $*"
}

not_ok() {
	count=$((count + 1)) failures=$((failures + 1))
	echo "not ok $count - $*"
}

skip_all() {
	echo "1..0 # SKIP $*"
	exit 77
}

# Of one kind: guest or pair.
all_tests() {
	local script
	for script in "$lab_dir/$1"/*.sh; do
		script=${script##*/}
		[ "$script" = lib.sh ] || echo "${script%.sh}"
	done
}

limit_of() { # NAME
	local limit
	limit=$(sed -n 's/^# limit: //p' "$lab_dir"/*/"$1.sh")
	echo "${limit:-3000}"
}

# The modules that tests ask for by a line "# module: NAME".
modules_of() { # TEST…
	local name
	for name; do
		sed -n 's/^# module: //p' "$lab_dir"/*/"$name.sh"
	done | sort -u | tr '\n' ' '
}

# A test of two machines says whose result it is.
title() { # MACHINE NAME
	echo "$2${pairs:+, $1}"
}

test_begin() { # MACHINE NAME
	running[$1]=$2 running_count[$1]=0 running_plan[$1]=
	machine_allow "$1" $(($(limit_of "$2") + slack))
}

test_end() { # MACHINE NAME STATUS SECONDS
	local machine=$1 name=$2 status=$3 took=$4 title
	title=$(title "$machine" "$name")
	if [ "$status" = 124 ] || [ "$status" = 137 ]; then
		not_ok "$title: not over after $took s"
	elif [ -z "${running_plan[$machine]}" ]; then
		not_ok "$title: ended in its midst, with status $status"
	elif [ "${running_plan[$machine]}" != "${running_count[$machine]}" ]; then
		not_ok "$title: ${running_count[$machine]} results, planned were ${running_plan[$machine]}"
	fi
	[ "$status" = 0 ] || [ "$status" = 77 ] || tail -n 20 "$lab_work/$machine/share/$name.err" | sed 's/^/#   /'
	echo "# $title took $took s"
	machines_thaw	# though the test has ended in its midst
	ended[$machine]+=" $name "
	running[$machine]=
	machine_allow "$machine" "$slack"
}

# One more result of the test that a machine is at. The guest's tests count for themselves, we count on.
result() { # MACHINE ok|todo|not_ok TEXT
	running_count[$1]=$((running_count[$1] + 1))
	"$2" "$(title "$1" "${running[$1]}"): $3"
}

heard() { # MACHINE LINE
	local machine=$1 line=$2 name status took
	case $line in
	"lab: test "*) test_begin "$machine" "${line#lab: test }" ;;
	"lab: freeze "*) machine_freeze "${line#lab: freeze }" ;;
	"lab: thaw "*) machine_thaw "${line#lab: thaw }" ;;
	"lab: end "*) read -r _ _ name status took <<<"$line" && test_end "$machine" "$name" "$status" "$took" ;;
	1..0*) running_plan[$machine]=0 && ok "$(title "$machine" "${running[$machine]}") # SKIP ${line#*SKIP }" ;;
	1..*) line=${line#1..} && running_plan[$machine]=${line%% *} ;;
	"ok "*) result "$machine" ok "${line#ok * - }" ;;
	"not ok "*" # TODO "*) result "$machine" todo "${line#not ok * - }" ;;
	"not ok "*) result "$machine" not_ok "${line#not ok * - }" ;;
	"#"*) echo "$line" ;;
	esac
}

# The guest is gone, or has been too slow: whatever has not come to its end has failed.
lost() { # MACHINE WHY TEST…
	local machine=$1 why=$2 name
	shift 2
	for name; do
		[[ ${ended[$machine]-} = *" $name "* ]] ||
			not_ok "$(title "$machine" "$name"): $why${running[$machine]:+ during ${running[$machine]}}"
	done
}

# One that died says why: show its console.
judge() { # MACHINE TEST…
	case ${machine_end[$1]} in
	died) lost "$1" "the guest died" "${@:2}" ;;
	late) lost "$1" "the guest did not answer in time" "${@:2}" ;;
	*) lost "$1" "the guest left it out" "${@:2}" ;;
	esac
	[ "${machine_end[$1]}" = ended ] || machine_last_words "$1"
}

job() { # MACHINE KIND TEST…
	mkdir -p "$lab_work/$1/share" && printf '%s=%q\n' lab_source "$lab_source" lab_build "$lab_build" lab_self "$1" \
		lab_kind "$2" lab_tests "${*:3}" lab_modules "$kernel_modules" LAB_STRICT "${LAB_STRICT-}" LAB_QUICK "${LAB_QUICK-}" \
		LAB_DEVICE "${LAB_DEVICE-}" TURNS "${TURNS-}" SIZES "${SIZES-}" >"$lab_work/$1/share/job"
}

run_guest() { # TEST…
	pairs=''
	job alone guest "$@" && machine_start alone "${LAB_CPUS:-2}" || return
	machine_allow alone "$boot_limit"
	machines_follow heard alone
	judge alone "$@"
	machine_stop alone
}

# Both are booted once for all.
run_pair() { # TEST…
	pairs=1
	rm -f "$lab_work"/wire?
	job one pair "$@" && job two pair "$@" || return
	# shellcheck disable=SC2046 # words
	machine_start one 1 $(wire_ends on 01) && wire_wait &&
		machine_start two 1 $(wire_ends off 02) || return
	machine_allow one "$boot_limit"
	machine_allow two "$boot_limit"
	machines_follow heard one two
	judge one "$@"
	judge two "$@"
	machines_stop
}

finish() {
	trap - EXIT
	machines_stop
	[ "$failures" = 0 ] || scratch_keep "$lab_work"
	scratch_remove
}

[ "${1-}" != --list ] || { all_tests guest && all_tests pair && exit; }
guest=() pair=()
# shellcheck disable=SC2046 # names are words
[ $# -gt 0 ] || set -- $(all_tests guest) $(all_tests pair)
for name; do
	if [ -f "$lab_dir/guest/$name.sh" ]; then
		guest+=("$name")
	elif [ -f "$lab_dir/pair/$name.sh" ]; then
		pair+=("$name")
	else
		echo "lab.sh: there is no test $name; see --list" >&2
		exit 2
	fi
done
[ "$(uname -m)" = x86_64 ] || skip_all "the guest is an x86-64 kernel"
[ -x "$lab_build/tools/shunt" ] || skip_all "$lab_build is no build folder; start this in one"
# shellcheck disable=SC2086 # words
[ "${LAB_INSTALL-}" = no ] || need_packages "to run a guest" $lab_packages >&2 ||
	skip_all "not installed, and cannot be: one of $lab_packages"
for program in qemu-system-x86_64 busybox; do
	command -v $program >/dev/null || skip_all "there is no $program"
done
! ldd "$(command -v busybox)" >/dev/null 2>&1 || skip_all "busybox is not linked statically (busybox-static is)"
kernel_find || skip_all "there is no package of a kernel to be had"

scratch lab "${LAB_KEEP:-}"
lab_work=$scratch
trap finish EXIT
trap 'exit 130' INT TERM
wanted=$(modules_of "${guest[@]}" "${pair[@]}")
lab_modules+=" $wanted"
[[ " $wanted " != *" siw "* ]] || kernel_build_siw "$lab_work/siw.log" || echo "# siw could not be built: see siw.log"
initramfs_make "$lab_work/initramfs.cpio" || { echo "Bail out! no initramfs" && exit 99; }

echo "# ${kernel##*/}, $(machine_accel)"
[ ${#guest[@]} = 0 ] || run_guest "${guest[@]}" || not_ok "a guest could be started"
[ ${#pair[@]} = 0 ] || run_pair "${pair[@]}" || not_ok "two guests could be started"
[ "$failures" = 0 ] || echo "# logs are in $lab_work"
echo "1..$count"
exit $((failures > 0))
