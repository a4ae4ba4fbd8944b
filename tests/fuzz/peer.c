/* SPDX-License-Identifier: MIT */
/*
 * The engine and a hostile peer that has a valid link: it claims and is claimed, sends and reads as an engine does.
 * The script changes any field of its messages. It sends messages out of turn and for seats that are not its own, and
 * writes wherever it may write in shared memory. The victim's program goes on using its connections meanwhile.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/epoll.h>
#include "core/base/scm_rights.h"
#include "core/qos/qos.h"
#include "core/service.h"
#include "core/stream/proof.h"
#include "core/stream/traced.h"
#include "core/stream/tuple.h"
#include "core/trace/followed.h"
#include "core/wait/epset.h"
#include "tests/fuzz/world.h"
#include "tests/inspect.h"
#include "tests/sim/start.h"

#define STEPS 400	/* of a script */
#define RULES "period 100ms; capacity 1Gbit; class all reserve=50% limit=900Mbit"

static struct fuzz_input *in;
static uint8_t buffer[65536];
static bool traced; /* both engines follow each send */

/* A change of the messages and WRs that the hostile engine sends next. */
static struct change {
	uint8_t messages, wrs;	/* how many are changed still */
	uint8_t how;
	uint32_t at;
	uint64_t with;
} change;

/* --- picking --- */

