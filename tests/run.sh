#!/bin/bash
# SPDX-License-Identifier: MIT
# shunt run: what it sets, what it refuses and how it says so.
set -u
. "${top_srcdir:?}/tests/lib.sh"

library=$(realpath "$top_builddir/.libs/libshunt.so")

expect 0 "$shunt" run printenv LD_PRELOAD
[ "$out" = "$library" ] || problem "LD_PRELOAD is '$out'"
expect 0 env LD_PRELOAD=libm.so.6 "$shunt" run -- printenv LD_PRELOAD
[ "$out" = "libm.so.6:$library" ] || problem "LD_PRELOAD is '$out'"
expect 0 env LD_PRELOAD="$library libm.so.6:libdl.so.2" "$shunt" run printenv LD_PRELOAD
[ "$out" = "libm.so.6:libdl.so.2:$library" ] || problem "LD_PRELOAD, three libraries, is '$out'"
expect 0 "$shunt" run "$shunt" run printenv LD_PRELOAD
[ "$out" = "$library" ] || problem "LD_PRELOAD, twice, is '$out'"

# AddressSanitizer is content; what is set already stays, and who has decided is not overruled.
expect 0 env ASAN_OPTIONS= "$shunt" run printenv ASAN_OPTIONS
[ "$out" = verify_asan_link_order=0 ] || problem "ASAN_OPTIONS is '$out'"
expect 0 env ASAN_OPTIONS=exitcode=9 "$shunt" run printenv ASAN_OPTIONS
[ "$out" = exitcode=9:verify_asan_link_order=0 ] || problem "ASAN_OPTIONS, more of it, is '$out'"
expect 0 env ASAN_OPTIONS=verify_asan_link_order=1:exitcode=9 "$shunt" run printenv ASAN_OPTIONS
[ "$out" = verify_asan_link_order=1:exitcode=9 ] || problem "ASAN_OPTIONS, decided, is '$out'"
expect 0 env TSAN_OPTIONS=exitcode=9 "$shunt" run printenv TSAN_OPTIONS
[ "$out" = exitcode=9:ignore_noninstrumented_modules=1 ] || problem "TSAN_OPTIONS is '$out'"

# The program's arguments, output and status are its own.
# shellcheck disable=SC2016 # the inner shell expands it
expect 7 "$shunt" run sh -c 'echo "$1"; exit 7' sh --help
[ "$out" = --help ] || problem "the program got '$out'"
[ -z "$err" ] || problem "said: $err"

# Commands that are words of others now.
for command in "compare perf programs" "devices doctor devices" "log trace slow"; do
	expect 2 "$shunt" "${command%% *}" --help
	has "$err" "it is .shunt ${command#* }.$"
done

# Bad values: one line each, nothing started, 2. Unknown names: a warning.
expect 2 env SHUNT_TUNE=spin_us=abc SHUNT_DEVICE=hard "$shunt" run echo started
lacks "$out" started
has "$err" '^shunt run: SHUNT_TUNE: spin_us=abc .*0\.\.1000 us.*default.* 25$'
has "$err" '^shunt run: SHUNT_DEVICE=hard .*auto\|soft\|verbs\[:NAME\]\|none'
[ "$(grep -c SHUNT_ <<<"$err")" = 2 ] || problem "not one line a value: $err"
expect 0 env SHUNT_SPINUS=1 "$shunt" run echo started
has "$out" started
has "$err" 'SHUNT_SPINUS; is it SHUNT_TUNE=spin_us that is meant'
expect 0 env SHUNT_DEVICE=none SHUNT_TUNE=window=64K "$shunt" run echo started
has "$out" started
has "$err" 'window has no effect: SHUNT_DEVICE=none'

# As env(1) where there is nothing to run.
expect 127 "$shunt" run "$work/missing"
expect 127 "$shunt" run no-such-program-anywhere
touch "$work/data"
expect 126 "$shunt" run "$work/data"
expect 126 "$shunt" run "$work"
expect 2 "$shunt" run
expect 2 "$shunt" run --wrong true
expect 2 "$shunt" wrong
expect 0 "$shunt" --version
expect 0 "$shunt" run --help

# Privileged programs, also behind a script.
cp "$(type -P true)" "$work/suid" && chmod 4755 "$work/suid"
expect 2 "$shunt" run "$work/suid"
has "$err" 'setuid'
chmod 2755 "$work/suid"
expect 2 "$shunt" run "$work/suid"
has "$err" 'setgid'
chmod 4755 "$work/suid"
printf '#! %s -x\n' "$work/suid" >"$work/script" && chmod 755 "$work/script"
expect 2 "$shunt" run "$work/script"
has "$err" 'setuid'
chmod 755 "$work/suid"
if setcap cap_net_raw+ep "$work/suid" 2>/dev/null; then
	expect 2 "$shunt" run "$work/suid"
	has "$err" 'capabilities'
