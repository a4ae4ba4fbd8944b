#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "core/engine.h"
#include "core/pin.h"
#include "core/service.h"
#include "core/soft/soft.h"
#include "core/stage.h"

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

/* One message. False: there is none, or nobody to send one. */
static bool hear(struct shunt_link *link)
{
	struct shunt_message message;
	int fds[SHUNT_CHANNEL_FDS], count;
	int result = shunt_channel_receive(&link->channel, &message, fds, &count);

	if (!result)
		return false;
	if (result == -EPROTO)
		shunt_link_distrust(link, link->channel.wrong);
	else if (result < 0)
		shunt_link_kill(link, "the peer is gone");
	else
		shunt_claim_message(link, &message, fds, count);
	while (count--)
		link->engine->sys->close(fds[count]);
	return atomic_load(&link->state) != SHUNT_LINK_DEAD;
}

void shunt_link_readable(struct shunt_link *link)
{
	bool more = atomic_load(&link->state) != SHUNT_LINK_DEAD;

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

/* Once in a process: it is the device's property, not the link's. */
static void choose_pin_from(struct shunt_link *link)
{
	struct shunt_engine *engine = link->engine;
	uint64_t from = engine->config.mr_threshold;

	if (from == SHUNT_PIN_AUTO) {
		from = shunt_pin_measure(engine->group.verbs, link->pd, engine->sys->now);
		shunt_log(SHUNT_LOG_INFO, "measured: blocking sends register their buffer from %llu bytes on",
			  (unsigned long long)from);
	}
	engine->pin_from_chosen = true;
	atomic_store(&engine->pin_from, from ? from : UINT64_MAX);
}

static int make_queue_pair(struct shunt_link *link)
{
	struct shunt_engine *engine = link->engine;
	struct shunt_group *group = &engine->group;
	struct ibv_cq *cq = shunt_group_cq(engine);
	struct ibv_qp_init_attr init = {
		.send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = engine->config.sq_depth, .max_recv_wr = engine->config.rq_depth,
			 .max_send_sge = 16, .max_recv_sge = 1,
			 .max_inline_data = engine->config.inline_bytes },
	};
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT,
				    .qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ };

	link->lane.qp = group->verbs->create_qp(link->pd, &init);
	if (!link->lane.qp)
		return -ENOMEM;
	link->lane.max_inline = init.cap.max_inline_data;
	link->lane.fetches = link->lane.max_inline < link->lane.frag_bytes;
	link->lane.backlog = soft_qp_backlog(link->lane.qp);
	if (group->verbs->modify_qp(link->lane.qp, &attr, IBV_QP_STATE | IBV_QP_ACCESS_FLAGS |
				    IBV_QP_PKEY_INDEX | IBV_QP_PORT))
		return -EIO;
	if (link->lane.fetches && !engine->pin_from_chosen)
		choose_pin_from(link);
	return shunt_lane_post_receives(&link->lane, engine->config.rq_depth);
}

static int make_memory(struct shunt_link *link)
{
	struct shunt_group *group = &link->engine->group;
	struct shunt_arena_memory memory = { .verbs = group->verbs, .discard = soft_arena_discard,
					     .block_bytes = link->engine->config.mr_bytes,
					     .reserved = SHUNT_LINK_STREAMS * sizeof(struct shunt_control) };
	struct ibv_device_attr device;

	link->pd = group->verbs->alloc_pd(group->context);
	if (!link->pd || group->verbs->query_device(group->context, &device))
		return -ENOMEM;
	memory.pd = link->pd;
	memory.base = link->arena_base = soft_arena(link->pd, &memory.bytes);
	memory.regions = device.max_mr;
	if (shunt_arena_init(&link->arena, &memory))
		return -ENOMEM;
	link->table = calloc(SHUNT_LINK_STREAMS, sizeof(*link->table));
	link->table_size = link->table ? SHUNT_LINK_STREAMS : 0;
	link->next_id = 1;
	return link->table ? 0 : -ENOMEM;
}

static int say_hello(struct shunt_link *link)
{
	struct shunt_message message = { .type = SHUNT_MSG_HELLO };
	struct shunt_hello *hello = &message.hello;
	struct soft_address address;
	int fds[2];
	int result = soft_qp_export(link->lane.qp, &address, fds);

	if (result)
		return result;
	_Static_assert(sizeof(address) <= sizeof(hello->address), "soft_address must fit");
	hello->magic = SHUNT_WIRE_MAGIC;
	hello->version = SHUNT_WIRE_VERSION;
	hello->arena_address = (uintptr_t)link->arena_base;
	hello->arena_bytes = link->arena.memory.bytes;
	hello->rkey = link->arena.lines->rkey;
	hello->receives = link->engine->config.rq_depth;
	hello->streams = SHUNT_LINK_STREAMS;
	hello->pid = link->engine->pid;
	memcpy(hello->address, &address, sizeof(address));
	return shunt_link_send(link, &message, fds, 2);
}

