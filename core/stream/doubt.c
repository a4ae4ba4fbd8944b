/* SPDX-License-Identifier: MIT */
#include "core/stream/doubt.h"
#include <errno.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <stddef.h>
#include <linux/tcp.h>
#include <poll.h>
#include <sys/ioctl.h>
#include "core/engine.h"
#include "core/fork/fork_slots.h"

#define TRIES 100	/* to see the queues stand still */
#define WAIT 4000000ull		/* ns between the first two looks; four times as long between the next, */
#define WAIT_MOST 16000000000ull	/* up to this */
#define CLAIM_MOST 64000000ull	/* ns between two claims; sixteen times as long from the 64th on */
#define USES 16		/* the clock is read at each so many */
#define ESTABLISHED 1	/* tcpi_state: in others a FIN is counted, too */

/* --- what the kernel counts --- */

struct counts {
	struct tcp_info info;
	int unread[2], unsent[2];	/* before and after */
	bool says_sent;	/* the kernel counts bytes_sent: since Linux 4.19 */
};

static int queues(const struct shunt_sys *sys, int fd, struct counts *counts, int i)
{
	return sys->ioctl(fd, SIOCINQ, &counts->unread[i]) ||
			       sys->ioctl(fd, SIOCOUTQ, &counts->unsent[i]) ?
		       -ENOTCONN :
		       0;
}

/* A former holder has shut down its reading, or the end has come since: poll() tells both. */
static bool is_shut(const struct shunt_sys *sys, int fd)
{
	struct pollfd pfd = { .fd = fd, .events = POLLRDHUP };
	struct timespec now = { 0 };

	return sys->ppoll(&pfd, 1, &now, NULL) > 0;
}

/*
 * SIOCINQ ends before an urgent byte, also when that has been read (tcp_inq()). With SO_OOBINLINE it counts all. True: the
 * queue has more than `unread`.
 */
static bool hides_some(const struct shunt_sys *sys, int fd, int unread)
{
	socklen_t length = sizeof(int);
	int was = 0, on = 1, all = unread;

	if (sys->getsockopt(fd, SOL_SOCKET, SO_OOBINLINE, &was, &length) || was ||
	    sys->setsockopt(fd, SOL_SOCKET, SO_OOBINLINE, &on, sizeof(on)))
		return false;
	sys->ioctl(fd, SIOCINQ, &all);
	sys->setsockopt(fd, SOL_SOCKET, SO_OOBINLINE, &was, sizeof(was));
	return all != unread;
}

static int count(const struct shunt_sys *sys, int fd, struct counts *counts)
{
	socklen_t length = sizeof(counts->info);

	*counts = (struct counts){ 0 };
	if (queues(sys, fd, counts, 0) ||
	    sys->getsockopt(fd, IPPROTO_TCP, TCP_INFO, &counts->info, &length) ||
	    queues(sys, fd, counts, 1))
		return -ENOTCONN;
	counts->says_sent = length >= offsetof(struct tcp_info, tcpi_bytes_retrans) +
					      sizeof(counts->info.tcpi_bytes_retrans);
	if (length < offsetof(struct tcp_info, tcpi_bytes_received) +
			     sizeof(counts->info.tcpi_bytes_received))
		return -ENOPROTOOPT;
	return counts->info.tcpi_state == ESTABLISHED && !is_shut(sys, fd) ? 0 : -ENOTCONN;
}

/* 1 where this end has connected, or 0; another number: it cannot be told. */
static uint64_t syn_of(const struct counts *counts)
{
	uint64_t sent = counts->info.tcpi_bytes_sent - counts->info.tcpi_bytes_retrans,
		 queued = counts->info.tcpi_bytes_acked + (uint64_t)counts->unsent[0];

	return counts->says_sent ? queued - counts->info.tcpi_notsent_bytes - sent : UINT64_MAX;
}

