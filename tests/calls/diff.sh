#!/bin/bash
# SPDX-License-Identifier: MIT
# Runs every case of tests/calls/cases bare and shunted and compares the transcripts. TAP.
#
#	diff.sh [PATTERN]		cases whose name matches the (extended) pattern; default all
#	PASSES="both server client"	who is shunted: both ends (cold: from the first byte; warm: after
#					traffic, until that is on the link), only the end that accepts,
#					only the one that connects; both, on a connection that is used again (born); default
#					"cold warm server client"
#	SAMPLE=8			of these cases every eighth
#	STABLE=20 diff.sh		no Shunt at all: each case so many times bare, all must agree
#	SHUNT_TUNE=flip=4096 diff.sh		with flips (any SHUNT_* variable is taken over)
#	JOBS=1				how many cases run at once; default 4
#	TEST_LINK=2000			ms that the traffic before a case may take until it is on the link
#
# A difference that the files `known` (and `known.busy`, `known.flip`, `known.kept`, `known.verbs`) explain is a TODO of TAP and no
# failure. Each of their lines must match a case and a pass that there are, and say why: the first test.
# Transcripts of failures stay in $CALLS_OUT (default: a new folder under /tmp, named at the end).
set -u

# shellcheck source-path=SCRIPTDIR source=where.sh
. "$(dirname "$0")/where.sh"
# shellcheck source-path=SCRIPTDIR source=../scratch.sh
. "$(dirname "$0")/../scratch.sh"
cases=${CASES:-$builddir/tests/calls/cases/cases}
known_in=${CALLS_KNOWN:-$(dirname "$0")}	# the folder of these files
passes=${PASSES:-cold warm server client}
given=${CALLS_OUT:-}
if [ "${CALLS_LINE:-}" ]; then
	out=$given	# made by the script that asked
else
	scratch calls "$given"
	out=$scratch
fi
warm=${TEST_WARM:-40}
pattern=${1:-.}

if [ ! -x "$cases" ]; then
	echo "Bail out! $cases is missing"
	exit 99
fi

# The last value of a word of SHUNT_TUNE, or nothing.
tuned() { # WORD
	tr ', ' '[\n*]' <<< "${SHUNT_TUNE-}" | sed -n "s/^$1=//p" | tail -1
}

# one_case FILE SERVER-WRAP CLIENT-WRAP WARM CASE...: the transcript in FILE, messages in FILE.err.
one_case() {
	local file=$1 server=$2 client=$3 ms=$4 busy='' link='' status
	shift 4
	[ "$server" ] && [ "$client" ] && [ "${SHUNT_DEVICE:-}" != none ] && [ -z "${SHUNT_MOCK:-}" ] && link=${TEST_LINK:-2000}
	# Waits that never sleep: the cases cannot wait for a thread to fall asleep.
	[ "$server" ] && [ "$client" ] && [ "$(tuned poll)" = busy ] && busy=1
	TEST_BUSY=$busy TEST_LINK=$link TEST_SERVER_WRAP=$server TEST_CLIENT_WRAP=$client TEST_WARM=$ms SHUNT_STATS="$file.stat.%p" \
		timeout 300 "$cases" "$@" > "$file" 2> "$file.err" < /dev/null
	status=$?
	[ -d "$out" ] || exit	# interrupted
	return $status
}

# compare NAME BARE SHUNTED: "ok" or "not ok" with the difference in NAME.diff.
compare() {
	if diff -u "$2" "$3" > "$1.diff" 2>&1; then
		rm -f "$1.diff"
		return 0
	fi
	return 1
}

# A difference that tests/calls/known explains: prints why. Nobody may hang or die of it.
known() { # NAME PASS
	local pattern why device=${SHUNT_DEVICE:-} kept flips poll
	kept=$(tuned retain)$(tuned inline) flips=$(tuned flip) poll=$(tuned poll)
	grep -q '^[-+].*\(died of\|FAILED\)' "$out/$1.$2.diff" && return 1
	while read -r pattern why; do
		case $pattern in '' | '#'*) continue ;; esac
		[[ "$1 $2" =~ ^$pattern$ ]] && echo "$why" && return 0
	done < <(cat "$known_in/known" "$known_in/known.$poll" "$known_in/known.${device%%:*}" \
		"$known_in/known.${flips:+flip}" "$known_in/known.${kept:+kept}" 2> /dev/null)
	return 1
}

# Sets name, kind and args of one line of "cases list". False: the case is none for flips, and there are some.
read_case() { # LINE FLIPS
	local word
	kind=two args=()
	for word in $1; do
		case $word in
		noflip) [ "$2" = 0 ] || return 1 ;;
		alone) kind=one ;;
		one) kind=one args+=("$word") ;;
		*) args+=("$word") ;;
		esac
	done
	local IFS=_
	name="${args[*]}"
}

# Each case with each pass that makes sense for it: whatever is chosen of them for this run.
all_that_there_are() { # FLIPS
	local line name kind args
	while IFS= read -r line; do
		read_case "$line" "$1" || continue
		printf "$name %s\n" cold warm born
		[ "$kind" = one ] || printf "$name %s\n" server client
	done < <("$cases" list)
}

# Lines that excuse nothing, or do not say why.
unknown() {
	local file pattern why all
	local -a there
	there=("$(all_that_there_are 0)" "$(all_that_there_are 1)")
	for file in "$known_in"/known "$known_in"/known.*; do
		[ -f "$file" ] || continue
		all=${there[0]}
		[ "${file##*/}" != known.flip ] || all=${there[1]}
		while read -r pattern why; do
			case $pattern in '' | '#'*) continue ;; esac
			[ "$why" ] || echo "${file##*/}: $pattern does not say why"
			grep -qxE -- "$pattern" <<< "$all" || echo "${file##*/}: $pattern matches no case"
		done < "$file"
	done
}

