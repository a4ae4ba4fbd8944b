/* SPDX-License-Identifier: MIT */
/*
 * Each number that is shown as a metric. Rows of one family are neighbours. A row whose number no process has has no
 * line, so that processes of several versions can be looked at.
 */
#include "tools/metrics/metrics.h"

#define ROW(name_, type_, shape_, path_, help_)                                                    \
	.name = "shunt_" name_, .type = SHUNT_##type_, .shape = SHUNT_##shape_, .path = path_,     \
	.help = help_
#define COUNTER(name_, path_, help_)                                                               \
	{                                                                                          \
		ROW(name_, COUNTER, ONE, path_, help_)                                             \
	}
#define GAUGE(name_, path_, help_)                                                                 \
	{                                                                                          \
		ROW(name_, GAUGE, ONE, path_, help_)                                               \
	}

#define BYTES(direction_, track_, path_, less_)                                                    \
	{                                                                                          \
		ROW("bytes", COUNTER, ONE, path_,                                                  \
		    "Bytes that programs have sent and received, by the track that carried them"), \
			.less = less_,                                                             \
			.fixed = "direction=\"" direction_ "\",track=\"" track_ "\""               \
	}
#define LATE(direction_, track_, path_, less_)                                                             \
	{                                                                                                  \
		ROW("late_bytes", COUNTER, ONE, path_,                                                     \
		    "Of these, bytes after the first 256 KiB of a stream, when it should be on the link"), \
			.less = less_,                                                                     \
			.fixed = "direction=\"" direction_ "\",track=\"" track_ "\""                       \
	}
#define PLAIN(direction_, path_)                                                                   \
	{                                                                                          \
		ROW("plain_bytes", GAUGE, ONE, path_,                                              \
		    "Bytes of plain streams that are open, as the kernel counts them"),            \
			.fixed = "direction=\"" direction_ "\""                                    \
	}
#define STREAMS(state_)                                                                            \
	{                                                                                          \
		ROW("streams", GAUGE, COUNT, "streams", "Streams that are open, by state"),        \
			.member = "state", .fixed = "state=\"" state_ "\"", .labels = state_       \
	}
#define STREAM_SUM(name_, member_, help_)                                                          \
	{                                                                                          \
		ROW(name_, GAUGE, SUM, "streams", help_), .member = member_                        \
	}

#define STREAM_LABELS "fd=fd local=local peer=peer"
#define STREAM(name_, type_, member_, help_)                                                       \
	{                                                                                          \
		ROW(name_, type_, EACH, "streams", help_), .member = member_,                      \
							   .labels = STREAM_LABELS, .detail = true \
	}
#define STREAM_BYTES(direction_, track_)                                                           \
	{                                                                                          \
		ROW("stream_bytes", GAUGE, EACH, "streams",                                        \
		    "Bytes of a stream, by the track that carried them"),                          \
			.member = direction_ "." track_, .labels = STREAM_LABELS, .detail = true,  \
			.fixed = "direction=\"" direction_ "\",track=\"" track_ "\""               \
	}

#define LANE_LABELS "device=device peer_pid=peer lane=lane"
#define LANE(name_, type_, member_, help_)                                                         \
	{                                                                                          \
		ROW(name_, type_, EACH, "lanes", help_), .member = member_, .labels = LANE_LABELS, \
							 .detail = true                            \
	}

#define LINK_LABELS "device=device peer=peer"
#define LINK_SUM(name_, member_, help_)                                                            \
	{                                                                                          \
		ROW(name_, GAUGE, SUM, "links", help_), .member = member_                          \
	}
#define LINK(name_, member_, help_)                                                                \
	{                                                                                          \
		ROW(name_, GAUGE, EACH, "links", help_), .member = member_, .labels = LINK_LABELS, \
							 .detail = true                            \
	}

#define CLASS(name_, type_, member_, help_)                                                        \
	{                                                                                          \
		ROW(name_, type_, EACH, "qos.classes", help_), .member = member_,                  \
							       .labels = "class=name"              \
	}