struct shunt_link *shunt_link_create(struct shunt_engine *engine, struct shunt_channel *channel, bool initiator)
{
	struct shunt_link *link = NULL;

	shunt_private_begin(engine);
	if (shunt_group_open(engine) || posix_memalign((void **)&link, 64, sizeof(*link)))
		goto close_channel;
	memset(link, 0, sizeof(*link));
	link->source.kind = SHUNT_SOURCE_LINK;
	link->engine = engine;
	link->channel = *channel;
	link->initiator = initiator;
	if (shunt_lane_init(&link->lane, link) || make_memory(link) || make_queue_pair(link))
		goto destroy;
	shunt_group_add_lane(engine, &link->lane);
	if (initiator && say_hello(link))
		goto destroy;
	shunt_private_end(engine);
	return link;

destroy:
	shunt_log(SHUNT_LOG_WARN, "no link could be made: out of memory or descriptors");
	shunt_link_destroy(link);
	shunt_private_end(engine);
	return NULL;
close_channel:
	shunt_log(SHUNT_LOG_WARN, "the soft device cannot be opened: out of memory or descriptors");
	shunt_channel_close(channel);
	shunt_private_end(engine);
	return NULL;
}

/* What a peer may tell us about itself without being believed. */
static const char *check_hello(struct shunt_link *link, const struct shunt_hello *hello)
{
	uint64_t controls = (uint64_t)hello->streams * sizeof(struct shunt_control);

	if (hello->magic != SHUNT_WIRE_MAGIC || hello->version != SHUNT_WIRE_VERSION)
		return "it speaks another version";
	if (atomic_load(&link->state) != SHUNT_LINK_HELLO)
		return "it introduces itself twice";
	if (hello->receives < 2 * SHUNT_CONTROL_RESERVE || hello->receives > 65536 ||
	    hello->streams < 2 || hello->streams > SHUNT_IMM_STREAM_MASK ||
	    hello->arena_bytes < controls || hello->arena_address + hello->arena_bytes < hello->arena_address)
		return "its numbers make no sense";
	return NULL;
}

static int bring_up(struct shunt_link *link, const struct shunt_hello *hello, const int fds[2])
{
	struct shunt_group *group = &link->engine->group;
	struct ibv_qp *qp = link->lane.qp;
	struct soft_address address;
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RTR, .min_rnr_timer = 12 };
	int result;

	memcpy(&address, hello->address, sizeof(address));
	result = soft_qp_import(qp, &address, fds);
	if (result)
		return result;
	attr.dest_qp_num = address.qp_num;
	if (group->verbs->modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_DEST_QPN | IBV_QP_MIN_RNR_TIMER |
				    IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_RQ_PSN |
				    IBV_QP_MAX_DEST_RD_ATOMIC))
		return -EIO;
	attr = (struct ibv_qp_attr) { .qp_state = IBV_QPS_RTS, .timeout = 14, .retry_cnt = 6,
				      .rnr_retry = 7 };
	return group->verbs->modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
				       IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC) ?
	       -EIO : 0;
}

