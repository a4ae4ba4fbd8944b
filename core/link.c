#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "core/devices.h"
#include "core/engine.h"
#include "core/keepalive.h"
#include "core/lanes.h"
#include "core/limits.h"
#include "core/linger.h"
#include "core/loss.h"
#include "core/pin.h"
#include "core/service.h"
#include "core/stage.h"
#include "core/trust.h"

#define MESSAGES 64	/* of one link before the others are heard */

/* --- the channel --- */

int shunt_link_send(struct shunt_link *link, const struct shunt_message *message, const int *fds,
		    int count)
{
	int saved = errno;
	int result = -EPIPE;

	shunt_lock_take(&link->send_lock);
	if (atomic_load(&link->state) != SHUNT_LINK_DEAD) {
		result = shunt_channel_send(&link->channel, message, fds, count);
		if (shunt_channel_waits(&link->channel))
			shunt_service_want_write(link, true);
	}
	shunt_lock_leave(&link->send_lock);
	errno = saved;
	return result;
}

void shunt_link_writable(struct shunt_link *link)
{
	shunt_lock_take(&link->send_lock);
	shunt_channel_flush(&link->channel);
	if (!shunt_channel_waits(&link->channel))
		shunt_service_want_write(link, false);
	shunt_lock_leave(&link->send_lock);
}

/* What TCP says of a host that has gone, its connections say, too: ETIMEDOUT, or what routers have told. */
static void lose(struct shunt_link *link, int error)
{
	if (error == ETIMEDOUT || error == EHOSTUNREACH || error == ENETUNREACH)
		link->lost = error;
	shunt_link_kill(link, link->lost ? "the peer's host does not answer" : "the peer is gone");
}

/* One message. False: there is none, or nobody to send one. */
static bool hear(struct shunt_link *link)
{
	struct shunt_message message;
	int fds[SHUNT_CHANNEL_FDS], count;
	int result = shunt_channel_receive(&link->channel, &message, fds, &count);

	if (!result)
		return false;
	if (result == -EPROTO && link->channel.other_version)	/* no fault of the peer: nothing was believed yet */
		shunt_link_kill(link, link->channel.wrong);
	else if (result == -EPROTO)
		shunt_link_distrust(link, link->channel.wrong);
	else if (result < 0)
		lose(link, -result);
	else
		shunt_claim_message(link, &message, fds, count);
	while (count--)
		link->engine->sys->close(fds[count]);
	/* What follows the end of a failover is not for this link any more. */
	return atomic_load(&link->state) != SHUNT_LINK_DEAD && !shunt_failover_over(link);
}

void shunt_link_readable(struct shunt_link *link)
{
	bool more = atomic_load(&link->state) != SHUNT_LINK_DEAD && !shunt_failover_over(link);

	for (int i = 0; i < MESSAGES && more; i++) {
		shunt_private_begin(link->engine);
		more = hear(link);
		shunt_private_end(link->engine);
	}
}

/* A sender may be at it: the number must not become another's meanwhile. */
static void hang_up(struct shunt_link *link)
{
	shunt_lock_take(&link->send_lock);
	shunt_service_forget(link);
	shunt_channel_close(&link->channel);
	shunt_lock_leave(&link->send_lock);
}

/* --- building --- */

static int make_memory(struct shunt_link *link)
{
	struct shunt_device *device = link->device;
	uint32_t streams = device->kind->streams;
	struct shunt_arena_memory memory = { .verbs = device->verbs, .discard = device->kind->discard,
					     .block_bytes = link->engine->config.mr_bytes,
					     .bytes = link->engine->config.arena_bytes,
					     .reserved = streams * sizeof(struct shunt_control),
					     .regions = device->limits.max_mr };

	link->pd = device->verbs->alloc_pd(device->context);
	if (!link->pd)
		return -ENOMEM;
	memory.pd = link->pd;
	memory.base = link->arena_base = device->kind->make_arena(device, link->pd, &memory.bytes);
	if (!memory.base || shunt_arena_init(&link->arena, &memory))
		return -ENOMEM;
	link->table = calloc(streams, sizeof(*link->table));
	link->table_size = link->table ? streams : 0;
	link->next_id = 1;
	return link->table ? 0 : -ENOMEM;
}

