/* SPDX-License-Identifier: MIT */
#include "core/stream/low_water.h"
#include <errno.h>
#include "core/engine.h"
#include "core/fork/fork_slots.h"

void shunt_low_water_ask(struct shunt_stream *stream)
{
	socklen_t length = sizeof(int);
	int low = 1, saved = errno;

	if (!stream->group->sys->getsockopt(stream->fd, SOL_SOCKET, SO_RCVLOWAT, &low, &length))
		atomic_store(&stream->options.low_water, low > 0 ? low : 1);
	errno = saved;
}

void shunt_low_water_look(struct shunt_stream *stream)
{
	if (shunt_stream_mode_differs(atomic_load(&stream->mode),
				      shunt_fork_slots_changes(&shunt_stream_engine(stream)->forks,
							       &stream->sharing)))
		shunt_low_water_ask(stream);
}
