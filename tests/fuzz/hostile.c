/* SPDX-License-Identifier: MIT */
#include "tests/fuzz/hostile.h"
#include <arpa/inet.h>
#include <errno.h>
#include <unistd.h>
#include "core/base/scm_rights.h"
#include "core/service.h"
#include "core/stream/tuple.h"
#include "core/trace/followed.h"
#include "tests/inspect.h"

static struct fuzz_input *in;

/* A change of the messages and WRs that the hostile engine sends next. */
static struct change {
	uint8_t messages, wrs;	/* how many are changed still */
	uint8_t how;
	uint32_t at;
	uint64_t with;
} change;

/* --- picking --- */

struct fuzz_conn *hostile_conn(void)
{
	return &fuzz_world.conn[fuzz_below(in, fuzz_world.conns)];
}

/* A stream of the victim, NULL: it is no stream any more. */
static struct shunt_stream *some_stream(void)
{
	unsigned int which = fuzz_below(in, 8);

	if (which == 7)
		return fuzz_world_stream(&fuzz_world.honest[0], FUZZ_VICTIM);
	return fuzz_world_stream(&fuzz_world.conn[which % fuzz_world.conns], FUZZ_VICTIM);
}

static uint32_t some_id(struct shunt_stream *stream)
{
	unsigned int what = fuzz_below(in, 8);

	return what == 7 ? fuzz_u32(in) & SHUNT_IMM_STREAM_MASK :
	       what == 6 ? fuzz_below(in, 40) :
	       stream	 ? stream->seat->id :
			   0;
}

/* An offset that means something to the stream, or nearly. */
static uint64_t some_value(struct shunt_stream *stream)
{
	static const int8_t near[] = { 0, 0, 0, 1, -1, 2, -2, 8, -8, 100, -100 };
	static const enum stream_offset of[] = {
		/* inputs of the corpus choose by these numbers */
		STREAM_READ,	    STREAM_ARRIVED,   STREAM_SENT,
		STREAM_POSTED,	    STREAM_PEER_READ, STREAM_UPGRADED,
		STREAM_HANDED_BACK, STREAM_BOUNDARY,  STREAM_RING_END,
	};
	unsigned int what = fuzz_below(in, 12);
	int64_t more = near[fuzz_below(in, sizeof(near))];

	if (!stream || what == 11)
		return fuzz_u64(in);
	if (what == 10)
		return more;
	return stream_offset(stream, what < 9 ? of[what] : STREAM_ARRIVED) +
	       (what == 9 ? more * 40 : more);
}

/* Where the hostile peer wants bytes: a ring of its own, or not quite. */
static struct shunt_place some_place(struct shunt_link *link, struct shunt_stream *stream)
{
	struct shunt_place place = { .stream = stream ? stream->seat->peer_id : 1,
				     .ring_bytes = 4096u << fuzz_below(in, 5) };
	const struct ibv_mr *mr = NULL;
	uint64_t at = shunt_arena_take(&link->arena, 65536, &mr);

	place.ring_offset = at;
	place.rkey = mr ? mr->rkey : 0;
	if (at != UINT64_MAX)
		shunt_arena_give(&link->arena, at, 65536);
	if (!fuzz_below(in, 4))
		place.stream = fuzz_below(in, 40);
	if (!fuzz_below(in, 4))
		place.ring_offset ^= fuzz_u64(in);
	if (!fuzz_below(in, 8))
		place.ring_bytes = fuzz_u32(in);
	if (!fuzz_below(in, 4))
		place.rkey ^= fuzz_u32(in);
	return place;
}

/* --- what its engine says, changed --- */

static void change_bytes(void *bytes, size_t count)
{
	uint64_t part;

	if (count < sizeof(part))
		return;
	bytes = (uint8_t *)bytes + change.at % (count - sizeof(part) + 1);
	memcpy(&part, bytes, sizeof(part));
	part = change.how & 4 ? part + (int64_t)change.with : part ^ change.with;
	memcpy(bytes, &part, sizeof(part));
}

