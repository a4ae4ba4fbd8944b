/*
 * Receiving: recvmsg() without ancillary data, from whichever track carries the next byte.
 */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include "core/engine.h"
#include "core/offer.h"
#include "core/proof.h"
#include "core/thread.h"
#include "core/unclaimed.h"

#define IOV_BATCH 64

/* Where in the program's buffers the next byte goes. */
struct cursor {
	const struct iovec *iov;
	int iovcnt;
	size_t skip;		/* into iov[0] */
	size_t left;		/* room in all */
	bool cut;		/* the kernel was asked for less, and that much was there */
};

static void advance(struct cursor *to, size_t bytes)
{
	to->left -= bytes;
	to->skip += bytes;
	while (to->iovcnt && to->skip >= to->iov->iov_len) {
		to->skip -= to->iov->iov_len;
		to->iov++;
		to->iovcnt--;
	}
}

static void copy_out(struct cursor *to, const uint8_t *from, size_t bytes)
{
	while (bytes) {
		size_t part = to->iov->iov_len - to->skip;

		if (part > bytes)
			part = bytes;
		memcpy((char *)to->iov->iov_base + to->skip, from, part);
		from += part;
		bytes -= part;
		advance(to, part);
	}
}

void shunt_bytes_add(struct shunt_bytes *bytes, uint64_t offset, uint64_t count, bool link)
{
	uint64_t late = offset >= SHUNT_LATE ? count :
			offset + count > SHUNT_LATE ? offset + count - SHUNT_LATE : 0;

	bytes->late += late;
	if (link) {
		bytes->link += count;
	} else {
		bytes->tcp += count;
		bytes->late_tcp += late;
	}
}

/* Takes up to to->left bytes from the ring. A NULL base discards them (MSG_TRUNC). */
static size_t take_ring(struct shunt_rx *rx, struct cursor *to, bool discard, uint64_t head)
{
	uint64_t end = atomic_load_explicit(&rx->tail, memory_order_acquire);
	uint64_t next = atomic_load_explicit(&rx->next_from, memory_order_acquire);
	size_t at = head & (rx->ring_bytes - 1);
	size_t bytes, first;

	if (next < end)
		end = next;
	bytes = end - head < to->left ? end - head : to->left;
	first = bytes < rx->ring_bytes - at ? bytes : rx->ring_bytes - at;
	if (discard) {
		advance(to, bytes);
		return bytes;
	}
	copy_out(to, rx->ring + at, first);
	if (bytes > first)
		copy_out(to, rx->ring, bytes - first);
	return bytes;
}

/*
 * Room comes back to the sender by halves of the ring (XR-18); less, when it has said that it waits and there is
 * nothing left to read (CP-02). If that has just been missed here, half a ring is still to come.
 */
static void give_credit(struct shunt_stream *stream, uint64_t head)
{
	struct shunt_rx *rx = &stream->rx;
	bool all = false;

	if (__builtin_expect(atomic_load_explicit(&rx->sender_waits, memory_order_relaxed), 0)) {
		all = atomic_load(&rx->tail) == head;
		atomic_store(&rx->sender_waits, !all);
	}
	if (head - rx->credited < rx->ring_bytes / 2 && !all)
		return;
	rx->credited = head;
	shunt_lane_request(stream->lane, stream, SHUNT_WORK_CREDIT);
}

static ssize_t receive_link(struct shunt_engine *engine, struct shunt_stream *stream,
			    struct cursor *to, int flags)
{
	struct shunt_rx *rx = &stream->rx;
	uint64_t head = atomic_load_explicit(&rx->head, memory_order_relaxed);
	size_t bytes = take_ring(rx, to, flags & MSG_TRUNC, head);

	if (!bytes || flags & MSG_PEEK)
		return bytes ? (ssize_t)bytes : -EAGAIN;
	shunt_bytes_add(&rx->bytes, head, bytes, true);
	head += bytes;
	atomic_store_explicit(&rx->head, head, memory_order_release);
	__atomic_store_n(&stream->control->word[SHUNT_CONTROL_READ], head, __ATOMIC_RELEASE);	/* it may be taken for credit */
	if (__builtin_expect(atomic_load_explicit(&rx->next_from, memory_order_relaxed) == head ||
			     atomic_load_explicit(&rx->boundary, memory_order_relaxed) == head, 0))
		shunt_track_settle(engine, stream);
	give_credit(stream, head);
	return bytes;
}

