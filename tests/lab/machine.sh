# SPDX-License-Identifier: MIT
# shellcheck shell=bash disable=SC2154 # lab_*, kernel: of lab.sh and kernel.sh
# Guests: starting one, following what it says, ending it. Sourced by lab.sh. Everything is by name, so
# that there can be two that are joined by a wire.
#
# A machine NAME has a folder $lab_work/NAME:
#	console.log	its first serial line: kernel and init
#	said		its second serial line: what inside.sh says
#	share/		its /tmp/lab; holds `job` (shell variables) from the start, and what tests leave there

declare -A machine_pid=()
declare -A machine_deadline=()	# in $SECONDS
declare -A machine_end=()	# how machine NAME came to its end: ended, died, late
declare -A machine_line=() machine_part=()	# of its second serial line: descriptor, what has come of a line

# Hardware help only where it is hardware: some hosts offer /dev/kvm, and with it a boot does not end.
machine_accel() {
	if [ -n "${LAB_ACCEL:-}" ]; then
		echo "$LAB_ACCEL"
	elif [ -r /dev/kvm ] && [ -w /dev/kvm ] && grep -qwE 'vmx|svm' /proc/cpuinfo; then
		echo kvm
	else
		echo tcg
	fi
}

# machine_start NAME CPUS [QEMU ARGUMENT…]. The kernel is not to look whether its timer ticks: on a busy host an emulated one
# may seem not to.
machine_start() {
	local name=$1 dir=$lab_work/$1 cpus=$2
	shift 2
	mkdir -p "$dir/share" && : >"$dir/said" || return
	cd "$lab_work" || return # paths of sockets must be short
	qemu-system-x86_64 -accel "$(machine_accel)" -cpu max -smp "$cpus" -m "${LAB_MEMORY:-1024}" \
		-nodefaults -display none -no-reboot \
		-kernel "$kernel" -initrd "$lab_work/initramfs.cpio" \
		-append "console=ttyS0 loglevel=5 panic=-1 oops=panic no_timer_check" \
		-serial "file:$dir/console.log" -serial "file:$dir/said" \
		-virtfs local,path=/,mount_tag=host,security_model=none,readonly=on,multidevs=remap \
		-virtfs "local,path=$dir/share,mount_tag=lab,security_model=none" \
		"$@" </dev/null >"$dir/qemu.log" 2>&1 &
	machine_pid[$name]=$!
	cd - >/dev/null || return
}

machine_runs() {
	kill -0 "${machine_pid[$1]}" 2>/dev/null
}

# Ends it, and waits until it has ended.
machine_stop() {
	local pid=${machine_pid[$1]:-} i
	[ -n "$pid" ] || return 0
	kill "$pid" 2>/dev/null
	for ((i = 0; i < 50; i++)); do
		kill -0 "$pid" 2>/dev/null || break
		sleep 0.1
	done
	kill -9 "$pid" 2>/dev/null
	wait "$pid" 2>/dev/null
	unset "machine_pid[$1]"
}

# It stands still, as a host that is gone.
machine_freeze() { # NAME
	kill -STOP "${machine_pid[$1]}"
}

machine_thaw() { # NAME: it may have ended by now
	kill -CONT "${machine_pid[$1]}" 2>/dev/null
}

machines_thaw() {
	local name
	for name in "${!machine_pid[@]}"; do
		machine_thaw "$name"
	done
}

machines_stop() {
	local name
	for name in "${!machine_pid[@]}"; do
		machine_stop "$name"
	done
}

# From now on the guest has so many seconds.
machine_allow() { # NAME SECONDS
	machine_deadline[$1]=$((SECONDS + $2))
}

# The arguments for QEMU of the two ends of two wires; the second ends can be started when the first are there.
# The address of a card is the machine's own, so that addresses made from it are too.
wire_ends() { # on|off LAST-BYTE
	local i
	for i in 0 1; do
		echo "-netdev stream,id=wire$i,server=$1,addr.type=unix,addr.path=wire$i" \
			"-device virtio-net-pci,netdev=wire$i,mac=52:54:00:4e:0$i:$2"
	done
}

# Until the first ends are there.
wire_wait() {
	local i
	for ((i = 0; i < 100; i++)); do
		[ ! -S "$lab_work/wire0" ] || [ ! -S "$lab_work/wire1" ] || return 0
		sleep 0.1
	done
	return 1
}

# Takes the lines that have come. False if "lab: done" was one of them.
machine_hear() { # FUNCTION NAME
	local each=$1 name=$2 line
	while IFS= read -r line <&"${machine_line[$name]}"; do
		line=${machine_part[$name]}${line%$'\r'} machine_part[$name]=''
		[ "$line" != "lab: done" ] || return 1
		"$each" "$name" "$line"
	done
	machine_part[$name]+=$line # the rest of the line is still to come
}

# machine_step FUNCTION NAME: hears it, and looks whether it is at its end.
machine_step() {
	local name=$2 runs=1
	machine_runs "$name" || runs='' # before it is heard: what it said last
	if ! machine_hear "$@"; then
		machine_end[$name]=ended
	elif [ -z "$runs" ]; then
		machine_end[$name]=died
	elif [ "$SECONDS" -ge "${machine_deadline[$name]}" ]; then
		machine_end[$name]=late
	fi
}

machines_hurry() {
	local name
	for name; do
		machine_deadline[$name]=$SECONDS
	done
}

# machines_follow FUNCTION NAME…: calls FUNCTION with the name and each line that a guest says, until each has
# said "lab: done", has died or its time is over; machine_end tells. FUNCTION may allow a guest more. A guest
# whose partner has died or is too slow has no more time either.
machines_follow() {
	local each=$1 name fd going
	shift
	for name; do
		exec {fd}<"$lab_work/$name/said"
		machine_line[$name]=$fd machine_part[$name]=''
	done
	while [ $# -gt 0 ]; do
		going=()
		for name; do
			machine_step "$each" "$name"
			case ${machine_end[$name]-} in
			'') going+=("$name") ;;
			ended) ;;
			*) machines_hurry "$@" ;;
			esac
		done
		set -- "${going[@]}"
		sleep 0.1
	done
}

# The end of what machine NAME has put on its console, as comments.
machine_last_words() {
	local dir=$lab_work/$1
	cat "$dir/qemu.log" "$dir/console.log" 2>/dev/null | tr -d '\r' | tail -n 40 | sed 's/^/#   /'
	echo "# all of it is in $dir/console.log"
}
