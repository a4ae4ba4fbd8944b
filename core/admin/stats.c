/* SPDX-License-Identifier: MIT */
#include "core/admin/stats.h"
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "core/base/address.h"
#include "core/base/identity.h"
#include "core/base/json.h"
#include "core/base/outfile.h"
#include "core/device/soft/soft.h"
#include "core/fd/own_fds.h"
#include "core/link/trust.h"
#include "core/loop/deaf.h"
#include "core/loop/endpoint.h"
#include "core/peer/mock.h"
#include "core/poll/polling.h"
#include "core/qos/qos.h"
#include "core/service.h"
#include "core/stream/carried.h"
#include "core/stream/left.h"
#include "core/stream/uring.h"

#define PATIENCE_US 500000	/* with a reader, on the service thread */

static void put_bytes(struct shunt_json *text, const char *name, const char *track,
		      const struct shunt_bytes *bytes)
{
	shunt_json_put(text, ",\"%s\":{", name);
	if (track)
		shunt_json_put(text, "\"track\":\"%s\",", track);
	shunt_json_put(text, "\"tcp\":%llu,\"link\":%llu,\"late\":%llu,\"late_tcp\":%llu}",
	    (unsigned long long)bytes->tcp, (unsigned long long)bytes->link,
	    (unsigned long long)bytes->late, (unsigned long long)bytes->late_tcp);
}

static void put_address(struct shunt_json *text, const char *name, const uint8_t address[16], uint16_t port)
{
	char host[SHUNT_ADDRESS_ROOM];

	shunt_address_text(address, port, host);
	shunt_json_put(text, "\"%s\":\"%s\",", name, host);
}

static const char *state_word(const struct shunt_stream *stream)
{
	switch (atomic_load(&((struct shunt_stream *)stream)->state)) {
	case SHUNT_LINKED:
		return "linked";
	case SHUNT_CANDIDATE:
		return "candidate";
	default:
		return "plain";
	}
}

/* The event that a candidate waits for, "" for others. */
static const char *waits_for(struct shunt_stream *stream)
{
	if (atomic_load(&stream->state) != SHUNT_CANDIDATE)
		return "";
	if (stream->line)
		return "another link to its peer";
	if (stream->role == SHUNT_ACCEPTOR)
		return atomic_load(&stream->carried_since) ? "its peer's claim" : "its first byte";
	if (atomic_load(&stream->used))
		return "its peer's answer";
	return atomic_load(&stream->touched) ? "longer use (SHUNT_BRIEF)" : "its first use";
}

static void put_stream(struct shunt_json *text, struct shunt_stream *stream, const struct shunt_bytes *tx,
		       const struct shunt_bytes *rx)
{
	shunt_json_put(text, "%s{\"fd\":%d,", text->comma ? "," : "", stream->fd);
	text->comma = true;
	if (!stream->tuple_known)
		shunt_rendezvous_learn(stream);
	if (stream->tuple_known) {
		put_address(text, "local", stream->tuple.local, stream->tuple.local_port);
		put_address(text, "peer", stream->tuple.peer, stream->tuple.peer_port);
	}
	shunt_json_put(text, "\"state\":\"%s\",\"waits_for\":\"%s\",\"reason\":\"%s\",\"held\":\"%s\"", state_word(stream),
	    waits_for(stream), shunt_reason_text(stream->reason), shunt_mock_text(atomic_load(&stream->tx.held)));
	shunt_json_put(text, ",\"left\":\"%s\",\"left_times\":%u", shunt_left_text(stream->left), stream->left_times);
	if (atomic_load(&stream->pacing.rate))
		shunt_json_put(text, ",\"paced\":%llu", (unsigned long long)atomic_load(&stream->pacing.rate));
	put_bytes(text, "tx", stream->tx.track == SHUNT_LINK ? "link" : "tcp", tx);
	put_bytes(text, "rx", stream->rx.track == SHUNT_LINK ? "link" : "tcp", rx);
	shunt_json_put(text, "}");
}

struct sum {
	struct shunt_json *text;
	struct shunt_totals totals;
};

