/* SPDX-License-Identifier: MIT */
/* getsockopt() and setsockopt(). */
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include "preload/options.h"
#include "preload/rights.h"
#include "preload/touch.h"
#include "preload/young.h"

static int cork_young(struct shunt_young *young, const void *value, socklen_t length)
{
	int result, saved, on;
	struct shunt_stream *stream;

	shunt_signal_defer_enter();
	result = real(setsockopt)(young->fd, IPPROTO_TCP, TCP_CORK, value, length);
	saved = errno;
	if (result)
		goto leave;
	memcpy(&on, value, sizeof(on));
	if (!shunt_young_set_corked(shunt_process.engine, young, on)) {
		stream = shunt_as_stream(shunt_lookup(young->fd));
		if (stream)
			shunt_stream_option_changed(stream, IPPROTO_TCP, TCP_CORK, value);
	}
leave:
	shunt_signal_defer_leave();
	errno = saved;
	return result;
}

/* One call of setsockopt(). */
struct call {
	int fd, level, name;
	const void *value;
	socklen_t length;
};

static int ask_kernel(const struct call *call)
{
	return real(setsockopt)(call->fd, call->level, call->name, call->value, call->length);
}

static int put(const struct call *call, int name, int value)
{
	return real(setsockopt)(call->fd, call->level, name, &value, sizeof(value));
}

#define WRONG 77 /* no value of TCP_REPAIR */

/* The kernel looks at the rights of the process before it looks at the value. */
static bool may_repair(const struct call *call)
{
	return !put(call, call->name, WRONG) || errno != EPERM;
}

/* From then on the socket sends nothing, so it gets what is on the link before. */
static int freeze(const struct call *call, struct shunt_stream *stream,
		  const struct shunt_option *option)
{
	if (!shunt_stream_is_plain(stream) && call->length >= sizeof(int) && call->value &&
	    !shunt_unreadable(call->value, sizeof(int)) &&
	    option->is_on(call->value, call->length) && may_repair(call))
		shunt_rights_retire(call->fd, SHUNT_CAUSE_OPTION);
	return ask_kernel(call);
}

/* The kernel has taken the value. */
static int leave_link(const struct call *call, const struct shunt_option *option)
{
	if (option->off_name)
		put(call, option->off_name, option->off);
	shunt_rights_retire(call->fd, SHUNT_CAUSE_OPTION);
	return option->off_name ? ask_kernel(call) : 0;
}

static int set_needing_tcp(const struct call *call, struct shunt_stream *stream,
			   const struct shunt_option *option)
{
	int saved = errno, result = option->flags & SHUNT_OPTION_FREEZES ?
					    freeze(call, stream, option) :
					    ask_kernel(call);
	bool on;

	if (result)
		return result;
	on = option->is_on(call->value, call->length);
	shunt_stream_needs(stream, option->needs, on);
	if (on && !shunt_stream_is_plain(stream))
		result = leave_link(call, option);
	if (!result)
		errno = saved;
	return result;
}

/* A connection that is used again may have the value already. */
static int set_kernels(const struct call *call, struct shunt_stream *stream)
{
	int value = 0, result;
	bool good = shunt_spare_option_any(stream) && call->length >= sizeof(value) &&
		    !shunt_unreadable(call->value, sizeof(value));

	if (good)
		memcpy(&value, call->value, sizeof(value));
	if (good && shunt_spare_option_has(stream, call->level, call->name, value))
		return 0;
	result = ask_kernel(call);
	if (good && !result)
		shunt_spare_option_note(stream, call->level, call->name, value);
	return result;
}

static int set_heard(const struct call *call, struct shunt_stream *stream)
{
	int result = set_kernels(call, stream), saved = errno;

	if (!result)
		shunt_stream_option_changed(stream, call->level, call->name, call->value);
	errno = saved;
	return result;
}

static int set_mark(const struct call *call, struct shunt_stream *stream)
{
	bool shown = shunt_stream_option_begins(stream, call->level, call->name);
	int result = ask_kernel(call), saved = errno;

	if (shown)
		shunt_stream_option_ends(stream);
	errno = saved;
	return result;
}

