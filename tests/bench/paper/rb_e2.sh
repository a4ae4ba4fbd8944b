#!/bin/bash
# SPDX-License-Identifier: MIT
# RDMAbox, Figure 2: ways of polling under clusters of requests with idle times between them.
# As in the paper, a large cluster is the smallest with which busy polling has its maximum throughput,
# and a medium one is in the middle. A small one is one request, here with an idle time and without.
#
#	ROUNDS=3 LENGTH=0.3 INTERVAL=10 LARGE=64 rb_e2.sh	INTERVAL: us; LARGE: not looked for
# shellcheck source-path=SCRIPTDIR source=common.sh
set -u
LENGTH=${LENGTH:-0.3}
. "$(dirname "$0")/common.sh"
need jq
interval=${INTERVAL:-10}
need_shunt

heading "RB-E2 (RDMAbox, Figure 2): polling under three clustered loads" \
	"throughput: adaptive is the best of EventBatch, Hybrid and Adaptive under all three loads; most
       interrupts and context switches: EventBatch, Hybrid comparable; figures without numbers"

[ "${LARGE:-}" ] || SHUNT_TUNE=poll=busy $shunt perf --rounds 1 --seconds 0.2 --transports shunt --json "$work/large.json" \
	"cluster:large:$interval" > /dev/null || exit 1
large=${LARGE:-$(jq '.models[0].flows[0].cluster' "$work/large.json")}
medium=$(((large + 1) / 2))
[ $medium -lt "$large" ] || medium=1
echo "small 1, medium $medium, large $large requests; $interval us of idle time between clusters"
perf rb_e2 --transports tcp --variant event=SHUNT_TUNE=poll=event --variant batch=SHUNT_TUNE=poll=batch \
	--variant hybrid=SHUNT_TUNE=poll=hybrid --variant adaptive120=SHUNT_TUNE=poll=adaptive,poll_retry=120 \
	--variant adaptive=SHUNT_TUNE=poll=adaptive --variant busy=SHUNT_TUNE=poll=busy \
	pingpong "cluster:1:$interval" "cluster:$medium:$interval" "cluster:$large:$interval"
perf_table rb_e2 ops/s=operations_per_second to-tcp=ratio_to_tcp p50us=p50_us p99us=p99_us \
	events/op=completion_events/op switches/op=voluntary_switches/op cpu-us/op=cpu_seconds/us link=link_share
echo
echo "batch is EventBatch; adaptive120 has the paper's MAX_RETRY, adaptive Shunt's limit by time"

bars rb_e2.throughput "RB-E2: throughput" "operations/s" "$(perf_grid rb_e2 operations_per_second)" \
	"set logscale y; set yrange [*:*]"
bars rb_e2.events "RB-E2: completion events" "events/operation" "$(perf_grid rb_e2 completion_events/op)"
bars rb_e2.switches "RB-E2: voluntary context switches" "switches/operation" \
	"$(perf_grid rb_e2 voluntary_switches/op)"
not_here "interrupts: a completion event of the soft device is a write to an eventfd by the peer, on a core that
the peer then does not have. CPU time counts both ends."
