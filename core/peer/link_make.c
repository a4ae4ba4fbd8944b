/* SPDX-License-Identifier: MIT */
#include "core/peer/link_make.h"
#include "core/base/guard.h"
#include "core/fd/own_fds.h"
#include "core/peer/links.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "core/engine.h"
#include "core/lane/lanes.h"
#include "core/link/share.h"
#include "core/link/trust.h"
#include "core/peer/eviction.h"
#include "core/peer/limits.h"
#include "core/peer/link_end.h"
#include "core/poll/devices.h"
#include "core/peer/tracing.h"
#include "core/qos/qos.h"
#include "core/recovery/idle.h"
#include "core/recovery/keepalive.h"
#include "core/service.h"
#include "core/stream/nonce.h"

static int make_memory(struct shunt_link *link)
{
	struct shunt_device *device = link->device;
	uint32_t streams = device->kind->streams;
	struct shunt_arena_memory memory = { .steps = &link->engine->steps, .verbs = device->verbs, .discard = device->kind->discard,
					     .block_bytes = link->engine->config.mr_bytes,
					     .bytes = shunt_share_plan(link), .regions = device->limits.max_mr };

	if (!memory.bytes)
		return -ENOSPC;
	memory.guarded = true;
	memory.huge = device->kind->anonymous && link->engine->config.pages == SHUNT_PAGES_HUGE;
	/* The last page of the control lines of so many streams guards those before it, so that no block is lost to it. */
	streams -= shunt_narrow_u32(shunt_guard_page() / sizeof(struct shunt_control));
	if (link->maps) {
		uint32_t rings = shunt_narrow_u32(memory.bytes >> SHUNT_ARENA_MIN_LOG);

		streams = rings < streams ? rings : streams;	/* it has no rings for more */
		memory.blocks = SHUNT_ARENA_BLOCKS_CONFINED;
	}
	memory.reserved = streams * sizeof(struct shunt_control);
	errno = 0;
	link->pd = device->verbs->alloc_pd(device->context);
	if (!link->pd)
		return errno ? -errno : -ENOMEM;
	if (link->channel.proves && shunt_devices_set_apart(&link->engine->group, device, link->pd))
		return -EMFILE;
	shunt_share_begin(link);
	memory.pd = link->pd;
	memory.base = link->arena_base = device->kind->make_arena(device, link->pd, &memory.bytes);
	if (!memory.base || shunt_arena_init(&link->arena, &memory))
		return -ENOMEM;
	link->table = calloc(streams, sizeof(*link->table));
	link->table_size = link->table ? streams : 0;
	link->next_id = 1;
	return link->table ? 0 : -ENOMEM;
}

/* `result`: of equip(). */
static enum shunt_cause link_say_why(const struct shunt_link *link, int result)
{
	char text[SHUNT_CAUSE_ROOM];
	enum shunt_cause cause;

	if (result == -ENOSPC) {
		shunt_log(SHUNT_LOG_INFO, "no link could be made: %s",
			  shunt_reason_text(SHUNT_REASON_CONFINED));
		return SHUNT_CAUSE_CONFINED;
	}
	cause = result == -EMFILE ? SHUNT_CAUSE_NO_MEMORY : /* of descriptors the text speaks already */
				    link->device->kind->shortage(SHUNT_SHORT_OF_QUEUES, result);
	shunt_log(SHUNT_LOG_WARN, "no link could be made: %s (%s)", shunt_cause_say(cause, text),
		  strerror(-result));
	return cause;
}

/* A stream's entry is the first word of its control line, which no message has. How many descriptors: without them, none. */
static int make_waiters(struct shunt_link *link, int *fds)
{
	link->waits = !link->device->kind->make_waiters(
		link->pd, link->arena_base, sizeof(struct shunt_control), link->table_size, fds);
	return link->waits ? SHUNT_WAITERS : 0;
}

