/* SPDX-License-Identifier: MIT */
#include "core/stream/kept.h"
#include "core/admin/stats.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "core/admin/stats_device.h"
#include "core/admin/stats_lane.h"
#include "core/admin/stats_stream.h"
#include "core/base/identity.h"
#include "core/base/json.h"
#include "core/base/outfile.h"
#include "core/base/program.h"
#include "core/fd/own_fds.h"
#include "core/lane/zero_copy.h"
#include "core/link/trust.h"
#include "core/peer/deaf.h"
#include "core/loop/endpoint.h"
#include "core/poll/polling.h"
#include "core/qos/qos.h"
#include "core/service.h"
#include "core/stream/carried.h"
#include "core/stream/left.h"
#include "core/stream/uring.h"

#define PATIENCE_US 500000	/* with a reader, on the service thread */

struct sum {
	struct shunt_json *text;
	struct shunt_totals totals;
	struct shunt_bytes plain_tx, plain_rx;	/* of the totals, what the kernel says of open plain streams */
};

static void bytes_add(struct shunt_bytes *sum, const struct shunt_bytes *more)
{
	sum->tcp += more->tcp;
	sum->link += more->link;
	sum->late += more->late;
	sum->late_tcp += more->late_tcp;
}

static void subtract(struct shunt_bytes *sum, const struct shunt_bytes *less)
{
	sum->tcp -= less->tcp;
	sum->link -= less->link;
	sum->late -= less->late;
	sum->late_tcp -= less->late_tcp;
}

static bool is_connection(struct shunt_stream *stream)
{
	return stream->fd >= 0 && stream->role != SHUNT_LISTENER && !shunt_kept_rests(stream) &&
	       atomic_load(&stream->state) != SHUNT_FRESH;
}

static int list_stream(struct shunt_stream *stream, void *arg)
{
	struct sum *sum = arg;
	struct shunt_bytes tx = stream->tx.bytes, rx = stream->rx.bytes;

	if (!is_connection(stream))
		return 0;
	subtract(&sum->plain_tx, &tx);
	subtract(&sum->plain_rx, &rx);
	shunt_carried_add(stream, &tx, &rx);
	bytes_add(&sum->plain_tx, &tx);
	bytes_add(&sum->plain_rx, &rx);
	bytes_add(&sum->totals.tx, &tx);
	bytes_add(&sum->totals.rx, &rx);
	shunt_histogram_merge(sum->totals.sizes, stream->tx.sizes, SHUNT_SIZE_BUCKETS);
	shunt_stats_put_stream(sum->text, stream, &tx, &rx);
	return 0;
}

/* `lanes` becomes the sum of all. group.lock held. */
static void put_counters(struct shunt_json *text, struct shunt_engine *engine,
			 struct shunt_lane_stats *lanes)
{
	struct shunt_group *group = &engine->group;

	shunt_json_put(text, "\"counters\":{");
	text->comma = false;
	shunt_json_number(text, "links", atomic_load(&engine->lanes.links_up));
	shunt_json_number(text, "queue_pairs_created", atomic_load(&engine->lanes.queue_pairs));
	shunt_json_number(text, "links_evicted", atomic_load(&engine->evicted));
	shunt_json_number(text, "failovers", atomic_load(&engine->failovers));
	shunt_json_number(text, "keepalive_probes", atomic_load(&engine->probes));
	shunt_json_number(text, "nops", atomic_load(&engine->nops));
	shunt_json_number(text, "comebacks", atomic_load(&engine->reconnects));
	shunt_json_number(text, "streams_returned", atomic_load(&engine->returns));
	shunt_json_number(text, "bypassed", atomic_load(&engine->bypassed));
	shunt_json_number(text, "bypassing", atomic_load(&engine->bypassing));
	shunt_json_number(text, "mocked", atomic_load(&engine->mocked));
	shunt_json_number(text, "poll_gaps", shunt_slow_count(&engine->steps.log, SHUNT_STEP_POLL));
	shunt_json_number(text, "slow_steps", shunt_slow_steps(&engine->steps.log));
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
	shunt_json_number(text, "births_connected", atomic_load(&engine->spares.connected));
	shunt_json_number(text, "births_accepted", atomic_load(&engine->spares.accepted));
	shunt_json_number(text, "rings_grown", atomic_load(&engine->grows));
	shunt_json_number(text, "rings_shrunk", atomic_load(&engine->shrinks));
	shunt_json_number(text, "sends_registered", atomic_load(&engine->pins));
	shunt_json_number(text, "links_distrusted", atomic_load(&engine->links.distrusted));
	shunt_stats_put_memory(text, group);
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
	shunt_stats_put_lanes(text, engine, lanes);
	shunt_stats_put_gauges(text, group);
	shunt_json_put(text, "},");
	shunt_stats_put_stalls(text, lanes->counters.stalls);
	shunt_stats_put_each_lane(text, group);
	shunt_stats_put_links(text, group);
}