/* As much of the cursor as may be read from TCP before the announced end of its track. */
static int tcp_iov(struct shunt_rx *rx, const struct cursor *to, struct iovec *iov)
{
	uint64_t head = atomic_load_explicit(&rx->head, memory_order_relaxed);
	uint64_t boundary = atomic_load(&rx->boundary);
	uint64_t limit = boundary - head;	/* huge when there is none */
	size_t skip = to->skip;
	int count = 0;

	for (int i = 0; i < to->iovcnt && limit && count < IOV_BATCH; i++) {
		size_t part = to->iov[i].iov_len - skip;

		if (part > limit)
			part = limit;
		iov[count++] = (struct iovec) { (char *)to->iov[i].iov_base + skip, part };
		limit -= part;
		skip = 0;
	}
	return count;
}

/* Once, as a reset is told. */
static ssize_t end_of_doubt(struct shunt_stream *stream, int fd)
{
	struct shunt_rx *rx = &stream->rx;

	rx->doubtful = false;
	if (rx->shut || atomic_load(&rx->reset) || atomic_exchange(&rx->told, true))
		return 0;
	atomic_store(&rx->reset, true);
	atomic_store(&stream->tx.dead, true);
	shunt_streams_reset_tcp(stream->engine, fd);
	return -ECONNRESET;
}

static ssize_t receive_tcp(struct shunt_engine *engine, int fd, struct shunt_stream *stream,
			   struct cursor *to, int flags)
{
	struct shunt_rx *rx = &stream->rx;
	struct iovec iov[IOV_BATCH];
	struct msghdr message = { .msg_iov = (struct iovec *)to->iov, .msg_iovlen = to->iovcnt };
	ssize_t got;
	size_t batch = 0;
	uint64_t head = atomic_load_explicit(&rx->head, memory_order_relaxed);

	if (to->skip || atomic_load(&rx->boundary) != SHUNT_NEVER) {
		message.msg_iov = iov;
		message.msg_iovlen = tcp_iov(rx, to, iov);
		for (size_t i = 0; message.msg_iovlen == IOV_BATCH && i < IOV_BATCH; i++)
			batch += iov[i].iov_len;
	}
	got = engine->sys->recvmsg(fd, &message, (flags & ~MSG_WAITALL) | MSG_DONTWAIT);
	if (got < 0 && errno == ECONNRESET) {	/* the link tells the same one as well */
		atomic_store(&rx->error, 0);
		if (atomic_exchange(&rx->told, true)) {
			rx->tcp_eof = true;
			return 0;
		}
		errno = ECONNRESET;
	}
	if (got < 0)
		return shunt_stream_told_error(stream, errno);
	if (got == 0) {
		rx->tcp_eof = true;
		if (__builtin_expect(rx->owes_reset, 0))
			shunt_streams_reset_tcp(engine, fd);	/* bytes were before it: shunt_track_lose() */
		rx->owes_reset = false;
		return __builtin_expect(rx->doubtful || rx->unproven_at == head || rx->owed > head, 0) ? end_of_doubt(stream, fd) : 0;
	}
	advance(to, got);
	to->cut = (size_t)got == batch;
	if (flags & MSG_PEEK)
		return got;
	if (__builtin_expect(!head, 0))
		shunt_unclaimed_begin(stream);
	shunt_bytes_add(&rx->bytes, head, got, false);
	atomic_store_explicit(&rx->head, head + got, memory_order_release);
	shunt_track_settle(engine, stream);
	return got;
}

/* The link has told of the end, and TCP was to bring bytes before it, which are not there. */
static bool is_cut(struct shunt_stream *stream)
{
	struct shunt_rx *rx = &stream->rx;
	uint64_t head = atomic_load(&rx->head), fin = atomic_load(&rx->fin);
	uint64_t from = rx->track == SHUNT_LINK ? head : atomic_load(&rx->boundary), tail = atomic_load(&rx->tail);
	uint64_t ring = tail > from ? tail - from : 0;	/* NEVER: none that count */
	int there = 0;

	return fin != SHUNT_NEVER && !stream->engine->sys->ioctl(stream->fd, FIONREAD, &there) && head + there + ring < fin;
}

