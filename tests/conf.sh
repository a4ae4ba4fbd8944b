#!/bin/bash
# SPDX-License-Identifier: MIT
# shunt.conf: what the files hold counts beneath the environment, `shunt config` says where from, and what is wrong in
# them is said once and harms nothing.
set -u
. "${top_srcdir:?}/tests/lib.sh"
library=$top_builddir/.libs/libshunt.so

export HOME=$work/home XDG_CONFIG_HOME=
mkdir -p "$HOME/.config" "$work/xdg"
conf=$HOME/.config/shunt.conf
printf '# mine\nSHUNT_TUNE = spin_us=7 chain=8\nSHUNT_TUNE=window=8M\nnonsense\nSHUNT_TUNE=sq=1,rq=64\nSHUNT_SQ=64\n' >"$conf"
chmod 644 "$conf"

# The user's file, beneath the environment.
expect 2 env -u SHUNT_CONF SHUNT_TUNE=chain=9 "$shunt" config
has "$out" '^\*.spin_us +7 +25 '
has "$out" "^      from $conf:2$"
has "$out" '^\*.chain +9 +16 '
has "$out" '^\*.window +8M +auto '
has "$out" '^\*.rq +64 +1024 '
has "$out" '^      from the environment$'
has "$out" "^# $conf$"
has "$err" "^shunt config: $conf:4: it is neither SHUNT_NAME = VALUE nor a rule$"
has "$err" "^shunt config: $conf:5: SHUNT_TUNE: sq=1 is invalid"
has "$err" "^shunt config: $conf:6: there is no variable SHUNT_SQ: it is a word of SHUNT_TUNE, sq=VALUE$"
[ "$(wc -l <<<"$err")" = 3 ] || problem "not three lines: $err"
expect 2 env -u SHUNT_CONF SHUNT_TUNE=chain=9 "$shunt" config --json
python3 - "$conf" 3<"$work/out" <<'PYTHON' || problem "the JSON is not as it should be: $out"
import json, sys
said = json.load(open("/dev/fd/3"))
rows = {row["name"]: row for row in said["variables"]}
assert said["files"][-1] == {"path": sys.argv[1], "counts": True}, said["files"]
spin = rows["spin_us"]
assert (spin["value"], spin["from"], spin["file"], spin["line"]) == (7, "file", sys.argv[1], 2), spin
assert rows["chain"]["from"] == "environment" and "file" not in rows["chain"]
assert rows["sq"]["from"] == "default"
PYTHON

# $XDG_CONFIG_HOME's takes its place, and SHUNT_CONF that of all.
echo SHUNT_TUNE=spin_us=6 >"$work/xdg/shunt.conf"
expect 0 env -u SHUNT_CONF XDG_CONFIG_HOME="$work/xdg" "$shunt" config
has "$out" "^      from $work/xdg/shunt.conf:1$"
lacks "$out" "$conf"
echo SHUNT_TUNE=spin_us=5 >"$work/other"
expect 0 env SHUNT_CONF="$work/other" "$shunt" config
has "$out" "^      from $work/other:1$"
lacks "$out" "$conf"
expect 0 env SHUNT_CONF=none "$shunt" config
has "$out" 'spin_us +25 '
expect 2 env SHUNT_CONF="$work/absent" "$shunt" config
has "$err" 'SHUNT_CONF: there is no such file'
expect 2 env SHUNT_CONF=other "$shunt" config
has "$err" 'SHUNT_CONF=other is invalid'