/* All else there is, it has. */
static bool lacks_memory(const struct shunt_link *link)
{
	return link->arena_base && !link->arena.lines;
}

static int say_hello(struct shunt_link *link)
{
	struct shunt_message message = { .type = SHUNT_MSG_HELLO };
	struct shunt_hello *hello = &message.hello;
	int fds[2];
	int count = shunt_lanes_tell(link, hello, fds);

	if (count < 0)
		return count;
	hello->magic = SHUNT_WIRE_MAGIC;
	hello->version = SHUNT_WIRE_VERSION;
	hello->arena_address = link->device->kind->zero_based ? 0 : (uintptr_t)link->arena_base;
	hello->arena_bytes = link->arena.memory.bytes;
	hello->rkey = link->arena.lines->rkey;
	hello->streams = link->table_size;
	hello->pid = link->engine->pid;
	hello->kind = link->device->kind->number;
	hello->nonces = link->nonces;
	return shunt_link_send(link, &message, fds, count);
}

/* Within one host an initiator says HELLO, and shares memory, when it knows whom it speaks to. */
static int introduce(struct shunt_link *link)
{
	if (!link->met)
		return shunt_channel_knock(&link->channel);
	return link->initiator ? say_hello(link) : 0;
}

/* Who hangs up at once, as on another user, is heard of like any peer that ends. */
static bool is_said(int result)
{
	return !result || result == -EPIPE || result == -ECONNRESET;
}

/* Memory is shared within one host only. */
static enum shunt_which device_for(const struct shunt_engine *engine, const struct shunt_channel *channel)
{
	return channel->kind == SHUNT_CHANNEL_TCP || engine->device_choice == SHUNT_DEVICE_VERBS ? SHUNT_VERBS : SHUNT_SOFT;
}

/* Its lanes are made when it is known how many: by the acceptor when it hears of it. */
static struct shunt_link *allocate(struct shunt_engine *engine, const struct shunt_device *device)
{
	size_t bytes = sizeof(struct shunt_link) + shunt_lanes_wanted(engine, device) * sizeof(struct shunt_lane);
	struct shunt_link *link;

	if (posix_memalign((void **)&link, 64, bytes))
		return NULL;
	memset(link, 0, bytes);
	return link;
}

struct shunt_link *shunt_link_create(struct shunt_engine *engine, struct shunt_channel *channel, bool initiator)
{
	struct shunt_link *link = NULL;
	struct shunt_device *device;
	struct ucred peer;

	shunt_private_begin(engine);
	if (shunt_engine_is_confined())	/* it was not when its service thread was started */
		goto close_channel;
	device = channel->device ? channel->device : shunt_devices_open(engine, device_for(engine, channel));
	if (device)
		link = allocate(engine, device);
	if (!link)
		goto close_channel;	/* the device has said why */
	link->source.kind = SHUNT_SOURCE_LINK;
	link->engine = engine;
	link->device = device;
	link->channel = *channel;
	if (channel->kind == SHUNT_CHANNEL_UNIX && shunt_trust_peer(engine, channel->fd, &peer))
		link->peer_pid = (uint32_t)peer.pid;
	link->nonces = channel->kind == SHUNT_CHANNEL_TCP || engine->config.proof;
	link->initiator = initiator;
	link->met = channel->kind == SHUNT_CHANNEL_TCP || channel->known;
	link->hello_by = shunt_now(engine) + SHUNT_HELLO_NS;
	if (make_memory(link))
		goto destroy;
	if (initiator && shunt_lanes_make(link, shunt_lanes_wanted(engine, device)))
		goto destroy;
	if (!is_said(introduce(link)))
		goto destroy;
	shunt_private_end(engine);
	return link;

destroy:
	shunt_log(SHUNT_LOG_WARN, "no link could be made: %s",
		  lacks_memory(link) ? shunt_reason_text(device->kind->shortage()) : "out of memory, descriptors or queues");
	shunt_link_destroy(link);
	shunt_private_end(engine);
	return NULL;
close_channel:
	shunt_channel_close(channel);
	shunt_private_end(engine);
	return NULL;
}