static int say_hello(struct shunt_link *link)
{
	struct shunt_message message = { .type = SHUNT_MSG_HELLO };
	struct shunt_hello *hello = &message.hello;
	int fds[SHUNT_CHANNEL_FDS];
	int count = shunt_lanes_tell(link, hello, fds);

	if (count < 0)
		return count;
	if (link->engine->config.waiters && !link->maps && link->device->kind->waiters)
		count += make_waiters(link, fds + count);
	hello->magic = SHUNT_WIRE_MAGIC;
	hello->version = SHUNT_WIRE_VERSION;
	hello->arena_address = link->device->kind->zero_based ? 0 : (uintptr_t)link->arena_base;
	hello->arena_bytes = link->arena.memory.bytes;
	hello->rkey = link->arena.lines->rkey;
	hello->streams = link->table_size;
	hello->pid = link->engine->forks.pid;
	hello->kind = link->device->kind->number;
	hello->nonces = link->nonces;
	hello->maps = shunt_narrow_u32(shunt_share_maps(link) / SHUNT_MAPS_BYTES);
	shunt_nonce_hello(link->hellos[!link->initiator], hello);
	count = shunt_link_send(link, &message, fds, count);
	if (link->device->kind->told)
		link->device->kind->told(link->pd);
	return count;
}

/* A peer that hangs up at once is heard of like any peer that ends. */
static bool is_said(int result)
{
	return !result || result == -EPIPE || result == -ECONNRESET;
}

/* Memory and, at the connecting end, lanes: nothing that a stranger gets. -ENOSPC: there is too little address space. */
static int equip(struct shunt_link *link)
{
	int result = make_memory(link);

	if (!result && link->initiator)
		result = shunt_lanes_make(link, link->lane_room);
	return result;
}

/* Within one host an initiator says HELLO, and shares memory, when it knows whom it speaks to. */
static int introduce(struct shunt_link *link)
{
	if (!link->met)
		return shunt_channel_knock(&link->channel, &link->engine->identity);
	return link->initiator ? say_hello(link) : 0;
}

static bool is_equipped(const struct shunt_link *link)
{
	return link->table != NULL;
}

/* It has not been told of memory, and is to be. */
static void hello_to(struct shunt_link *link)
{
	int result;

	shunt_own_fds_begin(&link->engine->fds);
	result = is_equipped(link) ? 0 : equip(link);
	if (result) {
		link_say_why(link, result);
		shunt_link_fail(link, "there is no memory for it, or no queues");
	} else if (!is_said(say_hello(link))) {
		shunt_link_fail(link, "its channel does not take a HELLO");
	}
	shunt_own_fds_end(&link->engine->fds);
}

/* Memory is shared within one host only. */
static enum shunt_which device_for(const struct shunt_engine *engine, const struct shunt_channel *channel)
{
	return channel->kind == SHUNT_CHANNEL_TCP || engine->device_choice == SHUNT_DEVICE_VERBS ? SHUNT_VERBS : SHUNT_SOFT;
}

/* Lanes that links of shared memory have, or may have yet, beyond the first. */
static uint32_t more_lanes(const struct shunt_service *service)
{
	uint32_t more = 0;

	for (const struct shunt_link *link = service->links; link; link = link->next)
		if (!link->device->kind->lanes)
			more += (atomic_load(&link->state) == SHUNT_LINK_HELLO ? link->lane_room :
										 link->lane_count) -
				1;
	return more;
}

/* Its lanes are made when it is known how many: by the acceptor when it hears of it. */
static struct shunt_link *allocate(const struct shunt_engine *engine,
				   const struct shunt_device *device)
{
	struct shunt_link *link = calloc(1, sizeof(*link));

	if (!link ||
	    !shunt_lanes_reserve(link, &engine->group, device, more_lanes(engine->service))) {
		free(link);
		return NULL;
	}
	shunt_lock_rank(&link->send_lock, SHUNT_RANK_SEND);
	shunt_lock_rank(&link->arena.lock, SHUNT_RANK_ARENA);
	return link;
}