static ssize_t hostile_sendmsg(int fd, const struct msghdr *message, int flags)
{
	struct shunt_message changed;
	struct iovec iov = { &changed, sizeof(changed) };
	struct msghdr header = *message;

	if (!change.messages || message->msg_iov->iov_len != sizeof(changed) || sim_sock_of[fd])
		return sim_sys.sendmsg(fd, message, flags);
	change.messages--;
	memcpy(&changed, message->msg_iov->iov_base, sizeof(changed));
	header.msg_iov = &iov;
	switch (change.how & 3) {
	case 0:	/* it is never sent */
		return sizeof(changed);
	case 1:	/* twice, the second time without descriptors */
		sim_sys.sendmsg(fd, &header, flags);
		header.msg_controllen = 0;
		break;
	case 2:
		change_bytes(&changed, sizeof(changed));
		break;
	default:
		if (change.at % 3 == 0)
			iov.iov_len = change.with % (sizeof(changed) + 1);
		else if (change.at % 3 == 1)
			changed.type = change.with % (SHUNT_MSG_CLOCK + 1);
		else
			changed.stream = change.with;
	}
	sim_sys.sendmsg(fd, &header, flags);
	return sizeof(changed);
}

static void change_wr(struct ibv_send_wr *wr, struct ibv_sge *sge, uint64_t *word)
{
	switch (change.how % 6) {
	case 0:
		wr->imm_data ^= htonl(change.with);
		break;
	case 1:
		wr->wr.rdma.remote_addr += (int64_t)change.with;
		break;
	case 2:
		wr->wr.rdma.rkey ^= change.with;
		break;
	case 3:
		if (wr->num_sge == 1 && sge->length == sizeof(*word) &&
		    wr->send_flags & IBV_SEND_INLINE) {
			*word += (int64_t)change.with;
			sge->addr = (uintptr_t)word;
		}
		break;
	case 4:
		if (wr->num_sge == 1)
			sge->length = change.with % (sge->length + 1);
		break;
	default:
		wr->imm_data = htonl(ntohl(wr->imm_data) + (change.with << SHUNT_IMM_SHIFT));
	}
}

static int hostile_post(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	struct ibv_send_wr changed = *wr;
	struct ibv_sge sge = { 0 };
	uint64_t word = 0;
	int result = 0;

	if (!change.wrs)
		return soft_post_send(qp, wr, bad);
	for (; wr && !result; wr = wr->next) {
		changed = *wr;
		changed.next = NULL;
		if (wr->num_sge == 1) {
			sge = *wr->sg_list;
			changed.sg_list = &sge;
			if (sge.length == sizeof(word))
				memcpy(&word, (void *)(uintptr_t)sge.addr, sizeof(word));
		}
		if (change.wrs && change.wrs--)
			change_wr(&changed, &sge, &word);
		result = soft_post_send(qp, &changed, bad);
		if (result)
			*bad = wr;
	}
	return result;
}

static void plan_change(uint8_t *count)
{
	*count = 1 + fuzz_below(in, 4);
	change.how = fuzz_byte(in);
	change.at = fuzz_byte(in);
	change.with = fuzz_below(in, 4) ? fuzz_byte(in) : fuzz_u64(in);
}

void hostile_changes_messages(void)
{
	plan_change(&change.messages);
}

void hostile_changes_wrs(void)
{
	plan_change(&change.wrs);
}

void hostile_is_honest(void)
{
	memset(&change, 0, sizeof(change));
}

void hostile_begin(struct fuzz_input *script)
{
	in = script;
	hostile_is_honest();
	fuzz_world_sendmsg = hostile_sendmsg;
	fuzz_world_begin();
	fuzz_world.engine[FUZZ_HOSTILE]->group.devices[SHUNT_SOFT].context->ops.post_send = hostile_post;
}

/* --- what it says by itself --- */

/* As the device writes it; nobody asks whether there is a receive. */
static void arrive(struct soft_qp *qp, uint32_t imm, uint32_t bytes, uint32_t opcode)
{
	struct segment_arrival *arrival = &qp->peer_queue->arrival[qp->written & qp->peer_mask];
	uint32_t seq = (uint32_t)(qp->peer_base + ++qp->written);

	soft_store(&arrival->what, (uint64_t)bytes << 32 | htonl(imm));
	soft_store_release(&arrival->stamp, (uint64_t)seq << 32 | opcode);
	qp->rang = qp->rang_solicited = true;
}