static int set_option(const struct call *call, struct shunt_stream *stream)
{
	const struct shunt_option *option = shunt_option_at(call->level, call->name);

	shunt_spare_option_changes(stream, call->level, call->name);
	if (option->flags & SHUNT_OPTION_PACING)
		return (int)shunt_result(
			shunt_stream_set_pacing(stream, call->fd, call->value, call->length));
	if (option->needs)
		return set_needing_tcp(call, stream, option);
	if (option->flags & SHUNT_OPTION_HEARD)
		return set_heard(call, stream);
	if (option->flags & SHUNT_OPTION_MARK)
		return set_mark(call, stream);
	return set_kernels(call, stream);
}

int setsockopt(int fd, int level, int name, const void *value, socklen_t length)
{
	struct shunt_young *young = shunt_young_at(fd);
	struct shunt_file *file;
	struct shunt_stream *stream;

	if (unlikely(young) &&
	    !shunt_inside(shunt_young_option(shunt_process.engine, young, level, name)))
		young = NULL;
	if (unlikely(young) && shunt_option_at(level, name)->flags & SHUNT_OPTION_YOUNG)
		return real(setsockopt)(fd, level, name, value, length);
	if (unlikely(young) && level == IPPROTO_TCP && name == TCP_CORK)
		return cork_young(young, value, length);
	file = shunt_lookup(fd);
	stream = shunt_as_stream(file);
	if (unlikely(stream))
		return shunt_inside(set_option(&(struct call) { fd, level, name, value, length }, stream));
	return real(setsockopt)(shunt_is_own_fd(file) ? -1 : fd, level, name, value, length);
}

/* An error of the link comes first. The kernel's SO_ERROR for the same end is consumed along with it. */
static int take_error(int fd, struct shunt_stream *stream, void *value, socklen_t *length)
{
	int error = shunt_stream_link_error(stream);
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

static int get_error(int fd, struct shunt_stream *stream, void *value, socklen_t *length)
{
	return shunt_inside(take_error(fd, stream, value, length));
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
	bool shown;
	int result;

	shunt_signal_defer_enter();
	shown = shunt_stream_option_begins(stream, level, name);
	result = real(getsockopt)(fd, level, name, value, length);
	if (shown)
		shunt_stream_option_ends(stream);
	shunt_signal_defer_leave();
	return result;
}

int getsockopt(int fd, int level, int name, void *value, socklen_t *length)
{
	struct shunt_stream *stream;
	uint8_t flags;

	if (unlikely(shunt_young_at(fd)) &&
	    !(shunt_option_at(level, name)->flags & SHUNT_OPTION_TAKES))
		return real(getsockopt)(fd, level, name, value, length);
	stream = shunt_as_stream(shunt_lookup(fd));
	flags = stream ? shunt_option_at(level, name)->flags : 0;
	if (stream)
		shunt_inside_do(shunt_spare_option_shows(stream, level, name));
	if (flags & SHUNT_OPTION_MARK)
		return get_shown(fd, stream, level, name, value, length);
	if (flags & SHUNT_OPTION_PACING)
		return (int)shunt_result(shunt_stream_get_pacing(stream, fd, value, length));
	if (flags & SHUNT_OPTION_TAKES)
		shunt_rights_retire(fd, SHUNT_CAUSE_OPTION);
	stream = shunt_linked(&fd);
	if (stream && level == SOL_SOCKET && name == SO_ERROR)
		return get_error(fd, stream, value, length);
	if (stream && level == SOL_SOCKET && name == SO_LINGER)
		return get_linger(fd, stream, value, length);
	return real(getsockopt)(fd, level, name, value, length);
}

/* A listener ends so, too. */
static int shut_plain(int fd, int how)
{
	struct shunt_stream *stream = shunt_as_stream(shunt_lookup(fd));
	int result = real(shutdown)(fd, how);

	if (!result && how != SHUT_WR && unlikely(stream != NULL) && !shunt_process_foreign())
		shunt_inside_do(shunt_born_shut(shunt_process.engine, stream));
	return result;
}

int shutdown(int fd, int how)
{
	struct shunt_stream *stream = shunt_linked(&fd);

	if (stream)
		return (int)shunt_result(shunt_inside(shunt_stream_shutdown(shunt_process.engine, fd, stream, how)));
	return shut_plain(fd, how);
}