static void put_polling(struct shunt_json *text, struct shunt_engine *engine)
{
	shunt_json_put(text, "\"polling\":{\"mode\":\"%s\",", shunt_polling(&engine->group)->name);
	text->comma = false;
	shunt_json_number(text, "cqs", engine->config.cqs);
	shunt_json_number(text, "sleep_cost_ns", atomic_load(&engine->group.sleep_cost));
	shunt_json_put(text, "},");
}

/* Nothing until a link's device fetches data; from_bytes 0: no send is registered. */
static void put_registering(struct shunt_json *text, struct shunt_engine *engine)
{
	uint64_t from = atomic_load(&engine->lanes.pin_from);

	if (!atomic_load(&engine->lanes.pin_from_chosen))
		return;
	shunt_json_put(text, "\"registering\":{\"measured\":%s,",
		       engine->config.mr_threshold == SHUNT_ZERO_COPY_AUTO ? "true" : "false");
	text->comma = false;
	shunt_json_number(text, "from_bytes", from == UINT64_MAX ? 0 : from);
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

/* The sums of strangers, and their limits (core/peer/limits.h). */
static void put_strangers(struct shunt_json *text, struct shunt_engine *engine)
{
	struct shunt_strangers *strangers = &engine->strangers;
	struct shunt_most most = shunt_limits_most(engine);

	shunt_json_put(text, "\"strangers\":{");
	text->comma = false;
	shunt_json_number(text, "links", atomic_load(&strangers->links));
	shunt_json_number(text, "links_most", most.links);
	shunt_json_number(text, "unproven", atomic_load(&strangers->unproven));
	shunt_json_number(text, "unproven_most", SHUNT_GUESTS);
	shunt_json_number(text, "co_listeners", atomic_load(&strangers->co_listeners));
	shunt_json_number(text, "co_listeners_most", most.co_listeners);
	shunt_json_number(text, "address_space", atomic_load(&strangers->space));
	shunt_json_number(text, "address_space_most", SHUNT_SPACE_OF_STRANGERS);
	shunt_json_number(text, "refused", atomic_load(&strangers->refused));
	shunt_json_put(text, "},");
}

static void put_reasons(struct shunt_json *text, struct shunt_engine *engine)
{
	uint64_t counts[SHUNT_REASONS] = { 0 };

	for (int i = SHUNT_CAUSE_NONE + 1; i < SHUNT_CAUSES; i++)
		counts[shunt_reason_of(i)] += engine->causes[i];
	shunt_json_put(text, "\"reasons\":{");
	text->comma = false;
	for (int i = SHUNT_REASON_NONE + 1; i < SHUNT_REASONS; i++)
		if (counts[i])
			shunt_json_number(text, shunt_reason_text(i), counts[i]);
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
	shunt_json_string(text, shunt_program_name());
	shunt_json_put(text, ",");
}

static const char *device_name(struct shunt_engine *engine)
{
	if (engine->device_choice == SHUNT_DEVICE_NONE || engine->group.device_error[0])
		return "none";
	return engine->device_choice == SHUNT_DEVICE_VERBS ? "verbs" : "soft";
}

static const char *device_reason(struct shunt_engine *engine)
{
	return engine->device_choice == SHUNT_DEVICE_NONE ? "SHUNT_DEVICE=none" :
							    engine->group.device_error;
}

/* The kernel's part goes with its stream, so that only the rest never becomes less. */
static void put_totals(struct shunt_json *text, const struct sum *sum)
{
	const struct shunt_totals *totals = &sum->totals;

	shunt_json_put(text, "\"totals\":{");
	text->comma = false;
	shunt_json_number(text, "streams", totals->streams);
	shunt_json_number(text, "linked", totals->linked);
	shunt_json_number(text, "uncounted", totals->uncounted);
	shunt_stats_put_bytes(text, "tx", NULL, &totals->tx);
	shunt_stats_put_bytes(text, "rx", NULL, &totals->rx);
	shunt_stats_put_bytes(text, "plain_tx", NULL, &sum->plain_tx);
	shunt_stats_put_bytes(text, "plain_rx", NULL, &sum->plain_rx);
	shunt_json_put(text, "},");
}

static void put_histogram(struct shunt_json *text, const char *name, const uint64_t *counts,
			  uint32_t buckets)
{
	shunt_json_put(text, "\"%s\":[", name);
	for (uint32_t i = 0; i < buckets; i++)
		shunt_json_put(text, "%s%llu", i ? "," : "", (unsigned long long)counts[i]);
	shunt_json_put(text, "]");
}

static void put_histograms(struct shunt_json *text, const struct shunt_totals *totals,
			   const struct shunt_lane_stats *lanes)
{
	shunt_json_put(text, "\"histograms\":{");
	put_histogram(text, "send_bytes", totals->sizes, SHUNT_SIZE_BUCKETS);
	shunt_json_put(text, ",");
	put_histogram(text, "link_ns", lanes->link_ns, SHUNT_TIME_BUCKETS);
	shunt_json_put(text, "},");
}

char *shunt_stats_json(struct shunt_engine *engine, size_t *bytes)
{
	struct shunt_json text, list;
	struct shunt_lane_stats lanes;
	struct sum sum = { .text = &list };

	engine->grow_young(engine, true);
	shunt_json_begin(&text);
	shunt_json_begin(&list);
	shunt_lock_take(&engine->streams_lock);
	shunt_lock_take(&engine->group.lock);
	sum.totals = engine->totals;
	shunt_json_put(&text, "{\"schema\":%d,\"pid\":%d,\"version\":\"%s\",", SHUNT_JSON_SCHEMA,
		       (int)engine->forks.pid, PACKAGE_VERSION);
	put_program(&text);
	shunt_json_put(&text, "\"device\":\"%s\",\"reason\":\"%s\",\"uptime_ms\":%llu,",
		       device_name(engine), device_reason(engine),
		       (unsigned long long)(shunt_now(engine) - engine->born) / 1000000);
	shunt_json_put(&text, "\"uring\":\"%s\",", shunt_uring_text(atomic_load(&engine->uring)));
	put_polling(&text, engine);
	put_registering(&text, engine);
	put_qos(&text, engine);
	put_counters(&text, engine, &lanes);
	shunt_lock_leave(&engine->group.lock);	/* whoever moves bytes does not wait for what the kernel is asked */
	shunt_streams_each(engine, list_stream, &sum);
	put_totals(&text, &sum);
	put_histograms(&text, &sum.totals, &lanes);
	put_strangers(&text, engine);
	put_reasons(&text, engine);
	put_left(&text, engine);
	shunt_lock_leave(&engine->streams_lock);
	shunt_stats_put_devices(&text, engine);
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
	return shunt_endpoint_listen(&engine->porter, name, SOCK_STREAM, 16);
}

/* One answer at a time; a reader that does not keep up gets what it takes in half a second. */
static void reader_answer(struct shunt_engine *engine, int fd)
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

/*
 * An arrival is in a receive queue, whether the program polls or not. Where gaps between its polls are counted
 * (poll_warn_us), a poll of ours would hide one.
 */
static void reader_hear(struct shunt_engine *engine)
{
	if (!shunt_config_live(&engine->config.poll_warn_us))
		shunt_group_poll(&engine->group);
}

void shunt_stats_serve(struct shunt_source *source, uint32_t events)
{
	struct shunt_service *service = shunt_loop_owner(source, struct shunt_service, statistics_source);
	struct shunt_engine *engine = service->engine;
	int asking = shunt_deaf_shuts(service) ?
			     -EAGAIN :
			     shunt_deaf_accept(engine, service->statistics_fd, 0);

	(void)events;
	if (asking < 0)
		return;
	if (!shunt_trust_commands(&engine->fds, asking)) {
		shunt_porter_dismiss(&engine->porter, asking);
		return;
	}
	if (!has_left(engine, asking)) {
		reader_hear(engine);
		reader_answer(engine, asking);
	}
	shunt_own_fds_close(&engine->fds, asking);
}
