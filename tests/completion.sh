#!/bin/bash
# SPDX-License-Identifier: MIT
# Completion: the candidates, and what each shell that is here makes of them.
set -u
. "${top_srcdir:?}/tests/lib.sh"

completion=$top_srcdir/contrib/completion
PATH=$top_builddir/tools:$PATH

# words LINE…: candidates without their meanings, on one line.
words() {
	"$shunt" complete -- "$@" | cut -f1 | tr '\n' ' '
}

expect 0 "$shunt" complete --help
expect 2 "$shunt" complete
expect 2 "$shunt" complete run

# Every command of the usage, with its meaning.
expect 0 "$shunt" complete -- ''
while read -r name meaning; do
	grep -qF -- "$name	$meaning" <<<"$out" || problem "no candidate '$name' with '$meaning'"
done < <("$shunt" --help | sed -n 's/^  \([a-z][a-z]*\) *\(.*\)/\1 \2/p')
lacks "$out" '-end'

# Every option of every command's help.
for command in $("$shunt" --help | sed -n 's/^  \([a-z][a-z]*\) .*/\1/p'); do
	offered=" $(words "$command" -)"
	for option in $("$shunt" "$command" --help | grep -oE '^  (-[a-zA-Z], )?--[a-z-]+' | grep -oE -- '--[a-z-]+'); do
		[[ $offered == *" $option "* ]] || problem "shunt $command: $option is not offered"
	done
done

[ "$(words perf pi)" = 'pingpong ' ] || problem "models: $(words perf pi)"
[[ " $(words perf '')" == *' qos '* ]] || problem "no qos behind perf"
for words in "perf programs --quick" "trace slow --follow" "doctor devices --root"; do
	read -r command word option <<<"$words"
	[[ " $(words "$command" "${word::2}")" == *" $word "* ]] || problem "no $word behind $command"
	[[ " $(words "$command" "$word" "${option::4}")" == *" $option "* ]] || problem "$command $word: $option is not offered"
done
[[ $(words perf qos --pe) == *--periods* ]] || problem "perf qos has no options"
[ "$(words perf --csv '')" = ':file ' ] || problem "a file: $(words perf --csv '')"
[ "$(words adm --hosts '')" = ':file ' ] || problem "a file of hosts: $(words adm --hosts '')"
[ "$(words report -o '')" = ':file ' ] || problem "a file behind a letter: $(words report -o '')"
[ "$(words run '')" = ':command 1 ' ] || problem "run: $(words run '')"
[ "$(words run prog --x)" = ':command 1 ' ] || problem "a program's words: $(words run prog --x)"
[ "$(words run -- prog --x)" = ':command 2 ' ] || problem "a program behind --: $(words run -- prog --x)"
[ "$(words advise --port 7 --no-try prog x)" = ':command 4 ' ] || problem "a program behind options: $(words advise --port 7 --no-try prog x)"
[ "$(words ping '')" = ':host ' ] || problem "ping: $(words ping '')"
[[ " $(words adm 1 '')" == *' set '* ]] || problem "adm has no set"
[[ " $(words adm 1 set SHUNT_L)" == *' SHUNT_LOG '* ]] || problem "no variables behind set"
[[ " $(words adm 1 set SHUNT_D)" != *' SHUNT_DEVICE '* ]] || problem "a fixed variable behind set"
[ -z "$(words no-such-command '')" ] || problem "candidates for no command"

# A shunted process that lets us in.
coproc "$shunt" run python3 -c 'import socket, sys
with socket.create_server(("127.0.0.1", 0)):
    print("ready", flush=True)
    sys.stdin.read()'
process=$COPROC_PID
read -r _ <&"${COPROC[0]}"
[[ " $(words stat '')" == *" $process "* ]] || problem "$process is not offered: $(words stat '')"
[[ " $(words advise --pid '')" == *" $process "* ]] || problem "$process is not offered behind --pid"
[[ " $(words adm '')" == *" $process "* ]] || problem "$process is not offered behind adm"
eval "exec ${COPROC[1]}>&-"
wait "$process"

# ---- the shells ----

in_bash() {
	bash -c '. "$1"; shift
	COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
	_shunt
	echo "${COMPREPLY[*]}"' bash "$completion/shunt.bash" "$@" 2>/dev/null
}
[ "$(in_bash shunt st)" = stat ] || problem "bash: $(in_bash shunt st)"
[[ $(in_bash shunt stat --) == *--openmetrics* ]] || problem "bash: $(in_bash shunt stat --)"
[[ " $(in_bash shunt run pytho) " == *' python3 '* ]] || problem "bash: $(in_bash shunt run pytho)"

# The functions of zsh's completion that ours calls print what they are given.
cat >"$work/zsh" <<'END'
_describe() { print -l -- "${(@P)2}" }
_normal() { print -- "words of $words" }
_files() { print files }
file=$1; shift
words=("$@") CURRENT=$#
complete() { . $file }
complete
END
if command -v zsh >/dev/null; then
	in_zsh() { zsh -f "$work/zsh" "$completion/_shunt" "$@"; }
	has "$(in_zsh shunt st)" '^stat:show the connections'
	has "$(in_zsh shunt perf --csv '')" '^files$'
	has "$(in_zsh shunt run curl -)" '^words of curl -$'
fi

if command -v fish >/dev/null; then
	# shellcheck disable=SC2016 # fish's
	in_fish() { HOME=$work fish --no-config -c 'source $argv[1]; complete -C $argv[2]' "$completion/shunt.fish" "$1"; }
	has "$(in_fish 'shunt st')" '^stat	show the connections'
	has "$(in_fish 'shunt stat --op')" '^--openmetrics'
	has "$(in_fish 'shunt run pytho')" '^python3'
fi
finish
