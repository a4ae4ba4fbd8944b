#!/bin/bash
# SPDX-License-Identifier: MIT
# Every script of this folder in turn, each one's output also in $OUT/NAME.txt.
#
#	OUT=folder all.sh [rb|xr|ha|ln|NAME]...	all, those of a paper, or these; and the knobs of common.sh
set -u
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source-path=SCRIPTDIR source=../../scratch.sh
. "$here/../../scratch.sh"
scratch paper "${OUT:-}"
export OUT=$scratch
rc=0
all=" rb_e1 rb_e2 rb_e3 rb_e4 rb_e5 rb_e6 rb_e7 rb_e8 rb_e9 rb_e11 xr_e1 xr_e3 xr_e4 xr_e5 xr_e6 xr_e7 xr_e8 xr_22
 ha_e1 ha_e2 ha_e3 ha_e4 ha_e5 ha_e6 ha_e7 ha_e8 ln_t2 ln_e1 ln_t3 ln_e5 ln_e6 ln_e4 "
names=()
# shellcheck disable=SC2086 # names
[ $# -gt 0 ] || set -- ${ONLY:-$all}
for word; do
	found=0
	for name in $all; do
		[[ $name = "$word" || $name = "${word}"_* ]] && names+=("$name") && found=1
	done
	[ $found = 1 ] || {
		echo "no script or paper of that name: $word; there are:$all"
		exit 2
	}
done
for name in "${names[@]}"; do
	start=$SECONDS
	bash "$here/$name.sh" 2>&1 | tee "$OUT/$name.txt"
	[ "${PIPESTATUS[0]}" = 0 ] || {
		echo "$name failed"
		rc=1
	}
	echo "($((SECONDS - start)) s)"
	echo
done
scratch_keep "$OUT"
echo "all of it: $OUT"
exit $rc
