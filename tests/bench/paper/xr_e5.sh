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
need jq ps
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

# Processes that send to one node, whose buffer is that of all of them: it deals with 4 KiB in 32.8 us, and a pause is
# shorter than the buffer takes to empty.
processes=${PROCESSES:-8}
shared="sink=32768,queue=1M,pause=6000000,sinkfile=$work/node"

# of_processes NAME WORDS: requests of 64 KiB, 16 outstanding at each sender.
of_processes() {
	local rings=slow_ms=0,ring_min=2M,ring_max=2M who="\$(ps -o pid= --ppid \"\$(ps -o ppid= \"\$SERVER_PID\")\")"
	rm -f "$work/node"
	SHUNT_TUNE=poll=event $shunt perf qos --clients "$processes" --depth 16 --request 64K --total 100000 --period 0.5 \
		--warm 1 --periods 4 --client SHUNT_SOFT_MODEL="$shared" --client SHUNT_TUNE="$rings,$2" \
		--server SHUNT_TUNE="$rings" --json "$work/qos" \
		--at "5:for pid in $who; do $shunt stat --json \$pid 2> /dev/null; done > '$work/stat'; true" \
		> "$work/table" 2>&1 || {
		cat "$work/table"
		exit 1
	}
	jq -r --arg name "$1" --slurpfile stat "$work/stat" '
		[$stat[][] | select(.counters.model_pauses != null) | .counters] as $senders |
		[$name, (.completed | add / length), ($senders | map(.model_pauses) | add), ($senders | map(.wr) | add)] |
		@tsv' "$work/qos" | awk -F '\t' '{ printf "%-16s %10.1f %10d %10d\n", $1, $2 * 65536 / 0.5 / 1e6, $3, $4 }'
}
echo
echo "--- $processes processes that send to one, real time, model $shared"
printf '%-16s %10s %10s %10s\n' "" MB/s pauses requests
{
	of_processes "no window" admit=none,window=0,window_wr=0
	of_processes "window 1M" window=1M
	of_processes "window 128K" window=128K
	of_processes "window 64K" window=64K
} | tee "$work/processes"
echo
bars xr_e5.virtual "XR-E5: writes of 12 threads, virtual time" "GB/s" "$out/xr_e5.virtual.dat"
bars xr_e5 "XR-E5: incast of $senders" "MB/s" "$(perf_grid xr_e5 megabytes_per_second)"
not_here "CNPs, and senders on machines of their own. In real time all processes and devices' threads share two
cores; TCP has no model and stands there only for comparison."