static void add(struct shunt_bytes *sum, const struct shunt_bytes *more)
{
	sum->tcp += more->tcp;
	sum->link += more->link;
	sum->late += more->late;
	sum->late_tcp += more->late_tcp;
}

static bool is_connection(struct shunt_stream *stream)
{
	return stream->fd >= 0 && stream->role != SHUNT_LISTENER &&
	       atomic_load(&stream->state) != SHUNT_FRESH;
}

static int list_stream(struct shunt_stream *stream, void *arg)
{
	struct sum *sum = arg;
	struct shunt_bytes tx = stream->tx.bytes, rx = stream->rx.bytes;

	if (!is_connection(stream))
		return 0;
	shunt_carried_add(stream, &tx, &rx);
	add(&sum->totals.tx, &tx);
	add(&sum->totals.rx, &rx);
	put_stream(sum->text, stream, &tx, &rx);
	return 0;
}

/* The limit that binds is what was short most. */
static const char *bound_by(const uint64_t *stalls)
{
	int most = SHUNT_LIMIT_NONE;

	for (int i = SHUNT_LIMIT_NONE + 1; i < SHUNT_LIMITS; i++)
		if (stalls[i] > stalls[most])
			most = i;
	return shunt_limit_names[most];
}

/* What was short how often. */
static void put_stalls(struct shunt_json *text, const uint64_t *stalls)
{
	shunt_json_put(text, "\"stalls\":{");
	text->comma = false;
	for (int i = SHUNT_LIMIT_NONE + 1; i < SHUNT_LIMITS; i++)
		shunt_json_number(text, shunt_limit_names[i], stalls[i]);
	shunt_json_put(text, "},\"bound_by\":\"%s\",", bound_by(stalls));
}

/* Of each lane, what shows whether they share the work. group.lock held. */
static void put_each_lane(struct shunt_json *text, const struct shunt_group *group)
{
	shunt_json_put(text, "\"lanes\":[");
	for (struct shunt_lane *lane = group->lanes; lane; lane = lane->next_in_group) {
		shunt_json_put(text, "%s{\"device\":\"%s\",\"bound_by\":\"%s\"", lane == group->lanes ? "" : ",",
		    lane->link->device->context->device->name, bound_by(lane->counters.stalls));
		text->comma = true;
		shunt_json_number(text, "peer", lane->link->peer_pid);
		shunt_json_number(text, "lane", lane->number);
		shunt_json_number(text, "streams", lane->seats);
		shunt_json_number(text, "wr", lane->sent);
		shunt_json_number(text, "wr_bytes", lane->window.posted);
		shunt_json_number(text, "doorbells", lane->counters.doorbells);
		shunt_json_put(text, "}");
	}
	shunt_json_put(text, "],");
}

static void put_lanes(struct shunt_json *text, struct shunt_engine *engine, uint64_t *stalls)
{
	struct shunt_lane_stats tally = engine->group.ended;
	const struct shunt_lane_counters *sum = &tally.counters;
	uint64_t lanes = 0;

	/* group.lock held */
	for (struct shunt_lane *lane = engine->group.lanes; lane; lane = lane->next_in_group, lanes++)
		shunt_lane_stats_add(&tally, lane);
	shunt_json_number(text, "lanes", lanes);
	memcpy(stalls, sum->stalls, sizeof(sum->stalls));
	shunt_json_number(text, "doorbells", sum->doorbells);
	shunt_json_number(text, "wr", tally.wrs);
	shunt_json_number(text, "wr_bytes", tally.bytes);
	shunt_json_number(text, "wr_inline", tally.wrs - sum->gathered);
	shunt_json_number(text, "wr_signaled", sum->signaled);
	shunt_json_number(text, "wr_direct", sum->direct);
	shunt_json_number(text, "wr_merged", sum->merged);
	shunt_json_number(text, "wr_control", sum->control);
	shunt_json_number(text, "sends_staged", sum->staged_sends);
	shunt_json_number(text, "chain_max", sum->chain_max ? sum->chain_max : tally.wrs > 0);
	shunt_json_number(text, "sends_held", sum->held);
	shunt_json_number(text, "queue_stalls", sum->queue_stalls);
	shunt_json_number(text, "post_failures", sum->post_failures);
	shunt_json_number(text, "inflight_bytes_max", tally.most_bytes);
	shunt_json_number(text, "inflight_wr_max", tally.most_wrs);
	shunt_json_number(text, "window_cuts", tally.cuts);
}

