/* SPDX-License-Identifier: MIT */
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/time.h>
#include "preload/rights.h"
#include "preload/young.h"

#ifndef TCP_INQ
#define TCP_INQ 36
#endif

/* Answers that come with each message, or another protocol on top: only the kernel has those. */
static bool needs_kernel(int level, int name)
{
	if (level == IPPROTO_TCP)
		return name == TCP_ULP || name == TCP_REPAIR || name == TCP_INQ;
	if (level != SOL_SOCKET)
		return false;
	return name == SO_TIMESTAMPING || name == SO_TIMESTAMPING_NEW || name == SO_OOBINLINE || name == SO_PEEK_OFF;
}

/* The engine has nothing to learn from it, or asks the kernel when it needs to know. */
static bool leaves_young(int level, int name)
{
	if (level == IPPROTO_TCP)
		return name == TCP_NODELAY || name == TCP_QUICKACK || name == TCP_DEFER_ACCEPT ||
		       name == TCP_KEEPIDLE || name == TCP_KEEPINTVL || name == TCP_KEEPCNT ||
		       name == TCP_CONGESTION;
	return level == SOL_SOCKET &&
	       (name == SO_REUSEADDR || name == SO_REUSEPORT || name == SO_KEEPALIVE ||
		name == SO_LINGER || name == SO_RCVBUF || name == SO_SNDBUF || name == SO_PRIORITY);
}

static int cork_young(struct shunt_young *young, const void *value, socklen_t length)
{
	int result = real(setsockopt)(young->fd, IPPROTO_TCP, TCP_CORK, value, length),
	    saved = errno, on;
	struct shunt_stream *stream;

	if (result)
		return result;
	memcpy(&on, value, sizeof(on));
	if (!shunt_young_set_corked(shunt_process.engine, young, on)) {
		stream = shunt_as_stream(shunt_lookup(young->fd));
		if (stream)
			shunt_stream_option_changed(stream, IPPROTO_TCP, TCP_CORK, value);
	}
	errno = saved;
	return 0;
}

int setsockopt(int fd, int level, int name, const void *value, socklen_t length)
{
	struct shunt_young *young = shunt_young_at(fd);
	struct shunt_file *file;
	struct shunt_stream *stream;
	int result, saved;
	bool shown;

	if (unlikely(young) && leaves_young(level, name))
		return real(setsockopt)(fd, level, name, value, length);
	if (unlikely(young) && level == IPPROTO_TCP && name == TCP_CORK)
		return cork_young(young, value, length);
	file = shunt_lookup(fd);
	stream = shunt_as_stream(file);
	if (likely(!stream))
		return real(setsockopt)(shunt_is_own_fd(file) ? -1 : fd, level, name, value, length);
	if (level == SOL_SOCKET && name == SO_MAX_PACING_RATE)
		return (int)shunt_result(shunt_stream_set_pacing(stream, fd, value, length));
	if (needs_kernel(level, name))
		shunt_rights_retire(fd, SHUNT_REASON_OPTION);
	shown = shunt_stream_option_begins(stream, level, name);
	result = real(setsockopt)(fd, level, name, value, length);
	saved = errno;
	if (shown)
		shunt_stream_option_ends(stream);
	if (!result)
		shunt_stream_option_changed(stream, level, name, value);
	if (!result && level == SOL_SOCKET && (name == SO_RCVTIMEO || name == SO_SNDTIMEO) &&
	    ((const struct timeval *)value)->tv_sec < 0)
		shunt_stream_never_waits(stream, name);
	errno = saved;
	return result;
}

/* An error of the link comes first. The kernel's SO_ERROR for the same end is consumed along with it. */
static int get_error(int fd, struct shunt_stream *stream, void *value, socklen_t *length)
{
	int error = shunt_stream_link_error(shunt_process.engine, stream);
	int result = real(getsockopt)(fd, SOL_SOCKET, SO_ERROR, value, length);

	if (result || !*length || *length > sizeof(error))
		return result;
	if (!error) {
		memcpy(&error, value, *length);
		error = shunt_stream_hear_error(stream, error);
	}
	memcpy(value, &error, *length);
	return result;
}

static int get_linger(int fd, struct shunt_stream *stream, void *value, socklen_t *length)
{
	int result = real(getsockopt)(fd, SOL_SOCKET, SO_LINGER, value, length);
	struct linger linger;

	if (!result && shunt_stream_linger(stream, &linger))
		memcpy(value, &linger, *length < sizeof(linger) ? *length : sizeof(linger));
	return result;
}

static int get_shown(int fd, struct shunt_stream *stream, int level, int name, void *value, socklen_t *length)
{
	bool shown = shunt_stream_option_begins(stream, level, name);
	int result = real(getsockopt)(fd, level, name, value, length);

	if (shown)
		shunt_stream_option_ends(stream);
	return result;
}

int getsockopt(int fd, int level, int name, void *value, socklen_t *length)
{
	struct shunt_stream *stream;

	if (unlikely(shunt_young_at(fd)))
		return real(getsockopt)(fd, level, name, value, length);
	stream = shunt_as_stream(shunt_lookup(fd));
	if (stream && (level == SOL_IP || level == SOL_IPV6))
		return get_shown(fd, stream, level, name, value, length);
	if (stream && level == SOL_SOCKET && name == SO_MAX_PACING_RATE)
		return (int)shunt_result(shunt_stream_get_pacing(stream, fd, value, length));
	stream = shunt_linked(&fd);
	if (stream && level == SOL_SOCKET && name == SO_ERROR)
		return get_error(fd, stream, value, length);
	if (stream && level == SOL_SOCKET && name == SO_LINGER)
		return get_linger(fd, stream, value, length);
	return real(getsockopt)(fd, level, name, value, length);
}

int shutdown(int fd, int how)
{
	struct shunt_stream *stream = shunt_linked(&fd);

	if (stream)
		return (int)shunt_result(shunt_stream_shutdown(shunt_process.engine, fd, stream, how));
	return real(shutdown)(fd, how);
}
