/* SPDX-License-Identifier: MIT */
/*
 * Connections, and the packets that their records would have been. Sequence numbers count from the first byte that was
 * seen of a direction. A connection that began after this command had come has its handshake, too.
 *
 * Where both ends are dumped, the end that is seen first is written, and the other one is left out. A process may lie:
 * its records can spoil the packets of its own connections.
 */
#include "tools/dump/dump.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FLOWS_MOST (1u << 18)
#define COMMENT 128
#define NUMBERS_APART 65536 /* of two connections of the same addresses */

struct way { /* a direction */
	bool known; /* a byte of it has been seen, or will be the first */
	bool carried; /* `link` is known */
	bool link;
	bool ended;
	uint32_t initial; /* the number of its SYN */
	uint64_t first, next; /* offsets of the stream: what was seen first, and behind what was seen last */
};

struct flow {
	struct flow *following;
	struct listener *owner; /* the end that is written */
	struct shunt_tuple tuple; /* as the owner sees it */
	uint64_t born;
	uint64_t over; /* ns: when it was closed; 0: it is open */
	struct way way[2]; /* in, out */
};

/* The SYN has a number of its own, and so has the FIN. */
static uint32_t number(const struct way *way, uint64_t offset)
{
	return way->initial + (way->known ? (uint32_t)(1 + offset - way->first) : 1);
}

/* --- finding it --- */

static uint32_t mix(uint32_t hash, const void *bytes, size_t count)
{
	for (const uint8_t *at = bytes; count--; at++)
		hash = (hash ^ *at) * 16777619u;
	return hash;
}

/* Both ends find the same bucket. */
static uint32_t bucket_of(const struct shunt_tuple *tuple)
{
	uint32_t local = mix(mix(2166136261u, tuple->local, 16), &tuple->local_port, 2),
		 peer = mix(mix(2166136261u, tuple->peer, 16), &tuple->peer_port, 2);

	return (local + peer) % DUMP_FLOW_BUCKETS;
}

static bool is_same(const struct shunt_tuple *a, const struct shunt_tuple *b)
{
	return !memcmp(a, b, sizeof(*a));
}

static bool is_other_end(const struct shunt_tuple *a, const struct shunt_tuple *b)
{
	return !memcmp(a->local, b->peer, 16) && !memcmp(a->peer, b->local, 16) &&
	       a->local_port == b->peer_port && a->peer_port == b->local_port;
}

/* Times of ns: the lowest bits differ most. */
static struct flow **born_at(struct dump *dump, uint64_t born)
{
	return &dump->by_born[(born ^ born >> 16) % DUMP_FLOW_BUCKETS];
}

/* A SYN with the number of a former one would be a retransmission. */
static void begin(struct flow *flow, struct listener *owner, const struct shunt_tap_record *record)
{
	bool turned = flow->owner && !is_same(&flow->tuple, &record->tuple);
	uint32_t initial[2] = { 0, 0 };

	for (int i = 0; flow->owner && i < 2; i++)
		initial[i] = number(&flow->way[i ^ turned], flow->way[i ^ turned].next) +
			     NUMBERS_APART;
	flow->owner = owner;
	flow->tuple = record->tuple;
	flow->born = record->born;
	flow->over = 0;
	for (int i = 0; i < 2; i++)
		flow->way[i] = (struct way){ .initial = initial[i] };
}

static struct flow *add(struct dump *dump, struct listener *owner,
			const struct shunt_tap_record *record)
{
	struct flow **bucket = &dump->flow[bucket_of(&record->tuple)], *flow;

	if (dump->flows == FLOWS_MOST)
		flow_free(dump);
	flow = calloc(1, sizeof(*flow));
	if (!flow)
		abort();
	begin(flow, owner, record);
	flow->following = *bucket;
	*bucket = flow;
	dump->flows++;
	return flow;
}

/* Another connection of the same addresses, which began behind the end of this one, may be written from its other end. */
static struct flow *take(struct flow *flow, struct listener *listener,
			 const struct shunt_tap_record *record, bool *fresh)
{
	bool owned = flow->owner == listener && is_same(&flow->tuple, &record->tuple);

	if (owned && record->born == flow->born)
		return flow;
	*fresh = owned ? record->born > flow->born : flow->over && record->born > flow->over;
	if (!*fresh)
		return NULL;
	begin(flow, listener, record);
	return flow;
}

/* By the time when it began, where the process does not know the addresses any more. */
static struct flow *find_nameless(struct dump *dump, struct listener *listener)
{
	struct flow *flow = *born_at(dump, listener->next.born);

	return flow && flow->owner == listener && flow->born == listener->next.born ? flow : NULL;
}

static struct flow *find_by_name(struct dump *dump, struct listener *listener, bool *fresh)
{
	const struct shunt_tap_record *record = &listener->next;
	struct flow *flow = dump->flow[bucket_of(&record->tuple)];

	while (flow && !is_same(&flow->tuple, &record->tuple) &&
	       !is_other_end(&flow->tuple, &record->tuple))
		flow = flow->following;
	*fresh = !flow;
	return flow ? take(flow, listener, record, fresh) : add(dump, listener, record);
}

/* NULL: the record is not to be written. *fresh: it is the first of its connection. */
static struct flow *find(struct dump *dump, struct listener *listener, bool *fresh)
{
	struct flow *flow;

	*fresh = false;
	if (!listener->next.tuple.local_port)
		return find_nameless(dump, listener);
	flow = find_by_name(dump, listener, fresh);
	if (*fresh && flow)
		*born_at(dump, flow->born) = flow;
	return flow;
}

