/* SPDX-License-Identifier: MIT */
#include "core/peer/reconnect.h"
#include "core/fd/own_fds.h"
#include "core/stream/doubt.h"
#include "core/stream/sleep.h"
#include "core/stream/track.h"
#include "core/stream/tuple.h"
#include "core/stream/wait.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include "core/peer/claim_link.h"
#include "core/peer/claim_state.h"
#include "core/peer/link_make.h"
#include "core/link/screen.h"
#include "core/stream/streams.h"
#include "core/peer/links.h"
#include "core/service.h"
#include "core/fork/fork_slots.h"

#define ACCEPTING 600000000000ull	/* ns that the initiator may take to come back */
#define GONE_NS 11000000000ull	/* a device that was taken away is not opened before (core/poll/devices.c) */
#define TRIES 6			/* after so many refusals the time between two no longer doubles */

/* --- a stream leaves its dead link --- */

enum readiness { READY, BUSY, NEVER };

#define ENDS                                                                                       \
	(SHUNT_END_TCP_OVER | SHUNT_END_RESET | SHUNT_END_BROKEN | SHUNT_END_SHUT_READ |           \
	 SHUNT_END_SHUT_WRITE)

/* Both locks held. BUSY: the old link left bytes to read or send. */
static enum readiness is_quiet(struct shunt_stream *stream)
{
	const struct shunt_tx *tx = &stream->tx;
	const struct shunt_seat_out *out = &stream->seat->out;
	const struct shunt_rx *rx = &stream->rx;
	const struct shunt_seat_in *in = &stream->seat->in;

	if (atomic_load(&stream->state) != SHUNT_LINKED || !shunt_intake_final(&in->intake) ||
	    stream->fd < 0 || shunt_fork_slots_held(&stream->sharing) ||
	    stream->parting != SHUNT_PARTING_NONE || shunt_end_has(&stream->end, ENDS) ||
	    shunt_end_error(&stream->end) || shunt_end_at(&stream->end) != SHUNT_NEVER ||
	    atomic_load(&stream->seat->release) || !shunt_stream_stays(stream) ||
	    atomic_load(&stream->seat->leaving.asked) != SHUNT_NOT_ASKED)
		return NEVER;
	if (atomic_load(&stream->seat->link->state) != SHUNT_LINK_DEAD ||
	    shunt_heading_halted(&out->heading) || shunt_heading_on_link(&out->heading) ||
	    shunt_intake_on_link(&in->intake) || atomic_load(&in->boundary) != SHUNT_NEVER ||
	    atomic_load(&in->second) != SHUNT_NEVER ||
	    atomic_load(&in->proof.state) == SHUNT_EXPECTED || atomic_load(&rx->nonce.fd) >= 0 ||
	    tx->backlog.bytes || stream->tx.backlog.fd >= 0 || shunt_seat_fin_is_due(out) ||
	    out->pin || stream->handing.fd >= 0 ||
	    shunt_claim_is_pending(stream))
		return BUSY;
	return READY;
}

/*
 * Both ends count from the kernel's bytes, as a process does that gets the connection meanwhile. The offset of a quiet
 * stream means nothing to the old link. Both locks held.
 */
static enum readiness take_place(struct shunt_stream *stream)
{
	int result = shunt_doubt_take_place(shunt_stream_engine(stream), stream, true);

	if (result == -EAGAIN)
		return BUSY;
	return result ? NEVER : READY;
}

/* It becomes a candidate again, if it is quiet. */
static enum readiness stream_let_go(struct shunt_stream *stream)
{
	enum readiness readiness;

	shunt_lock_take(&stream->rx.lock);
	shunt_lock_take(&stream->tx.lock);
	shunt_track_settle(stream);
	readiness = is_quiet(stream);
	if (readiness == READY)
		readiness = take_place(stream);
	if (readiness == READY) {
		shunt_streams_unseat(stream);
		shunt_claim_turn(stream, SHUNT_UNCLAIMED);
		atomic_store(&stream->state, SHUNT_CANDIDATE);
	}
	if (readiness == NEVER)
		stream->claim.line = 0;
	shunt_lock_leave(&stream->tx.lock);
	if (readiness == READY)
		shunt_sleep_tell(stream, EPOLLIN | EPOLLOUT | SHUNT_READY_TRACK);
	shunt_lock_leave(&stream->rx.lock);
	return readiness;
}

/* Everything announced on the link has come, or is the kernel's to say. rx.lock held. */
static bool is_certain(const struct shunt_stream *stream)
{
	return !shunt_end_has(&stream->end, SHUNT_END_SUSPECT) &&
	       stream->end.owed <= atomic_load(&stream->rx.head);
}

bool shunt_reconnect_let_go(struct shunt_stream *stream)
{
	bool certain;

	shunt_lock_take(&stream->rx.lock);
	certain = is_certain(stream);
	shunt_lock_leave(&stream->rx.lock);
	return certain && stream_let_go(stream) == READY;
}

/* --- finding them --- */

