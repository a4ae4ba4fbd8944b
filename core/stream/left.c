/* SPDX-License-Identifier: MIT */
#include "core/stream/left.h"
#include "core/engine.h"
#include "core/stream/track.h"

const char *shunt_left_text(uint8_t left)
{
	static const char *const texts[SHUNT_LEFTS] = {
		"",
		"operator",
		"peer's operator",
		"slow completions",
		"SO_MAX_PACING_RATE",
		"SHUNT_TUNE=flip",
		"no memory for what waits",
		"handed back for good",
		"the link failed",
	};

	return left < SHUNT_LEFTS ? texts[left] : "";
}

void shunt_left_note(struct shunt_stream *stream, enum shunt_left why)
{
	stream->why.left = (uint8_t)why;
	stream->why.left_times++;
	atomic_fetch_add_explicit(&shunt_stream_engine(stream)->left[why], 1, memory_order_relaxed);
}

void shunt_left_choose(struct shunt_stream *stream)
{
	uint8_t held = atomic_load(&stream->seat->out.held);

	shunt_left_note(stream,
			held & SHUNT_HELD_MOCK	? SHUNT_LEFT_MOCK :
			held & SHUNT_HELD_PEER	? SHUNT_LEFT_PEER :
			held & SHUNT_HELD_SLOW	? SHUNT_LEFT_SLOW :
			held & SHUNT_HELD_PACED ? SHUNT_LEFT_PACED :
			atomic_load(&stream->seat->leaving.asked) != SHUNT_NOT_ASKED ?
						  SHUNT_LEFT_RETIRED :
			stream->seat->out.flip_at != SHUNT_NEVER ? SHUNT_LEFT_FLIP :
								   SHUNT_LEFT_MEMORY);
}
