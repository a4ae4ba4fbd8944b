/* SPDX-License-Identifier: MIT */
#include "core/link/link.h"
#include <errno.h>
#include "core/base/config.h"
#include "core/base/log.h"
#include "core/poll/group.h"
#include "core/link/common.h"
#include "core/loop/loop.h"
#include "core/loop/request.h"

/* --- the channel --- */

/* send_lock held. */
static void want_write(struct shunt_link *link, bool on)
{
	if (link->wants_write == on || link->channel.fd < 0)
		return;
	link->wants_write = on;
	shunt_loop_change(link->channel.links->loop, link->channel.fd, &link->source,
			  shunt_link_events(link));
}

int shunt_link_send(struct shunt_link *link, const struct shunt_message *message, const int *fds,
		    int count)
{
	int saved = errno;
	int result = -EPIPE;

	shunt_lock_take(&link->send_lock);
	if (atomic_load(&link->state) != SHUNT_LINK_DEAD) {
		result = shunt_channel_send(&link->channel, message, fds, count);
		if (shunt_channel_waits(&link->channel))
			want_write(link, true);
	}
	shunt_lock_leave(&link->send_lock);
	if (result == -ENOBUFS)
		shunt_link_fail(link, "it does not read what it is told");
	errno = saved;
	return result;
}

int shunt_link_send_now(struct shunt_link *link, const struct shunt_message *message)
{
	int saved = errno, result = -EPIPE;

	shunt_lock_take(&link->send_lock);
	if (atomic_load(&link->state) != SHUNT_LINK_DEAD)
		result = shunt_channel_send_now(&link->channel, message);
	if (result == -EAGAIN)
		want_write(link, true);
	shunt_lock_leave(&link->send_lock);
	errno = saved;
	return result;
}

void shunt_link_writable(struct shunt_link *link)
{
	shunt_assert_service_thread(link->engine);
	shunt_lock_take(&link->send_lock);
	shunt_channel_flush(&link->channel);
	if (!shunt_channel_waits(&link->channel))
		want_write(link, false);
	shunt_lock_leave(&link->send_lock);
}

const char *shunt_link_where(const struct shunt_link *link)
{
	return link->channel.kind == SHUNT_CHANNEL_TCP ? " of another host" : "";
}

bool shunt_link_gives_pages(const struct shunt_link *link)
{
	const struct shunt_device_kind *kind = link->device->kind;

	return kind->gives_pages && kind->gives_pages(link->pd);
}

void shunt_link_drop_pages(struct shunt_link *link, uint8_t *ring, uint32_t bytes)
{
	if (shunt_link_gives_pages(link))
		link->device->kind->discard(link->pd, ring, bytes);
}

/* Pages of a ring that grew large go back to the system; small rings are kept warm while others are in use. */
void shunt_link_give_ring(struct shunt_link *link, uint8_t *ring, uint32_t bytes)
{
	if (bytes > link->device->group->config->ring_min)
		shunt_link_drop_pages(link, ring, bytes);
	if (shunt_arena_give(&link->arena, ring - link->arena_base, bytes))
		shunt_request_memory(link->channel.links->loop);
}

bool shunt_link_ring_is_sound(const struct shunt_link *link, uint64_t offset, uint64_t bytes)
{
	return bytes >= 1u << SHUNT_ARENA_MIN_LOG && bytes <= 1u << SHUNT_ARENA_MAX_LOG && !(bytes & (bytes - 1)) &&
	       !(offset & (bytes - 1)) && bytes <= link->peer_arena_bytes && offset <= link->peer_arena_bytes - bytes;
}

bool shunt_link_place_is_sound(const struct shunt_link *link, const struct shunt_place *place)
{
	return place->stream > 0 && place->stream < link->peer_streams && place->lane < link->lane_count &&
	       shunt_link_ring_is_sound(link, place->ring_offset, place->ring_bytes);
}

/* --- the end --- */

bool shunt_link_condemn(struct shunt_link *link)
{
	if (atomic_exchange(&link->failed, true))
		return false;
	link->device->group->hooks->condemned(link);
	return true;
}

void shunt_link_fail(struct shunt_link *link, const char *why)
{
	if (!shunt_link_condemn(link))
		return;
	link->failure = why;
	shunt_loop_wake(link->channel.links->loop);
}

void shunt_link_distrust(struct shunt_link *link, const char *what)
{
	if (!atomic_exchange(&link->distrusted, true)) {
		atomic_fetch_add(&link->channel.links->distrusted, 1);
		/* Anybody may knock at a rendezvous; only who got further is worth a line by default. */
		shunt_log(atomic_load(&link->state) == SHUNT_LINK_UP ? SHUNT_LOG_WARN : SHUNT_LOG_INFO,
			  "link to process %u%s broken off: %s", link->peer_pid, shunt_link_where(link), what);
	}
	shunt_link_fail(link, what);
	shunt_loop_wake(link->channel.links->loop);
}
