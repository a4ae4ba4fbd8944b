#!/bin/bash
# SPDX-License-Identifier: MIT
# Programs that are none of Shunt's business do under `shunt run` what they do bare: output, messages, exit status.
#
#	WHOLE=1 harmless.sh	a whole build of this project, too, with both times
# shellcheck disable=SC2016 # inner shells expand it
set -u
. "${top_srcdir:?}/tests/lib.sh"
top=$(realpath "$top_srcdir")
talk=$top/tests/harmless/talk.c

# What differs from run to run anyway: process ids, addresses, the variables that make us known.
settle() {
	sed -E -e 's/==[0-9]+==/==PID==/g' -e 's/0x[0-9a-f]{6,}/ADDRESS/g' -e '/^(LD_PRELOAD|ASAN_OPTIONS|TSAN_OPTIONS|_)=/d' "$1"
}

# alike COMMAND…: the same bare and shunted. Both start from the same folder, without a file of the other's.
alike() {
	local way status
	for way in bare shunted; do
		rm -rf "$work/here" && mkdir -m 777 "$work/here"
		status=0
		# The outer shell's word of a program that was killed is not the program's.
		{ (cd "$work/here" && exec $([ $way = bare ] || echo "$shunt run") "$@") \
			< /dev/null > "$work/$way.1" 2> "$work/$way.2" || status=$?; } 2> /dev/null
		{ settle "$work/$way.1"; echo "--"; settle "$work/$way.2"; echo "status $status"; } > "$work/$way.said"
	done
	diff -u "$work/bare.said" "$work/shunted.said" > "$work/diff" || problem "$* differs: $(head -n 40 "$work/diff")"
}

# ended STATUS: so did both. Otherwise a command that is not there would be alike.
ended() {
	[ "$(tail -n 1 "$work/bare.said")" = "status $1" ] || problem "expected status $1: $(cat "$work/bare.said")"
}

shunt=$(realpath "$shunt")
chmod 755 "$work"

# --- programs without sockets ---
alike env && ended 0
alike ls -l "$top/core" && ended 0
alike sh -c 'ls /proc/self/fd; ulimit -a; grep -E "^(Threads|Sig[^Q]|Shd|NoNewPrivs)" /proc/self/status'
ended 0
alike sh -c 'tar -C "$0" -cf - core preload | tar -tf - | LC_ALL=C sort | md5sum' "$top" && ended 0
alike find "$top/docs" -name '*.md' -newer "$top/no such file" && ended 1
alike awk 'BEGIN { exit 3 }' && ended 3
alike sh -c 'kill -SEGV $$' && ended 139
alike sh -c 'yes | head -n 3; exec 3< /dev/null 4<&3 3<&-; ls /proc/self/fd' && ended 0

# --- a script that uses what a shell has ---
cat > "$work/script" <<'END'
#!/bin/bash
trap 'echo leaves' EXIT
trap 'echo told' USR1
kill -USR1 $$
coproc cat
number_of_cat=$COPROC_PID   # bash forgets it as soon as it has seen the end
echo "by a coprocess" >&"${COPROC[1]}"
read -r line <&"${COPROC[0]}" && echo "$line"
exec {COPROC[1]}>&-
wait "$number_of_cat"; echo "coprocess: $?"
diff <(printf '1\n2\n') <(printf '1\n3\n'); echo "diff: $?"
for i in 1 2 3; do (exit "$i") & done
for i in 1 2 3; do wait -n; done
wait; echo "jobs: $?"
exec {number}<<< "here" && cat <&$number && echo "number $number"
echo piped | (read -r word; echo "$word in a subshell") | cat
: < /dev/tcp/127.0.0.1/9 || echo "nobody listens"
echo text >&2
exec env printf 'replaced\n'
END
alike bash "$work/script" && ended 0

# --- a program with a privilege, from a script: the dynamic linker does not preload us, and says nothing ---
cp "$(type -P id)" "$work/privileged"
if chown 65534 "$work/privileged" 2> /dev/null && chmod 4755 "$work/privileged"; then
	alike sh -c '"$0" -u' "$work/privileged" && ended 0
	alike sh -c '"$0" -u; echo $?' "$work/privileged" && ended 0
	[ "$(head -n 1 "$work/shunted.said")" = 65534 ] || echo "the file system of $work has no setuid"
fi