/* Of the cost model: nothing without one. */
static void put_gauges(struct shunt_json *text, struct shunt_group *group)
{
	struct soft_gauges gauges = { 0 };

	if (group->devices[SHUNT_SOFT].open)
		soft_read_gauges(group->devices[SHUNT_SOFT].context, &gauges);
	if (!gauges.wr_max)
		return;
	shunt_json_number(text, "model_wr", gauges.wr);
	shunt_json_number(text, "model_wr_max", gauges.wr_max);
	shunt_json_number(text, "model_bytes", gauges.bytes);
	shunt_json_number(text, "model_bytes_max", gauges.bytes_max);
	shunt_json_number(text, "model_misses", gauges.misses);
	shunt_json_number(text, "model_pauses", gauges.pauses);
	shunt_json_number(text, "model_busy_ns", gauges.busy_ns);
	shunt_json_number(text, "model_mr_ns", gauges.mr_ns);
}

/* Memory regions that are registered now. group.lock held. */
static void put_memory(struct shunt_json *text, struct shunt_group *group)
{
	uint64_t regions = 0, bytes = 0;

	for (struct shunt_lane *lane = group->lanes; lane; lane = lane->next_in_group) {
		if (lane->number)
			continue;	/* a link's memory is all its lanes' */
		regions += atomic_load(&lane->link->arena.regions);
		bytes += atomic_load(&lane->link->arena.registered);
	}
	shunt_json_number(text, "memory_regions", regions);
	shunt_json_number(text, "memory_registered", bytes);
}

static void put_counters(struct shunt_json *text, struct shunt_engine *engine)
{
	struct shunt_group *group = &engine->group;
	uint64_t stalls[SHUNT_LIMITS] = { 0 };

	shunt_json_put(text, "\"counters\":{");
	text->comma = false;
	shunt_json_number(text, "links", atomic_load(&engine->links_up));
	shunt_json_number(text, "failovers", atomic_load(&engine->failovers));
	shunt_json_number(text, "keepalive_probes", atomic_load(&engine->probes));
	shunt_json_number(text, "comebacks", atomic_load(&engine->comebacks));
	shunt_json_number(text, "streams_returned", atomic_load(&engine->returns));
	shunt_json_number(text, "mocked", atomic_load(&engine->mocked));
	shunt_json_number(text, "slow_looks", atomic_load(&engine->slow_looks));
	shunt_json_number(text, "slow_lanes", atomic_load(&engine->slow_lanes));
	shunt_json_number(text, "faults", atomic_load(&engine->fault.struck));
	shunt_json_number(text, "upgrades", atomic_load(&engine->upgrades));
	shunt_json_number(text, "handbacks", atomic_load(&engine->handbacks));
	shunt_json_number(text, "claims", atomic_load(&engine->claims));
	shunt_json_number(text, "claims_accepted", atomic_load(&engine->accepted_claims));
	shunt_json_number(text, "claims_refused", atomic_load(&engine->refused_claims));
	shunt_json_number(text, "claims_strayed", atomic_load(&engine->strayed_claims));
	shunt_json_number(text, "gate_turned_away", atomic_load(&engine->turned_away));
	shunt_json_number(text, "gate_other_keys", atomic_load(&engine->other_keys));
	shunt_json_number(text, "connections_proven", atomic_load(&engine->proven));
	shunt_json_number(text, "connections_disproven", atomic_load(&engine->disproven));
	shunt_json_number(text, "claims_redirected", atomic_load(&engine->redirects));
	shunt_json_number(text, "connections_told", atomic_load(&engine->haves));
	shunt_json_number(text, "rings_grown", atomic_load(&engine->grows));
	shunt_json_number(text, "rings_shrunk", atomic_load(&engine->shrinks));
	shunt_json_number(text, "sends_registered", atomic_load(&engine->pins));
	shunt_json_number(text, "links_distrusted", atomic_load(&engine->distrusted));
	put_memory(text, group);
	shunt_json_number(text, "polls", group->polls);
	shunt_json_number(text, "polls_empty", group->empty_polls);
	shunt_json_number(text, "completions", group->completions);
	shunt_json_number(text, "arms", group->arms);
	shunt_json_number(text, "events", group->events);
	shunt_json_number(text, "sleeps", group->sleeps);
	shunt_json_number(text, "kicks", group->kicks);
	shunt_json_number(text, "spin_hits", group->spin_hits);
	shunt_json_number(text, "spin_misses", group->spins);
	shunt_json_number(text, "spin_backoffs", group->backoffs);
	put_lanes(text, engine, stalls);
	put_gauges(text, group);
	shunt_json_put(text, "},");
	put_stalls(text, stalls);
	put_each_lane(text, group);
}