/* Reported once, on whichever way: the kernel has seen a reset of its own. */
int shunt_stream_pop_error(struct shunt_stream *stream)
{
	int error = atomic_exchange(&stream->rx.error, 0), kernel = 0;
	socklen_t length = sizeof(kernel);

	if (error && stream->fd >= 0)
		stream->engine->sys->getsockopt(stream->fd, SOL_SOCKET, SO_ERROR, &kernel, &length);
	if (!error || atomic_exchange(&stream->rx.told, true))
		return 0;
	return error == EPIPE && kernel && is_cut(stream) ? kernel : error;
}

void shunt_stream_was_reset(struct shunt_stream *stream, int error)
{
	if (error == EPIPE || atomic_load(&stream->rx.reset))
		return;
	atomic_store(&stream->rx.error, error);
	atomic_store(&stream->rx.reset, true);
	atomic_store(&stream->tx.dead, true);
}

/* The program is told that it is over: what the link may still bring is nothing any more. */
static void hear_no_more(struct shunt_stream *stream)
{
	struct shunt_group *group = &stream->engine->group;
	struct shunt_rx *rx = &stream->rx;

	if (atomic_load(&stream->state) != SHUNT_LINKED || atomic_load(&rx->retired))
		return;
	shunt_lock_take(&group->lock);
	if (rx->track == SHUNT_LINK ? atomic_load(&rx->tail) == atomic_load(&rx->head) : atomic_load(&rx->boundary) == SHUNT_NEVER)
		atomic_store(&rx->retired, true);
	shunt_lock_leave(&group->lock);
}

/* Nothing to read: is that the end? On the link FIN says so, and comes behind all data. */
static ssize_t at_end(struct shunt_stream *stream)
{
	struct shunt_rx *rx = &stream->rx;
	uint64_t head = atomic_load_explicit(&rx->head, memory_order_relaxed);
	socklen_t length = sizeof(int);
	int error;

	if (rx->shut || atomic_load(&rx->fin) == head)
		return 0;
	if (atomic_load(&rx->reset) && (rx->track == SHUNT_LINK || rx->tcp_eof)) {
		if (__builtin_expect(rx->owes_reset, 0) && stream->fd >= 0) {	/* what was unread before it has been read */
			shunt_streams_reset_tcp(stream->engine, stream->fd);
			stream->engine->sys->getsockopt(stream->fd, SOL_SOCKET, SO_ERROR, &error, &length);	/* ours is told */
			rx->owes_reset = false;
		}
		hear_no_more(stream);
		error = shunt_stream_pop_error(stream);
		return -error;
	}
	return -EAGAIN;
}

/* An announced end of the present track or ring has been reached. */
static bool switch_due(const struct shunt_rx *rx)
{
	uint64_t head = atomic_load_explicit(&rx->head, memory_order_relaxed);

	return atomic_load_explicit(&rx->boundary, memory_order_relaxed) == head ||
	       atomic_load_explicit(&rx->next_from, memory_order_relaxed) == head;
}

/*
 * The kernel's end of stream may have overtaken a switch that was announced before it. Who carries
 * a stream on the link also ends it there, so until FIN is here it is not the end; and where bytes are still
 * to come before FIN or a switch, only a reset makes the kernel say that none will. So does what the program has
 * been told already.
 * What a device has done for a peer is here before what the peer's kernel sends afterwards: whose end comes before CONFIRM
 * has not switched. The modelled device's work may come later, and what a dead queue pair owes RESUME tells.
 */
static bool tcp_end_counts(struct shunt_stream *stream)
{
	if ((atomic_load(&stream->rx.fin) != SHUNT_NEVER || atomic_load(&stream->rx.boundary) != SHUNT_NEVER ||
	     atomic_load(&stream->rx.told)) && shunt_stream_tcp_closed(stream))
		return true;
	if (shunt_proof_pending(&stream->rx) && atomic_load(&stream->rx.boundary) == SHUNT_NEVER)
		return true;	/* an end that comes before the proof is the kernel's to tell */
	if (!atomic_load(&stream->tx.halted) &&
	    (stream->rx.final || (!atomic_load(&stream->agreed) && !stream->engine->config.soft_model[0])))
		return true;
	return atomic_load(&stream->state) != SHUNT_LINKED ||
	       atomic_load(&stream->released) || atomic_load(&stream->rx.retired);
}