# --- a program that has a library preloaded already, of calls that are ours, too ---
# shellcheck disable=SC2086 # the compiler may be several words
{
	$CC -shared -fPIC -o "$work/other.so" "$top/tests/harmless/other.c" -ldl || problem "no library to preload"
	$CC -O1 -pthread -o "$work/talk" "$talk" || problem "no program to run"
}
alike env LD_PRELOAD="$work/other.so" "$work/talk" && ended 0
# `env` above has taken us out; here both are there. It sees what the program calls, and no more.
expect 0 env LD_PRELOAD="$work/other.so" "$shunt" run "$work/talk"
has "$out" '^2000 of 2000'
has "$err" '^2 socket\(\), 3 close\(\)'

# --- a program that has addresses of our calls in itself: the dynamic linker says nothing of it ---
# shellcheck disable=SC2086
$CC -O1 -no-pie -fno-pic -pthread -o "$work/fixed" "$top/tests/harmless/fixed.c" 2> "$work/why" ||
	problem "no program with fixed addresses: $(cat "$work/why")"
alike "$work/fixed" && ended 0
has "$(cat "$work/shunted.said")" '^sent$'

# --- a program whose allocator makes a system call under its lock, before our constructor has run ---
# shellcheck disable=SC2086
{
	$CC -shared -fPIC -fno-builtin -pthread -o "$work/liballocator.so" "$top/tests/harmless/allocator.c" || problem "no allocator"
	$CC -O1 -pthread -o "$work/allocates" "$talk" -Wl,--no-as-needed -L"$work" -lallocator -Wl,-rpath,"$work" ||
		problem "no program that allocates"
}
alike "$work/allocates" && ended 0

# --- a program built with AddressSanitizer: it runs, it finds what it finds ---
# shellcheck disable=SC2086
if $CC -g -fsanitize=address -pthread -o "$work/asan" "$talk" 2> /dev/null; then
	alike "$work/asan" && ended 0
	has "$(cat "$work/shunted.said")" '^2000 of 2000'
	alike sh -c '"$0" 7 2>&1 | grep -E "^(SUMMARY|WRITE|==.*ERROR|[0-9]+ of)" | sed -E "s/ (T[0-9]+|at pc|bp|sp).*//"' "$work/asan"
	has "$(cat "$work/shunted.said")" 'heap-use-after-free'
	expect 42 env ASAN_OPTIONS=exitcode=42 "$shunt" run "$work/asan" 7
	$CC -g -fsanitize=address -pthread -o "$work/leaves" "$top/tests/harmless/leaves.c" || problem "no program that leaves"
	alike "$work/leaves" && ended 0
fi

# --- with ThreadSanitizer: no race where there is none, and the program's own ---
if $CC -g -fsanitize=thread -pthread -o "$work/tsan" "$talk" 2> /dev/null && "$work/tsan" > /dev/null 2>&1; then
	alike "$work/tsan" && ended 0
	has "$(cat "$work/shunted.said")" '^2000 of 2000'
	expect 66 "$shunt" run "$work/tsan" 7 race
	has "$err" 'data race .*in write_word'
fi

# --- an allocator that sends on a connection; a sanitizer has one of its own ---
if ! grep -q -- '-fsanitize=' "$top_builddir/Makefile"; then
	# shellcheck disable=SC2086
	$CC -O1 -pthread -o "$work/reports" "$top/tests/harmless/reports.c" || problem "no program with an allocator"
	alike timeout 60 "$work/reports" && ended 0
	has "$(cat "$work/shunted.said")" '^4000 of 4000'
fi

# --- builds ---
cat > "$work/Makefile" <<'END'
all: one two three
	cat one two three
one two three:
	sleep 0.01 && echo $@ $(MAKELEVEL) $(MAKEFLAGS) | sed 's/--jobserver-auth=[^ ]*/--jobserver-auth/' > $@
END
alike make -s -j3 -f "$work/Makefile" && ended 0
# shellcheck disable=SC2086
alike sh -c '$0 -O1 -pipe -c -o talk.o "$1" && md5sum talk.o' "$CC" "$talk" && ended 0

if [ "${WHOLE:-}" ]; then
	for way in bare shunted; do
		rm -rf "$work/build" && mkdir "$work/build"
		start=$EPOCHREALTIME
		(cd "$work/build" && $([ $way = bare ] || echo "$shunt run") sh -c '"$0"/configure -q && make -s -j2' "$top") \
			> "$work/whole.log" 2>&1 || problem "build $way: $(tail -n 5 "$work/whole.log")"
		awk -v way=$way -v a="$start" -v b="$EPOCHREALTIME" 'BEGIN { printf "a whole build, %s: %.1f s\n", way, b - a }'
		(cd "$work/build" && md5sum .libs/libshunt.so tools/shunt) > "$work/whole.$way" || problem "nothing was built"
	done
	cmp "$work/whole.bare" "$work/whole.shunted" || problem "a build gives other files"
fi

finish
