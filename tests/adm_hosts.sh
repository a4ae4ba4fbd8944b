#!/bin/bash
# SPDX-License-Identifier: MIT
# shunt adm --hosts: what ssh is told, hosts that do it, refuse, hang, lie and cannot be reached; lists that are wrong.
set -u
. "${top_srcdir:?}/tests/lib.sh"
transfer=$top_builddir/tests/calls/transfer/transfer

start_waiting

# Stands in for ssh: `good` hosts run the command here. It records its arguments and how many of its kind run.
mkdir "$work/bin" "$work/runs"
cat >"$work/bin/ssh" <<'END'
#!/bin/bash
printf '%s\n' "$*" >>"$WORK/asked"
mkdir "$WORK/runs/$$"
printf '%s\n' "$WORK/runs"/* | wc -l >>"$WORK/abreast"	# find would look at one that ends meanwhile
while [ "$1" != -- ]; do shift; done
case $2 in
ok*) echo "done here" ;;
good* | *@*good*) flock "$WORK/one" sh -c "$3" ;;	# the one process here has few clients at a time
hangs) exec sleep 1000 ;;
closes) exec sleep 1000 >&- 2>&- ;;
refuses) printf 'ssh: connect to host refuses port 22: Connection refused\r\n' >&2; status=255 ;;
bare) echo "sh: 1: shunt: not found" >&2; status=127 ;;
older) echo "shunt adm: it wants processes" >&2; status=2 ;;
dies) kill -9 $$ ;;
escapes) printf '\033]0;title\007\r\033[2Jgood1: all is well\ngood1: \200\0x\nlast'; printf '\033[31mred\n' >&2 ;;
floods) yes '{},' ;;
lies) printf '{"schema":1,"processes":{"a":1}}\n' ;;
nests) printf '{"processes":'; head -c 500000 /dev/zero | tr '\0' '[' ;;
master) sleep 1000 >&- & echo $! >"$WORK/master"; echo "done here" ;;
esac
status=${status:-$?}
rmdir "$WORK/runs/$$"
exit "$status"
END
chmod +x "$work/bin/ssh"
export WORK=$work PATH=$work/bin:$top_builddir/tools:$PATH

list() {
	printf '%s\n' "$@" >"$work/list"
}
forget() {
	rm -rf "$work/asked" "$work/abreast" "$work"/runs/*
}
adm=("$shunt" adm --hosts "$work/list")

# Each line has its host before it, in the order of the file.
list '# all of them' '' '  good1	# the first' 'root@good2:2222' 'u@[::1good]:23'
expect 0 "${adm[@]}" --program 'transf*' --user "$(id -u)" set spin_us 9
[ -z "$err" ] || problem "it said: $err"
[ "$(cut -d' ' -f1 <<<"$out" | uniq -c | sed 's/^ *//')" = "$(printf '2 %s:\n' good1 root@good2:2222 'u@[::1good]:23')" ] ||
	problem "not two lines of each host, in the order of the file: $out"
has "$out" "^good1: $server +transfer +done +spin_us=9$"
has "$out" "^root@good2:2222: $server +transfer +done +spin_us=9$"
for words in " -- good1 shunt" "-p 2222 -- root@good2 shunt" "-p 23 -- u@::1good shunt"; do
	grep -qF -e "$words" "$work/asked" || problem "ssh was not asked '$words': $(cat "$work/asked")"
done
[ "$(grep -c '^-T -o BatchMode=yes -o ConnectTimeout=[0-9]* ' "$work/asked")" = 3 ] || problem "not three batches: $(cat "$work/asked")"

# Words reach the other host's shell as they are.
list good1
expect 1 "${adm[@]}" --program transfer fault "kill:'x'\$(touch\${IFS}$work/ran)\`touch\${IFS}$work/ran\`\"*\\\"=1"
has "$out" "no key ''x'\\$\(touch"
[ ! -e "$work/ran" ] || problem "a word was run by the shell of the host"

# Some do it, none does it.
list good1 refuses bare older dies good2
expect 3 "${adm[@]}" --program transfer set spin_us 8
has "$out" "^good1: $server +transfer +done "
has "$out" "^good2: $server +transfer +done "
# shellcheck disable=SC2016 # backticks
has "$err" '^shunt adm: refuses: ssh has not reached it \(ssh: connect .*Connection refused\); `ssh -o BatchMode=yes refuses true` has to work$'
has "$err" '^refuses: ssh: .*Connection refused$'
has "$err" '^bare: sh: 1: shunt: not found$'
has "$err" '^shunt adm: bare: no such command .*; install Shunt there'
has "$err" '^shunt adm: older: the command there has ended with status 2'
has "$err" '^shunt adm: dies: signal 9 '
has "$err" '^shunt adm: 2 of 6 hosts have done it$'
list good1 good2
expect 1 "${adm[@]}" --program no-such-program help
has "$err" '^good2: shunt adm: there is no such process'
has "$err" '^shunt adm: 0 of 2 hosts have done it$'
expect 1 "${adm[@]}" --program transfer set rq 64
has "$out" "^good2: $server +transfer +refused "