struct shunt_link *shunt_link_create(struct shunt_engine *engine, struct shunt_channel *channel,
				     bool initiator, enum shunt_cause *cause)
{
	enum shunt_cause why;
	struct shunt_link *link = NULL;
	struct shunt_device *device;
	struct ucred peer;
	int result = 0;

	shunt_own_fds_begin(&engine->fds);
	device = channel->course.device;
	if (device && device->gone)	/* while its channel rested, or its guest was under way */
		device = channel->course.device = shunt_devices_open_way(&engine->group, &channel->course.way);
	else if (!device)
		device = shunt_devices_open(&engine->group, device_for(engine, channel));
	if (device)
		link = allocate(engine, device);
	if (!link)
		goto close_channel;	/* the device has said why */
	link->source.ready = engine->link_hooks->ready;
	link->engine = engine;
	link->device = device;
	link->channel = *channel;
	if (channel->kind == SHUNT_CHANNEL_UNIX &&
	    shunt_trust_peer(engine->sys, channel->fd, &peer)) {
		link->peer_pid = (uint32_t)peer.pid;
		link->peer_user = peer.uid;
	}
	link->nonces = channel->kind == SHUNT_CHANNEL_TCP || channel->other_netns ||
		       engine->config.proof;
	link->initiator = initiator;
	link->met = channel->kind == SHUNT_CHANNEL_TCP || channel->known;
	link->hello_by = shunt_now(engine) + SHUNT_HELLO_NS;
	if (!link->channel.other_netns && (!link->channel.proves || link->channel.proven))
		result = equip(link);
	if (result)
		why = link_say_why(link, result);
	else if (!is_said(introduce(link)))
		why = SHUNT_CAUSE_NO_MEMORY;
	else
		why = SHUNT_CAUSE_NONE;
	if (why)
		goto destroy;
	shunt_own_fds_end(&engine->fds);
	return link;

destroy:
	shunt_link_destroy(link);
	goto none;
close_channel:
	why = device			? SHUNT_CAUSE_NO_MEMORY :
	      engine->group.device_cause ? engine->group.device_cause :
					   SHUNT_CAUSE_NO_DEVICE;
	shunt_channel_close(channel);
none:
	shunt_own_fds_end(&engine->fds);
	if (cause)
		*cause = why;
	return NULL;
}

void shunt_link_meet(struct shunt_link *link)
{
	if (link->met) {
		shunt_link_distrust(link, "it knocks twice");
		return;
	}
	link->met = true;
	/* Equipped for one whom we trust, who does not trust us. */
	if (link->channel.proves && link->pd &&
	    shunt_devices_set_apart(&link->engine->group, link->device, link->pd)) {
		shunt_link_fail(link, "there are no descriptors for it");
		return;
	}
	if (!link->initiator)
		return;
	if (link->channel.proves && !link->channel.other_netns)
		link->engine->link_hooks->met(link);
	else
		hello_to(link);
}

void shunt_link_proven(struct shunt_link *link)
{
	shunt_channel_proven(&link->channel);
	if (link->initiator && atomic_load(&link->state) == SHUNT_LINK_HELLO)
		hello_to(link);
}

/* Checks the peer's words about itself, which are not believed. NULL, or a phrase. */
static const char *check_hello(struct shunt_link *link, const struct shunt_hello *hello)
{
	uint64_t controls = (uint64_t)hello->streams * sizeof(struct shunt_control);

	if (hello->magic != SHUNT_WIRE_MAGIC || hello->version != SHUNT_WIRE_VERSION)
		return "it speaks another version";
	if (atomic_load(&link->state) != SHUNT_LINK_HELLO)
		return "it introduces itself twice";
	if (link->channel.proves && !link->channel.proven)
		return "it has not proven a connection";
	if (hello->kind != link->device->kind->number)
		return "it uses another kind of device (SHUNT_DEVICE)";
	if (hello->nonces != link->nonces)
		return "it proves its connections in another way (SHUNT_TUNE=proof)";
	if (hello->maps && !link->device->kind->size_arena)
		return "it maps a part of what cannot be mapped";
	if (hello->receives < 2 * SHUNT_CONTROL_RESERVE || hello->receives > 65536 ||
	    hello->streams < 2 || hello->streams > SHUNT_IMM_STREAM_MASK || hello->retains > 1 ||
	    hello->lanes < 1 || hello->lanes > (link->initiator ? link->lane_count : SHUNT_LANES_MAX) ||
	    hello->arena_bytes < controls || hello->arena_address + hello->arena_bytes < hello->arena_address)
		return "its numbers make no sense";
	return NULL;
}

