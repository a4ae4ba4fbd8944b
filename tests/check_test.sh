#!/bin/bash
# SPDX-License-Identifier: MIT
# tools/check: killed in any way it leaves no process behind, and a second one at the same time has folders of its own. A tree
# of its own, in which a stage is one program that holds a lock until it is ended. TAP.
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
printf '#!/bin/sh\necho installed\n' > "$scratch/bin/dpkg-query"
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
echo "1..$n"
exit $failed
