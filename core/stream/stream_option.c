/* SPDX-License-Identifier: MIT */
/*
 * Socket options that the engine honours itself, or has to know of (api.h).
 */
#include "core/stream/stream_option.h"
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include "core/engine.h"
#include "core/fork/fork_slots.h"
#include "core/stream/overflow.h"
#include "core/stream/tcp_backlog.h"
#include "core/stream/tx.h"
#include "core/stream/user_timeout.h"

/* --- with relatives --- */

/* After the kernel has been told. This process knows its own change, and need not look for it. */
static void tell_relatives(struct shunt_stream *stream)
{
	uint32_t mode, count;

	if (!shunt_stream_is_shared(stream))
		return;
	count = shunt_fork_slots_change(stream);
	mode = atomic_load(&stream->mode);
	while (mode / SHUNT_MODE_SEEN == (uint16_t)(count - 1))
		if (atomic_compare_exchange_weak(&stream->mode, &mode,
						 mode % SHUNT_MODE_SEEN + count * SHUNT_MODE_SEEN))
			break;
}

/* Most are asked for again where they are needed. */
static void forget_options(struct shunt_engine *engine, int fd, struct shunt_stream *stream)
{
	int low = 1, on = 0;
	socklen_t length = sizeof(int);

	atomic_store(&stream->options.receive_timeout_ns, UINT64_MAX);
	atomic_store(&stream->options.send_timeout_ns, UINT64_MAX);
	atomic_store(&stream->options.stamps, SHUNT_STAMPS_UNKNOWN);
	if (!engine->sys->getsockopt(fd, SOL_SOCKET, SO_RCVLOWAT, &low, &length))
		atomic_store(&stream->options.low_water, low > 0 ? low : 1);
	length = sizeof(int);
	if (!engine->sys->getsockopt(fd, IPPROTO_TCP, TCP_CORK, &on, &length) &&
	    on != atomic_load(&stream->tx.gather.corked))
		shunt_stream_corked(stream, on);
	shunt_user_timeout_changed(stream);
	shunt_overflow_changed(stream);
	shunt_tcp_backlog_linger_changed(stream);
}

void shunt_stream_look_at_mode(struct shunt_engine *engine, int fd, struct shunt_stream *stream)
{
	uint32_t count = shunt_fork_slots_changes(stream), mode = atomic_load(&stream->mode), next;
	int flags, saved = errno;

	if (mode / SHUNT_MODE_SEEN == count)
		return;
	forget_options(engine, fd, stream);
	do {
		flags = engine->sys->fcntl(fd, F_GETFL);
		if (flags < 0)
			break;
		next = (mode & SHUNT_MODE_SHARED) + count * SHUNT_MODE_SEEN +
		       (flags & O_NONBLOCK ? SHUNT_MODE_NONBLOCKING : 0);
	} while (!atomic_compare_exchange_weak(&stream->mode, &mode, next));
	errno = saved;
}

/* --- what the program sets --- */

void shunt_stream_set_nonblocking(struct shunt_stream *stream, bool nonblocking)
{
	if (nonblocking)
		atomic_fetch_or(&stream->mode, SHUNT_MODE_NONBLOCKING);
	else
		atomic_fetch_and(&stream->mode, ~(uint32_t)SHUNT_MODE_NONBLOCKING);
	tell_relatives(stream);
}

/* As tcp_push_pending_frames(): what is held goes when the cork is pulled, or Nagle's rule is switched off. */
static void tcp_option_changed(struct shunt_stream *stream, int name, const void *value)
{
	int on;

	if (name == TCP_USER_TIMEOUT)
		shunt_user_timeout_changed(stream);
	if (name == TCP_NOTSENT_LOWAT)
		shunt_overflow_changed(stream);
	if (name != TCP_CORK && name != TCP_NODELAY)
		return;
	memcpy(&on, value, sizeof(on));
	if (name == TCP_CORK) {
		shunt_stream_corked(stream, on);
	} else if (on && atomic_load(&stream->tx.gather.since)) {
		shunt_lock_take(&stream->tx.lock);
		shunt_stream_push(stream);
		shunt_lock_leave(&stream->tx.lock);
	}
}

void shunt_stream_never_waits(struct shunt_stream *stream, int name)
{
	atomic_store(name == SO_RCVTIMEO ? &stream->options.receive_timeout_ns :
					   &stream->options.send_timeout_ns,
		     1);
}

static const int stamps[] = { SO_TIMESTAMP, SO_TIMESTAMPNS, SO_TIMESTAMP_NEW, SO_TIMESTAMPNS_NEW };

static bool is_stamps(int name)
{
	for (size_t i = 0; i < sizeof(stamps) / sizeof(stamps[0]); i++)
		if (stamps[i] == name)
			return true;
	return false;
}

bool shunt_stream_stamped(struct shunt_engine *engine, int fd, struct shunt_stream *stream)
{
	uint8_t given = SHUNT_STAMPS_NONE;

	if (atomic_load(&stream->options.stamps) != SHUNT_STAMPS_UNKNOWN)
		return atomic_load(&stream->options.stamps) == SHUNT_STAMPS_GIVEN;
	for (size_t i = 0; i < sizeof(stamps) / sizeof(stamps[0]); i++) {
		socklen_t length = sizeof(int);
		int on = 0;

		if (!engine->sys->getsockopt(fd, SOL_SOCKET, stamps[i], &on, &length) && on)
			given = SHUNT_STAMPS_GIVEN;
	}
	atomic_store(&stream->options.stamps, given);
	return given == SHUNT_STAMPS_GIVEN;
}

void shunt_stream_option_changed(struct shunt_stream *stream, int level, int name, const void *value)
{
	socklen_t length = sizeof(int);
	int low = 1;

	tell_relatives(stream);
	if (level == IPPROTO_TCP)
		tcp_option_changed(stream, name, value);
	if (level != SOL_SOCKET)
		return;
	if (name == SO_LINGER)
		shunt_tcp_backlog_linger_changed(stream);
	if (is_stamps(name))
		atomic_store(&stream->options.stamps, SHUNT_STAMPS_UNKNOWN);
	if (name == SO_RCVTIMEO)
		atomic_store(&stream->options.receive_timeout_ns, UINT64_MAX);
	if (name == SO_SNDTIMEO)
		atomic_store(&stream->options.send_timeout_ns, UINT64_MAX);
	if (name == SO_SNDBUF || name == SO_SNDBUFFORCE)
		shunt_overflow_changed(stream);
	if (name == SO_RCVLOWAT && !stream->engine->sys->getsockopt(stream->fd, level, name, &low, &length))
		atomic_store(&stream->options.low_water, low > 0 ? low : 1);
}
