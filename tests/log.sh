#!/bin/bash
# SPDX-License-Identifier: MIT
# Where messages and statistics of a shunted process may go: never into a connection or file of the program, and into no
# file that is not the user's own.
set -u
. "${top_srcdir:?}/tests/lib.sh"
library=$(realpath "$top_builddir/.libs/libshunt.so")
python=$(python3 -c 'import sys; print(sys.executable)')	# not a script that starts it

# A program that makes a listening socket, and so an engine. With an invalid value there is a message.
cat >"$work/listen.py" <<'PYTHON'
import socket, sys
socket.create_server(("127.0.0.1", 0))
PYTHON
program=(env SHUNT_TUNE=spin_us=abc LD_PRELOAD="$library" "$python" "$work/listen.py")

# A program whose standard error is a terminal: what it says there comes out as standard error of this.
cat >"$work/terminal.py" <<'PYTHON'
import os, pty, subprocess, sys
ours, theirs = pty.openpty()
child = subprocess.Popen(sys.argv[1:], stderr=theirs)
os.close(theirs)
try:
    while got := os.read(ours, 4096):
        os.write(2, got.replace(b"\r", b""))
except OSError:
    pass
sys.exit(child.wait())
PYTHON
on_terminal=("$python" "$work/terminal.py")

# A person at a terminal is told. A pipe or a file is another program's, such as a compiler's output that a daemon passes on:
# it gets messages only if SHUNT_LOG asks for them.
unset SHUNT_LOG
expect 0 "${on_terminal[@]}" "${program[@]}"
has "$err" 'spin_us=abc'
expect 0 "${program[@]}"
[ -z "$err" ] || problem "in a file that nobody has named: $err"
said=$("${program[@]}" 2>&1 >/dev/null | cat)
[ -z "$said" ] || problem "in another program's pipe: $said"
mkdir -p "$work/home/.config" && echo 'SHUNT_LOG = warn' >"$work/home/.config/shunt.conf"
expect 0 env -u XDG_CONFIG_HOME -u SHUNT_CONF HOME="$work/home" "${program[@]}"
has "$err" 'spin_us=abc'

# A daemon that has changed its user keeps HOME, and may not look there.
other=(setpriv --reuid 65534 --regid 65534 --clear-groups)
if [ "$(id -u)" = 0 ] && "${other[@]}" test -r "$library"; then
	mkdir -m 700 "$work/theirs.home"
	expect 0 "${on_terminal[@]}" "${other[@]}" env -u XDG_CONFIG_HOME -u SHUNT_CONF HOME="$work/theirs.home" LD_PRELOAD="$library" sh -c 'true | cat'
	[ -z "$err" ] || problem "of the configuration of another user: $err"
fi

export SHUNT_LOG=warn
expect 0 "${program[@]}"
has "$err" 'spin_us=abc'

# When, who, and as JSON: one object a line.
time='^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{6}Z '
has "$err" "${time}shunt\[[0-9]+\]: warn: SHUNT_TUNE: spin_us=abc is invalid"
expect 0 "${on_terminal[@]}" env SHUNT_LOG_FORMAT=json SHUNT_LOG_FILE="$work/\"quoted\"/log" "${program[@]}"
"$python" - "$work/err" <<'PYTHON' || problem "no JSON: $err"
import datetime, json, sys
lines = [json.loads(line) for line in open(sys.argv[1])]
assert [line["level"] for line in lines] == ["warn"] * len(lines) and len(lines) == 2, lines
for line in lines:
    age = datetime.datetime.now(datetime.timezone.utc) - datetime.datetime.fromisoformat(line["time"][:-1] + "+00:00")
    assert datetime.timedelta() <= age < datetime.timedelta(hours=1), line
    assert line["program"].startswith("python") and line["pid"] > 1 and "stream" not in line, line
assert '"quoted"' in lines[0]["text"] and "spin_us=abc" in lines[1]["text"], lines
PYTHON

# A program that writes a title over its arguments, as nginx does, keeps its name.
cat >"$work/titled.py" <<'PYTHON'
import sys
begin, end = map(int, open("/proc/self/stat").read().rsplit(")", 1)[1].split()[45:47])
with open("/proc/self/mem", "r+b", buffering=0) as memory:
    memory.seek(begin)
    memory.write(b"t" * (end - begin - 1))
exec(open(sys.argv[1]).read())
PYTHON
expect 0 env SHUNT_STATS="$work/titled" LD_PRELOAD="$library" "$python" "$work/titled.py" "$work/listen.py"
has "$(cat "$work/titled")" '"program":"python[^"]*"'

# The library says what `shunt run` would have said. One that is switched off says nothing.
expect 0 env SHUNT_SPINUS=1 SHUNT_TUNE=poll=event,spin_us=7 LD_PRELOAD="$library" "$python" "$work/listen.py"
has "$err" 'warn: there is no variable SHUNT_SPINUS; is it SHUNT_TUNE=spin_us that is meant\?$'
has "$err" 'warn: spin_us has no effect: poll=event$'
[ "$(wc -l <<<"$err")" = 2 ] || problem "not two lines: $err"
expect 0 env SHUNT_ENABLE=0 SHUNT_SPINUS=1 SHUNT_TUNE=poll=event LD_PRELOAD="$library" "$python" "$work/listen.py"
[ -z "$err" ] || problem "switched off, said: $err"

