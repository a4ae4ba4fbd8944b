/* SPDX-License-Identifier: MIT */
#include "core/admin/stats_stream.h"
#include <netinet/in.h>
#include <linux/tcp.h>
#include "core/base/address.h"
#include "core/peer/mock.h"
#include "core/qos/pacing.h"
#include "core/recovery/idle.h"
#include "core/service.h"
#include "core/stream/left.h"
#include "core/stream/queued.h"
#include "core/stream/tuple.h"

void shunt_stats_put_bytes(struct shunt_json *text, const char *name, const char *track,
			   const struct shunt_bytes *bytes)
{
	shunt_json_put(text, ",\"%s\":{", name);
	if (track)
		shunt_json_put(text, "\"track\":\"%s\",", track);
	shunt_json_put(text, "\"tcp\":%llu,\"link\":%llu,\"late\":%llu,\"late_tcp\":%llu}",
	    (unsigned long long)bytes->tcp, (unsigned long long)bytes->link,
	    (unsigned long long)bytes->late, (unsigned long long)bytes->late_tcp);
}

static void put_address(struct shunt_json *text, const char *name, const uint8_t address[16],
			uint16_t port)
{
	char host[SHUNT_ADDRESS_ROOM];

	shunt_address_text(address, port, host);
	shunt_json_put(text, "\"%s\":\"%s\",", name, host);
}

/* It is looked at a few times more, as others are not: core/stream/doubt.h. People see why it is on TCP. */
static bool is_put_off(const struct shunt_stream *stream)
{
	return atomic_load(&((struct shunt_stream *)stream)->state) == SHUNT_CANDIDATE &&
	       stream->why.plain;
}

static const char *state_word(const struct shunt_stream *stream)
{
	if (is_put_off(stream))
		return "plain";
	switch (atomic_load(&((struct shunt_stream *)stream)->state)) {
	case SHUNT_LINKED:
		return "linked";
	case SHUNT_CANDIDATE:
		return "candidate";
	default:
		return "plain";
	}
}

/* The event that a candidate waits for, "" for others. */
static const char *waits_for(struct shunt_stream *stream)
{
	if (atomic_load(&stream->state) != SHUNT_CANDIDATE || is_put_off(stream))
		return "";
	if (stream->claim.line)
		return "another link to its peer";
	if (stream->role == SHUNT_ACCEPTOR)
		return atomic_load(&stream->carried_since) ? "its peer's claim" : "its first byte";
	if (atomic_load(&stream->usage) == SHUNT_USE_TOLD)
		return "its peer's answer";
	return atomic_load(&stream->usage) ? "longer use (SHUNT_TUNE=brief)" : "its first use";
}

/* The socket's: IPv4 addresses may be those of a socket of AF_INET6. */
static void put_family(struct shunt_json *text, struct shunt_stream *stream)
{
	socklen_t length = sizeof(int);
	int family = AF_UNSPEC;

	if (!shunt_stream_engine(stream)->sys->getsockopt(stream->fd, SOL_SOCKET, SO_DOMAIN,
							  &family, &length))
		shunt_json_put(text, "\"family\":\"%s\",", family == AF_INET6 ? "inet6" : "inet");
}

/* As a number, or null for what is not known now. */
static void put_known(struct shunt_json *text, const char *name, uint64_t value)
{
	if (value == SHUNT_NEVER)
		shunt_json_put(text, ",\"%s\":null", name);
	else
		shunt_json_number(text, name, value);
}

static void put_queues(struct shunt_json *text, struct shunt_stream *stream)
{
	struct shunt_queued queued;

	shunt_queued_look(stream, &queued);
	put_known(text, "sendq", queued.sendq);
	put_known(text, "recvq", queued.recvq);
	if (!queued.linked)
		return;
	shunt_json_number(text, "staged", queued.staged);
	shunt_json_number(text, "ring_bytes", queued.ring_bytes);
	shunt_json_number(text, "ring_fill", queued.ring_fill);
	shunt_json_number(text, "credit", queued.credit);
	shunt_json_number(text, "window", queued.window);
	shunt_json_number(text, "peer_pid", queued.peer_pid);
	shunt_json_number(text, "lane", queued.lane);
}

