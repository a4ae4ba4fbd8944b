#!/bin/bash
# SPDX-License-Identifier: MIT
# tools/check: killed in any way it leaves no process behind, and a second one at the same time has folders of its own. The
# smoke of the lab needs QEMU and does not install it. A tree of its own, in which a stage is one program that holds a lock
# until it is ended, and the lab one that says what it was told. TAP.
# shellcheck disable=SC2086,SC2317 # called by name
set -u
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source-path=SCRIPTDIR source=scratch.sh
. "$here/scratch.sh"
scratch test
n=0 failed=0

check() { # NAME COMMAND...
	local name=$1
	shift
	n=$((n + 1))
	if "$@"; then
		echo "ok $n - $name"
	else
		sed 's/^/# /' "$scratch"/said.*
		echo "not ok $n - $name" && failed=1
	fi
}

within() {
	local until=$((SECONDS + ${WITHIN:-120}))
	until "$@"; do
		[ $SECONDS -lt $until ] || return 1
		sleep 0.05
	done
}

mkdir -p "$scratch/tree/tools" "$scratch/tree/tests" "$scratch/bin"
cp "$here/../tools/check" "$here/../tools/build.sh" "$scratch/tree/tools/"
cp "$here/alone.sh" "$scratch/tree/tests/"
# Of Debian's packages all are there but QEMU's.
cat > "$scratch/bin/dpkg-query" <<'END'
#!/bin/sh
case "$*" in *qemu*) exit 1 ;; esac
echo installed
END
# The stage `static`: its two programs.
cat > "$scratch/bin/cppcheck" <<'END'
#!/bin/bash
setsid flock "$held.1" sleep 1000 &
flock "$held.2" sleep 1000
END
printf '#!/bin/sh\n' > "$scratch/tree/tests/documents.sh"
chmod +x "$scratch"/bin/* "$scratch/tree/tests/documents.sh"

is_held() {
	[ -e "$held.1" ] && [ -e "$held.2" ] && ! flock -n "$held.1" true && ! flock -n "$held.2" true
}

is_free() {
	flock -n "$held.1" true && flock -n "$held.2" true
}

begin() { # NAME: sets $pid and $held
	held=$scratch/$1
	held=$held PATH=$scratch/bin:$PATH env --default-signal=INT "$scratch/tree/tools/check" static > "$scratch/said.$1" 2>&1 &
	pid=$!
	within is_held
}

ends_by() { # SIGNAL
	begin "$1" || return
	kill -"$1" "$pid"
	within is_free && ! wait "$pid"
} 2> /dev/null

says() { # NAME PATTERN
	grep -q "$2" "$scratch/said.$1"
}

has_usual() {
	says one "passed" && ! says one "Another run has"
}

two() {
	local first
	begin one || return
	first=$pid
	begin two || return
	kill "$pid" "$first"
	wait "$pid" "$first"
	[ -d "$scratch/tree/build-2" ]
} 2> /dev/null

# --- the smoke: nothing is built in this tree, and nothing may be installed ---

smoke_begin() {
	mkdir -p "$scratch/tree/build-aux" "$scratch/tree/tests/lab" "$scratch/without" "$scratch/qemu"
	touch "$scratch/tree/build-aux/ltmain.sh" "$scratch/tree/Makefile.in"
	printf '#!/bin/sh\nprintf "all check:\\n" > Makefile\n' > "$scratch/tree/configure"
	cat > "$scratch/tree/tests/lab/lab.sh" <<-'END'
		#!/bin/bash
		echo "# told: $* install=${LAB_INSTALL-} quick=${LAB_QUICK-}"
		[ -z "${LAB_SAYS-}" ] || { echo "$LAB_SAYS" && exit 77; }
		printf '%s\n' "ok 1 - first" "ok 2 - second" "not ok 3 - third" "ok 4 - fourth # SKIP why" "1..4"
	END
	printf '#!/bin/sh\necho "$*" >> "%s"\nfalse\n' "$scratch/installed" > "$scratch/bin/apt-get"
	# All programs of this machine but one: links, so nothing is ever written into this folder.
	find -L /bin /usr/bin /sbin /usr/sbin -maxdepth 1 -type f ! -name qemu-system-x86_64 \
		-exec ln -st "$scratch/without" {} + 2> /dev/null
	printf '#!/bin/sh\n' > "$scratch/qemu/qemu-system-x86_64"
	cp "$scratch/qemu/qemu-system-x86_64" "$scratch/qemu/busybox"
	chmod +x "$scratch/tree/configure" "$scratch/tree/tests/lab/lab.sh" "$scratch/bin/apt-get" "$scratch/qemu/"*
}

smoke() { # NAME PATH
	PATH=$2 "$scratch/tree/tools/check" smoke > "$scratch/said.$1" 2>&1
}

installs_nothing() {
	[ ! -e "$scratch/installed" ]
}

if "$here/alone.sh" true 2>&1 | grep -q 'no namespaces'; then
	echo "1..0 # SKIP there are no namespaces to be had"
	exit 77
fi
for signal in TERM INT HUP KILL; do
	check "SIG$signal: no process is left" ends_by $signal
	[ $signal = KILL ] || check "SIG$signal: it says so" says $signal "^0 passed, [1-9][0-9]* failed"
done
check "two at the same time" two
check "the first has the usual folder" says one "passed" && ! says one "Another run"
check "the second says that it has not" says two "Another run has build/"
smoke_begin
smoke without "$scratch/bin:$scratch/without"
check "the smoke, without QEMU: it is skipped, and says why" says without "^SKIP: smoke: qemu-system-x86_64 is not installed"
check "it builds nothing for that" says without "^0 passed, 0 failed, 1 skipped"
smoke with "$scratch/qemu:$scratch/bin:$PATH"
check "with QEMU: the lab is to install nothing" says with "^# told: apps hosts install=no quick=1"
check "its results are counted, beside the build" says with "^3 passed, 1 failed, 1 skipped"
LAB_SAYS="1..0 # SKIP there is no package of a kernel to be had" smoke kernel "$scratch/qemu:$scratch/bin:$PATH"
check "a lab that cannot run: it is skipped with the lab's reason" says kernel "^SKIP: smoke: there is no package of a kernel to be had"
check "that is all it says" says kernel "^1 passed, 0 failed, 1 skipped"
check "nothing was installed" installs_nothing
echo "1..$n"
exit $failed