/* TCP has ended. Before FIN, or before a switch, only a reset does that; behind its own FIN the kernel does not say so. */
static ssize_t tcp_end(struct shunt_stream *stream, int fd)
{
	const struct shunt_rx *rx = &stream->rx;
	uint64_t head = atomic_load(&rx->head), fin = atomic_load(&rx->fin), boundary = atomic_load(&rx->boundary);
	bool missing = (fin != SHUNT_NEVER && fin > head) || (boundary != SHUNT_NEVER && boundary > head);

	if (missing)
		return end_of_doubt(stream, fd);
	if (atomic_load(&rx->told))
		hear_no_more(stream);
	return 0;
}

/* One attempt, without waiting. Bytes, 0 at the end, -EAGAIN or -errno. */
static ssize_t attempt(struct shunt_engine *engine, int fd, struct shunt_stream *stream,
		       struct cursor *to, int flags)
{
	struct shunt_rx *rx = &stream->rx;
	ssize_t got;

	if (__builtin_expect(atomic_load_explicit(&stream->retiring, memory_order_relaxed) ==
			     SHUNT_RETIRING, 0))
		return -EAGAIN;	/* where the next byte will come from is being settled */
	for (;;) {
		if (__builtin_expect(switch_due(rx), 0) || shunt_proof_pending(rx))
			shunt_track_settle(engine, stream);
		if (shunt_proof_pending(rx) && atomic_load(&rx->boundary) == atomic_load(&rx->head))
			return at_end(stream);
		if (rx->track == SHUNT_LINK) {
			got = receive_link(engine, stream, to, flags);
			return got == -EAGAIN ? at_end(stream) : got;
		}
		if (atomic_load(&rx->fin) == atomic_load_explicit(&rx->head, memory_order_relaxed))
			return 0;
		if (atomic_load(&rx->reset) && rx->tcp_eof)
			return at_end(stream);
		got = receive_tcp(engine, fd, stream, to, flags);
		if (got != 0)
			return got;
		shunt_group_poll_fully(engine);
		if (!switch_due(rx)) {
			got = at_end(stream);
			if (got != -EAGAIN || !tcp_end_counts(stream))
				return got;
			if (!shunt_fault_hurries(engine))
				return tcp_end(stream, fd);
		}
	}
}

/* Up to `limit` bytes of the kernel's queue from the one at `skip` on, which stay there. */
static void peek_kernel(struct shunt_engine *engine, int fd, struct cursor *to, uint64_t skip, uint64_t limit, int flags)
{
	struct shunt_rx end = { .boundary = limit };
	struct iovec iov[IOV_BATCH + 1] = { { .iov_base = skip ? malloc(skip) : NULL, .iov_len = skip } };
	struct msghdr message = { .msg_iov = iov };
	ssize_t got = -1;
	int unread = 0;

	message.msg_iovlen = 1 + tcp_iov(&end, to, iov + 1);
	/* Where there is nothing it would take the socket's error, which is not to be told yet. */
	if ((!skip || iov[0].iov_base) && !engine->sys->ioctl(fd, FIONREAD, &unread) && (uint64_t)unread > skip)
		got = engine->sys->recvmsg(fd, &message, (flags & ~(MSG_WAITALL | MSG_TRUNC)) | MSG_DONTWAIT);
	free(iov[0].iov_base);
	if (got > (ssize_t)skip)
		advance(to, got - skip);
}

/*
 * MSG_PEEK goes on behind the end of the present ring and of the present track, as far as has been announced.
 * Nothing moves. `at`: what has been seen so far ends there.
 */