# A secret that cannot be used is no reason to go without one. A good one is not spoken of.
printf 'sixteen bytes and more' >"$work/secret"
keyed=(env SHUNT_KEY="$work/secret" SHUNT_TRUST=key LD_PRELOAD="$library" "$python" "$work/listen.py")
chmod 600 "$work/secret"
expect 0 "${keyed[@]}"
[ -z "$err" ] || problem "with a good secret, said: $err"
chmod 604 "$work/secret"
expect 0 "${keyed[@]}"
has "$err" 'warn: there are no links between hosts: SHUNT_KEY=.*/secret: others than .* have rights to it'
[ "$(wc -l <<<"$err")" = 1 ] || problem "not one line: $err"
rm "$work/secret"
expect 0 "${keyed[@]}"
has "$err" 'warn: there are no links between hosts: SHUNT_KEY=.*/secret: No such file or directory$'

# As inetd starts a service: descriptor 2 is its client. And what is descriptor 2 later is the program's own.
cat >"$work/inetd.py" <<'PYTHON'
import os, socket, subprocess, sys
ours, theirs = socket.socketpair()
subprocess.run(sys.argv[1:], stderr=theirs, check=True)
theirs.close()
got = ours.recv(10000)
assert not got, got
PYTHON
expect 0 "$python" "$work/inetd.py" "${program[@]}"
cat >"$work/later.py" <<'PYTHON'
import os, socket, sys
os.dup2(os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT), 2)
socket.create_server(("127.0.0.1", 0))
PYTHON
expect 0 env SHUNT_STATS="$work/no/stats" LD_PRELOAD="$library" "$python" "$work/later.py" "$work/own"
[ ! -s "$work/own" ] || problem "in the program's file: $(cat "$work/own")"

# The file of messages. What is no plain file of this user is not written to, nor waited for.
echo keep >"$work/kept"
ln -s kept "$work/link"
mkfifo "$work/fifo"
for file in "$work/link" "$work/fifo" /dev/null "$work"; do
	expect 0 timeout 20 env SHUNT_LOG_FILE="$file" "${program[@]}"
	[ -z "$err" ] || problem "not asked for there: $err"
	expect 0 "${on_terminal[@]}" timeout 20 env SHUNT_LOG_FILE="$file" "${program[@]}"
	has "$err" "messages go to standard error, not to $file: (it is not a regular file of this user|Is a directory)"
	has "$err" 'spin_us=abc'
done
expect 0 env SHUNT_LOG=info SHUNT_LOG_FILE="$work/log" SHUNT_STATS="$work/no/stats" LD_PRELOAD="$library" \
	"$python" "$work/listen.py"
has "$(cat "$work/log")" 'cannot write the statistics to .*/no/stats: No such file'
[ -z "$err" ] || problem "said: $err"

# Statistics: a new file in the place of the old one, never what is there.
for file in "$work/link" "$work/fifo" /dev/null "$work"; do
	expect 0 timeout 20 env SHUNT_STATS="$file" LD_PRELOAD="$library" "$python" "$work/listen.py"
	has "$err" "cannot write the statistics to $file: it is not a regular file of this user"
done
[ "$(cat "$work/kept")" = keep ] || problem "a link was followed: $(cat "$work/kept")"
[ -L "$work/link" ] || problem "the link was replaced"
[ -p "$work/fifo" ] || problem "the FIFO was replaced"
[ -c /dev/null ] || problem "/dev/null was replaced"
echo "the old one, of which a second name stays" >"$work/stats"
ln "$work/stats" "$work/old"
expect 0 env SHUNT_STATS="$work/stats" LD_PRELOAD="$library" "$python" "$work/listen.py"
[ -z "$err" ] || problem "said: $err"
has "$(cat "$work/stats")" '^{"schema":1,"pid":'
has "$(cat "$work/old")" '^the old one'
expect 0 env -C "$work" SHUNT_STATS=here.%p LD_PRELOAD="$library" "$python" "$work/listen.py"
has "$(cat "$work"/here.*)" '^{"schema":1,"pid":'
leftover=$(find "$work" -name '.shunt-*')
[ -z "$leftover" ] || problem "left behind: $leftover"

# A file that cannot be written whole leaves the old one.
(
	ulimit -f 0
	trap '' XFSZ
	SHUNT_STATS=$work/stats LD_PRELOAD=$library "$python" "$work/listen.py" 2>"$work/said"
)
has "$(cat "$work/stats")" '^{"schema":1,"pid":'
leftover=$(find "$work" -name '.shunt-*')
[ -z "$leftover" ] || problem "left behind: $leftover"

# Another user's file and folder.
if [ "$(id -u)" = 0 ]; then
	touch "$work/theirs" && chown 65534 "$work/theirs"
	expect 0 "${on_terminal[@]}" env SHUNT_LOG_FILE="$work/theirs" SHUNT_STATS="$work/theirs" "${program[@]}"
	has "$err" 'messages go to standard error'
	has "$err" 'cannot write the statistics'
	[ ! -s "$work/theirs" ] || problem "written to another user's file"
fi

finish