struct search {
	uint32_t line;
	const struct shunt_link *except;
	const struct shunt_tuple *peer;	/* only the stream with these addresses, seen from there */
};

static bool is_of(struct shunt_stream *stream, void *arg)
{
	const struct search *search = arg;
	uint8_t state = atomic_load(&stream->state);

	return stream->claim.line == search->line && stream->fd >= 0 &&
	       stream->seat->link != search->except && !shunt_stream_is_doubted(stream) &&
	       (state == SHUNT_LINKED || state == SHUNT_CANDIDATE) &&
	       (!search->peer || (shunt_tuple_is_known(&stream->tuple) &&
				  shunt_tuple_reversed(&stream->tuple, search->peer)));
}

static bool has_streams(struct shunt_engine *engine, uint32_t line)
{
	struct search search = { .line = line };
	struct shunt_sweep sweep = { .wants = is_of, .arg = &search };
	bool some = false;

	while (shunt_streams_next(engine, &sweep))
		some = true;
	return some;
}

/* --- the channel rests --- */

static void name_streams(struct shunt_link *link)
{
	struct shunt_stream *stream;

	shunt_streams_seated(link, stream) stream->claim.line = link->line.number;
}

/* The longer, the sooner the link has died; anew once it has lasted. */
static uint64_t next_rest(const struct shunt_config *config, const struct shunt_line *line, uint64_t now)
{
	uint64_t least = config->return_ms * 1000000, most = config->return_max_ms * 1000000;
	uint64_t next = line->rest && now - line->up_at < 10 * line->rest ? 2 * line->rest : least;

	return next < most ? next : most;
}

static void unlist(struct shunt_service *service, struct shunt_reconnect *again)
{
	struct shunt_reconnect **p = &service->reconnects;

	while (*p != again)
		p = &(*p)->next;
	*p = again->next;
}

static void reconnect_give_up(struct shunt_service *service, struct shunt_reconnect *again)
{
	unlist(service, again);
	shunt_loop_remove(&service->engine->loop, again->channel.fd);
	shunt_channel_close(&again->channel);
	free(again);
}

void shunt_reconnect_forget(struct shunt_service *service)
{
	while (service->reconnects)
		reconnect_give_up(service, service->reconnects);
}

/* The channel gets a link again, and waits no longer. NULL: none, and the channel is closed. */
static struct shunt_link *make_link(struct shunt_service *service, struct shunt_reconnect *again)
{
	struct shunt_link *link = shunt_link_create(service->engine, &again->channel,
						    again->initiator, NULL);

	unlist(service, again);
	if (link) {
		link->line = again->line;
		link->on_trial = link->initiator;
		shunt_links_list(service, link);
		shunt_loop_change(&service->engine->loop, link->channel.fd, &link->source, shunt_link_events(link));
		atomic_fetch_add(&service->engine->reconnects, 1);
	}
	free(again);
	return link;
}

static void reconnect_hear(struct shunt_source *source, uint32_t events)
{
	struct shunt_reconnect *again = shunt_loop_owner(source, struct shunt_reconnect, source);
	struct shunt_engine *engine = shunt_engine_of(again->channel.links, links);
	struct shunt_service *service = engine->service;
	struct shunt_message message;
	struct shunt_link *link;
	int fds[SHUNT_CHANNEL_FDS], count, result;
	bool screened = again->channel.proves;

	(void)events;
	shunt_own_fds_begin(&engine->fds);
	result = shunt_channel_receive(&again->channel, &message, fds, &count);
	if (result > 0 && message.type == SHUNT_MSG_HELLO && !again->initiator) {
		link = make_link(service, again);
		if (link)
			shunt_link_hello(link, &message, fds, count);
	} else if (result < 0 || (result > 0 && message.type == SHUNT_MSG_HELLO)) {
		/* The peer is gone, does not want to come back, or is not to say that. */
		reconnect_give_up(service, again);
	}	/* else it was said to the link that is gone, before the peer knew */
	while (count--)
		shunt_screen_drop(&engine->loop, fds[count], screened);
	shunt_own_fds_end(&engine->fds);
}

bool shunt_reconnect_take(struct shunt_link *link)
{
	struct shunt_engine *engine = link->engine;
	struct shunt_service *service = engine->service;
	struct shunt_reconnect *again;
	uint64_t now = shunt_now(engine);

	if (!engine->config.return_ms || engine->group.finished || atomic_load(&service->leaving) ||
	    link->channel.fd < 0 || shunt_channel_waits(&link->channel))
		return false;
	if (!link->line.number)
		link->line.number = ++service->lines;
	name_streams(link);
	if (!has_streams(engine, link->line.number))
		return false;
	again = calloc(1, sizeof(*again));
	if (!again)
		return false;
	again->source.ready = reconnect_hear;
	again->line = link->line;
	again->line.rest = next_rest(&engine->config, &link->line, now);
	again->initiator = link->initiator;
	if (link->device->gone && again->line.rest < GONE_NS)
		again->line.rest = GONE_NS;
	again->at = now + (link->initiator ? again->line.rest : ACCEPTING);
	shunt_lock_take(&link->send_lock);
	again->channel = link->channel;
	link->channel.fd = -1;
	/* Another HELLO is due. */
	shunt_channel_expect_fd(&again->channel);
	shunt_lock_leave(&link->send_lock);
	shunt_loop_change(&engine->loop, again->channel.fd, &again->source, EPOLLIN);
	again->next = service->reconnects;
	service->reconnects = again;
	shunt_log(SHUNT_LOG_INFO, "the channel to process %u%s rests for %llu ms", link->peer_pid,
		  shunt_link_where(link), (unsigned long long)again->line.rest / 1000000);
	return true;
}

