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
#include <sys/time.h>
#include "core/engine.h"
#include "core/fork/fork_slots.h"
#include "core/stream/low_water.h"
#include "core/stream/overflow.h"
#include "core/stream/backlog.h"
#include "core/stream/tx.h"
#include "core/stream/user_timeout.h"

#ifndef TCP_INQ
#define TCP_INQ 36
#define TCP_TX_DELAY 37
#endif

/* --- with relatives --- */

/* After the kernel has been told. This process knows its own change, and need not look for it. */
static void tell_relatives(struct shunt_stream *stream)
{
	uint32_t mode, count;

	if (!shunt_stream_is_shared(stream))
		return;
	count = shunt_fork_slots_change(&shunt_stream_engine(stream)->forks, &stream->sharing);
	mode = atomic_load(&stream->mode);
	while (mode / SHUNT_MODE_SEEN == (uint16_t)(count - 1))
		if (atomic_compare_exchange_weak(&stream->mode, &mode,
						 mode % SHUNT_MODE_SEEN + count * SHUNT_MODE_SEEN))
			break;
}

/* Those of a wait, and of what comes with a message: of most the kernel is asked again where they are needed. */
static void forget_waits(struct shunt_stream *stream)
{
	atomic_store(&stream->options.receive_timeout_ns, UINT64_MAX);
	atomic_store(&stream->options.send_timeout_ns, UINT64_MAX);
	atomic_fetch_or(&stream->options.asks, SHUNT_ASKS_UNKNOWN);
	shunt_low_water_ask(stream);
}

void shunt_stream_forget_options(struct shunt_engine *engine, int fd, struct shunt_stream *stream)
{
	socklen_t length = sizeof(int);
	int on = 0;

	forget_waits(stream);
	if (!engine->sys->getsockopt(fd, IPPROTO_TCP, TCP_CORK, &on, &length) &&
	    on != atomic_load(&stream->tx.corked))
		shunt_stream_corked(stream, on);
	shunt_user_timeout_changed(stream);
	shunt_overflow_changed(stream);
	shunt_backlog_linger_changed(stream);
}