/*
 * Only the peer moves bytes now: what it acknowledges leaves one queue, what it sends comes into the other. A queue that has
 * not changed around the counts belongs to them.
 */
int shunt_doubt_place(const struct shunt_sys *sys, int fd, bool known,
		      struct shunt_place_on_tcp *place)
{
	bool written = false, read = false;
	struct counts counts;
	uint64_t syn = place->connector;
	int result = 0;

	for (int tries = 0; tries < TRIES && !result && !(written && read); tries++) {
		result = count(sys, fd, &counts);
		if (!result && !written && counts.unsent[0] == counts.unsent[1]) {
			syn = known ? syn : syn_of(&counts);
			written = syn <= 1;
			place->written = counts.info.tcpi_bytes_acked + (uint64_t)counts.unsent[0] -
					 syn;
		}
		if (!result && !read && counts.unread[0] == counts.unread[1] &&
		    (place->held || !hides_some(sys, fd, counts.unread[0]))) {
			read = true;
			place->read = counts.info.tcpi_bytes_received - (uint64_t)counts.unread[0];
		}
	}
	if (!result && !(written && read))
		result = known || counts.says_sent ? -EAGAIN : -ENOPROTOOPT;
	place->connector = syn == 1;
	return result;
}

/* --- a stream in doubt --- */

/* Others may change flags and options of the socket. */
static void doubt(struct shunt_stream *stream, enum shunt_cause why)
{
	atomic_store(&shunt_stream_engine(stream)->doubted_ones, true);
	atomic_store(&stream->doubt.why, why);
	atomic_fetch_or(&stream->mode, SHUNT_MODE_SHARED | SHUNT_MODE_UNCOUNTED);
}

/* Bytes that the kernel has carried and bytes.tcp does not count. Both locks held, or nobody else knows the stream. */
static void count_before(struct shunt_stream *stream, const struct shunt_place_on_tcp *place)
{
	stream->tx.backlog.written = place->written - stream->tx.bytes.tcp;
	stream->rx.nonce.aside = place->read - stream->rx.bytes.tcp;
}

void shunt_doubt_begin(struct shunt_stream *stream, enum shunt_cause why)
{
	struct shunt_place_on_tcp place = { .held = true };

	stream->sharing.forked |= SHUNT_FORK_COPIED | SHUNT_FORK_LOST;
	if (!shunt_doubt_place(stream->group->sys, stream->fd, false, &place))
		count_before(stream, &place);
	doubt(stream, why);
}

/* The next look is due as by shunt_doubt_waits(). */
static void begin_waiting(struct shunt_stream *stream, uint8_t looks)
{
	stream->doubt.looks = looks;
	stream->doubt.looked = stream->group->sys->now();
	stream->doubt.from = atomic_load(&stream->rx.head) + stream->tx.offset;
	atomic_store(&stream->uses, 0);
	atomic_store(&stream->usage, SHUNT_USE_BEGUN);
}

void shunt_doubt_share(struct shunt_stream *stream)
{
	doubt(stream, SHUNT_CAUSE_FORK);
	atomic_fetch_add(&stream->doubt.shares, 1);
	stream->sharing.forked |= SHUNT_FORK_LOST;
	stream->sharing.slot = NULL;
	begin_waiting(stream, 0);
}

static uint64_t wait_for(const struct shunt_stream *stream)
{
	const uint8_t looks = stream->doubt.looks;
	const uint64_t wait = looks < 7 ? WAIT << 2 * (looks - 1) : WAIT_MOST,
		       most = looks < 64 ? CLAIM_MOST : CLAIM_MOST * 16;

	return shunt_stream_is_doubted(stream) || wait < most ? wait : most;
}

/* The program has used it since the last look, and some time has gone by. */
static bool is_due(struct shunt_engine *engine, const struct shunt_stream *stream, uint32_t uses,
		   uint64_t bytes)
{
	if (!stream->doubt.looks)
		return shunt_short_lived_lasts(engine, uses, bytes, stream->born);
	return shunt_short_lived_is_used(uses % USES ? 0 : uses, bytes) &&
	       shunt_now(engine) - stream->doubt.looked >= wait_for(stream);
}

