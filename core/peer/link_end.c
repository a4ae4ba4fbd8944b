/* SPDX-License-Identifier: MIT */
#include "core/stream/kept.h"
#include "core/peer/link_end.h"
#include "core/stream/spare.h"
#include "core/stream/retire.h"
#include "core/peer/links.h"
#include "core/qos/throttle.h"
#include "core/recovery/failover.h"
#include <stdlib.h>
#include "core/engine.h"
#include "core/lane/lanes.h"
#include "core/stream/pinned.h"
#include "core/stream/streams.h"
#include "core/link/share.h"
#include "core/service.h"
#include "core/stream/deferred_fin.h"
#include "core/stream/loss.h"

/* A sender may be at it: the number must not become another's meanwhile. */
static void hang_up(struct shunt_link *link)
{
	struct shunt_channel gone;

	shunt_lock_take(&link->send_lock);
	shunt_loop_remove(&link->engine->loop, link->channel.fd);
	gone = link->channel;
	link->channel.fd = -1;
	link->channel.first = link->channel.last = NULL;
	link->channel.kept = 0;
	shunt_lock_leave(&link->send_lock);
	shunt_channel_close(&gone);
}

/* The link will bring nothing more for the stream. */
static void leave_stream(struct shunt_engine *engine, struct shunt_stream *stream)
{
	uint8_t state;

	if (atomic_load(&stream->state) == SHUNT_LINKED &&
	    (!shunt_intake_final(&stream->seat->in.intake) ||
	     shunt_heading_halted(&stream->seat->out.heading)))
		shunt_loss_detach(stream);
	shunt_lock_take(&stream->rx.lock);
	shunt_lock_take(&stream->tx.lock);
	shunt_loss_closed(stream);
	shunt_lock_leave(&stream->tx.lock);
	shunt_lock_leave(&stream->rx.lock);
	shunt_pinned_tell(stream);
	shunt_retire_tell_relative(engine, stream);
	shunt_kept_later(stream);
	state = atomic_load(&stream->state);
	if ((state == SHUNT_CLOSED || state == SHUNT_PLAIN ||
	     shunt_stream_gives_up_seat(stream)) &&
	    !atomic_load(&stream->seat->out.pin))
		shunt_streams_released(stream, SHUNT_RELEASED_BY_BOTH);
}

void shunt_link_kill(struct shunt_link *link, const char *reason)
{
	struct shunt_engine *engine = link->engine;
	uint8_t before = atomic_load(&link->state);
	struct shunt_stream *stream;
	bool over;

	if (before == SHUNT_LINK_DEAD)
		return;
	over = shunt_failover_over(link) && !atomic_load(&link->distrusted);
	if (before == SHUNT_LINK_UP)
		shunt_lanes_stop(link);
	if (before == SHUNT_LINK_BROKEN && link->pd)
		atomic_fetch_sub(&engine->breaking, 1);
	shunt_link_condemn(link);
	atomic_store(&link->state, SHUNT_LINK_DEAD);
	shunt_log(SHUNT_LOG_INFO, "link to process %u%s ended: %s", link->peer_pid,
		  shunt_link_where(link), reason);
	for (uint32_t i = 0; link->device->kind->peer_gone && i < link->lane_count; i++)
		link->device->kind->peer_gone(link->lanes[i].qp);
	if (!over || link->silent || !engine->link_hooks->over(link))
		hang_up(link);
	shunt_lanes_abandon(link);
	engine->link_hooks->down(link);
	shunt_streams_seated(link, stream) leave_stream(engine, stream);
}

void shunt_link_break(struct shunt_link *link, const char *why)
{
	if (!shunt_failover_begin(link, why)) {
		shunt_link_kill(link, link->failure);
		return;
	}
	link->engine->link_hooks->down(link);
	shunt_failover_tell(link);
}

void shunt_link_strip(struct shunt_link *link)
{
	struct shunt_device *device = link->device;

	if (!link->pd)
		return;
	if (atomic_load(&link->state) == SHUNT_LINK_BROKEN)	/* nobody has to wait for its peer any more */
		atomic_fetch_sub(&link->engine->breaking, 1);
	shunt_lanes_keep(link, 0);
	shunt_arena_fini(&link->arena);
	if (link->arena_base)
		device->kind->free_arena(device, link->arena_base, link->arena.memory.bytes);
	device->verbs->dealloc_pd(link->pd);
	shunt_share_end(link);
	link->arena_base = NULL;
	link->pd = NULL;
}

void shunt_link_destroy(struct shunt_link *link)
{
	shunt_link_strip(link);
	shunt_throttle_free(link);
	shunt_channel_close(&link->channel);
	shunt_lanes_free(link);
	free(link->table);
	free(link);
}