void shunt_link_meet(struct shunt_link *link)
{
	if (link->met) {
		shunt_link_distrust(link, "it knocks twice");
		return;
	}
	link->met = true;
	if (link->initiator && !is_said(say_hello(link)))
		shunt_link_kill(link, "its channel does not take a HELLO");
}

/* What a peer may tell us about itself without being believed. */
static const char *check_hello(struct shunt_link *link, const struct shunt_hello *hello)
{
	uint64_t controls = (uint64_t)hello->streams * sizeof(struct shunt_control);

	if (hello->magic != SHUNT_WIRE_MAGIC || hello->version != SHUNT_WIRE_VERSION)
		return "it speaks another version";
	if (atomic_load(&link->state) != SHUNT_LINK_HELLO)
		return "it introduces itself twice";
	if (hello->kind != link->device->kind->number)
		return "it uses another kind of device (SHUNT_DEVICE)";
	if (hello->nonces != link->nonces)
		return "it proves its connections in another way (SHUNT_PROOF)";
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
	uint32_t wanted = shunt_lanes_wanted(link->engine, link->device);

	if (!link->initiator)
		return shunt_lanes_make(link, lanes < wanted ? lanes : wanted);
	shunt_lanes_keep(link, lanes);
	return 0;
}

void shunt_link_hello(struct shunt_link *link, const struct shunt_message *message, const int *fds,
		      int count)
{
	const struct shunt_hello *hello = &message->hello;
	const char *wrong = check_hello(link, hello);

	if (!wrong && agree(link, hello->lanes)) {
		shunt_link_kill(link, "there are no queues for it: out of memory or descriptors");
		return;
	}
	if (!wrong && shunt_lanes_join(link, hello, fds, count))
		wrong = "its queue pairs cannot be reached";
	if (wrong) {
		shunt_link_distrust(link, wrong);
		return;
	}
	link->peer_arena = hello->arena_address;
	link->peer_arena_bytes = hello->arena_bytes;
	link->peer_streams = hello->streams;
	link->peer_receives = hello->receives;
	if (link->channel.kind == SHUNT_CHANNEL_TCP)
		link->peer_pid = hello->pid;	/* no kernel of ours knows it */
	link->peer_retains = hello->retains;
	if (!link->initiator && say_hello(link)) {
		shunt_link_kill(link, "its channel does not take an answer");
		return;
	}
	link->line.up_at = shunt_now(link->engine);
	atomic_store(&link->state, SHUNT_LINK_UP);
	atomic_fetch_add(&link->engine->links_up, 1);
	shunt_keepalive_begin(link);
	shunt_claim_link_up(link);
}

const char *shunt_link_where(const struct shunt_link *link)
{
	return link->channel.kind == SHUNT_CHANNEL_TCP ? " of another host" : "";
}

/* --- seats --- */

static uint32_t free_id(struct shunt_link *link)
{
	uint32_t limit = link->table_size < link->peer_streams ? link->table_size : link->peer_streams;

	for (uint32_t tried = 1; tried < limit; tried++) {
		uint32_t id = link->next_id;

		link->next_id = id + 1 < limit ? id + 1 : 1;
		if (!link->table[id])
			return id;
	}
	return 0;
}

int shunt_link_seat(struct shunt_link *link, struct shunt_stream *stream, struct shunt_lane *lane,
		    struct shunt_place *place)
{
	uint32_t bytes = shunt_narrow_u32(link->engine->config.ring_min);
	const struct ibv_mr *mr;
	uint32_t id;
	uint64_t offset = shunt_arena_take(&link->arena, bytes, &mr);
	struct shunt_rx *rx = &stream->rx;

