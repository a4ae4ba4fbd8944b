#!/bin/bash
# SPDX-License-Identifier: MIT
# RDMAbox, Figure 5: a copy of resident pages against their registration, by size, and where the two cross. Beside it
# where the engine finds the crossover for SHUNT_TUNE=mr_threshold=auto.
#
#	TIMES=101 SIZES="4096 …" MODEL=connectx3 DEVICE=verbs:rxe0 rb_e3.sh	TIMES: of each; DEVICE: an RDMA device
# shellcheck disable=SC2086	# lists are words
# shellcheck source-path=SCRIPTDIR source=common.sh
set -u
. "$(dirname "$0")/common.sh"
mr_cost=$builddir/tests/bench/mr_cost
need "$mr_cost"
times=${TIMES:-101}
sizes=${SIZES:-}

heading "RB-E3 (RDMAbox, Figure 5): memcpy against registration" \
	"resident pages: in the kernel a registration is always cheaper; in user space a copy is, up to 928 KB"

# crossing FILE COPY OTHER: between which sizes column OTHER becomes cheaper than column COPY, for good; interpolated.
crossing() {
	awk -v a="$2" -v b="$3" '
		$1 == "engine" { next }
		$b == "-" { none = 1 }
		{ d = $b - $a
		  if (n && before > 0 && d <= 0) at = last + ($1 - last) * before / (before - d)
		  if (!n && d <= 0) at = $1
		  if (d > 0) at = 0
		  before = d; last = $1; n++ }
		END { if (none) print "-"
		      else if (!at) print "never"
		      else printf (at < 10240 ? "%.1fK\n" : "%.0fK\n"), at / 1024 }' "$1"
}

# one NAME TITLE OPTIONS...: the table of a device.
one() {
	local name=$1 title=$2 engine
	shift 2
	"$mr_cost" --rounds "$times" "$@" $sizes > "$out/rb_e3.$name.dat" || return 1
	echo "--- $title: microseconds, medians of $times"
	awk 'BEGIN { printf "%9s %11s %11s %11s %11s %11s\n", "bytes", "copy", "cold copy", "register", "pin", "lock" }
		$1 != "engine" { printf "%9s %11s %11s %11s %11s %11s\n", $1, $2, $3, $4, $5, $6 }' "$out/rb_e3.$name.dat"
	engine=$(awk '$1 == "engine" { print $2 }' "$out/rb_e3.$name.dat")
	printf '%-30s %9s %11s\n' "cheaper than a copy from" "copy" "cold copy"
	printf '%-30s %9s %11s\n' "  registration" "$(crossing "$out/rb_e3.$name.dat" 2 4)" "$(crossing "$out/rb_e3.$name.dat" 3 4)" \
		"  the kernel's pinning alone" "$(crossing "$out/rb_e3.$name.dat" 2 5)" "$(crossing "$out/rb_e3.$name.dat" 3 5)" \
		"  the kernel's locking alone" "$(crossing "$out/rb_e3.$name.dat" 2 6)" "$(crossing "$out/rb_e3.$name.dat" 3 6)" \
		"  as the engine measures it" "$([ "$engine" = never ] && echo never || echo "$((engine / 1024))K")" ""
	echo
}

one soft "the soft device, whose registration is an entry of a table" || exit 1
one model "the model $model, whose registration takes what is assumed" --model "$model" || exit 1
device=${DEVICE:-verbs}
one verbs "an RDMA device ($device)" --device "$device" 2> "$work/why" || {
	echo "no RDMA device: $(tail -1 "$work/why")"
	rm -f "$out/rb_e3.verbs.dat"
}

grep -v engine "$out/rb_e3.soft.dat" > "$work/soft"
grep -v engine "$out/rb_e3.model.dat" > "$work/model"
draw rb_e3 << END
set title "RB-E3: copy and registration of resident pages" noenhanced
set xlabel "bytes"; set ylabel "us"
set logscale xy; set format x "%.0b%B"; set logscale x 2
plot '$work/soft' using 1:2 with linespoints lw 2 title "copy", \
	'$work/soft' using 1:3 with linespoints lw 2 dt 2 title "copy, cold", \
	'$work/soft' using 1:5 with linespoints lw 2 title "pages pinned", \
	'$work/soft' using 1:6 with linespoints lw 1 title "pages locked", \
	'$work/model' using 1:4 with linespoints lw 2 dt 3 title "register, model"
END
not_here "an RNIC's part of a registration: its translation table is written over PCIe. Pinned are the pages of a buffer of
io_uring (pin_user_pages, as the kernel does it for ibv_reg_mr); lock is mlock and munlock."
