#!/bin/bash
# SPDX-License-Identifier: MIT
# A Go program bare and shunted: what both ends print is the same, also where one end alone is shunted, the program is
# position-independent, stripped, or may have no memory that is writable and executable. Most bytes come by the link. Programs that
# cannot be carried are named and work. TAP.
# QUICK=yes: the first program alone. SOAK=600: so many seconds of signals, garbage collections and threads that end.
# shellcheck disable=SC2086,SC2317	# the command is several words; functions are called by name
# shellcheck source-path=SCRIPTDIR source=lib.sh
set -u
. "$(dirname "$0")/lib.sh"

need go gcc python3 timeout
need_shunt
[ "$(uname -m)" = x86_64 ] || { echo "1..0 # SKIP Go programs are carried on x86-64 only" && exit 77; }
export SHUNT_LOG=info
program=$work/plain

build() { # NAME OPTION...: in the environment's CGO_ENABLED
	local name=$1
	shift
	HOME=$work GOCACHE=${GOCACHE:-$work/cache} GOFLAGS=-mod=mod go build -o "$work/$name" "$@" "$here/go/main.go"
}

# One end as the other, but without memory that gains the right to be executed (PR_SET_MDWE).
cat > "$work/refuse" << 'END'
import ctypes, os, sys
if ctypes.CDLL(None, use_errno=True).prctl(65, 1, 0, 0, 0):
    sys.exit(77)
os.execvp(sys.argv[1], sys.argv[1:])
END

soak=${SOAK:-5}

# pair FILE SERVER-WRAP CLIENT-WRAP COMMAND...: what the client prints, and the status of both, in FILE.
run_pair() {
	local file=$1 wrap=$2 client=$3 port web status=0
	shift 3
	rm -f "$file".stat.*
	SHUNT_STATS=$file.stat.%p start_telling timeout $((600 + soak)) $wrap "$program" server 2> "$file.server"
	read -r port web <<< "$server_port"
	SHUNT_STATS=$file.stat.%p timeout $((300 + soak)) $client "$program" "$1" 127.0.0.1:$port "${@:2}" ${3:-127.0.0.1:$web} > "$file" 2> "$file.client" || status=$?
	echo "client $status" >> "$file"
	[ "$1" != soak ] || kill "$server_pid"
	{ wait "$server_pid" || status=$?; } 2> /dev/null
	echo "server $status" >> "$file"
	exec {in}<&-
	children=()
}

compare() { # WHAT SERVER-WRAP CLIENT-WRAP
	run_pair "$work/now" "$2" "$3" client
	if cmp -s "$work/bare" "$work/now"; then
		ok "$1: as bare"
	else
		not_ok "$1: as bare"
		diff "$work/bare" "$work/now" | head -20 | sed 's/^/# /'
		tail -5 "$work/now.server" "$work/now.client" | sed 's/^/# /'
	fi
}

carried() { # WHAT: of the pair before
	check "$1: both are carried" [ "$(cat "$work"/now.server "$work"/now.client | grep -c 'is carried: ')" -ge 2 ]
	check "$1: most comes by the link" [ "$(counter link "$work"/now.stat.*)" -gt 25000000 ]
}

stays() { # WHAT REASON
	check "$1: it says so" grep -q "stays on TCP: $2" "$work/now.server"
}

build plain || { not_ok "go build" && plan; }
run_pair "$work/bare" "" "" client
check "bare it comes to its end" grep -q '^server 0' "$work/bare"
compare "both ends" "$shunt_run" "$shunt_run"
carried "both ends"
compare "only the server" "$shunt_run" ""
compare "only the client" "" "$shunt_run"

# Bytes that io.Copy() moves between two connections stay on the link (splice).
relayed() {
	local link tcp
	link=$(counter link "$work"/now.stat.*) tcp=$(counter tcp "$work"/now.stat.*)
	echo "# $link bytes by the link, $tcp by TCP"
	[ "$link" -gt $((9 * tcp)) ] && [ "$link" -gt 100000000 ]
}

run_pair "$work/relay" "" "" relay
run_pair "$work/now" "$shunt_run" "$shunt_run" relay
check "a relay: as bare" cmp "$work/relay" "$work/now"
check "a relay: by the link" relayed
SHUNT_TUNE=${SHUNT_TUNE-},born=auto compare "connections used again" "$shunt_run" "$shunt_run"

if python3 "$work/refuse" true; then
	compare "no memory becomes executable" "python3 $work/refuse $shunt_run" "python3 $work/refuse $shunt_run"
	carried "no memory becomes executable"
else
	skip "no memory becomes executable" "this kernel has no PR_SET_MDWE"
fi

SHUNT_TUNE=${SHUNT_TUNE-},go=off compare "SHUNT_TUNE=go=off" "$shunt_run" "$shunt_run"
stays "SHUNT_TUNE=go=off" SHUNT_TUNE=go=off

# The library of Go is compiled anew for each of these: stage long has them.
[ -z "${QUICK:-}" ] || plan
build pie -buildmode=pie -ldflags=-s && program=$work/pie
compare "position-independent" "$shunt_run" "$shunt_run"
carried "position-independent"
CGO_ENABLED=0 build alone -buildmode=pie && program=$work/alone
compare "without cgo" "$shunt_run" "$shunt_run"
stays "without cgo" "it is built without cgo"

# A version that is not known: its gate has another name, in the table of functions alone.
python3 - "$work/plain" "$work/unknown" << 'END'
import os, sys
with open(sys.argv[1], "rb") as file:
    text = file.read()
with open(sys.argv[2], "wb") as file:
    file.write(text.replace(b"runtime/internal/syscall.Syscall6\0", b"runtime/internal/syscall.Syscall7\0"))
os.chmod(sys.argv[2], 0o755)
END
if cmp -s "$work/plain" "$work/unknown"; then
	skip "an unknown version" "this Go has other names"
else
	program=$work/unknown
	compare "an unknown version" "$shunt_run" "$shunt_run"
	stays "an unknown version" "a function of its runtime is missing"
fi

program=$work/plain
run_pair "$work/now" "$shunt_run" "$shunt_run" twice
check "of two ends the first counts" grep -qx 'server 3' "$work/now"
sed 's/^/# /' "$work/now"

export NOISE=1
run_pair "$work/now" "$shunt_run" "$shunt_run" soak $soak
check "signals, garbage collections, threads that end" grep -q '^soak true 0$' "$work/now"
sed 's/^/# /' "$work/now"
check "meanwhile bytes came by the link" [ "$(counter link "$work"/now.stat.*)" -gt 100000 ]
plan