# The bare transcript must itself be good; a second chance is not given to any of them.
stable() {
	local name=$1 i
	shift
	one_case "$out/$name.bare" "" "" 0 "$@" || { echo "not ok - $name bare"; return; }
	for ((i = 1; i < STABLE; i++)); do
		one_case "$out/$name.again" "" "" $((i % 2 * 5)) "$@"
		compare "$out/$name" "$out/$name.bare" "$out/$name.again" ||
			{ echo "not ok - $name is not stable (run $i)"; return; }
	done
	echo "ok - $name stable"
}

# passes NAME one|two CASE...: every pass that makes sense for the case.
all_passes() {
	local name=$1 kind=$2 pass server client ms why born
	shift 2
	if ! one_case "$out/$name.bare" "" "" 0 "$@"; then
		echo "not ok - $name bare"
		return
	fi
	for pass in $passes; do
		server=$shunt_run client=$shunt_run ms=0
		case $pass in
		warm) ms=$warm ;;
		server) client='' ms=$warm ;;
		client) server='' ms=$warm ;;
		born) ms=$warm ;;
		esac
		[ "$kind" = two ] || [ "$pass" = cold ] || [ "$pass" = warm ] || [ "$pass" = born ] || continue
		born=''
		[ "$pass" != born ] || born='TEST_BORN=1 SHUNT_TUNE='${SHUNT_TUNE-},born=auto
		# shellcheck disable=SC2086 # words
		one_case "$out/$name.$pass" "${born:+env $born }$server" "${born:+env $born }$client" "$ms" "$@"
		if compare "$out/$name.$pass" "$out/$name.bare" "$out/$name.$pass"; then
			echo "ok - $name $pass"
		elif why=$(known "$name" "$pass"); then
			echo "not ok - $name $pass # TODO $why"
		else
			echo "not ok - $name $pass"
			sed 's/^/# /' "$out/$name.$pass.diff" | head -20
		fi
	done
}

# One line of "cases list".
one_line() {
	local args kind name flips
	flips=$(tuned flip)
	read_case "$1" "${flips:-0}" || return 0
	# Its own wrappers die of bad pointers, and of the stack of a thread that was cancelled or has left.
	[[ $name =~ cancel|then_gone|unmapped|pointer_(names|poll|connect) ]] && shunt_run=${UNSEEN:-$shunt_run}
	# A ring that uses connections, and is not watched: tests/calls/rings.sh has the others.
	[[ $name =~ uring ]] && export SHUNT_URING=${SHUNT_URING:-tcp}
	if [ -n "${STABLE:-}" ]; then
		stable "$name" "${args[@]}"
	else
		all_passes "$name" "$kind" "${args[@]}"
	fi
}

if [ "${CALLS_LINE:-}" ]; then
	[ -d "$out" ] || exit 255	# the script that asked is gone: xargs stops
	said=$(one_line "$CALLS_LINE")	# in one piece: others write too
	[ -z "$said" ] || printf '%s\n' "$said"
	exit 0
fi

# Of a library that is preloaded AddressSanitizer sees no allocation, unless its own comes first.
if [ -z "${RUN_SHUNT:-}" ]; then
	asan=$(ldd "$builddir/.libs/libshunt.so" | sed -n 's/.* => \(.*libasan[^ ]*\) .*/\1/p')
	[ -z "$asan" ] || export RUN_SHUNT="env LD_PRELOAD=$asan ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}detect_leaks=0 $shunt_run" \
		UNSEEN="$shunt_run"
fi

if [ -z "${STABLE:-}" ] && ! $shunt_run true; then
	echo "Bail out! '$shunt_run' does not work"
	exit 99
fi

export CALLS_OUT=$out
said=$(unknown)
if [ -z "$said" ]; then
	echo "ok - each line of known matches a case"
else
	echo "not ok - each line of known matches a case"
	printf '# %s\n' "${said//$'\n'/$'\n'# }"
fi > "$out/tap.unnumbered"
"$cases" list | grep -E -- "$pattern" | awk -v every="${SAMPLE:-1}" 'NR % every == 1 % every' |
	xargs -d '\n' -P "${JOBS:-4}" -I{} env CALLS_LINE={} "$0" >> "$out/tap.unnumbered"
awk '/^(not )?ok - / { n++; sub(/ok -/, "ok " n " -") } { print }
	/^not ok .* # TODO / { known++; next } /^not ok/ { bad++ }
	END { print "1.." n + 0; print "# " n - bad - known " of " n " agree, " known + 0 " differ as tests/calls/known says"; exit bad > 0 || n < 2 }' \
	"$out/tap.unnumbered"
status=$?
# Once more at the end, where the tail of a long log still has them.
awk '/^not ok/ && !/ # TODO / { show = 1; print "# " $0; next } /^# / && show { print; next } { show = 0 }' \
	"$out/tap.unnumbered"
upgraded=$(cat "$out"/*.stat.* 2> /dev/null | grep -c '"upgrades": *[1-9]')
echo "# processes with upgrades: $upgraded"
if [[ " $passes " = *" born "* ]]; then
	born=$(cat "$out"/*.born.stat.* 2> /dev/null | grep -c '"births_connected": *[1-9]')
	echo "# processes that have used a connection again: $born"
	[ "$born" -gt 0 ] || { echo "Bail out! none was used again"; status=1; }
fi
[ $status = 0 ] || scratch_keep "$out"
[ $status = 0 ] && [ -z "$given" ] || echo "# transcripts in $out"
exit $status