	if (offset == UINT64_MAX)
		return -ENOMEM;
	shunt_lock_take(&rx->lock);
	shunt_lock_take(&link->engine->group.lock);
	id = free_id(link);
	if (id) {
		stream->link = link;
		stream->lane = lane = lane ? lane : shunt_lanes_emptiest(link);
		lane->seats++;
		stream->id = id;
		stream->control = (struct shunt_control *)link->arena_base + id;
		memset(stream->control, 0, sizeof(*stream->control));
		rx->ring = link->arena_base + offset;
		rx->ring_bytes = rx->link_bytes = bytes;
		__atomic_store_n(&link->table[id], stream, __ATOMIC_RELEASE);
		link->seated++;
		if (link->top <= id)
			link->top = id + 1;
	}
	shunt_lock_leave(&link->engine->group.lock);
	shunt_lock_leave(&rx->lock);
	if (!id) {
		shunt_link_give_ring(link, link->arena_base + offset, bytes);
		return -ENOSPC;
	}
	*place = (struct shunt_place) { .ring_offset = offset, .ring_bytes = bytes, .stream = id, .rkey = mr->rkey,
					.lane = lane->number };
	return 0;
}

struct shunt_stream *shunt_link_hold(struct shunt_link *link, uint32_t id)
{
	struct shunt_engine *engine = link->engine;
	struct shunt_stream *stream;

	shunt_lock_take(&engine->streams_lock);
	shunt_lock_take(&engine->group.lock);
	stream = shunt_link_stream(link, id);
	if (stream)
		stream->holds++;
	shunt_lock_leave(&engine->group.lock);
	shunt_lock_leave(&engine->streams_lock);
	return stream;
}

void shunt_link_unseat(struct shunt_link *link, struct shunt_stream *stream)
{
	struct shunt_rx *rx = &stream->rx;
	uint32_t next = atomic_exchange(&rx->next_bytes, 0);

	/* First: a dead link goes with its last seat. */
	shunt_stage_leave(stream);
	if (next)
		shunt_link_give_ring(link, rx->next_ring, next);
	shunt_link_give_ring(link, rx->ring, rx->ring_bytes);
	shunt_lock_take(&link->engine->group.lock);
	__atomic_store_n(&link->table[stream->id], NULL, __ATOMIC_RELEASE);
	link->seated--;
	stream->lane->seats--;
	stream->link = NULL;
	shunt_lock_leave(&link->engine->group.lock);
}

/* Pages of a ring that grew large go back to the system; small rings are kept warm while others are in use. */
void shunt_link_give_ring(struct shunt_link *link, uint8_t *ring, uint32_t bytes)
{
	if (bytes > link->engine->config.ring_min && link->device->kind->gives_pages)
		link->device->kind->discard(link->pd, ring, bytes);
	if (shunt_arena_give(&link->arena, ring - link->arena_base, bytes))
		shunt_trim_due(link->engine);
}

bool shunt_link_ring_is_sound(const struct shunt_link *link, uint64_t offset, uint64_t bytes)
{
	return bytes >= 1u << SHUNT_ARENA_MIN_LOG && bytes <= 1u << SHUNT_ARENA_MAX_LOG && !(bytes & (bytes - 1)) &&
	       !(offset & (bytes - 1)) && bytes <= link->peer_arena_bytes && offset <= link->peer_arena_bytes - bytes;
}

/* --- the end --- */

/* One lane that fails takes the others with it: where the streams of a link are is one decision. True: it is new. */
static bool fail_all(struct shunt_link *link)
{
	if (atomic_exchange(&link->failed, true))
		return false;
	for (uint32_t i = 0; i < link->lane_count; i++)
		atomic_store(&link->lanes[i].failed, true);
	return true;
}

void shunt_link_fail(struct shunt_link *link, const char *why)
{
	if (!fail_all(link))
		return;
	link->failure = why;
	shunt_service_wake(link->engine);
}

void shunt_link_distrust(struct shunt_link *link, const char *what)
{
	if (!atomic_exchange(&link->distrusted, true)) {
		atomic_fetch_add(&link->engine->distrusted, 1);
		/* Anybody may knock at a rendezvous; only who got further is worth a line by default. */
		shunt_log(atomic_load(&link->state) == SHUNT_LINK_UP ? SHUNT_LOG_WARN : SHUNT_LOG_INFO,
			  "link to process %u%s broken off: %s", link->peer_pid, shunt_link_where(link), what);
	}
	shunt_link_fail(link, what);
	shunt_service_wake(link->engine);
}