static void put_polling(struct shunt_json *text, struct shunt_engine *engine)
{
	shunt_json_put(text, "\"polling\":{\"mode\":\"%s\",", shunt_polling(engine)->name);
	text->comma = false;
	shunt_json_number(text, "cqs", engine->config.cqs);
	shunt_json_number(text, "sleep_cost_ns", atomic_load(&engine->group.sleep_cost));
	shunt_json_put(text, "},");
}

/* Nothing where no class is known. */
static void put_qos(struct shunt_json *text, struct shunt_engine *engine)
{
	char *member = shunt_qos_json(engine);

	if (member)
		shunt_json_put(text, "%s", member);
	free(member);
}

static void put_reasons(struct shunt_json *text, struct shunt_engine *engine)
{
	shunt_json_put(text, "\"reasons\":{");
	text->comma = false;
	for (int i = SHUNT_REASON_NONE + 1; i < SHUNT_REASONS; i++)
		if (engine->reasons[i])
			shunt_json_number(text, shunt_reason_text(i), engine->reasons[i]);
	shunt_json_put(text, "},");
}

/* Directions that left the link, by cause. */
static void put_left(struct shunt_json *text, struct shunt_engine *engine)
{
	shunt_json_put(text, "\"left\":{");
	text->comma = false;
	for (int i = 1; i < SHUNT_LEFTS; i++)
		shunt_json_number(text, shunt_left_text((uint8_t)i), atomic_load(&engine->left[i]));
	shunt_json_put(text, "},");
}

static void put_program(struct shunt_json *text)
{
	shunt_json_put(text, "\"program\":");
	shunt_json_string(text, program_invocation_short_name);
	shunt_json_put(text, ",");
}

static const char *device_name(struct shunt_engine *engine)
{
	if (engine->device_choice == SHUNT_DEVICE_NONE || engine->device_error[0])
		return "none";
	return engine->device_choice == SHUNT_DEVICE_VERBS ? "verbs" : "soft";
}

static const char *device_reason(struct shunt_engine *engine)
{
	return engine->device_choice == SHUNT_DEVICE_NONE ? "SHUNT_DEVICE=none" : engine->device_error;
}

static void put_totals(struct shunt_json *text, const struct shunt_totals *totals)
{
	shunt_json_put(text, "\"totals\":{");
	text->comma = false;
	shunt_json_number(text, "streams", totals->streams);
	shunt_json_number(text, "linked", totals->linked);
	shunt_json_number(text, "uncounted", totals->uncounted);
	put_bytes(text, "tx", NULL, &totals->tx);
	put_bytes(text, "rx", NULL, &totals->rx);
	shunt_json_put(text, "},");
}