#define CLASS_WAY(name_, type_, way_, member_, help_)                                              \
	{                                                                                          \
		ROW(name_, type_, EACH, "qos.classes", help_), .member = way_ "." member_,         \
							       .labels = "class=name",             \
							       .fixed = "direction=\"" way_ "\""   \
	}

const struct shunt_metric shunt_metrics[] = {
	{ ROW("process_info", GAUGE, INFO, NULL,
	      "1 for each process, with its device and why it has none"),
	  .labels = "identity=identity device=device reason=reason io_uring=uring" },
	{ ROW("uptime_seconds", GAUGE, ONE, "uptime_ms", "How long the engine has run"),
	  .scale = SHUNT_MS },

	/* Streams. */
	STREAMS("linked"),
	STREAMS("candidate"),
	STREAMS("plain"),
	COUNTER("streams_made", "totals.streams", "Connections that there were, and that are"),
	COUNTER("streams_linked", "totals.linked", "Connections that were moved to a link"),
	COUNTER("streams_uncounted", "totals.uncounted",
		"Plain connections that have ended: the kernel alone knew their bytes"),
	BYTES("tx", "link", "totals.tx.link", NULL),
	BYTES("tx", "tcp", "totals.tx.tcp", "totals.plain_tx.tcp"),
	BYTES("rx", "link", "totals.rx.link", NULL),
	BYTES("rx", "tcp", "totals.rx.tcp", "totals.plain_rx.tcp"),
	LATE("tx", "link", "totals.tx.late", "totals.tx.late_tcp"),
	LATE("tx", "tcp", "totals.tx.late_tcp", "totals.plain_tx.late_tcp"),
	LATE("rx", "link", "totals.rx.late", "totals.rx.late_tcp"),
	LATE("rx", "tcp", "totals.rx.late_tcp", "totals.plain_rx.late_tcp"),
	PLAIN("tx", "totals.plain_tx.tcp"),
	PLAIN("rx", "totals.plain_rx.tcp"),
	{ ROW("streams_on_tcp", GAUGE, COUNT_KEYS, "streams",
	      "Streams that are open and on TCP for good, by reason"),
	  .member = "reason",
	  .key = "reason" },
	{ ROW("stayed_on_tcp", COUNTER, KEYS, "reasons",
	      "Connections that stayed on TCP, by reason"),
	  .key = "reason" },
	{ ROW("left_link", COUNTER, KEYS, "left",
	      "Directions of streams that left the link, by cause"),
	  .key = "cause" },
	{ ROW("stalls", COUNTER, KEYS, "stalls", "Sends that had to wait, by what was short"),
	  .key = "limit" },
	STREAM_SUM("send_queue_bytes", "sendq",
		   "Bytes that programs have sent and peers have not acknowledged"),
	STREAM_SUM("receive_queue_bytes", "recvq",
		   "Bytes that have arrived and programs have not read"),
	STREAM_SUM("staged_bytes", "staged", "Bytes that wait for room in a ring"),
	STREAM_SUM("ring_bytes", "ring_bytes", "Memory of receive rings"),
	STREAM_SUM("ring_fill_bytes", "ring_fill", "Bytes in receive rings"),
	{ ROW("send_size_bytes", HISTOGRAM, BUCKETS, "histograms.send_bytes", "Sizes of sends"),
	  .first = 0, .last = 31 },
	{ ROW("link_seconds", HISTOGRAM, BUCKETS, "histograms.link_ns",
	      "From a work request's posting to its completion"),
	  .scale = SHUNT_NS, .first = 9, .last = 35 },

	/* Links and claims. */
	GAUGE("links", "counters.links", "Links to peers"),
	GAUGE("queue_pairs", "counters.lanes", "Queue pairs"),
	COUNTER("queue_pairs_created", "counters.queue_pairs_created",
		"Queue pairs that were made"),
	COUNTER("links_evicted", "counters.links_evicted",
		"Links that ended because no connection used them"),
	COUNTER("upgrades", "counters.upgrades", "Directions of streams that went to a link"),
	COUNTER("handbacks", "counters.handbacks", "Streams that went back to the kernel for good"),
	COUNTER("claims", "counters.claims", "Streams that a peer was asked to link"),
	COUNTER("claims_accepted", "counters.claims_accepted",
		"Claims of peers that were accepted"),
	COUNTER("claims_refused", "counters.claims_refused", "Claims of peers that were refused"),
	COUNTER("claims_strayed", "counters.claims_strayed",
		"Claims for connections that nobody has"),
	COUNTER("claims_redirected", "counters.claims_redirected",
		"Claims that went on to another process"),
	COUNTER("connections_told", "counters.connections_told",
		"Connections that a listener was told of"),
	COUNTER("connections_proven", "counters.connections_proven",
		"Peers that proved to hold a connection"),
	COUNTER("births_connected", "counters.births_connected",
		"Connections that the program made, and that were used again (SHUNT_TUNE=born)"),
	COUNTER("births_accepted", "counters.births_accepted",
		"Connections that the program accepted, and that were used again (SHUNT_TUNE=born)"),
	COUNTER("connections_disproven", "counters.connections_disproven",
		"Peers that did not prove to hold a connection"),
	COUNTER("remote_turned_away", "counters.gate_turned_away",
		"Questions of other hosts that were refused"),
	COUNTER("remote_other_keys", "counters.gate_other_keys",
		"Questions of other hosts with another key"),
	COUNTER("links_distrusted", "counters.links_distrusted",
		"Links that ended because a peer broke the protocol"),

	/* Failures, and the way back. */
	COUNTER("failovers", "counters.failovers", "Links whose streams went over to TCP"),
	COUNTER("reconnections", "counters.comebacks",
		"Links that were made again after a failover"),
	COUNTER("streams_returned", "counters.streams_returned",
		"Streams that came back to a link"),
	COUNTER("bypassed", "counters.bypassed",
		"Streams reset because their peer's program has sent past the link"),
	COUNTER("bypassing", "counters.bypassing",
		"Streams reset because this program has sent past the link"),
	COUNTER("mocked", "counters.mocked",
		"Directions of streams that were moved to TCP on purpose"),
	COUNTER("keepalive_probes", "counters.keepalive_probes",
		"Idle peers that were asked whether they live"),
	COUNTER("nops", "counters.nops",
		"Lanes that asked a peer for credit, which was lost or late"),
	COUNTER("slow_looks", "counters.slow_looks",
		"Looks at a lane that found a slow completion"),
	COUNTER("slow_lanes", "counters.slow_lanes",
		"Lanes that were left because of slow completions"),
	COUNTER("faults", "counters.faults", "Faults on purpose (SHUNT_FAULT)"),
	COUNTER("post_failures", "counters.post_failures",
		"Work requests that could not be posted"),
	COUNTER("poll_gaps", "counters.poll_gaps",
		"Times that ready bytes waited too long for a poll"),
	COUNTER("slow_steps", "counters.slow_steps", "Steps that took longer than slow_us"),

	/* Memory. */
	GAUGE("memory_regions", "counters.memory_regions", "Memory regions that are registered"),
	GAUGE("memory_registered_bytes", "counters.memory_registered", "Memory that is registered"),
	COUNTER("rings_grown", "counters.rings_grown", "Receive rings that were made larger"),
	COUNTER("rings_shrunk", "counters.rings_shrunk",
		"Receive rings that were exchanged for small ones without memory"),

	/* Work requests. */
	COUNTER("work_requests", "counters.wr", "Work requests that were posted"),
	COUNTER("work_request_bytes", "counters.wr_bytes", "Bytes of work requests"),
	COUNTER("work_requests_inline", "counters.wr_inline",
		"Work requests with their bytes inline"),
	COUNTER("work_requests_signaled", "counters.wr_signaled",
		"Work requests with a completion"),
	COUNTER("work_requests_direct", "counters.wr_direct",
		"Work requests that were posted at once"),
	COUNTER("work_requests_merged", "counters.wr_merged",
		"Work requests that others were merged into"),
	COUNTER("work_requests_control", "counters.wr_control",
		"Work requests that carry no bytes of streams"),
	COUNTER("doorbells", "counters.doorbells", "Calls that posted work requests"),
	GAUGE("chain_length_max", "counters.chain_max",
	      "Most work requests that one doorbell posted"),
	COUNTER("sends_staged", "counters.sends_staged", "Sends that were copied to a queue"),
	COUNTER("copied_past", "counters.copied_past",
		"Bytes that were written to rings past the caches"),
	COUNTER("sends_held", "counters.sends_held", "Sends that waited to be merged"),
	COUNTER("sends_registered", "counters.sends_registered",
		"Sends from memory that was registered for them"),
	COUNTER("queue_stalls", "counters.queue_stalls", "Times that a lane's queue was full"),
	COUNTER("window_cuts", "counters.window_cuts", "Times that a window was made smaller"),
	GAUGE("inflight_bytes_max", "counters.inflight_bytes_max",
	      "Most bytes in flight on one queue pair"),
	GAUGE("inflight_work_requests_max", "counters.inflight_wr_max",
	      "Most work requests in flight on one queue pair"),

	/* Polling. */
	COUNTER("polls", "counters.polls", "Polls of completion queues"),
	COUNTER("polls_empty", "counters.polls_empty", "Polls that found nothing"),
	COUNTER("completions", "counters.completions", "Completions"),
	COUNTER("completion_queue_arms", "counters.arms", "Times that an event was asked for"),
	COUNTER("completion_events", "counters.events", "Events of completion queues"),
	COUNTER("sleeps", "counters.sleeps", "Times that a thread slept for a completion"),
	COUNTER("wakes", "counters.kicks", "Times that a sleeping thread was woken by another"),
	COUNTER("spin_hits", "counters.spin_hits", "Spins that found something"),
	COUNTER("spin_misses", "counters.spin_misses", "Spins that found nothing"),
	COUNTER("spin_backoffs", "counters.spin_backoffs",
		"Times that spinning was given up for a while"),
	GAUGE("completion_queues", "polling.cqs", "Completion queues"),
	GAUGE("send_registered_from_bytes", "registering.from_bytes",
	      "Size from which on blocking sends are registered in place, 0 for never"),
	{ ROW("sleep_cost_seconds", GAUGE, ONE, "polling.sleep_cost_ns",
	      "Measured cost of a sleep"),
	  .scale = SHUNT_NS },

	/* The cost model of the soft device. */
	COUNTER("model_work_requests", "counters.model_wr", "Work requests of the cost model"),
	COUNTER("model_bytes", "counters.model_bytes", "Bytes of the cost model"),
	GAUGE("model_work_requests_max", "counters.model_wr_max",
	      "Work requests a second that the model allows"),
	GAUGE("model_bytes_max", "counters.model_bytes_max",
	      "Bytes a second that the model allows"),
	{ ROW("model_registering_seconds", COUNTER, ONE, "counters.model_mr_ns",
	      "Time that the cost model took for memory regions"),
	  .scale = SHUNT_NS },
	COUNTER("model_misses", "counters.model_misses", "Misses of the cost model's cache"),
	COUNTER("model_pauses", "counters.model_pauses", "Pauses of the cost model"),
	{ ROW("model_busy_seconds", COUNTER, ONE, "counters.model_busy_ns",
	      "Time that the cost model was busy"),
	  .scale = SHUNT_NS },

	/* Links and devices. */
	{ ROW("inflight_bytes", GAUGE, SUM, "lanes", "Bytes in flight on all queue pairs"),
	  .member = "inflight_bytes" },
	{ ROW("inflight_work_requests", GAUGE, SUM, "lanes",
	      "Work requests in flight on all queue pairs"),
	  .member = "inflight_wr" },
	LINK_SUM("link_memory_registered_bytes", "memory_registered", "Registered memory of links"),
	LINK_SUM("link_memory_mapped_bytes", "memory_mapped", "Mapped memory of links"),
	LINK("link_queue_pairs", "lanes", "Queue pairs of a link"),
	LINK("link_streams", "streams", "Streams of a link"),

	{ ROW("device_events", COUNTER, EACH_KEYS, "devices",
	      "The kernel's counters of a device, which all processes share"),
	  .member = "hw_counters", .labels = "device=name port=port", .key = "event" },

	/* Classes of service. */
	CLASS("class_clients", GAUGE, "clients", "Clients of a class"),
	CLASS("class_limit_bytes_per_second", GAUGE, "limit", "The limit of a class; 0: none"),
	CLASS("class_cheats", COUNTER, "cheats", "Clients that sent beyond their limit"),
	CLASS_WAY("class_tokens", GAUGE, "in", "tokens",
		  "Tokens that present clients of a class have used"),
	CLASS_WAY("class_tokens", GAUGE, "out", "tokens",
		  "Tokens that present clients of a class have used"),
	CLASS_WAY("class_waits", GAUGE, "in", "waits", "Waits of present clients for tokens"),
	CLASS_WAY("class_waits", GAUGE, "out", "waits", "Waits of present clients for tokens"),
	CLASS_WAY("class_achieved_bytes_per_second", GAUGE, "in", "achieved",
		  "What a class has now"),
	CLASS_WAY("class_achieved_bytes_per_second", GAUGE, "out", "achieved",
		  "What a class has now"),
	CLASS("class_tcp_connections", GAUGE, "tcp.connections",
	      "Connections of a class that are paced on TCP"),
	CLASS("class_tcp_arrived_tokens", COUNTER, "tcp.arrived",
	      "Tokens that connections of a class have brought on TCP"),
	CLASS("class_reserved_tokens", GAUGE, "reserved",
	      "Tokens that a class has reserved in this period"),
	CLASS("class_tokens_granted", COUNTER, "granted", "Tokens that were granted"),
	CLASS("class_tokens_taken", COUNTER, "taken", "Tokens that were taken"),
	CLASS("class_tokens_pooled", COUNTER, "pooled", "Of these, tokens of the pool"),
	CLASS("class_tokens_converted", COUNTER, "converted", "Tokens that were converted"),
	CLASS("class_tokens_returned", COUNTER, "returned", "Tokens that were returned"),
	CLASS("class_periods", COUNTER, "periods", "Periods that a class has seen"),
	CLASS("class_periods_missed", COUNTER, "missed",
	      "Periods in which a class had less than it reserved"),
	GAUGE("capacity_tokens", "qos.capacity.tokens", "What the node can do in a period"),
	GAUGE("pool_tokens", "qos.pool", "Tokens in the pool"),

	/* Only where each stream and lane is wanted. */
	STREAM_BYTES("tx", "link"),
	STREAM_BYTES("tx", "tcp"),
	STREAM_BYTES("rx", "link"),
	STREAM_BYTES("rx", "tcp"),
	STREAM("stream_send_queue_bytes", GAUGE, "sendq", "Bytes sent and not acknowledged"),
	STREAM("stream_receive_queue_bytes", GAUGE, "recvq",
	       "Bytes that have arrived and were not read"),
	STREAM("stream_staged_bytes", GAUGE, "staged",
	       "Bytes that wait for room in the peer's ring"),
	STREAM("stream_ring_bytes", GAUGE, "ring_bytes", "Size of the receive ring"),
	STREAM("stream_ring_fill_bytes", GAUGE, "ring_fill", "Bytes in the receive ring"),
	STREAM("stream_credit_bytes", GAUGE, "credit", "What may be sent until the peer reads"),
	STREAM("stream_left_link", COUNTER, "left_times", "How often the stream left its link"),
	LANE("lane_streams", GAUGE, "streams", "Streams of a queue pair"),
	LANE("lane_work_requests", COUNTER, "wr", "Work requests of a queue pair"),
	LANE("lane_work_request_bytes", COUNTER, "wr_bytes", "Bytes of a queue pair"),
	LANE("lane_inflight_bytes", GAUGE, "inflight_bytes", "Bytes in flight on a queue pair"),
	LANE("lane_inflight_work_requests", GAUGE, "inflight_wr",
	     "Work requests in flight on a queue pair"),
	LANE("lane_window_bytes", GAUGE, "window_bytes",
	     "Bytes that a queue pair may have in flight"),
	LANE("lane_window_work_requests", GAUGE, "window_wr",
	     "Work requests that a queue pair may have in flight"),
	LANE("lane_doorbells", COUNTER, "doorbells", "Doorbells of a queue pair"),
};

const size_t shunt_metric_count = sizeof(shunt_metrics) / sizeof(shunt_metrics[0]);
