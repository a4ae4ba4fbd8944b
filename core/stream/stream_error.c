/* SPDX-License-Identifier: MIT */
#include "core/stream/stream_error.h"
#include "core/stream/eof.h"
#include <errno.h>
#include "core/stream/kernel_tcp.h"
#include "core/poll/group.h"
#include "core/base/sys.h"

int shunt_stream_hear_error(struct shunt_stream *stream, int error)
{
	if (shunt_end_has(&stream->end, SHUNT_END_TOLD))
		return 0;	/* by the link, before the kernel knew */
	if (error)
		shunt_stream_told_error(stream, error);
	return error;
}

int shunt_stream_kernel_error(struct shunt_stream *stream)
{
	int error = 0;
	socklen_t length = sizeof(error);

	stream->group->sys->getsockopt(stream->fd, SOL_SOCKET, SO_ERROR, &error, &length);
	return shunt_stream_hear_error(stream, error);
}

bool shunt_stream_knows_more(struct shunt_stream *stream)
{
	if (shunt_end_error(&stream->end) || shunt_end_kept(&stream->end))
		return true;
	if (!shunt_end_has(&stream->end, SHUNT_END_TOLD))
		return false;
	if (!shunt_stream_tcp_closed(stream))
		return true;
	if (shunt_end_has(
		    &stream->end,
		    SHUNT_END_RESET)) /* else the kernel told it, and may know of another by now */
		shunt_stream_kernel_error(stream);
	return false;
}

int shunt_stream_link_error(struct shunt_stream *stream)
{
	int error = shunt_end_kept_of(shunt_end_learn(&stream->end, SHUNT_LEARN_KEPT_TOLD, 0));

	if (error || atomic_load(&stream->state) != SHUNT_LINKED)
		return error;
	shunt_group_poll(stream->group);
	return shunt_stream_pop_error(stream);
}

int shunt_stream_take_error(struct shunt_stream *stream)
{
	int error = shunt_stream_link_error(stream);

	return error ? error : shunt_stream_kernel_error(stream);
}

/* It says nothing of the connection. */
static bool is_about_the_call(int error)
{
	return error == EAGAIN || error == EINTR || error == EFAULT || error == ENOMEM || error == EINVAL ||
	       error == EOPNOTSUPP || error == ENOTCONN;
}

/*
 * The link may tell of a reset later. Where the kernel has given up by itself (ETIMEDOUT), the peer need not know, and
 * nobody tells.
 */
int shunt_stream_told_error(struct shunt_stream *stream, int error)
{
	uint8_t state = atomic_load(&stream->state);

	if (is_about_the_call(error) || (state != SHUNT_LINKED && state != SHUNT_CANDIDATE) || !shunt_stream_tcp_closed(stream))
		return -error;
	if (state == SHUNT_CANDIDATE) /* and remains one: shunt_attach() */
		shunt_end_learn(&stream->end, SHUNT_LEARN_CANDIDATE_TOLD, 0);
	else
		shunt_end_learn(&stream->end, SHUNT_LEARN_KERNEL_TOLD, error);
	return -error;
}

void shunt_stream_keep_error(struct shunt_stream *stream, int error)
{
	shunt_end_learn(&stream->end, SHUNT_LEARN_KEPT, error);
}

