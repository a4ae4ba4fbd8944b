# SPDX-License-Identifier: MIT
# limit: 2400
# Does a real device keep the rules that the soft one keeps? Each test of tests/soft/conform is one of ours.
# shellcheck shell=bash source-path=SCRIPTDIR source=lib.sh
. "${BASH_SOURCE%/*}/lib.sh"

conform=$builddir/tests/soft/conform
need "$conform"

# of DEVICES: cmocka's report, line by line; the summary at its end repeats the names. What is left out is said once.
report() {
	local line name='' by=", $1" ran=0
	declare -A why=()
	while IFS= read -r line; do
		echo "$line" >&2
		case $line in
		"# left out: "*) line=${line#*: } && why[${line%%:*}]=${line#*: } ;;
		"[ RUN      ] "*) name=${line#*] } ran=$((ran + 1)) ;;
		"[       OK ] $name") ok "$name$by" && name='' ;;
		"[  FAILED  ] $name") not_ok "$name$by" && name='' ;;
		"[  SKIPPED ] $name") [[ $by = *,*,* ]] || skip "$name" "${why[$name]:-}" && name='' ;;
		"[==========] "*"run.") break ;;
		esac
	done
	[ -z "$name" ] || not_ok "$name$by: the program ended in its midst"
	[ "$ran" -gt 50 ] || not_ok "only $ran tests$by"
}

for devices in rxe0 rxe0,rxe1; do
	report "$devices" < <(timeout 1000 "$conform" --device verbs:$devices 2>&1)
done
plan