static struct fuzz_conn *some_conn(void)
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
		if (wr->num_sge == 1 && sge->length == sizeof(*word) && wr->send_flags & IBV_SEND_INLINE) {
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

static void inject_arrival(struct shunt_link *link)
{
	struct soft_qp *qp = fuzz_world_qp(link);
	struct shunt_stream *stream = some_stream();
	enum shunt_imm type = fuzz_below(in, 16);
	uint32_t id = some_id(stream), bytes = sizeof(uint64_t), opcode = SEGMENT_IMMEDIATE | IBV_WC_RECV_RDMA_WITH_IMM;
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
		((struct shunt_control *)(qp->peer->base + qp->pd->arena_offset))[id].word[type] = value;
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

static void inject_message(struct shunt_link *link)
{
	struct fuzz_conn *conn = some_conn();
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
__attribute__((no_sanitize_address)) static void scribble(struct shunt_link *link, bool own)
{
	struct soft_qp *qp = fuzz_world_qp(link);
	char *segment = own ? qp->pd->segment : qp->peer->base;
	uint64_t queue = (own ? (char *)qp->queue : (char *)qp->peer_queue) - segment, at = 0;
	uint64_t value, was, bytes;
	uint64_t arena = qp->pd->arena_offset;
	static const uint16_t fields[] = { offsetof(struct segment_queue, posted), offsetof(struct segment_queue, armed),
					   offsetof(struct segment_queue, live), offsetof(struct segment_queue, access),
					   offsetof(struct segment_queue, fault), offsetof(struct segment_queue, generation),
					   offsetof(struct segment_queue, rnr_timer) };

	switch (fuzz_below(in, 6)) {
	case 0:
		at = queue + fields[fuzz_below(in, sizeof(fields) / sizeof(fields[0]))];
		break;
	case 1:
		at = queue + sizeof(struct segment_queue) + fuzz_below(in, 256) * 8;	/* arrivals, and receives behind them */
		break;
	case 2:
		at = SEGMENT_MR_OFFSET + fuzz_below(in, 4) * sizeof(struct segment_mr) + fuzz_below(in, 8) * 4;
		break;
	case 3:
		at = arena + fuzz_below(in, 8) * sizeof(struct shunt_control) + fuzz_below(in, 16) * 8;	/* lines */
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
static void forge_record(void)
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

/* --- programs --- */

static bool error_is_fair(ssize_t result)
{
	return result >= 0 || result == -EAGAIN || result == -EPIPE || result == -ECONNRESET || result == -ENOTCONN ||
	       result == -EBADF || result == -ETIMEDOUT || result == -EBUSY || result == -ENOBUFS || result == -ENOMEM;
}

static size_t some_bytes(void)
{
	unsigned int bytes = fuzz_byte(in);

	return bytes < 128 ? bytes + 1 : (bytes - 127) * 512;
}

static void use(struct fuzz_conn *conn, enum fuzz_who who)
{
	int side = fuzz_world_side(conn, who), flags = fuzz_below(in, 8);
	size_t bytes = some_bytes();
	ssize_t result;

	if (flags & 1) {
		result = fuzz_world_send(conn, side, buffer, bytes, flags & 6 ? 0 : MSG_MORE);
	} else {
		flags = flags == 2 ? MSG_PEEK : flags == 4 ? MSG_TRUNC : 0;
		result = fuzz_world_receive(conn, side, buffer, bytes, flags);
	}
	fuzz_check(result <= (ssize_t)bytes && error_is_fair(result));
}

static void ask(struct fuzz_conn *conn)
{
	struct shunt_engine *victim = fuzz_world.engine[FUZZ_VICTIM];
	struct shunt_stream *stream = fuzz_world_stream(conn, FUZZ_VICTIM);
	int fd = conn->fd[fuzz_world_side(conn, FUZZ_VICTIM)];
	struct pollfd one = { .fd = fd, .events = POLLIN | POLLOUT | POLLRDHUP };
	struct epoll_event events[8];
	struct timespec no_time = { 0, 0 };

	if (!stream)
		return;
	switch (fuzz_below(in, 6)) {
	case 0:
		fuzz_check(shunt_wait_poll(victim, &one, 1, &no_time, NULL) >= 0);
		break;
	case 1:
		shunt_epset_ctl(victim, fuzz_world.epfd, EPOLL_CTL_ADD, fd, &(struct epoll_event) {
				.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | (fuzz_below(in, 2) ? EPOLLET : 0), .data.fd = fd });
		break;
	case 2:
		fuzz_check(shunt_epset_wait(victim, fuzz_world.epfd, events, 8, &no_time, NULL) >= 0);
		break;
	case 3:
		fuzz_check(shunt_stream_inq(victim, fd, stream) >= 0);
		break;
	case 4:
		shunt_stream_outq(victim, fd, stream);
		break;
	default:
		shunt_stream_take_error(stream);
	}
}

static void end_some(enum fuzz_who who)
{
	struct fuzz_conn *conn = some_conn();
	struct shunt_stream *stream = fuzz_world_stream(conn, who);
	int side = fuzz_world_side(conn, who), what = fuzz_below(in, 6), result = 0;

	if (what < 3 && stream)
		result = shunt_stream_shutdown(fuzz_world.engine[who], conn->fd[side], stream, what);
	else if (what == 3 && stream)
		result = shunt_stream_retire(fuzz_world.engine[who], conn->fd[side], stream, SHUNT_REASON_SPLICE);
	else if (what > 3)
		fuzz_world_close(conn, side);
	fuzz_check(error_is_fair(result));
}

/* Behind the back of its own engine. */
static void use_tcp(void)
{
	struct fuzz_conn *conn = some_conn();
	struct sim_sock *sock = &conn->sock[fuzz_world_side(conn, FUZZ_HOSTILE)];
	struct shunt_stream *stream = fuzz_world_stream(conn, FUZZ_VICTIM);
	struct iovec iov = { buffer, some_bytes() };

	switch (fuzz_below(in, 5)) {
	case 0:
		sim_tcp_send(sock, &iov, 1);
		break;
	case 1:
		sim_tcp_shutdown(sock, SHUT_WR);
		break;
	case 2:
		if (sock->state == SIM_TCP_OPEN)
			sim_tcp_disconnect(sock);
		break;
	case 3:	/* the nonce, or a part of it */
		if (stream)
			sim_tcp_send(sock,
				     &(struct iovec) { (void *)stream_nonce(stream, STREAM_READS),
						       1 + fuzz_below(in, SHUNT_NONCE_BYTES) },
				     1);
		break;
	default:
		sim_tcp_receive(sock, &iov, 1, 0);
	}
}

static void open_some(bool outward)
{
	fuzz_world_connect(outward ? FUZZ_VICTIM : FUZZ_HOSTILE, outward ? FUZZ_HOSTILE : FUZZ_VICTIM);
}

/* A program that has connected, or accepted, says something and closes. */
static void use_birth(enum fuzz_who who, int fd)
{
	struct shunt_engine *engine = fuzz_world.engine[who];
	struct shunt_stream *stream = fd < 0 ? NULL : (struct shunt_stream *)shunt_file(engine, fd);
	struct iovec iov = { buffer, some_bytes() };
	int flags = MSG_DONTWAIT | MSG_NOSIGNAL;

	if (fd < 0)
		return;
	if (stream && !shunt_stream_is_plain(stream) && fuzz_below(in, 2))
		fuzz_check(error_is_fair(
			shunt_stream_send(engine, fd, stream, &iov, 1, flags)));
	fuzz_world_turn();
	if (stream && !shunt_stream_is_plain(stream))
		fuzz_check(error_is_fair(
			shunt_stream_recv(engine, fd, stream, &iov, 1, MSG_DONTWAIT)));
	shunt_file_closing(engine, fd);
	sim_fd_close(fd);
}

static void be_born(void)
{
	enum fuzz_who who = fuzz_below(in, 2);

	if (fuzz_below(in, 2))
		use_birth(who, fuzz_world_born_connect(who, !who));
	else
		use_birth(who, fuzz_world_born_accept(who));
}

static void step(void)
{
	struct shunt_link *link = fuzz_world_link(FUZZ_HOSTILE);
	unsigned int what = fuzz_below(in, 32);

	if (link && !fuzz_world_qp(link)->peer)
		link = NULL;
	switch (what) {
	case 0 ... 4:
		use(some_conn(), FUZZ_VICTIM);
		break;
	case 5 ... 8:
		use(some_conn(), FUZZ_HOSTILE);
		break;
	case 9:
		ask(some_conn());
		break;
	case 10:
		end_some(FUZZ_VICTIM);
		break;
	case 11:
		end_some(FUZZ_HOSTILE);
		break;
	case 12:
		use_tcp();
		break;
	case 13:
		sim_tcp_deliver(&some_conn()->sock[fuzz_below(in, 2)], some_bytes());
		break;
	case 14:
		sim_clock += 1000000ull << fuzz_below(in, 12);
		break;
	case 15:
		open_some(fuzz_below(in, 2));
		break;
	case 16:
		fuzz_world_turn();
		if (fuzz_world.born)
			be_born();
		break;
	case 17: case 18:
		shunt_service_step(fuzz_world.engine[fuzz_below(in, 2)], 0);
		break;
	case 19: case 20:
		shunt_group_poll(&fuzz_world.engine[fuzz_below(in, 2)]->group);
		break;
	case 21:
		plan_change(&change.messages);
		break;
	case 22:
		plan_change(&change.wrs);
		break;
	case 23:
		fuzz_world_honest(1 + fuzz_byte(in) * 2);
		break;
	case 24:
		if (link)
			soft_qp_fault(link->lanes[0].qp, fuzz_below(in, 4));
		break;
	case 25: case 26:
		if (link)
			inject_message(link);
		break;
	case 27:
		if (link && traced && fuzz_below(in, 2))
			forge_record();
		else if (link)
			scribble(link, false);
		break;
	case 28:
		if (link)
			scribble(link, true);
		break;
	default:
		if (link)
			inject_arrival(link);
	}
}

/* The victim's link to the honest peer keeps what it was lent the first time. */
static void set_rules(const char *rules)
{
	static bool lent;
	char error[SHUNT_QOS_ERROR];

	for (enum fuzz_who who = FUZZ_VICTIM; who <= FUZZ_HOSTILE; who++)
		fuzz_check(!shunt_qos_set(fuzz_world.engine[who]->service, rules, error,
					  sizeof(error)));
	if (*rules && !lent)
		fuzz_world_grows();
	lent |= *rules != 0;
}

/* Sends are followed, or not; links that are up are asked then. */
static void set_trace(bool on)
{
	static bool followed;

	traced = on;
	for (enum fuzz_who who = FUZZ_VICTIM; who <= FUZZ_HOSTILE; who++) {
		struct shunt_engine *engine = fuzz_world.engine[who];

		engine->config.trace = on;
		shunt_traced_config(engine);
		shunt_loop_post(&engine->loop, &engine->loop.requests.trace);
	}
	if (on && !followed)
		fuzz_world_grows();
	followed |= on;
}

/* Modes that a link has from its making: how connections are proved, and others. */
static uint8_t choose_modes(void)
{
	uint8_t modes = fuzz_byte(in);

	for (enum fuzz_who who = FUZZ_VICTIM; who <= FUZZ_HOSTILE; who++) {
		struct shunt_config *config = &fuzz_world.engine[who]->config;

		config->proof = modes & 1;
		config->retain = (modes & 2) != 0 || config->proof;
		config->inline_bytes = modes & 4 ? 64 : 1 << 20;
		config->mr_threshold = modes & 8 ? 8192 : 0;
		config->flip_bytes = modes & 16 && who == FUZZ_VICTIM ? 100 : 0;
		config->batch = modes >> 5 & 3;
	}
	/* The second says nothing more where there is a proof. */
	set_rules((modes & 3) == 3 ? RULES : "");
	set_trace((modes & 12) == 12);
	return modes;
}

/* Both ends have agreed to carry the first connection, unless the script wants something else. */
static void get_linked(void)
{
	static const uint16_t before[] = { 30, 300, 5000, 50000 };
	uint8_t how = fuzz_byte(in);

	fuzz_world.start = sim_start(how >> 4 & 3, before[how >> 6]);
	fuzz_world.born = (how >> 4 & 3) == 3;	/* which begins at 0 */
	for (enum fuzz_who who = FUZZ_VICTIM; who <= FUZZ_HOSTILE; who++)
		fuzz_world.engine[who]->config.born = fuzz_world.born;
	open_some(how & 1);
	if (how & 2)
		open_some(how & 1);
	for (int i = 0; i < (how >> 2 & 3) + 2; i++) {
		for (int c = 0; c < fuzz_world.conns; c++) {
			fuzz_world_send(&fuzz_world.conn[c], 0, buffer, 10, 0);
			fuzz_world_send(&fuzz_world.conn[c], 1, buffer, 10, 0);
		}
		fuzz_world_turn();
	}
}

/* Both programs read all that the first connection has brought, and close it: it rests. */
static void get_spare(void)
{
	struct fuzz_conn *conn = &fuzz_world.conn[0];
	int first = (int)fuzz_below(in, 2);

	for (int i = 0; i < 10; i++)
		for (int side = 0; side < 2; side++) {
			fuzz_world_send(conn, side, buffer, 10, 0);
			fuzz_world_turn();
			while (fuzz_world_receive(conn, !side, buffer, sizeof(buffer), 0) > 0)
				;
		}
	for (int i = 0; i < 2; i++) {
		fuzz_world_close(conn, first ^ i);
		for (int n = 0; n < 4; n++)
			fuzz_world_turn();
	}
}

/*
 * Of what the victim sends: as if the link had carried 4 GiB by now. True: done for a stream, whose
 * upgrade has been passed.
 */
static bool age(void)
{
	bool some = false;

	for (int c = 0; c < fuzz_world.conns; c++) {
		struct shunt_stream *stream = fuzz_world_stream(&fuzz_world.conn[c], FUZZ_VICTIM);
		uint64_t from = stream ? stream_offset(stream, STREAM_UPGRADED) : 0;

		if (!stream || !stream_age(stream, 1ull << 32))
			continue;
		if (stream_offset(stream, STREAM_PEER_READ) < from)
			stream_peer_has_read(stream, from);
		some = true;
	}
	return some;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_input input = { data, data + size };
	uint8_t modes;

	in = &input;
	fuzz_world_sendmsg = hostile_sendmsg;
	memset(&change, 0, sizeof(change));
	fuzz_world_begin();
	fuzz_world.engine[FUZZ_HOSTILE]->group.devices[SHUNT_SOFT].context->ops.post_send = hostile_post;
	modes = choose_modes();
	get_linked();
	if (fuzz_world.born)
		get_spare();
	for (int i = 0; i < STEPS && fuzz_more(in); i++) {
		if (modes & 128 && age())
			modes = 0;
		step();
	}
	memset(&change, 0, sizeof(change));
	set_rules("");
	set_trace(false);
	fuzz_world_end();
	return 0;
}