void shunt_link_hello(struct shunt_link *link, const struct shunt_message *message, const int *fds,
		      int count)
{
	const struct shunt_hello *hello = &message->hello;
	const char *wrong = count == 2 ? check_hello(link, hello) : "it sent no estate";

	if (!wrong && bring_up(link, hello, fds))
		wrong = "its estate is not one";
	if (wrong) {
		shunt_link_distrust(link, wrong);
		return;
	}
	link->peer_arena = hello->arena_address;
	link->peer_arena_bytes = hello->arena_bytes;
	link->peer_streams = hello->streams;
	link->peer_receives = hello->receives;
	link->peer_pid = hello->pid;
	link->lane.rkey = hello->rkey;
	link->lane.peer_controls = hello->arena_address;
	link->lane.granted = link->lane.reposted;
	atomic_store(&link->lane.allowed, hello->receives);
	if (!link->initiator && say_hello(link)) {
		shunt_link_kill(link, "its channel does not take an answer");
		return;
	}
	atomic_store(&link->state, SHUNT_LINK_UP);
	atomic_fetch_add(&link->engine->links_up, 1);
	shunt_claim_link_up(link);
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

int shunt_link_seat(struct shunt_link *link, struct shunt_stream *stream, struct shunt_place *place)
{
	uint32_t bytes = link->engine->config.ring_min;
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
		stream->lane = &link->lane;
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
	*place = (struct shunt_place) { .ring_offset = offset, .ring_bytes = bytes, .stream = id, .rkey = mr->rkey };
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
	stream->link = NULL;
	shunt_lock_leave(&link->engine->group.lock);
}

/* Pages of a ring that grew large go back to the system; small rings are kept warm while others are in use. */
void shunt_link_give_ring(struct shunt_link *link, uint8_t *ring, uint32_t bytes)
{
	if (bytes > link->engine->config.ring_min)
		soft_arena_discard(link->pd, ring, bytes);
	if (shunt_arena_give(&link->arena, ring - link->arena_base, bytes))
		shunt_trim_due(link->engine);
}

bool shunt_link_ring_is_sound(const struct shunt_link *link, uint64_t offset, uint64_t bytes)
{
	return bytes >= 1u << SHUNT_ARENA_MIN_LOG && bytes <= 1u << SHUNT_ARENA_MAX_LOG && !(bytes & (bytes - 1)) &&
	       !(offset & (bytes - 1)) && bytes <= link->peer_arena_bytes && offset <= link->peer_arena_bytes - bytes;
}

/* --- the end --- */

void shunt_link_fail(struct shunt_link *link, const char *why)
{
	if (atomic_exchange(&link->lane.failed, true))
		return;
	link->failure = why;
	shunt_service_wake(link->engine);
}

void shunt_link_distrust(struct shunt_link *link, const char *what)
{
	if (!atomic_load(&link->lane.failed)) {
		atomic_fetch_add(&link->engine->distrusted, 1);
		/* Anybody may knock at a rendezvous; only who got further is worth a line by default. */
		shunt_log(atomic_load(&link->state) == SHUNT_LINK_UP ? SHUNT_LOG_WARN : SHUNT_LOG_INFO,
			  "link to process %u broken off: %s", link->peer_pid, what);
	}
	shunt_link_fail(link, what);
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

void shunt_link_kill(struct shunt_link *link, const char *reason)
{
	struct shunt_engine *engine = link->engine;
	uint8_t before = atomic_load(&link->state);

	if (before == SHUNT_LINK_DEAD)
		return;
	if (before == SHUNT_LINK_UP) {
		engine->group.verbs->modify_qp(link->lane.qp, &(struct ibv_qp_attr) { .qp_state = IBV_QPS_ERR },
					       IBV_QP_STATE);
		shunt_group_poll_fully(engine);	/* what was delivered before counts, and nothing else */
		atomic_fetch_sub(&engine->links_up, 1);
	}
	atomic_store(&link->lane.failed, true);
	atomic_store(&link->state, SHUNT_LINK_DEAD);
	shunt_log(SHUNT_LOG_INFO, "link to process %u ended: %s", link->peer_pid, reason);
	soft_qp_peer_gone(link->lane.qp);
	hang_up(link);
	abandon_queue(&link->lane);
	shunt_claim_link_down(link);
	for (uint32_t id = 1; id < link->table_size && link->seated; id++) {
		struct shunt_stream *stream = link->table[id];

		if (!stream)
			continue;
		if (atomic_load(&stream->state) == SHUNT_LINKED)
			shunt_track_detach(engine, stream);
		if (!shunt_pin_fetched(stream))
			shunt_lane_fetched(stream);
		shunt_rights_answer(engine, stream);
		if ((atomic_load(&stream->state) == SHUNT_CLOSED || atomic_load(&stream->state) == SHUNT_PLAIN) &&
		    !atomic_load(&stream->tx.pin)) {
			shunt_streams_released(stream, SHUNT_RELEASED_BY_US);
			shunt_streams_released(stream, SHUNT_RELEASED_BY_PEER);
		}
	}
}

void shunt_link_destroy(struct shunt_link *link)
{
	struct shunt_engine *engine = link->engine;
	struct shunt_group *group = &engine->group;

	shunt_group_remove_lane(engine, &link->lane);
	if (link->lane.qp)
		group->verbs->destroy_qp(link->lane.qp);
	shunt_arena_fini(&link->arena);
	if (link->pd)
		group->verbs->dealloc_pd(link->pd);
	shunt_channel_close(&link->channel);
	shunt_lane_fini(&link->lane);
	free(link->table);
	free(link);
}