# Hosts that hang end at their deadline, and the others are answered. What ssh leaves behind is not waited for.
list hangs good1 closes good2
expect 3 "${adm[@]}" --timeout 8 --program transfer help
has "$out" '^good2: .*set NAME VALUE'
has "$err" '^shunt adm: hangs: it has not answered within 8 seconds.*--timeout'
has "$err" '^shunt adm: closes: it has not answered within 8 seconds'
list master
expect 0 timeout 100 "${adm[@]}" --timeout 1000 --all help
kill "$(cat "$work/master")" || problem "what ssh had left has ended"

# No more than some at a time, and all of them.
forget
seq -f 'ok%.0f' 40 >"$work/list"
expect 0 "${adm[@]}" --program transfer set spin_us 7
[ "$out" = "$(seq -f 'ok%.0f: done here' 40)" ] || problem "not 40 hosts: $out"
[ "$(wc -l <"$work/asked")" = 40 ] || problem "ssh ran $(wc -l <"$work/asked") times"
[ "$(sort -n "$work/abreast" | tail -1)" -le 16 ] || problem "$(sort -n "$work/abreast" | tail -1) hosts at a time"

# Hostile ones.
list escapes good1 floods
expect 3 "${adm[@]}" --program transfer set spin_us 6
lacks "$out$err" $'[^ -~\t]'
has "$out" '^escapes: \\x1b\]0;title'
has "$out" '^escapes: good1: \\x80\\x00x$'
has "$out" '^escapes: last$'
has "$err" '^escapes: \\x1b\[31mred$'
has "$err" '^shunt adm: floods: its answer is longer than'

# As one object.
list good1 hangs lies nests escapes floods refuses
expect 3 "${adm[@]}" --json --timeout 8 --program transfer set spin_us 5
python3 - "$server" 3<"$work/out" <<'PYTHON' || problem "the JSON is not as it should be: $out"
import json, sys
said = json.load(open("/dev/fd/3"))
assert said["schema"] == 1
hosts = said["hosts"]
assert list(hosts) == "good1 hangs lies nests escapes floods refuses".split(), list(hosts)
assert [name for name, row in hosts.items() if row["done"]] == ["good1"]
assert [row["outcome"] for row in hosts["good1"]["processes"] if row["pid"] == int(sys.argv[1])] == ["done"]
for name, why in ("hangs", "has not answered"), ("lies", "not that of"), ("nests", "not that of"), ("escapes", "not that of"), \
                 ("floods", "longer than"), ("refuses", "Connection refused"):
    assert why in hosts[name]["why"] and "processes" not in hosts[name], (name, hosts[name])
PYTHON

# Lists that are wrong: nothing is asked, and the line is named.
forget
# shellcheck disable=SC2016 # nothing is to be expanded
for line in '-oProxyCommand=x' 'a b' 'a;b' '$(x)' '@a' 'u@' 'u@-a' '-u@a' 'u@v@a' 'a:' 'a:0' 'a:65536' 'a:22x' '[::1' '[]' '[::1]x' \
	'[::1]:' 'ssh://a' 'a/b' $'a\tb' $'a\033[2J' $'a\200' "a'" "$(printf '%200s' '' | tr ' ' a)" good1; do
	list good1 '# a comment' "$line" good2
	expect 2 "${adm[@]}" --all help
	has "$err" "^shunt adm: $work/list: line 3: "
	[ -z "$out" ] || problem "'$line': $out"
done
printf 'good1\ngood2\0-x\n' >"$work/list"
expect 2 "${adm[@]}" --all help
has "$err" 'line 2: it has a zero byte'
seq -f 'good%.0f' 300 >"$work/list"
expect 2 "${adm[@]}" --all help
has "$err" 'line 257: '
list '# nobody'
expect 2 "${adm[@]}" --all help
has "$err" 'there is no host in it'
expect 2 "$shunt" adm --hosts "$work/none" --all help
has "$err" "$work/none: No such file"
list good1
for words in "" "help" "$server help" "--all" "--timeout 0 --all help" "--timeout x --all help" "--timeout"; do
	# shellcheck disable=SC2086
	expect 2 "${adm[@]}" $words
done
[ ! -e "$work/asked" ] || problem "ssh was asked: $(cat "$work/asked")"

# Without ssh.
mkdir "$work/empty"
PATH=$work/empty "$shunt" adm --hosts "$work/list" --all help 2>"$work/err" && problem "it has done it without ssh"
has "$(cat "$work/err")" 'good1: no such command \(ssh cannot be run here\); install Shunt there, and ssh here'

expect 0 "$transfer" client "$port" -n 0
wait "$server" || problem "the server ended with $?"
finish
