/* SPDX-License-Identifier: MIT */
/* Questions and answers as private data. */
#include <errno.h>
#include <string.h>
#include "core/device/cm/inside.h"

static const uint8_t magic[2] = { 'S', 'h' };

uint8_t cm_frame_make(struct cm_frame *frame, enum cm_kind kind, const void *data, unsigned int bytes)
{
	memcpy(frame->magic, magic, sizeof(magic));
	frame->kind = (uint8_t)kind;
	frame->bytes = (uint8_t)bytes;	/* at most CM_ANSWER_MAX: the callers have looked */
	if (bytes)
		memcpy(frame->data, data, bytes);
	return (uint8_t)(CM_FRAME_HEAD + bytes);
}

int cm_frame_read(struct cm_frame *frame, enum cm_kind kind, unsigned int limit, const void *given, unsigned int bytes)
{
	if (!given || bytes < CM_FRAME_HEAD)
		return -EPROTO;
	memcpy(frame, given, CM_FRAME_HEAD);
	if (memcmp(frame->magic, magic, sizeof(magic)) || frame->kind != kind || frame->bytes > limit ||
	    frame->bytes > bytes - CM_FRAME_HEAD)
		return -EPROTO;
	memcpy(frame->data, (const uint8_t *)given + CM_FRAME_HEAD, frame->bytes);
	return frame->bytes;
}