static void abandon_queue(struct shunt_lane *lane)
{
	shunt_lock_take(&lane->queue_lock);
	for (; lane->first; lane->first = lane->first->next_in_lane)
		lane->first->queued = false;
	for (; lane->held; lane->held = lane->held->next_in_lane)
		lane->held->queued = false;
	lane->last = NULL;
	atomic_store(&lane->waiting, 0);
	atomic_store(&lane->holding, 0);
	shunt_lock_leave(&lane->queue_lock);
}

void shunt_link_tell(struct shunt_link *link, uint32_t what)
{
	for (uint32_t id = 1; id < link->table_size; id++)
		if (link->table[id])
			shunt_group_tell(link->engine, link->table[id], what);
}

void shunt_link_stop(struct shunt_link *link)
{
	struct shunt_engine *engine = link->engine;
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_ERR };

	fail_all(link);
	shunt_lock_take(&engine->group.lock);	/* who polls may just be posting receives; nobody does after this */
	shunt_lock_leave(&engine->group.lock);
	for (uint32_t i = 0; i < link->lane_count; i++) {
		link->device->verbs->modify_qp(link->lanes[i].qp, &attr, IBV_QP_STATE);
		shunt_lock_take(&link->lanes[i].lock);	/* who has posted before has noted it after this */
		shunt_lock_leave(&link->lanes[i].lock);
	}
	shunt_group_poll_fully(engine);	/* what was delivered before counts, and nothing else */
	atomic_fetch_sub(&engine->links_up, 1);
	for (uint32_t i = 0; i < link->lane_count; i++)
		abandon_queue(&link->lanes[i]);
}

/* The link will bring nothing more for the stream. */
static void leave_stream(struct shunt_engine *engine, struct shunt_stream *stream)
{
	uint8_t state;

	if (atomic_load(&stream->state) == SHUNT_LINKED && (!stream->rx.final || atomic_load(&stream->tx.halted)))
		shunt_loss_detach(engine, stream);
	shunt_lock_take(&stream->rx.lock);
	shunt_lock_take(&stream->tx.lock);
	shunt_linger_dead(stream);
	shunt_lock_leave(&stream->tx.lock);
	shunt_lock_leave(&stream->rx.lock);
	if (!shunt_pin_fetched(stream))
		shunt_lane_fetched(stream);
	shunt_rights_answer(engine, stream);
	state = atomic_load(&stream->state);
	if ((state == SHUNT_CLOSED || state == SHUNT_PLAIN) && !atomic_load(&stream->tx.pin)) {
		shunt_streams_released(stream, SHUNT_RELEASED_BY_US);
		shunt_streams_released(stream, SHUNT_RELEASED_BY_PEER);
	}
}

void shunt_link_kill(struct shunt_link *link, const char *reason)
{
	struct shunt_engine *engine = link->engine;
	uint8_t before = atomic_load(&link->state);
	bool over;

	if (before == SHUNT_LINK_DEAD)
		return;
	over = shunt_failover_over(link) && !atomic_load(&link->distrusted);
	if (before == SHUNT_LINK_UP)
		shunt_link_stop(link);
	if (before == SHUNT_LINK_BROKEN && link->pd)
		atomic_fetch_sub(&engine->breaking, 1);
	fail_all(link);
	atomic_store(&link->state, SHUNT_LINK_DEAD);
	shunt_log(SHUNT_LOG_INFO, "link to process %u%s ended: %s", link->peer_pid,
		  shunt_link_where(link), reason);
	for (uint32_t i = 0; link->device->kind->peer_gone && i < link->lane_count; i++)
		link->device->kind->peer_gone(link->lanes[i].qp);
	if (!over || !shunt_comeback_take(link))
		hang_up(link);
	for (uint32_t i = 0; i < link->lane_count; i++)
		abandon_queue(&link->lanes[i]);
	shunt_claim_link_down(link);
	for (uint32_t id = 1; id < link->table_size && link->seated; id++)
		if (link->table[id])
			leave_stream(engine, link->table[id]);
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
	link->arena_base = NULL;
	link->pd = NULL;
}

void shunt_link_destroy(struct shunt_link *link)
{
	shunt_link_strip(link);
	shunt_channel_close(&link->channel);
	free(link->table);
	free(link);
}