void hostile_arrival(struct shunt_link *link)
{
	struct soft_qp *qp = fuzz_world_qp(link);
	struct shunt_stream *stream = some_stream();
	enum shunt_imm type = fuzz_below(in, 16);
	uint32_t id = some_id(stream), bytes = sizeof(uint64_t),
		 opcode = SEGMENT_IMMEDIATE | IBV_WC_RECV_RDMA_WITH_IMM;
	uint64_t value = type == SHUNT_IMM_DATA ? 0 : some_value(stream);

	if (type == SHUNT_IMM_DATA)
		bytes = fuzz_below(in, 4) ? fuzz_byte(in) * 16 : fuzz_u32(in);
	if (type == SHUNT_IMM_LANE && fuzz_below(in, 4))
		value = link->lanes[0].granted + fuzz_byte(in);
	if (type == SHUNT_IMM_RING && fuzz_below(in, 4)) {
		struct shunt_place place = some_place(link, stream);

		value = shunt_ring_make(place.rkey, place.ring_offset, place.ring_bytes ?: 1);
	}
	if (!fuzz_below(in, 32))
		opcode = fuzz_u32(in);
	if (type == SHUNT_IMM_RELEASE && fuzz_world.born)
		value = fuzz_below(in, 2) ? value | SHUNT_RELEASE_AND_KEEP : SHUNT_RELEASE_ANEW;
	if (type != SHUNT_IMM_DATA && id < 32)	/* both arenas begin at the same place in their segments */
		((struct shunt_control *)(qp->peer->base + qp->pd->arena_offset))[id].word[type] =
			value;
	arrive(qp, shunt_imm_make(type, id), bytes, opcode);
}

static int some_descriptors(struct fuzz_conn *conn, int fds[4])
{
	int count = fuzz_below(in, 8), side = fuzz_world_side(conn, FUZZ_HOSTILE);

	if (count > 4)
		count = 1;
	for (int i = 0; i < count; i++) {
		switch (i ? 1 + fuzz_below(in, 2) : fuzz_below(in, 4)) {
		case 0:
			fds[i] = conn->fd[side] >= 0 ? conn->fd[side] : STDERR_FILENO;
			break;
		case 1:
			fds[i] = STDERR_FILENO;
			break;
		case 2:
			fds[i] = fuzz_world.engine[FUZZ_HOSTILE]->loop.wake_fd;
			break;
		default:
			fds[i] = fuzz_world.honest[0].fd[0];	/* somebody else's socket */
		}
	}
	return count;
}

/* A message of tokens, sound except for the bytes drawn. */
static void make_qos(struct shunt_message *message)
{
	message->type = SHUNT_MSG_QOS + fuzz_below(in, SHUNT_MSG_QOS_PERIOD - SHUNT_MSG_QOS + 1);
	message->stream = !fuzz_below(in, 8);
	switch (message->type) {
	case SHUNT_MSG_QOS_POOL:
		message->pool.address = fuzz_below(in, 4) * 4096 + fuzz_below(in, 2);
		message->pool.rkey = fuzz_byte(in);
		break;
	case SHUNT_MSG_QOS_PERIOD:
		if (fuzz_below(in, 4))
			message->period = (struct shunt_qos_grant) { .rate = 1000ull << fuzz_below(in, 32),
								     .period_ms = 100u << fuzz_below(in, 8),
								     .reservation = 1u << fuzz_below(in, 32),
								     .batch = 1 + fuzz_byte(in) * 4u,
								     .paced = fuzz_below(in, 2) };
		message->period.number = fuzz_below(in, 4) ? fuzz_byte(in) : fuzz_u32(in);
		break;
	case SHUNT_MSG_QOS_REPORT:
		if (fuzz_below(in, 2)) {
			message->period.number = fuzz_byte(in);
			break;
		}
		message->qos.taken = fuzz_u64(in);
		message->qos.waits = fuzz_byte(in);
		break;
	default:
		message->qos = (struct shunt_qos_word) { .name = "all" };
		if (message->type == SHUNT_MSG_QOS) {
			message->qos.rate = 1000ull << fuzz_below(in, 32);
			message->qos.period_ms = 100u << fuzz_below(in, 8);
		}
	}
}