/* As many lanes as the peer has, or fewer. */
static int agree(struct shunt_link *link, uint32_t lanes)
{
	if (!link->initiator)
		return shunt_lanes_make(link, lanes < link->lane_room ? lanes : link->lane_room);
	shunt_lanes_keep(link, lanes);
	return 0;
}

/* NULL; or why there can be no link. */
static const char *lacks(struct shunt_link *link, const struct shunt_hello *hello)
{
	int result = is_equipped(link) ? 0 : equip(link);

	if (result) {
		link_say_why(link, result);
		return "there is no memory for it, or no queues";
	}
	return shunt_share_heed(link, hello);
}

static void go_up(struct shunt_link *link)
{
	link->line.up_at = shunt_now(link->engine);
	atomic_store(&link->state, SHUNT_LINK_UP);
	atomic_fetch_add(&link->engine->lanes.links_up, 1);
	if (!link->waits)
		shunt_waiters_deaf(&link->engine->group, 1);
	shunt_keepalive_begin(link);
	shunt_idle_begin(link->engine->service);
	shunt_eviction_begin(link->engine->service);
	shunt_qos_introduce(link);
	shunt_tracing_introduce(link);
	link->engine->link_hooks->up(link);
}

/* The connecting end says nothing before its queue pairs are connected, and hears nothing. The other end's are by then. */
static void wait_for_queue_pairs(struct shunt_link *link, int count)
{
	link->joining = (uint8_t)count;
	shunt_task_at(&link->engine->service->tasks.limits, link->hello_by);
	shunt_loop_change(&link->engine->loop, link->channel.fd, &link->source,
			  shunt_link_events(link));
}

void shunt_link_joined(struct shunt_link *link)
{
	if (!link->joining || --link->joining || atomic_load(&link->failed))
		return;
	shunt_loop_change(&link->engine->loop, link->channel.fd, &link->source,
			  shunt_link_events(link));
	go_up(link);
}

/* No fault of the peer's: our address has changed, or there is no port or randomness for its queue pairs. */
static bool is_ours(int result)
{
	return result == -ENETDOWN || result == -EADDRINUSE || result == -EADDRNOTAVAIL ||
	       result == -EAGAIN;
}

void shunt_link_hello(struct shunt_link *link, const struct shunt_message *message, const int *fds,
		      int count)
{
	const struct shunt_hello *hello = &message->hello;
	const char *wrong = check_hello(link, hello);
	const char *without = wrong ? NULL : lacks(link, hello);
	int result = 0;

	if (without) {
		shunt_link_kill(link, without);
		return;
	}
	if (!wrong && agree(link, hello->lanes)) {
		shunt_link_kill(link, "there are no queues for it: out of memory or descriptors");
		return;
	}
	if (!wrong)
		result = shunt_lanes_join(link, hello, fds, count);
	if (result == -ENOMEM) {
		shunt_link_kill(link, "its memory cannot be mapped: no memory or address space");
		return;
	}
	if (is_ours(result)) {
		shunt_link_kill(link, "our own device cannot reach its queue pairs");
		return;
	}
	if (result < 0)
		wrong = "its queue pairs cannot be reached";
	if (wrong) {
		shunt_link_distrust(link, wrong);
		return;
	}
	shunt_share_settle(link, shunt_lanes_mapped(link));
	link->peer_arena = hello->arena_address;
	link->peer_arena_bytes = hello->arena_bytes;
	link->peer_streams = hello->streams;
	link->peer_receives = hello->receives;
	if (link->channel.kind == SHUNT_CHANNEL_TCP)
		link->peer_pid = hello->pid;	/* no kernel of ours knows it */
	link->peer_retains = hello->retains;
	shunt_nonce_hello(link->hellos[link->initiator], hello);
	if (!link->initiator)	/* the other end may be lent a page (QOS_POOL) */
		shunt_channel_expect_no_fd(&link->channel);
	if (!link->initiator && say_hello(link)) {
		shunt_link_kill(link, "its channel does not take an answer");
		return;
	}
	if (link->initiator && result)
		wait_for_queue_pairs(link, result);
	else
		go_up(link);
}