/* As ss(8) writes tcpi_state. */
static const char *state_of_tcp(uint8_t state)
{
	static const char *const names[] = {
		"UNKNOWN", "ESTAB", "SYN-SENT", "SYN-RECV", "FIN-WAIT-1", "FIN-WAIT-2", "TIME-WAIT",
		"UNCONN", "CLOSE-WAIT", "LAST-ACK", "LISTEN", "CLOSING",
	};

	return names[state < sizeof(names) / sizeof(names[0]) ? state : 0];
}

static uint64_t least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/*
 * The state of TCP, and the time since a byte has moved either way on either track. Of a socket that has never had a byte the
 * kernel counts from its own start.
 */
static void put_signs(struct shunt_json *text, struct shunt_stream *stream)
{
	struct shunt_engine *engine = shunt_stream_engine(stream);
	struct tcp_info info = { 0 };
	socklen_t length = sizeof(info);
	uint64_t idle = SHUNT_NEVER, born = stream->born;

	if (!engine->sys->getsockopt(stream->fd, IPPROTO_TCP, TCP_INFO, &info, &length)) {
		shunt_json_put(text, ",\"tcp_state\":\"%s\"", state_of_tcp(info.tcpi_state));
		idle = least(info.tcpi_last_data_sent, info.tcpi_last_data_recv);
	}
	if (atomic_load(&stream->state) == SHUNT_LINKED)
		idle = least(idle, shunt_idle_stream(stream, shunt_now(engine)) / 1000000);
	if (atomic_load(&stream->state) == SHUNT_FRESH)
		idle = SHUNT_NEVER;
	else if (born)
		idle = least(idle, (shunt_now(engine) - born) / 1000000);
	put_known(text, "idle_ms", idle);
}

void shunt_stats_put_stream(struct shunt_json *text, struct shunt_stream *stream,
			    const struct shunt_bytes *tx, const struct shunt_bytes *rx)
{
	shunt_json_put(text, "%s{\"fd\":%d,", text->comma ? "," : "", stream->fd);
	text->comma = true;
	if (!shunt_tuple_is_known(&stream->tuple))
		shunt_rendezvous_learn(stream);
	put_family(text, stream);
	if (shunt_tuple_is_known(&stream->tuple)) {
		put_address(text, "local", stream->tuple.local, stream->tuple.local_port);
		put_address(text, "peer", stream->tuple.peer, stream->tuple.peer_port);
	}
	shunt_json_put(
		text,
		"\"state\":\"%s\",\"waits_for\":\"%s\",\"reason\":\"%s\",\"detail\":\"%s\",\"held\":\"%s\"",
		state_word(stream), waits_for(stream),
		shunt_reason_text(shunt_reason_of(stream->why.plain)),
		shunt_cause_detail(stream->why.plain),
		shunt_mock_text(atomic_load(&stream->seat->out.held)));
	shunt_json_put(text, ",\"left\":\"%s\",\"left_times\":%u",
		       shunt_left_text(stream->why.left), stream->why.left_times);
	if (shunt_pacing_rate(stream))
		shunt_json_put(text, ",\"paced\":%llu",
			       (unsigned long long)shunt_pacing_rate(stream));
	put_queues(text, stream);
	put_signs(text, stream);
	shunt_stats_put_bytes(
		text, "tx", shunt_heading_on_link(&stream->seat->out.heading) ? "link" : "tcp", tx);
	shunt_stats_put_bytes(text, "rx",
			      shunt_intake_on_link(&stream->seat->in.intake) ? "link" : "tcp", rx);
	shunt_json_put(text, "}");
}