char *shunt_stats_json(struct shunt_engine *engine, size_t *bytes)
{
	struct shunt_json text, list;
	struct sum sum = { .text = &list };

	shunt_json_begin(&text);
	shunt_json_begin(&list);
	shunt_lock_take(&engine->streams_lock);
	shunt_lock_take(&engine->group.lock);
	sum.totals = engine->totals;
	shunt_json_put(&text, "{\"schema\":%d,\"version\":\"%s\",\"pid\":%d,", SHUNT_JSON_SCHEMA,
		       PACKAGE_VERSION, (int)engine->pid);
	put_program(&text);
	shunt_json_put(&text, "\"device\":\"%s\",\"reason\":\"%s\",\"uptime_ms\":%llu,", device_name(engine), device_reason(engine),
	    (unsigned long long)(shunt_now(engine) - engine->born) / 1000000);
	shunt_json_put(&text, "\"uring\":\"%s\",", shunt_uring_text(atomic_load(&engine->uring)));
	put_polling(&text, engine);
	put_qos(&text, engine);
	put_counters(&text, engine);
	shunt_lock_leave(&engine->group.lock);	/* whoever moves bytes does not wait for what the kernel is asked */
	shunt_streams_each(engine, list_stream, &sum);
	put_totals(&text, &sum.totals);
	put_reasons(&text, engine);
	put_left(&text, engine);
	shunt_lock_leave(&engine->streams_lock);
	shunt_json_put(&text, "\"streams\":[%s]}\n", list.failed ? "" : list.start);
	text.failed |= list.failed;
	free(list.start);
	return shunt_json_end(&text, bytes);
}

/* --- to a file --- */

void shunt_stats_write(struct shunt_engine *engine)
{
	char path[SHUNT_CONFIG_PATH_MAX + 32];
	const char *why = "out of memory";
	size_t bytes;
	char *json;

	if (!shunt_config_path_text(engine->config.stats_path, path, sizeof(path)))
		return;
	json = shunt_stats_json(engine, &bytes);
	if (!json || shunt_outfile_replace(path, json, bytes, engine->sys->write, &why))
		shunt_log(SHUNT_LOG_WARN, "cannot write the statistics to %s: %s", path, why);
	free(json);
}

/* --- to who asks --- */

int shunt_stats_listen(struct shunt_engine *engine)
{
	char name[SHUNT_ENDPOINT_NAME], identity[SHUNT_IDENTITY_TEXT];

	shunt_identity_text(&engine->identity, identity);
	snprintf(name, sizeof(name), "shunt/stat/%s", identity);
	return shunt_endpoint_listen(engine, name, SOCK_STREAM, 16);
}

/* One answer at a time; a reader that does not keep up gets what it takes in half a second. */
static void answer(struct shunt_engine *engine, int fd)
{
	struct timeval patience = { .tv_usec = PATIENCE_US };
	size_t bytes = 0, done = 0;
	char *json = shunt_stats_json(engine, &bytes);
	uint64_t until = shunt_now(engine) + PATIENCE_US * 1000;

	engine->sys->setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
	while (json && done < bytes && shunt_now(engine) < until) {
		struct iovec iov = { json + done, bytes - done };
		struct msghdr message = { .msg_iov = &iov, .msg_iovlen = 1 };
		ssize_t sent = engine->sys->sendmsg(fd, &message, MSG_NOSIGNAL);

		if (sent <= 0)
			break;
		done += (size_t)sent;
	}
	free(json);
}

/* The reader has found that it looks for another process. */
static bool has_left(struct shunt_engine *engine, int fd)
{
	const struct timespec at_once = { 0 };
	struct pollfd reader = { .fd = fd };

	return engine->sys->ppoll(&reader, 1, &at_once, NULL) > 0 && reader.revents & POLLHUP;
}

void shunt_stats_serve(struct shunt_source *source, uint32_t events)
{
	struct shunt_service *service = shunt_loop_owner(source, struct shunt_service, statistics_source);
	struct shunt_engine *engine = service->engine;
	int asking = shunt_porter_shuts(service) ? -EAGAIN : shunt_deaf_accept(engine, service->statistics_fd, 0);

	(void)events;
	if (asking < 0)
		return;
	if (!shunt_trust_commands(engine, asking)) {
		shunt_porter_dismiss(engine, asking);
		return;
	}
	if (!has_left(engine, asking))
		answer(engine, asking);
	shunt_own_fds_close(engine, asking);
}
