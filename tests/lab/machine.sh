# shellcheck shell=bash disable=SC2154 # lab_*, kernel: of lab.sh and kernel.sh
# Guests: starting one, following what it says, ending it. Sourced by lab.sh. Everything is by name, so
# that there can be two that are joined by a link.
#
# A machine NAME has a folder $lab_work/NAME:
#	console.log	its first serial line: kernel and init
#	said		its second serial line: what inside.sh says
#	share/		its /tmp/lab; holds `job` (shell variables) from the start, and what tests leave there

declare -A machine_pid=()
declare -A machine_deadline=()	# in $SECONDS

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

# machine_start NAME [QEMU ARGUMENT…]
machine_start() {
	local name=$1 dir=$lab_work/$1
	shift
	mkdir -p "$dir/share" && : >"$dir/said" || return
	qemu-system-x86_64 -accel "$(machine_accel)" -cpu max -smp "${LAB_CPUS:-2}" -m "${LAB_MEMORY:-1024}" \
		-nodefaults -display none -no-reboot \
		-kernel "$kernel" -initrd "$lab_work/initramfs.cpio" \
		-append "console=ttyS0 loglevel=5 panic=-1 oops=panic" \
		-serial "file:$dir/console.log" -serial "file:$dir/said" \
		-virtfs local,path=/,mount_tag=host,security_model=none,readonly=on,multidevs=remap \
		-virtfs "local,path=$dir/share,mount_tag=lab,security_model=none" \
		"$@" </dev/null >"$dir/qemu.log" 2>&1 &
	machine_pid[$name]=$!
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

# machine_follow NAME FUNCTION: calls FUNCTION with each line the guest says, until it has said
# "lab: done" (0), has died (1) or its time is over (2). FUNCTION may allow it more.
machine_follow() {
	local name=$1 each=$2 line part='' gone='' fd
	exec {fd}<"$lab_work/$name/said"
	while :; do
		if IFS= read -r line <&"$fd"; then
			line=${part}${line%$'\r'} part=''
			[ "$line" != "lab: done" ] || break
			"$each" "$line"
			continue
		fi
		part+=$line # the rest of the line is still to come
		[ -z "$gone" ] || break
		machine_runs "$name" || { gone=1 && continue; } # once more: what it said last
		[ "$SECONDS" -lt "${machine_deadline[$name]}" ] || { gone=2 && break; }
		sleep 0.1
	done
	exec {fd}<&-
	return "${gone:-0}"
}

# The end of what machine NAME has put on its console, as comments.
machine_last_words() {
	local dir=$lab_work/$1
	cat "$dir/qemu.log" "$dir/console.log" 2>/dev/null | tr -d '\r' | tail -n 40 | sed 's/^/#   /'
	echo "# all of it is in $dir/console.log"
}