void shunt_stream_look_at_mode(struct shunt_engine *engine, int fd, struct shunt_stream *stream)
{
	uint32_t count = shunt_fork_slots_changes(&shunt_stream_engine(stream)->forks,
						  &stream->sharing),
		 mode = atomic_load(&stream->mode), next;
	int flags, saved = errno;

	if (!shunt_stream_mode_differs(mode, count))
		return;
	if (shunt_stream_is_doubted(stream)) /* the kernel serves it: the others are of a link */
		forget_waits(stream);
	else
		shunt_stream_forget_options(engine, fd, stream);
	do {
		flags = engine->sys->fcntl(fd, F_GETFL);
		if (flags < 0)
			break;
		next = (mode & (SHUNT_MODE_SHARED | SHUNT_MODE_UNCOUNTED)) +
		       count * SHUNT_MODE_SEEN +
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

	if (name == TCP_INQ)
		atomic_fetch_or(&stream->options.asks, SHUNT_ASKS_UNKNOWN);
	if (name == TCP_USER_TIMEOUT)
		shunt_user_timeout_changed(stream);
	if (name == TCP_NOTSENT_LOWAT)
		shunt_overflow_changed(stream);
	if (name != TCP_CORK && name != TCP_NODELAY)
		return;
	memcpy(&on, value, sizeof(on));
	if (name == TCP_CORK) {
		shunt_stream_corked(stream, on);
	} else if (on && atomic_load(&stream->seat->out.gather_since)) {
		shunt_lock_take(&stream->tx.lock);
		shunt_stream_push(stream);
		shunt_lock_leave(&stream->tx.lock);
	}
}

/* 0 also where the kernel does not know the option. */
static int ask(struct shunt_stream *stream, int level, int name)
{
	socklen_t length = sizeof(int);
	int value = 0;

	return stream->group->sys->getsockopt(stream->fd, level, name, &value, &length) ? 0 :
											   value;
}

static const int stamps[] = { SO_TIMESTAMP_OLD, SO_TIMESTAMPNS_OLD, SO_TIMESTAMP_NEW,
			      SO_TIMESTAMPNS_NEW };

static bool is_stamps(int name)
{
	for (size_t i = 0; i < sizeof(stamps) / sizeof(stamps[0]); i++)
		if (stamps[i] == name)
			return true;
	return false;
}

#define TOLD (SHUNT_ASKS_STAMPS | SHUNT_ASKS_UNREAD)

/* An option that another thread sets meanwhile makes it unknown again. */
static uint8_t ask_what_is_told(struct shunt_stream *stream)
{
	uint8_t on = ask(stream, IPPROTO_TCP, TCP_INQ) ? SHUNT_ASKS_UNREAD : 0;

	for (size_t i = 0; i < sizeof(stamps) / sizeof(stamps[0]); i++)
		if (ask(stream, SOL_SOCKET, stamps[i]))
			on |= SHUNT_ASKS_STAMPS;
	return on;
}

uint8_t shunt_stream_asks(struct shunt_stream *stream)
{
	uint8_t asks = atomic_load_explicit(&stream->options.asks, memory_order_relaxed);
	int saved;

	if (__builtin_expect(asks & SHUNT_ASKS_UNKNOWN, 0)) {
		saved = errno;
		atomic_fetch_and(&stream->options.asks, (uint8_t) ~(SHUNT_ASKS_UNKNOWN | TOLD));
		asks = ask_what_is_told(stream);
		atomic_fetch_or(&stream->options.asks, asks);
		errno = saved;
	}
	return asks & TOLD;
}

/* An option that a listener has had on may be on in each connection that waits to be accepted. */
void shunt_stream_needs(struct shunt_stream *stream, uint8_t need, bool on)
{
	if (on)
		atomic_fetch_or(&stream->options.asks, need);
	else if (stream->role != SHUNT_LISTENER)
		atomic_fetch_and(&stream->options.asks, (uint8_t)~need);
}

/* An attached filter of the kernel's newer kind is not shown, and asked for it is refused with EACCES. */
static bool has_filter(struct shunt_stream *stream)
{
	socklen_t blocks = 0;

	if (stream->group->sys->getsockopt(stream->fd, SOL_SOCKET, SO_GET_FILTER, NULL, &blocks))
		return errno == EACCES;
	return blocks > 0;
}

static bool has_peek_offset(struct shunt_stream *stream)
{
	socklen_t length = sizeof(int);
	int offset = -1;

	return !stream->group->sys->getsockopt(stream->fd, SOL_SOCKET, SO_PEEK_OFF, &offset,
						&length) &&
	       offset >= 0;
}

/* Encryption by the kernel, mostly. A listener of MPTCP says that of its own socket, not of what it accepts. */
static bool has_protocol(struct shunt_stream *stream)
{
	char name[16] = "";
	socklen_t length = sizeof(name);

	return !stream->group->sys->getsockopt(stream->fd, IPPROTO_TCP, TCP_ULP, name, &length) &&
	       length > 0 && strncmp(name, "mptcp", sizeof(name));
}

void shunt_stream_option_adopt(struct shunt_stream *stream)
{
	int saved = errno;

	if (ask(stream, SOL_SOCKET, SO_TIMESTAMPING_OLD) ||
	    ask(stream, SOL_SOCKET, SO_TIMESTAMPING_NEW))
		shunt_stream_needs(stream, SHUNT_NEEDS_TIMES, true);
	if (has_peek_offset(stream))
		shunt_stream_needs(stream, SHUNT_NEEDS_PEEK_OFF, true);
	if (has_filter(stream))
		shunt_stream_needs(stream, SHUNT_NEEDS_FILTER, true);
	if (ask(stream, IPPROTO_IP, IP_MINTTL) || ask(stream, IPPROTO_IPV6, IPV6_MINHOPCOUNT) ||
	    ask(stream, IPPROTO_TCP, TCP_TX_DELAY) || has_protocol(stream))
		shunt_stream_needs(stream, SHUNT_NEEDS_OTHER, true);
	if (ask(stream, IPPROTO_TCP, TCP_REPAIR))
		shunt_stream_needs(stream, SHUNT_NEEDS_REPAIR, true);
	errno = saved;
}

/* Less than nothing: no waiting, which the kernel reports as for ever. */
static void timeout_changed(_Atomic uint64_t *cache, const void *value)
{
	struct timeval given;

	memcpy(&given, value, sizeof(given));
	atomic_store(cache, given.tv_sec < 0 ? 1 : UINT64_MAX);
}

static void socket_option_changed(struct shunt_stream *stream, int name, const void *value)
{
	if (name == SO_LINGER)
		shunt_backlog_linger_changed(stream);
	if (is_stamps(name))
		atomic_fetch_or(&stream->options.asks, SHUNT_ASKS_UNKNOWN);
	if (name == SO_RCVTIMEO_OLD || name == SO_RCVTIMEO_NEW)
		timeout_changed(&stream->options.receive_timeout_ns, value);
	if (name == SO_SNDTIMEO_OLD || name == SO_SNDTIMEO_NEW)
		timeout_changed(&stream->options.send_timeout_ns, value);
	if (name == SO_SNDBUF || name == SO_SNDBUFFORCE)
		shunt_overflow_changed(stream);
	if (name == SO_RCVLOWAT)
		shunt_low_water_ask(stream);
}

void shunt_stream_option_changed(struct shunt_stream *stream, int level, int name,
				 const void *value)
{
	tell_relatives(stream);
	if (level == IPPROTO_TCP)
		tcp_option_changed(stream, name, value);
	if (level == SOL_SOCKET)
		socket_option_changed(stream, name, value);
}