/* Out of turn, mostly: both have been said when the link came up. */
static void make_trace(struct shunt_link *link, struct shunt_message *message)
{
	struct shunt_place place = some_place(link, NULL);

	message->type = SHUNT_MSG_TRACE + fuzz_below(in, 2);
	message->stream = !fuzz_below(in, 8);
	if (message->type == SHUNT_MSG_CLOCK)
		message->clock = (struct shunt_clock_word) { fuzz_byte(in), fuzz_byte(in),
							     fuzz_u64(in) };
	else
		message->rings = (struct shunt_trace_rings) { place.ring_offset, place.rkey,
							      fuzz_below(in, 4) };
}

/* Where a relative of the hostile process says that its end stands: as the victim knows it, or not. */
static struct shunt_stand some_stand(struct shunt_stream *stream)
{
	struct shunt_stand stand = { .offset = some_value(stream), .announced = fuzz_byte(in) };

	if (stream && fuzz_below(in, 4))
		stand.announced = stream_switches_heard(stream);
	if (stream && fuzz_below(in, 2))
		stand.sent = stream_offset(stream, STREAM_ARRIVED);
	else
		stand.sent = fuzz_below(in, 2) ? SHUNT_NEVER : some_value(stream);
	return stand;
}

static struct shunt_leave some_leave(struct shunt_stream *stream)
{
	struct shunt_leave leave = { .offset = some_value(stream), .how = fuzz_below(in, 4) };
	bool told = stream && fuzz_below(in, 2);

	leave.announced = told ? stream_switches_heard(stream) : fuzz_byte(in);
	leave.heard = told ? stream_switches_announced(stream) : fuzz_byte(in);
	leave.sent = fuzz_below(in, 2) ? some_value(stream) : 0;
	return leave;
}

void hostile_message(struct shunt_link *link, bool traced)
{
	struct fuzz_conn *conn = hostile_conn();
	struct shunt_stream *stream = some_stream(), *own = fuzz_world_stream(conn, FUZZ_HOSTILE);
	static const uint32_t late[] = { SHUNT_MSG_NONCE, SHUNT_MSG_NONCE + 1, SHUNT_MSG_NONCE + 2,
					 SHUNT_MSG_KIN, SHUNT_MSG_TAKE };
	uint32_t type = (uint32_t)fuzz_below(in, SHUNT_MSG_KNOCK + 5);	/* but those of possession.h */
	struct shunt_message message = { .type = type < SHUNT_MSG_KNOCK ? type : late[type - SHUNT_MSG_KNOCK],
					 .stream = some_id(stream) };
	char space[CMSG_SPACE(4 * sizeof(int))] = { 0 };
	struct iovec iov = { &message, sizeof(message) };
	struct msghdr header = { .msg_iov = &iov, .msg_iovlen = 1 };
	int fds[4], count = 0;

	switch (message.type) {
	case 0:
		if (traced)
			make_trace(link, &message);
		else
			make_qos(&message);
		count = message.type == SHUNT_MSG_QOS_POOL ? some_descriptors(conn, fds) : 0;
		break;
	case SHUNT_MSG_HELLO:
		message.hello.magic = SHUNT_WIRE_MAGIC;
		message.hello.version = SHUNT_WIRE_VERSION;
		break;
	case SHUNT_MSG_CLAIM:
		if (own && shunt_tuple_is_known(&own->tuple))
			message.claim.tuple = own->tuple;
		message.claim.place = some_place(link, stream);
		fuzz_take(in, message.claim.chance,
			  fuzz_below(in, 2) * sizeof(message.claim.chance));
		count = some_descriptors(conn, fds);
		break;
	case SHUNT_MSG_ACCEPT:
		message.accept.place = some_place(link, stream);
		break;
	case SHUNT_MSG_LEAVE:
		message.leave = some_leave(stream);
		break;
	case SHUNT_MSG_LEFT:
		message.stream = fuzz_below(in, 4) ? message.stream : 0;
		message.reason = fuzz_below(in, 3);
		break;
	case SHUNT_MSG_NONCE:
		message.nonce.offset = some_value(stream);
		break;
	case SHUNT_MSG_KIN:
		message.stream = !fuzz_below(in, 8);
		fuzz_take(in, message.kin, fuzz_below(in, 2) * sizeof(message.kin));
		break;
	case SHUNT_MSG_TAKE:
		message.take = some_stand(stream);
		break;
	default:
		message.reason = fuzz_below(in, 3);
	}
	shunt_scm_rights_attach(&header, space, fds, count);
	sim_sys.sendmsg(link->channel.fd, &header, MSG_DONTWAIT | MSG_NOSIGNAL);
}