static size_t peek_on(struct shunt_engine *engine, int fd, struct shunt_stream *stream, struct cursor *to, uint64_t at,
		      int flags)
{
	struct shunt_rx *rx = &stream->rx, next = { .ring = rx->ring, .ring_bytes = rx->ring_bytes };
	uint64_t boundary = atomic_load(&rx->boundary), second = atomic_load(&rx->second), tail = atomic_load(&rx->tail);
	bool link = rx->track == SHUNT_LINK, turns = atomic_load(&rx->next_from) == at;
	uint64_t skip = link ? 0 : boundary - atomic_load(&rx->head), ends = link ? boundary : second;
	size_t before = to->left;

	if ((!link && boundary != at) || shunt_proof_pending(rx))
		return 0;
	for (int i = 0; i < 2 && to->left; i++) {	/* the rest of this ring, then the next one */
		if (turns) {
			next.ring = rx->next_ring;
			next.ring_bytes = atomic_load(&rx->next_bytes);
		}
		atomic_store(&next.tail, ends < tail ? ends : tail);
		atomic_store(&next.next_from, turns ? SHUNT_NEVER : atomic_load(&rx->next_from));
		if (atomic_load(&next.tail) > at)
			at += take_ring(&next, to, flags & MSG_TRUNC, at);
		if (turns || atomic_load(&rx->next_from) != at)
			break;
		turns = true;
	}
	if (at == ends && to->left)
		peek_kernel(engine, fd, to, skip, link ? second - at : SHUNT_NEVER, flags);
	return before - to->left;
}

static bool ends_ahead(const struct shunt_rx *rx)
{
	return atomic_load_explicit(&rx->boundary, memory_order_relaxed) != SHUNT_NEVER ||
	       atomic_load_explicit(&rx->next_from, memory_order_relaxed) != SHUNT_NEVER;
}

static uint64_t timeout_of(struct shunt_engine *engine, int fd, _Atomic uint64_t *cache, int name)
{
	uint64_t ns = atomic_load_explicit(cache, memory_order_relaxed);
	struct timeval value = { 0, 0 };
	socklen_t length = sizeof(value);

	if (ns == UINT64_MAX) {
		engine->sys->getsockopt(fd, SOL_SOCKET, name, &value, &length);
		ns = (uint64_t)value.tv_sec * 1000000000 + (uint64_t)value.tv_usec * 1000;
		atomic_store_explicit(cache, ns, memory_order_relaxed);
	}
	return ns ? shunt_now(engine) + ns : SHUNT_NEVER;
}

uint64_t shunt_stream_deadline(struct shunt_engine *engine, int fd, struct shunt_stream *stream,
			       bool receive)
{
	return receive ? timeout_of(engine, fd, &stream->receive_timeout_ns, SO_RCVTIMEO) :
			 timeout_of(engine, fd, &stream->send_timeout_ns, SO_SNDTIMEO);
}

/* A process without a service thread looks here (unclaimed.h). rx.lock held; given up for a moment. */
static void expire(struct shunt_engine *engine, struct shunt_stream *stream)
{
	if (engine->service || !shunt_unclaimed_is_over(stream))
		return;
	shunt_lock_leave(&stream->rx.lock);
	shunt_streams_plain(engine, stream, SHUNT_REASON_NO_SHUNT);
	shunt_lock_take(&stream->rx.lock);
}

/* Between two attempts: rx.lock is given up, and taken again. 0 or -errno. */
static int wait_for_more(struct shunt_engine *engine, int *fd, struct shunt_stream *stream,
			 uint64_t *deadline, bool moved)
{
	int result;

	if (!*deadline)
		*deadline = shunt_stream_deadline(engine, *fd, stream, true);
	result = shunt_wait_call(engine, stream, &stream->rx.lock, EPOLLIN, *deadline, moved);
	return shunt_streams_still(engine, fd, stream) ? result : -EBADF;
}

/* SO_RCVLOWAT: what a blocking receive waits for. */
static size_t low_water(struct shunt_stream *stream, size_t room)
{
	size_t low = atomic_load_explicit(&stream->low_water, memory_order_relaxed);

	return low < room ? low : room;
}

static bool kernel_at_mark(struct shunt_engine *engine, int fd)
{
	int mark = 0;

	return !engine->sys->ioctl(fd, SIOCATMARK, &mark) && mark;
}

/* What a receive began with. */
struct place {
	const uint8_t *ring;
	uint64_t boundary;
	uint8_t track;
};