# A program: the file's word counts in it, and what is wrong is said once a process. It keeps no program from starting.
python=$(python3 -c 'import sys; print(sys.executable)')	# no script stands before it
socket='import socket; socket.create_server(("127.0.0.1", 0))'
expect 0 env -u SHUNT_CONF SHUNT_LOG=warn "$shunt" run "$python" -c "$socket"
has "$err" "warn: $conf:4: it is neither"
[ "$(grep "warn: $conf:4" <<<"$err" | sort | uniq -d)" = "" ] || problem "said twice: $err"
printf 'SHUNT_LOG=debug\nSHUNT_LOG_FILE=%s/log.%%p\n' "$work" >"$conf"
expect 0 env -u SHUNT_CONF LD_PRELOAD="$library" "$python" -c "$socket"
printf 'SHUNT_LOG=none\nSHUNT_TUNE=sq=1\n' >"$conf"
expect 0 env -u SHUNT_CONF LD_PRELOAD="$library" "$python" -c "$socket"
lacks "$err" shunt

# The library itself, with the word of a file and with that of the environment over it.
printf 'SHUNT_STATS=%s/stats.%%p\n' "$work" >"$conf"
env -u SHUNT_CONF LD_PRELOAD="$library" "$python" -c "$socket" 2>/dev/null
compgen -G "$work/stats.*" >/dev/null || problem "SHUNT_STATS of a file has no effect"
rm -f "$work"/stats.*
env -u SHUNT_CONF SHUNT_STATS="$work/mine" LD_PRELOAD="$library" "$python" -c "$socket" 2>/dev/null
[ -e "$work/mine" ] || problem "the environment does not win"
! compgen -G "$work/stats.*" >/dev/null || problem "the file wins over the environment"

# Files that do not count.
chmod 666 "$conf"
expect 2 env -u SHUNT_CONF "$shunt" config
has "$err" "^shunt config: $conf: others than its owner may write it"
has "$out" "^# $conf does not count: others"
rm "$conf" && ln -s "$work/other" "$conf"
expect 2 env -u SHUNT_CONF "$shunt" config
has "$err" "^shunt config: $conf: it is a symbolic link"
rm "$conf" && mkfifo "$conf"
expect 2 env -u SHUNT_CONF "$shunt" config
has "$err" 'it is not a regular file'
rm "$conf" && head -c 20000 /dev/zero >"$conf"
expect 2 env -u SHUNT_CONF "$shunt" config
has "$err" 'it has more than 16384 bytes'
rm "$conf"

# Without files: two names are tried and nothing else.
if command -v strace >/dev/null && strace -o /dev/null true 2>/dev/null && [ ! -e /etc/shunt.conf ]; then
	strace -f -o "$work/trace" env -u SHUNT_CONF LD_PRELOAD="$library" bash -c 'trap : TERM' 2>/dev/null
	tried=$(grep -c 'shunt\.conf.*ENOENT' "$work/trace")
	[ "$tried $(grep -c 'shunt\.conf' "$work/trace")" = "2 2" ] ||
		problem "not two failed opens: $(grep 'shunt\.conf' "$work/trace")"
fi

# /etc/shunt.conf lies beneath the user's, and must be root's; in a mount namespace of its own.
if [ "$(id -u)" = 0 ] && unshare -m true 2>/dev/null; then
	cat >"$work/etc.sh" <<'SHELL'
set -e
mount --make-rprivate /
mkdir "$1/etc"
cp -a /etc/passwd /etc/group /etc/nsswitch.conf /etc/ld.so.* "$1/etc" 2>/dev/null || true
mount --bind "$1/etc" /etc
shift
unset SHUNT_CONF
printf 'SHUNT_TUNE=spin_us=3,chain=4\n' >/etc/shunt.conf
echo SHUNT_TUNE=chain=5 >"$HOME/.config/shunt.conf"
"$@"
chown 65534 /etc/shunt.conf
"$@" && exit 1
exit 0
SHELL
	expect 0 unshare -m bash "$work/etc.sh" "$work" "$shunt" config
	has "$out" '^      from /etc/shunt.conf:1$'
	has "$out" "^      from $conf:1$"
	lacks "$out" '^      from /etc/shunt.conf:2$'
	has "$err" '/etc/shunt.conf: it does not belong to root'
fi
finish
