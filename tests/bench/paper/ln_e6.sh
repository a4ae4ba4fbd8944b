#!/bin/bash
# SPDX-License-Identifier: MIT
# On Limitations of Network Acceleration, Figure 6: what prefetching gains. The paper switches the prefetchers off in the
# BIOS. Here the same lines are read in an order that a prefetcher follows, in one that skips lines and in none, by the
# client in what has come (cold after the transfer) and by the server in what it sends.
#
#	SIZES="4K …" SIDES="client server" BUFFERS="reused fresh" ROUNDS=3 LENGTH=0.2 ln_e6.sh
# shellcheck disable=SC2046,SC2086	# lists are words
# shellcheck source-path=SCRIPTDIR source=ln_common.sh
set -u
LENGTH=${LENGTH:-0.2}
. "$(dirname "$0")/ln_common.sh"
sizes=${SIZES:-4K 16K 64K 256K 1M 4M} sides=${SIDES:-client server} buffers=${BUFFERS:-reused fresh}

heading "LN-11 (Limitations, Figure 6): gain by prefetching" \
	"up to 60 % for sequential access to a cold buffer; nothing for access that is not sequential"

# work SIDE: what that end does.
work() {
	case $1 in
	client) echo --scan read --side client ;;
	server) echo --touch tx --touch-op read --side server ;;
	esac
}

for ((round = 1; round <= rounds; round++)); do
	for side in $sides; do
		for buffer in $buffers; do
			for access in seq stride random; do
				ln_record $side.$buffer.$access "$sizes" $(work $side) --access $access --buffers $buffer
			done
		done
	done
done

for side in $sides; do
	for buffer in $buffers; do
		echo "--- the $side reads, buffers $buffer: us, medians of $rounds rounds; gain: of seq over the others"
		printf '%6s | %9s %9s %9s %9s %9s | %9s %9s %9s %9s %9s\n' answer "tcp seq" stride random "stride" "random" \
			"shunt seq" stride random "stride" "random"
		echo "size tcp-stride tcp-random shunt-stride shunt-random" > "$out/ln_e6.$side.$buffer.dat"
		for size in $sizes; do
			line="" data=$size
			for transport in tcp shunt; do
				a=$(ln_time $side.$buffer.seq $size $transport) b=$(ln_time $side.$buffer.stride $size $transport)
				c=$(ln_time $side.$buffer.random $size $transport)
				line+=$(printf ' | %9.2f %9.2f %9.2f %7s %% %7s %%' $a $b $c "$(more $a $b)" "$(more $a $c)")
				data+=" $(more $a $b) $(more $a $c)"
			done
			printf '%6s%s\n' $size "$line"
			echo "$data" >> "$out/ln_e6.$side.$buffer.dat"
		done
		bars ln_e6.$side.$buffer "LN-11: time that seq saves, $side reads, buffers $buffer" "%" \
			"$out/ln_e6.$side.$buffer.dat" "set yrange [*:*]; set xzeroaxis"
		echo
	done
done
ln_one_host "what has come is warm, because the receiving core has copied it."