/* --- are the new queue pairs any good? --- */

static void try_out(struct shunt_lane *lane)
{
	struct shunt_group *group = &lane->link->engine->group;

	shunt_lock_take(&group->lock);
	shunt_lane_announce(lane);
	shunt_lock_leave(&group->lock);
	shunt_lane_kick(lane);
}

bool shunt_reconnect_tried(struct shunt_link *link)
{
	if (!link->on_trial)
		return true;
	for (uint32_t i = 0; !link->tried && i < link->lane_count; i++)
		try_out(&link->lanes[i]);
	link->tried = true;
	for (uint32_t i = 0; i < link->lane_count; i++)
		if (atomic_load(&link->lanes[i].lane_due) || !shunt_lane_settled(&link->lanes[i]))
			return false;
	if (atomic_load(&link->failed))
		return false;
	link->on_trial = false;
	return true;
}

/* --- the streams return --- */

bool shunt_reconnect_later(struct shunt_stream *stream)
{
	struct shunt_engine *engine = shunt_stream_engine(stream);
	uint64_t wait = engine->config.return_ms * 1000000 << stream->claim.return_tries;

	if (!stream->claim.line || atomic_load(&stream->state) != SHUNT_CANDIDATE || stream->fd < 0)
		return false;
	stream->claim.return_at = shunt_now(engine) + wait;
	if (stream->claim.return_tries < TRIES)
		stream->claim.return_tries++;
	for (struct shunt_link *link = engine->service->links; link; link = link->next)
		if (link->line.number == stream->claim.line &&
		    link->bring_at > stream->claim.return_at)
			link->bring_at = stream->claim.return_at;
	return true;
}

void shunt_reconnect_done(struct shunt_stream *stream)
{
	if (stream->claim.line)
		atomic_fetch_add(&shunt_stream_engine(stream)->returns, 1);
	stream->claim.return_tries = 0;
}

void shunt_reconnect_claimed(struct shunt_link *link, const struct shunt_tuple *peer)
{
	struct search search = { .line = link->line.number, .except = link, .peer = peer };
	struct shunt_sweep sweep = { .wants = is_of, .arg = &search };
	struct shunt_stream *stream;

	while (search.line && (stream = shunt_streams_next(link->engine, &sweep)) != NULL)
		if (atomic_load(&stream->state) == SHUNT_LINKED)
			stream_let_go(stream);
}

/* Claims it on the link if it is ready. */
static void bring(struct shunt_link *link, struct shunt_stream *stream, uint64_t now)
{
	if (shunt_claim_is_pending(stream) || stream->claim.return_at > now)
		return;
	if (atomic_load(&stream->state) == SHUNT_LINKED &&
	    stream_let_go(stream) != READY)
		return;
	shunt_claim_again(link, stream);
}

/* Those of the link's line that are not on it yet. True: there are some. */
static bool bring_all(struct shunt_link *link, uint64_t now)
{
	struct search search = { .line = link->line.number, .except = link };
	struct shunt_sweep sweep = { .wants = is_of, .arg = &search };
	struct shunt_stream *stream;
	bool some = false;

	while ((stream = shunt_streams_next(link->engine, &sweep)) != NULL) {
		bring(link, stream, now);
		some = true;
	}
	return some;
}

static bool may_bring(struct shunt_link *link)
{
	return link->initiator && link->line.number && atomic_load(&link->state) == SHUNT_LINK_UP &&
	       !atomic_load(&link->failed) && shunt_reconnect_tried(link);
}

void shunt_reconnect_run(struct shunt_task *task)
{
	struct shunt_service *service = shunt_service_of(task, reconnect);
	uint64_t now = shunt_now(service->engine);
	struct shunt_reconnect *again, *next;

	for (again = service->reconnects; again; again = next) {
		next = again->next;
		if (again->at > now)
			shunt_task_at(task, again->at);
		else if (again->initiator && has_streams(service->engine, again->line.number))
			make_link(service, again);
		else
			/* They are closed by now, or the peer does not want them back. */
			reconnect_give_up(service, again);
	}
	for (struct shunt_link *link = service->links; link; link = link->next) {
		if (!may_bring(link))
			continue;
		if (link->bring_at <= now)
			link->bring_at = bring_all(link, now) ? now + service->engine->config.return_ms * 1000000 : SHUNT_NEVER;
		shunt_task_at(task, link->bring_at);
	}
}
