# SPDX-License-Identifier: MIT
# shellcheck shell=bash disable=SC2034,SC2086,SC2154
# For the test suites of others: each unit bare, then with everything shunted; no test may fail that passes bare. TAP.
# Sourced. A suite says
#
#	run NAME WRAP UNIT	runs a unit, under WRAP: its output into $scratch/NAME, the names of tests that did not
#				pass into $scratch/NAME.failed, sorted, how many tests there were into $scratch/NAME.count
#	$trouble		what a failure begins with in the output; that of redis unless given
suites=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
top=$(cd "$suites/../.." && pwd)
shunt=${top_builddir:-$top/build}/tools/shunt
trouble='\[(err|exception)\]'
patience=${PATIENCE:-900}	# seconds until a unit is taken to hang
# shellcheck source-path=SCRIPTDIR source=../../tools/build.sh
. "$top/tools/build.sh"
# shellcheck source-path=SCRIPTDIR source=../scratch.sh
. "$top/tests/scratch.sh"
scratch suites

skip_all() {
	echo "1..0 # SKIP $*"
	exit 77
}

cache=${XDG_CACHE_HOME:-$HOME/.cache}/shunt-suites

# fetch PACKAGE: $source becomes the folder of the package's source, which is fetched once, into $cache: of what the
# distribution has now. No list of the system's is changed.
fetch() {
	local release options
	source=$(find "$cache" -maxdepth 1 -name "$1-*" -type d 2> /dev/null | sort | tail -n 1)
	[ -z "$source" ] || return 0
	# shellcheck source=/dev/null
	release=$(. /etc/os-release && echo "$VERSION_CODENAME")
	mkdir -p "$scratch/apt/lists/partial" "$cache" || exit
	printf 'deb-src http://deb.debian.org/debian %s main\ndeb-src http://deb.debian.org/debian-security %s-security main\n' \
		"$release" "$release" > "$scratch/apt/sources.list"
	options="-qq -o Dir::Etc::sourcelist=$scratch/apt/sources.list -o Dir::Etc::sourceparts=/nonexistent
		-o Dir::State::lists=$scratch/apt/lists -o APT::Sandbox::User=root"
	# shellcheck disable=SC2086 # several words
	(cd "$scratch/apt" && apt-get $options update && apt-get $options source --download-only "$1" &&
		tar -C "$cache" -xf "$1"_*.orig.tar.*z) || skip_all "the source package of $1 cannot be fetched"
	source=$(find "$cache" -maxdepth 1 -name "$1-*" -type d | sort | tail -n 1)
}

# build FILE COMMANDS: in $source, unless the file is there, saying nothing but what goes wrong.
build() {
	[ -e "$source/$1" ] || (cd "$source" && bash -ec "$2") > "$scratch/built" 2>&1 || {
		tail -n 20 "$scratch/built"
		skip_all "$source cannot be built"
	}
}

# alone COMMAND...: for no longer than $patience, in namespaces of its own: ports are always the same.
alone() {
	"$suites/../alone.sh" timeout "$patience" "$@"
}

# `run` for the tests that redis and valkey share, in Tcl.
run_tcl() { # NAME WRAP UNIT
	local name=$1 wrap=$2 unit=$3 status
	(cd "$source" && TERM=dumb alone $wrap ./runtest --clients 1 --single "$unit") > "$scratch/coloured" 2>&1 < /dev/null
	status=$?
	sed -E 's/\x1b\[[0-9;]*m//g' "$scratch/coloured" > "$scratch/$name"
	{
		grep -E '^\[(err|exception)\]' "$scratch/$name" | sed -E 's/ in tests\/.*//; s/:[0-9]+//g'
		[ $status -le 1 ] || echo "the unit as a whole: status $status"
	} | sort -u > "$scratch/$name.failed"
	grep -c '\[ok\]' "$scratch/$name" > "$scratch/$name.count"
}

suite() { # UNIT...
	local unit count=0 failed=0 new tests
	for unit; do
		rm -rf "$scratch"/bare* "$scratch"/shunted*
		run bare "" "$unit"
		run shunted "$shunt run" "$unit"
		count=$((count + 1))
		new=$(comm -13 "$scratch/bare.failed" "$scratch/shunted.failed")
		tests=$(cat "$scratch/shunted.count")
		if [ "$(cat "$scratch/bare.count")" = 0 ]; then
			failed=$((failed + 1))
			echo "not ok $count - $unit: there are no tests, bare"
			tail -n 5 "$scratch/bare" | sed 's/^/# /'
		elif [ -z "$new" ] && [ "$tests" -gt 0 ]; then
			echo "ok $count - $unit: $tests tests"
		else
			failed=$((failed + 1))
			echo "not ok $count - $unit: of $tests tests"
			printf '%s\n' "$new" | sed 's/^/# /'
			grep -E -A20 "$trouble" "$scratch/shunted" | head -60 | sed 's/^/# /'
		fi
	done
	echo "1..$count"
	exit $((failed > 0))
}