/* Two switches may have been announced for the same byte: then the track is the one it was. */
static bool has_switched(const struct shunt_rx *rx, const struct place *from)
{
	return from->track != rx->track || from->boundary == atomic_load_explicit(&rx->head, memory_order_relaxed);
}

/*
 * Less than asked means that there is no more now (epoll(7), Q9), so a receive goes on past a switch; but
 * as in the kernel not past urgent data.
 */
static bool goes_on(struct shunt_engine *engine, int fd, struct shunt_rx *rx, const struct place *from, bool cut)
{
	return cut || from->ring != rx->ring ||
	       (has_switched(rx, from) && (rx->track == SHUNT_LINK || !kernel_at_mark(engine, fd)));
}

/* The next thing that the kernel would tell is its error, and it must be there for the next call. */
static bool is_kernels_error(struct shunt_engine *engine, int fd, const struct shunt_stream *stream)
{
	int bytes = 0;

	return shunt_streams_kernel_fails(engine, fd, stream) && !engine->sys->ioctl(fd, FIONREAD, &bytes) && !bytes;
}

static ssize_t receive(struct shunt_engine *engine, int fd, struct shunt_stream *stream,
		       struct cursor *to, int flags)
{
	bool wait = !(flags & MSG_DONTWAIT) &&
		    !atomic_load_explicit(&stream->nonblocking, memory_order_relaxed);
	size_t wanted = flags & MSG_WAITALL ? to->left : low_water(stream, to->left);
	uint64_t deadline = 0;
	size_t done = 0;
	ssize_t got;

	if (!to->left)
		return 0;
	if (__builtin_expect(atomic_load_explicit(&stream->rx.kept_error, memory_order_relaxed), 0)) {
		got = -atomic_exchange(&stream->rx.kept_error, 0);
		if (got)
			return got;
	}
	for (;;) {
		struct place from = { .ring = stream->rx.ring, .track = stream->rx.track,
				      .boundary = atomic_load_explicit(&stream->rx.boundary, memory_order_relaxed) };

		if (done && is_kernels_error(engine, fd, stream))
			return done;
		to->cut = false;
		got = attempt(engine, fd, stream, to, flags);
		if (got > 0)
			done += got;
		if (got > 0 && to->left && flags & MSG_PEEK && ends_ahead(&stream->rx))
			done += peek_on(engine, fd, stream, to, atomic_load(&stream->rx.head) + done, flags);
		if (got > 0 && to->left && !(flags & MSG_PEEK) && goes_on(engine, fd, &stream->rx, &from, to->cut))
			continue;
		if (got > 0 && (done >= wanted || flags & MSG_PEEK))
			return done;
		if (got > 0 && (wait || flags & MSG_WAITALL))
			continue;
		if (got > 0)
			return done;
		if (got != -EAGAIN || done >= wanted)
			break;
		if (shunt_group_poll(engine) > 0)
			continue;
		if (atomic_load_explicit(&stream->state, memory_order_relaxed) == SHUNT_CANDIDATE)
			expire(engine, stream);
		if (!wait)
			break;
		got = wait_for_more(engine, &fd, stream, &deadline, done > 0);
		if (got || (done && shunt_thread.restarts))
			break;	/* what is there is not waited for again after a signal */
	}
	/* What went before is reported first, the error by the next call (sk_err). */
	if (done && got < 0 && got != -EAGAIN && got != -EINTR)
		atomic_store(&stream->rx.kept_error, (int)-got);	/* an errno */
	return done ? (ssize_t)done : got;
}

/* The number was closed or means another socket by now: the kernel knows what to say. */
static ssize_t kernel_receive(struct shunt_engine *engine, int fd, const struct iovec *iov,
			      int iovcnt, int flags)
{
	struct msghdr message = { .msg_iov = (struct iovec *)iov, .msg_iovlen = iovcnt };
	ssize_t got;

	if (__builtin_expect(shunt_files_closed(engine->files, fd), 0))
		return -EBADF;	/* what is open there now may be one of ours */
	got = engine->sys->recvmsg(fd, &message, flags);
	return got < 0 ? -errno : got;
}