bool shunt_doubt_waits(struct shunt_engine *engine, struct shunt_stream *stream)
{
	uint32_t uses = atomic_load_explicit(&stream->uses, memory_order_relaxed);

	if (!shunt_stream_is_doubted(stream) && !stream->doubt.looks)
		return false;
	atomic_store_explicit(&stream->uses, uses + 1, memory_order_relaxed);
	return !is_due(engine, stream, uses,
		       atomic_load(&stream->rx.head) + stream->tx.offset - stream->doubt.from);
}

bool shunt_doubt_later(struct shunt_stream *stream, uint8_t most)
{
	if (stream->doubt.looks >= most ||
	    atomic_load(&stream->state) != SHUNT_CANDIDATE || stream->fd < 0)
		return false;
	begin_waiting(stream, stream->doubt.looks + 1);
	return true;
}

/* Bytes that a former link still owes come over TCP, one for one. rx.lock held. */
static void move_head(struct shunt_stream *stream, uint64_t to)
{
	uint64_t from = atomic_load(&stream->rx.head);

	stream->end.owed = stream->end.owed > from ? stream->end.owed - from + to : 0;
	atomic_store(&stream->rx.head, to);
}

int shunt_doubt_take_place(struct shunt_engine *engine, struct shunt_stream *stream, bool known)
{
	struct shunt_place_on_tcp place = { .connector = stream->role == SHUNT_CONNECTOR };
	int result = stream->fd < 0 ? -ENOTCONN :
				      shunt_doubt_place(engine->sys, stream->fd, known, &place);

	shunt_assert_held(&stream->rx.lock);
	shunt_assert_held(&stream->tx.lock);
	if (result)
		return result;
	stream->role = place.connector ? SHUNT_CONNECTOR : SHUNT_ACCEPTOR;
	stream->doubt.from += place.written - stream->tx.offset + place.read -
			      atomic_load(&stream->rx.head);
	stream->tx.offset = place.written;
	move_head(stream, place.read);
	count_before(stream, &place);
	return 0;
}

/* A fork makes a second holder under streams_lock: before the look, and it has seen it, or `shares` differs, or later. */
static int be_sole(struct shunt_engine *engine, struct shunt_stream *stream, uint32_t shares)
{
	int result = -EBUSY;

	shunt_lock_take(&engine->streams_lock);
	if (atomic_load(&stream->doubt.shares) == shares) {
		stream->sharing.forked &= (uint8_t)~SHUNT_FORK_LOST;
		atomic_fetch_and(&stream->mode,
				 ~(uint32_t)(SHUNT_MODE_SHARED | SHUNT_MODE_UNCOUNTED));
		stream->doubt.settled = true;
		atomic_store(&stream->doubt.why, SHUNT_CAUSE_NONE);
		result = 0;
	}
	shunt_lock_leave(&engine->streams_lock);
	return result;
}

int shunt_doubt_settle(struct shunt_engine *engine, struct shunt_stream *stream, uint32_t shares)
{
	int result;

	shunt_assert_service_thread(engine);
	shunt_lock_take(&stream->rx.lock);
	shunt_lock_take(&stream->tx.lock);
	result = atomic_load(&stream->state) == SHUNT_CANDIDATE ?
			 shunt_doubt_take_place(engine, stream, false) :
			 -ENOTCONN;
	if (!result)
		result = be_sole(engine, stream, shares);
	shunt_lock_leave(&stream->tx.lock);
	shunt_lock_leave(&stream->rx.lock);
	return result;
}

void shunt_doubt_return(struct shunt_stream *stream)
{
	stream->doubt.settled = true;
	begin_waiting(stream, 1);
}