fi

# A program that cannot be accelerated still runs.
# A Go program that is carried, and two that are not.
if command -v go >/dev/null && [ "$(uname -m)" = x86_64 ]; then
	printf 'package main\nimport "net"\nfunc main() { net.Listen("tcp", "127.0.0.1:0") }\n' >"$work/main.go"
	build_go() {
		HOME=$work GOCACHE=${GOCACHE:-$work/cache} GOFLAGS=-mod=mod go build -o "$work/go" "$@" "$work/main.go" || problem "go build"
	}
	build_go
	expect 0 "$shunt" run "$work/go"
	lacks "$err" .
	printf 'package main\nfunc main() { }\n' >"$work/main.go"	# less is compiled
	CGO_ENABLED=0 build_go
	expect 0 "$shunt" run "$work/go"
	has "$err" 'Go program \(go.*statically linked; built with CGO_ENABLED=1.*plain TCP'
	expect 1 "$shunt" advise -- "$work/go"
	has "$err" 'Go program \(go.*statically linked'
	CGO_ENABLED=0 build_go -buildmode=pie
	expect 0 "$shunt" run "$work/go"
	has "$err" 'Go program \(go.*built without cgo.*plain TCP'
else
	echo "skipped: go is not installed"
fi

printf 'int main(void) { return 9; }\n' >"$work/static.c"
if $CC -static -o "$work/static" "$work/static.c" 2>/dev/null; then
	expect 9 "$shunt" run "$work/static"
	has "$err" 'statically linked.*plain TCP'
fi

# elf CLASS MACHINE: a program that is exit(9) of i386 where CLASS is 1 and MACHINE is 3.
elf() {
	python3 - "$@" <<-'END'
		import struct, sys
		kind, machine = map(int, sys.argv[1:])
		code = bytes.fromhex("b801000000bb09000000cd80")  # mov $1,%eax; mov $9,%ebx; int $0x80
		file = b"\x7fELF" + bytes([kind, 1, 1]) + bytes(9)
		file += struct.pack("<HHIIIIIHHHHHH", 2, machine, 1, 0x8048054, 52, 0, 0, 52, 32, 1, 0, 0, 0)
		file += struct.pack("<8I", 1, 0, 0x8048000, 0x8048000, 96, 96, 5, 4096) + code
		sys.stdout.buffer.write(file)
	END
}
# It ends as bare, also where the kernel has no such programs.
foreign() { # NAME REASON
	local bare=0
	chmod 755 "$work/$1"
	env "$work/$1" >/dev/null 2>&1 || bare=$?
	expect "$bare" "$shunt" run "$work/$1"
	has "$err" "warning: .*/$1: $2, so .*plain TCP"
}
elf 1 3 >"$work/i386"
foreign i386 'it is a 32-bit program'
elf 2 22 >"$work/s390"
foreign s390 'it is made for another architecture'

# Programs that have others start programs.
printf '#! /bin/sh\necho started "$@"\n' >"$work/service" && chmod 755 "$work/service"
expect 0 "$shunt" run "$work/service" redis-server start
has "$out" '^started redis-server start$'
has "$err" 'warning: what service starts does not get its environment'
expect 0 env PATH="$work:$PATH" "$shunt" run service redis-server start
has "$err" 'warning: what service starts does not get its environment'
expect 0 "$shunt" run echo service
[ -z "$err" ] || problem "said: $err"

# A library that the dynamic linker may not map.
# shellcheck disable=SC2016 # the inner shell expands it
if unshare --mount sh -c 'mount -t tmpfs -o noexec none "$1"' sh "$work" 2>/dev/null; then
	mkdir -p "$work/tree/tools" "$work/tree/.libs"
	cp "$shunt" "$work/tree/tools"
	expect 3 unshare --mount sh -c 'mount -t tmpfs -o noexec none "$1/.libs" && cp "$2" "$1/.libs" &&
		exec "$1/tools/shunt" run sh -c "echo started \"\$LD_PRELOAD\"; exit 3"' sh "$work/tree" "$library"
	[ "$out" = "started " ] || problem "without a library it said: $out"
	has "$err" 'warning: .*/libshunt.so cannot be loaded .*noexec.*plain TCP'
	[ "$(wc -l <<<"$err")" = 1 ] || problem "not one line: $err"
fi

# A script without #! is the shell's, as execvp() has it.
printf 'exit 5\n' >"$work/plain" && chmod 755 "$work/plain"
expect 5 "$shunt" run "$work/plain"

finish