ssize_t shunt_stream_recv(struct shunt_engine *engine, int fd, struct shunt_stream *stream,
			  const struct iovec *iov, int iovcnt, int flags)
{
	struct cursor to = { .iov = iov, .iovcnt = iovcnt };
	ssize_t got;

	for (int i = 0; i < iovcnt; i++)
		to.left += iov[i].iov_len;
	if (__builtin_expect(!atomic_load_explicit(&stream->used, memory_order_relaxed), 0))
		shunt_offer_used(engine, stream);
	if (__builtin_expect(atomic_load_explicit(&stream->state, memory_order_relaxed) == SHUNT_FOREIGN, 0) &&
	    shunt_rights_ask(engine, fd, stream) == -ENOMEM)
		return -ENOMEM;
	shunt_thread_begin();
	shunt_lock_take(&stream->rx.lock);
	if (__builtin_expect(!shunt_stream_is(engine, fd, stream) || shunt_stream_is_plain(stream), 0)) {
		shunt_lock_leave(&stream->rx.lock);
		return kernel_receive(engine, fd, iov, iovcnt, flags);
	}
	advance(&to, 0);
	got = receive(engine, fd, stream, &to, flags);
	shunt_lock_leave(&stream->rx.lock);
	if (__builtin_expect(stream->orphan, 0))
		shunt_streams_end_orphan(engine, stream);
	return got;
}

/* What can be read now, over every switch that has been announced. rx.lock held. */
static uint64_t readable(struct shunt_rx *rx, uint64_t tcp)
{
	uint64_t head = atomic_load(&rx->head), at = head, tail = atomic_load(&rx->tail);
	uint64_t ends[] = { atomic_load(&rx->boundary), atomic_load(&rx->second), SHUNT_NEVER };
	bool link = rx->track == SHUNT_LINK;

	for (int i = 0; i < 3; i++, link = !link) {
		uint64_t there;

		if (i == 1 && shunt_proof_pending(rx)) {	/* what the link has counts when the nonce is here, too */
			if (atomic_load(&rx->proof) != SHUNT_EXPECTED || tcp < SHUNT_NONCE_BYTES)
				break;
			tcp -= SHUNT_NONCE_BYTES;
		}
		there = link ? (tail > at ? tail - at : 0) : tcp;
		if (there > ends[i] - at)
			there = ends[i] - at;
		at += there;
		if (!link)
			tcp -= there;
		if (at != ends[i])
			break;
	}
	return at - head;
}

int shunt_stream_inq(struct shunt_engine *engine, int fd, struct shunt_stream *stream)
{
	struct shunt_rx *rx = &stream->rx;
	uint64_t bytes;
	int tcp = 0;

	if (stream->slot && !atomic_load(&stream->touched))
		shunt_offer_used(engine, stream);
	if (atomic_load(&stream->state) == SHUNT_FOREIGN)
		shunt_rights_ask(engine, fd, stream);
	shunt_group_poll(engine);
	shunt_lock_take(&rx->lock);
	shunt_track_settle(engine, stream);
	if (rx->track == SHUNT_TCP || atomic_load(&rx->boundary) != SHUNT_NEVER)
		engine->sys->ioctl(fd, FIONREAD, &tcp);
	bytes = readable(rx, tcp > 0 ? (uint64_t)tcp : 0);
	shunt_lock_leave(&rx->lock);
	return bytes > INT_MAX ? INT_MAX : (int)bytes;
}

int shunt_stream_at_mark(struct shunt_engine *engine, int fd, struct shunt_stream *stream)
{
	struct shunt_rx *rx = &stream->rx;
	int mark = 0, result = 0;

	if (stream->slot && !atomic_load(&stream->touched))
		shunt_offer_used(engine, stream);
	if (atomic_load(&stream->state) == SHUNT_FOREIGN)
		shunt_rights_ask(engine, fd, stream);
	shunt_group_poll(engine);
	shunt_lock_take(&rx->lock);
	shunt_track_settle(engine, stream);
	if (rx->track == SHUNT_TCP)	/* else bytes of the link come first */
		result = engine->sys->ioctl(fd, SIOCATMARK, &mark) ? -errno : mark;
	shunt_lock_leave(&rx->lock);
	return result;
}