/*
 * One word of what both can write: the victim's segment, or the hostile peer's own, which the victim believes too. A
 * peer does not ask which parts are poisoned here.
 */
__attribute__((no_sanitize_address)) void hostile_scribble(struct shunt_link *link, bool own)
{
	struct soft_qp *qp = fuzz_world_qp(link);
	char *segment = own ? qp->pd->segment : qp->peer->base;
	uint64_t queue = (own ? (char *)qp->queue : (char *)qp->peer_queue) - segment, at = 0;
	uint64_t value, was, bytes;
	uint64_t arena = qp->pd->arena_offset;
	static const uint16_t fields[] = { offsetof(struct segment_queue, posted),
					   offsetof(struct segment_queue, armed),
					   offsetof(struct segment_queue, live),
					   offsetof(struct segment_queue, access),
					   offsetof(struct segment_queue, fault),
					   offsetof(struct segment_queue, generation),
					   offsetof(struct segment_queue, rnr_timer) };

	switch (fuzz_below(in, 6)) {
	case 0:
		at = queue + fields[fuzz_below(in, sizeof(fields) / sizeof(fields[0]))];
		break;
	case 1:
		/* arrivals, and receives behind them */
		at = queue + sizeof(struct segment_queue) + fuzz_below(in, 256) * 8;
		break;
	case 2:
		at = SEGMENT_MR_OFFSET + fuzz_below(in, 4) * sizeof(struct segment_mr) +
		     fuzz_below(in, 8) * 4;
		break;
	case 3:
		/* lines */
		at = arena + fuzz_below(in, 8) * sizeof(struct shunt_control) +
		     fuzz_below(in, 16) * 8;
		break;
	case 4:
		at = fuzz_byte(in) * 4;
		break;
	default:
		at = arena + fuzz_u32(in) % (1 << 20);
	}
	value = fuzz_below(in, 3) ? fuzz_byte(in) : fuzz_u64(in);
	bytes = fuzz_below(in, 2) ? 4 : 8;
	at &= -bytes;
	/* Through the file: where guards are on, some pages of its own mapping are closed (core/base/guard.h). */
	if (own && bytes == 8) {
		fuzz_check(pread(qp->pd->fd, &was, sizeof(was), at) == sizeof(was));
		value ^= was;
	}
	if (own)
		fuzz_check(pwrite(qp->pd->fd, &value, bytes, at) == (ssize_t)bytes);
	else if (bytes == 4)
		*(volatile uint32_t *)(segment + at) = value;
	else
		*(volatile uint64_t *)(segment + at) ^= value;
}

/* A record of a send for the victim, right except as the script wants. */
void hostile_record(void)
{
	struct shunt_link *link = fuzz_world_link(FUZZ_VICTIM);
	struct shunt_followed *followed = link ? atomic_load(&link->lanes[0].followed) : NULL;
	struct shunt_stream *stream = some_stream();
	struct shunt_trace_record record = { .id = 1, .stream = some_id(stream), .bytes = 10 };
	uint64_t at;

	if (!followed)
		return;
	record.called = record.posted = sim_clock;
	record.number = followed->next + fuzz_below(in, 4);
	record.end = some_value(stream);
	at = record.number;
	if (fuzz_below(in, 2))
		((uint64_t *)&record)[fuzz_below(in, sizeof(record) / 8)] += fuzz_below(in, 2) ?
										     fuzz_u64(in) :
										     fuzz_byte(in) -
											     128u;
	memcpy((void *)(uintptr_t)&followed->ring[at % SHUNT_TRACE_SLOTS], &record, sizeof(record));
}
