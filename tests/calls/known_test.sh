#!/bin/bash
# SPDX-License-Identifier: MIT
# diff.sh and its files `known`: a difference that they explain is a TODO, one that they do not is a failure, and so is a
# line that matches no case, or does not say why. Its cases are a program of this test's own. TAP.
# shellcheck disable=SC2317 # called by name
set -u
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source-path=SCRIPTDIR source=../scratch.sh
. "$here/../scratch.sh"
scratch known
unset STABLE PASSES SAMPLE SHUNT_TUNE SHUNT_DEVICE CALLS_LINE FLIPS
n=0 failed=0
mkdir "$scratch/known"

# Shunted, `odd` says something else, and `dies` what nobody may say.
cat > "$scratch/cases" <<'END'
#!/bin/sh
[ "$1" != list ] || { printf 'even\nodd\nodd one\ndies\nshort noflip\n'; exit; }
[ -z "$TEST_SERVER_WRAP$TEST_CLIENT_WRAP" ] || case $1 in
odd) echo "shunted"; exit ;;
dies) echo "it died of signal 9"; exit ;;
esac
echo "bare"
END
chmod +x "$scratch/cases"
mkdir -p "$scratch/build/.libs"
cp /bin/true "$scratch/build/.libs/libshunt.so"	# nothing of a sanitizer is in it

check() { # NAME COMMAND...
	local name=$1
	shift
	n=$((n + 1))
	if "$@"; then
		echo "ok $n - $name"
	else
		sed 's/^/# /' "$scratch/said"
		echo "not ok $n - $name" && failed=1
	fi
}

# differ STATUS CASE LINE...: diff.sh with these lines of `known` ends so.
differ() {
	local status=$1 which=$2
	shift 2
	rm -f "$scratch"/known/*
	printf '%s\n' '# comment' '' "$@" > "$scratch/known/known"
	[ -z "${FLIPS-}" ] || mv "$scratch/known/known" "$scratch/known/known.flip"
	SHUNT_BUILD=$scratch/build RUN_SHUNT=env CASES=$scratch/cases CALLS_KNOWN=$scratch/known CALLS_OUT=$scratch/out \
		"$here/diff.sh" "$which" > "$scratch/said" 2>&1
	[ $? = "$status" ]
}

said() { # LINE
	grep -qxF -- "$1" "$scratch/said"
}

check "nothing differs" differ 0 even
check "five agree" said "# 5 of 5 agree, 0 differ as tests/calls/known says"
check "a difference fails" differ 1 '^odd$'
check "a difference that is known does not" differ 0 '^odd$' '(odd|even).[a-z]* it is odd'
check "it is a TODO" said "not ok 3 - odd warm # TODO it is odd"
check "it is counted apart" said "# 1 of 5 agree, 4 differ as tests/calls/known says"
check "another is none" differ 1 '^odd$' 'odd.cold it is odd'
check "nobody may die of it" differ 1 dies 'dies.[a-z]* it dies'
check "a line that matches no case fails" differ 1 even 'odd.cold it is odd' 'oddly.warm it is odd'
check "and is named" said "# known: oddly.warm matches no case"
check "so does one of a pass that the case has not got" differ 1 even 'odd_one.server it is odd'
check "so does one that does not say why" differ 1 even 'odd.cold'
FLIPS=1
check "so does one of a case that has no flips, in known.flip" differ 1 even 'short.cold it is short'
check "and is named" said "# known.flip: short.cold matches no case"
echo "1..$n"
exit $failed