void flow_over(struct dump *dump, const struct listener *listener)
{
	for (uint32_t i = 0; i < DUMP_FLOW_BUCKETS; i++)
		for (struct flow *flow = dump->flow[i]; flow; flow = flow->following)
			if (flow->owner == listener && !flow->over)
				flow->over = listener->next.time;
}

void flow_free(struct dump *dump)
{
	for (uint32_t i = 0; i < DUMP_FLOW_BUCKETS; i++) {
		struct flow *flow = dump->flow[i];

		while (flow) {
			struct flow *following = flow->following;

			free(flow);
			flow = following;
		}
		dump->flow[i] = dump->by_born[i] = NULL;
	}
	dump->flows = 0;
}

/* --- packets --- */


static void write_packet(struct dump *dump, struct listener *listener,
			 const struct pcapng_packet *packet)
{
	if (dump->filter && !filter_passes(dump->filter, packet))
		return;
	pcapng_packet(&dump->file, packet);
	listener->told += packet->dropped;
	listener->packets++;
	if (dump->immediately)
		pcapng_flush(&dump->file);
}

static void emit(struct dump *dump, struct flow *flow, bool out, uint8_t flags, uint32_t sequence,
		 const struct iovec payload[2], const char *comment)
{
	struct listener *listener = flow->owner;
	const struct way *back = &flow->way[!out];
	struct frame frame = { .tuple = &flow->tuple,
			       .out = out,
			       .flags = flags,
			       .sequence = sequence };
	uint8_t headers[FRAME_HEADERS_MOST];
	struct pcapng_packet packet = { .interface = listener->interface,
					.time = listener->next.time + (uint64_t)dump->wall,
					.out = out,
					.comment = comment,
					.dropped = listener->dropped - listener->told };

	if (flags & FRAME_ACK)
		frame.acknowledged = number(back, back->next) + back->ended;
	if (payload)
		memcpy(frame.payload, payload, sizeof(frame.payload));
	packet.piece[0] = (struct iovec){ headers, frame_headers(&frame, headers) };
	packet.piece[1] = frame.payload[0];
	packet.piece[2] = frame.payload[1];
	write_packet(dump, listener, &packet);
}

/* Both directions are seen from their first byte on. */
static void shake_hands(struct dump *dump, struct flow *flow, bool connected)
{
	emit(dump, flow, connected, FRAME_SYN, flow->way[connected].initial, NULL, "");
	flow->way[connected].known = true;
	emit(dump, flow, !connected, FRAME_SYN | FRAME_ACK, flow->way[!connected].initial, NULL,
	     "");
	flow->way[!connected].known = true;
	emit(dump, flow, connected, FRAME_ACK, number(&flow->way[connected], 0), NULL, "");
}

/* "link", or where it was switched to: "link, from byte 4096 on (TCP before)". */
static const char *track_text(struct way *way, const struct shunt_tap_record *record,
			      char text[COMMENT])
{
	static const char *const tracks[] = { "TCP", "link" };
	bool link = record->flags & SHUNT_TAP_LINK, switched = way->carried && way->link != link;

	way->carried = true;
	way->link = link;
	if (switched)
		snprintf(text, COMMENT, "%s, from byte %" PRIu64 " on (%s before)", tracks[link],
			 record->offset, tracks[!link]);
	else
		snprintf(text, COMMENT, "%s", tracks[link]);
	return text;
}

static void data(struct dump *dump, struct flow *flow, const struct shunt_tap_record *record)
{
	bool out = record->flags & SHUNT_TAP_OUT;
	struct way *way = &flow->way[out];
	struct iovec payload[2];
	char comment[COMMENT];

	if (!way->known)
		way->first = way->next = record->offset;
	way->known = true;
	if (record->flags & SHUNT_TAP_UNSEEN) {
		flow->owner->dropped++;
		flow->owner->unseen++;
	} else {
		listener_payload(flow->owner, payload);
		emit(dump, flow, out, FRAME_PSH | FRAME_ACK, number(way, record->offset), payload,
		     track_text(way, record, comment));
	}
	way->next = record->offset + record->bytes;
}

static void end(struct dump *dump, struct flow *flow, bool out)
{
	struct way *way = &flow->way[out];

	if (way->ended)
		return;
	emit(dump, flow, out, FRAME_FIN | FRAME_ACK, number(way, way->next), NULL, "");
	way->ended = true;
}

static void event(struct dump *dump, struct flow *flow, const struct shunt_tap_record *record)
{
	bool out = record->flags & SHUNT_TAP_OUT;
	const struct way *way = &flow->way[out];

	switch (record->kind) {
	case SHUNT_TAP_END:
	case SHUNT_TAP_CLOSE:
		end(dump, flow, out);
		break;
	case SHUNT_TAP_RESET:
		emit(dump, flow, out, FRAME_RST | FRAME_ACK, number(way, way->next) + way->ended,
		     NULL, "");
		break;
	default:
		emit(dump, flow, out, FRAME_ACK, number(way, way->next) + way->ended, NULL,
		     "TCP for good: the kernel has the rest, and tcpdump shows it");
		break;
	}
	if (record->kind != SHUNT_TAP_END)
		flow->over = record->time;
}

void flow_record(struct dump *dump, struct listener *listener)
{
	const struct shunt_tap_record *record = &listener->next;
	struct flow *flow;
	bool fresh;

	listener->dropped += record->dropped;
	flow = find(dump, listener, &fresh);
	if (!flow)
		return;
	if (fresh && record->flags & SHUNT_TAP_WHOLE)
		shake_hands(dump, flow, record->flags & SHUNT_TAP_CONNECTED);
	if (record->kind == SHUNT_TAP_DATA)
		data(dump, flow, record);
	else
		event(dump, flow, record);
}
