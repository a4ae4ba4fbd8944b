#!/bin/bash
# SPDX-License-Identifier: MIT
# X-RDMA, Figure 10: incast with and without a window and fragmentation, where a bounded buffer on the way
# stops and starts the senders. First writes alone in virtual time, then shunt perf in real time.
#
#	ROUNDS=3 LENGTH=0.4 SENDERS=64 xr_e5.sh
# shellcheck source-path=SCRIPTDIR source=common.sh
set -u
. "$(dirname "$0")/common.sh"
need "$model_iops"
need_shunt
model=${MODEL:-gbit=56,wqe=30,delay=850,queue=1M,pause=5000}
# The same at a seventh of the speed, so that the modelled link is slower than two cores are.
slow=${SLOW:-gbit=8,wqe=210,delay=5950,queue=1M,pause=35000}
senders=${SENDERS:-64}

heading "XR-E5 (X-RDMA, Figure 10): flow control under incast" \
	"6144 connections to one node: with flow control (fragments, queueing) bandwidth about +24%, CNPs down to
       1 to 2%, TX pauses about none"

# virtual NAME BYTES DEPTH WINDOW open|window: 12 threads
virtual() {
	"$model_iops" --model "$model" --threads 12 --bytes "$2" --depth "$3" --window "$4" |
		iops_table "$5" | awk -v name="$1" -v bytes="$2" '$1 == 12 {
			printf "%-30s %9.2f %12d %10.1f %10d\n", name, $2 * bytes / 1e6, $4, $5, $7 }'
}
echo "--- writes of 12 threads, virtual time, model $model"
printf '%-30s %9s %12s %10s %10s\n' "" GB/s "bytes out" "mean us" "pauses"
{
	virtual "128K, no window" 131072 32 1048576 open
	virtual "64K, no window" 65536 64 1048576 open
	virtual "128K, window 1M" 131072 32 1048576 window
	virtual "64K, window 1M" 65536 64 1048576 window
	virtual "64K, window 256K" 65536 64 262144 window
} | tee "$work/virtual"
awk '{ print "\"" $1 " " $2 " " $3 "\"", $(NF - 3) }' "$work/virtual" > "$work/rows"
{ echo "case GB/s"; cat "$work/rows"; } > "$out/xr_e5.virtual.dat"
awk 'NR == 1 { open = $(NF - 3) } NR == 4 { printf "64K with the window: %+.0f%% over 128K without\n", 100 * ($(NF - 3) / open - 1) }' "$work/virtual"

open="SHUNT_TUNE=admit=none,window=0,window_wr=0"
echo
echo "--- shunt perf incast:$senders, real time, model $slow on both ends"
export SHUNT_SOFT_MODEL=$slow
perf xr_e5 --transports tcp --depth 4 \
	--variant "open1M=$open,frag=1M" --variant "open64K=$open,frag=64K" \
	--variant "window1M=SHUNT_TUNE=window=1M,frag=1M" \
	--variant "window64K=SHUNT_TUNE=window=1M,frag=64K" \
	--variant "window256K=SHUNT_TUNE=window=256K,frag=64K" \
	"incast:$senders:128K"
perf_table xr_e5 MB/s=megabytes_per_second to-tcp=ratio_to_tcp p50us=p50_us p99us=p99_us bytes/wr=bytes_per_wr link=link_share
bars xr_e5.virtual "XR-E5: writes of 12 threads, virtual time" "GB/s" "$out/xr_e5.virtual.dat"
bars xr_e5 "XR-E5: incast of $senders" "MB/s" "$(perf_grid xr_e5 megabytes_per_second)"
not_here "CNPs, and senders on machines of their own: the model counts its buffer where the bytes leave, so the
senders are connections of one process. In real time two processes and two devices' threads share two
cores; TCP has no model and stands there only for comparison."
