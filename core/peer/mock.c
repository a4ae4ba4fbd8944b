/* SPDX-License-Identifier: MIT */
#include "core/peer/mock.h"
#include "core/base/answer.h"
#include "core/stream/track.h"
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include "core/stream/streams.h"
#include "core/qos/pacing.h"
#include "core/qos/throttle.h"
#include "core/service.h"
#include "core/stream/tuple.h"

/* --- what is said of a stream --- */

const char *shunt_mock_text(uint8_t held)
{
	return held & SHUNT_HELD_MOCK  ? "operator" :
	       held & SHUNT_HELD_PEER  ? "peer's operator" :
	       held & SHUNT_HELD_SLOW  ? "slow completions" :
	       held & SHUNT_HELD_PACED ? "SO_MAX_PACING_RATE" :
					 "";
}

void shunt_mock_begin(struct shunt_stream *stream)
{
	uint8_t mock = atomic_load(&stream->mock), held = 0;

	if (mock == SHUNT_MOCK_TCP)
		held |= SHUNT_HELD_MOCK;
	if (mock == SHUNT_MOCK_AUTO && stream->seat->lane->slow.held)
		held |= SHUNT_HELD_SLOW;
	if (shunt_pacing_is_asked(stream))
		held |= SHUNT_HELD_PACED;
	atomic_store(&stream->seat->out.held, held);
}

static void peer_tell(struct shunt_stream *stream, bool tcp)
{
	struct shunt_message message = { .type = SHUNT_MSG_MOCK,
					 .stream = stream->seat->peer_id,
					 .tcp = tcp };

	/* Where the link is over, the next one begins with it. */
	if (atomic_load(&stream->seat->link->state) == SHUNT_LINK_UP)
		shunt_link_send(stream->seat->link, &message, NULL, 0);
}

bool shunt_mock_wants_tcp(struct shunt_stream *stream)
{
	return atomic_load(&stream->seat->out.held) & SHUNT_HELD_MOCK;
}

static bool stream_hold(struct shunt_stream *stream, uint8_t bit, bool on)
{
	bool changed;

	shunt_lock_take(&stream->tx.lock);
	changed = shunt_track_hold(stream, bit, on);
	shunt_lock_leave(&stream->tx.lock);
	return changed;
}

void shunt_mock_asked(struct shunt_stream *stream, bool tcp)
{
	stream_hold(stream, SHUNT_HELD_PEER, tcp);
}

void shunt_mock_set(struct shunt_stream *stream, enum shunt_mock mock)
{
	atomic_store(&stream->mock, mock);
	if (mock != SHUNT_MOCK_AUTO)
		stream_hold(stream, SHUNT_HELD_SLOW, false);
	if (stream_hold(stream, SHUNT_HELD_MOCK, mock == SHUNT_MOCK_TCP)) {
		atomic_fetch_add(&shunt_stream_engine(stream)->mocked, 1);
		peer_tell(stream, mock == SHUNT_MOCK_TCP);
	}
}

/* --- the command --- */

struct chosen {
	struct shunt_engine *engine;
	int fd;			/* -1: by its addresses, or all */
	const struct shunt_tuple *tuple;	/* NULL: all */
	uint8_t mock;
};

static bool is_meant(struct shunt_stream *stream, void *arg)
{
	struct chosen *chosen = arg;

	if (stream->fd < 0 || stream->role == SHUNT_LISTENER)
		return false;
	if (chosen->fd >= 0)
		return shunt_file(chosen->engine, chosen->fd) == &stream->file;
	if (!chosen->tuple)
		return true;
	if (!shunt_tuple_is_known(&stream->tuple))
		shunt_rendezvous_learn(stream);
	return shunt_tuple_is_known(&stream->tuple) &&
	       !memcmp(&stream->tuple, chosen->tuple, sizeof(*chosen->tuple));
}

/* Their locks are not to be taken under streams_lock. True: there were some. */
static bool apply(struct chosen *chosen)
{
	struct shunt_sweep sweep = { .wants = is_meant, .arg = chosen };
	struct shunt_stream *stream;
	bool any = false;

	while ((stream = shunt_streams_next(chosen->engine, &sweep)) != NULL) {
		shunt_mock_set(stream, chosen->mock);
		any = true;
	}
	return any;
}

static int mock_of(const char *word)
{
	static const char *const words[] = { "auto", "tcp", "rdma" };

	for (int i = 0; i < 3; i++)
		if (!strcmp(word, words[i]))
			return i;
	return -1;
}

/* "127.0.0.1:80" or "[::1]:80", as `shunt stat` shows it. */
static bool parse_address(const char *word, uint8_t address[16], uint16_t *port)
{
	const char *colon = strrchr(word, ':');
	size_t length = colon ? (size_t)(colon - word) : 0;
	char host[INET6_ADDRSTRLEN];
	long number = colon ? shunt_answer_number(colon + 1, UINT16_MAX) : -1;
	bool six = *word == '[';

	if (number < 0 || length < 3 || length - 2 * six >= sizeof(host) || (six && colon[-1] != ']'))
		return false;
	*port = htons((uint16_t)number);
	memcpy(host, word + six, length - 2 * six);
	host[length - 2 * six] = '\0';
	if (six)
		return inet_pton(AF_INET6, host, address) == 1;
	memcpy(address, "\0\0\0\0\0\0\0\0\0\0\xff\xff", 12);
	return inet_pton(AF_INET, host, address + 12) == 1;
}

/* Which stream is meant by the words behind the mode. */
static bool parse_which(int count, char **words, struct chosen *chosen, struct shunt_tuple *tuple)
{
	memset(tuple, 0, sizeof(*tuple));
	if (count == 1) {
		chosen->fd = (int)shunt_answer_number(words[0], INT32_MAX);
		return chosen->fd >= 0 && (size_t)chosen->fd < chosen->engine->fds.files->limit;
	}
	chosen->tuple = tuple;
	return parse_address(words[0], tuple->local, &tuple->local_port) &&
	       parse_address(words[1], tuple->peer, &tuple->peer_port);
}

int shunt_mock_command(struct shunt_engine *engine, int count, char **words, struct shunt_answer *answer)
{
	struct chosen chosen = { .engine = engine, .fd = -1 };
	struct shunt_tuple tuple;
	int mock = mock_of(words[0]);

	if (mock < 0 || (count > 1 && !parse_which(count - 1, words + 1, &chosen, &tuple))) {
		shunt_answer_put(answer, "it is: mock auto|tcp|rdma [FD | LOCAL PEER]\n");
		return -1;
	}
	chosen.mock = (uint8_t)mock;
	if (count == 1)	/* of those that come, too */
		__atomic_store_n(&engine->config.mock, (uint64_t)mock, __ATOMIC_SEQ_CST);
	count = apply(&chosen) || count == 1;
	if (!count) {
		shunt_answer_put(answer, "there is no such stream\n");
		return -1;
	}
	shunt_answer_put(answer, "mock %s\n", words[0]);
	return 0;
}

/* --- the rule --- */

static void hold_all(struct shunt_lane *lane, bool on)
{
	struct shunt_stream *stream;

	shunt_streams_seated_held(lane->link, stream)
	{
		if (stream->seat->lane == lane &&
		    (!on || atomic_load(&stream->mock) == SHUNT_MOCK_AUTO))
			stream_hold(stream, SHUNT_HELD_SLOW, on);
		shunt_streams_unhold(stream);
	}
}

/* Longer each time, until once it was left alone for as long as that. */
static uint64_t next_hold(const struct shunt_config *config, const struct shunt_slow *slow, uint64_t now)
{
	uint64_t least = config->return_ms * 1000000, most = config->return_max_ms * 1000000;
	uint64_t next = slow->hold && now - slow->until < slow->hold ? 2 * slow->hold : least;

	return next < most ? next : most;
}

static void begin_hold(struct shunt_lane *lane, uint64_t now)
{
	struct shunt_slow *slow = &lane->slow;
	struct shunt_engine *engine = lane->link->engine;
	uint64_t hold = next_hold(&engine->config, slow, now);
	bool told = hold == slow->hold && now - slow->until < hold; /* it is as slow as before: nothing new */
	uint32_t times = slow->times;

	slow->times = 0;
	slow->hold = hold;
	slow->until = now + slow->hold;
	slow->held = true;
	atomic_fetch_add(&engine->slow_lanes, 1);
	shunt_log(
		told ? SHUNT_LOG_DEBUG : SHUNT_LOG_WARN,
		"link to process %u%s: no completion for %llu ms, %u times in a row; its streams send over TCP for %llu ms",
		lane->link->peer_pid, shunt_link_where(lane->link),
		(unsigned long long)engine->config.slow_ms, times,
		(unsigned long long)slow->hold / 1000000);
	hold_all(lane, true);
}

/* A stream that needs tokens would need none on TCP, and take what others reserve. */
static bool may_leave(const struct shunt_config *config, const struct shunt_link *link)
{
	const struct shunt_throttle *throttle = link->throttle;

	return config->mock != SHUNT_MOCK_RDMA &&
	       !(throttle && (throttle->counted || throttle->member));
}

/* True: to be looked at again. */
static bool look_at_lane(struct shunt_lane *lane, uint64_t now)
{
	struct shunt_slow *slow = &lane->slow;
	const struct shunt_config *config = &lane->link->engine->config;
	uint64_t retired = atomic_load(&lane->retired), awaited = shunt_lane_awaited(lane);

	if (slow->held && now >= slow->until) {
		slow->held = false;
		slow->waits = false;
		hold_all(lane, false);
	}
	slow->times = slow->waits && slow->retired == retired && may_leave(config, lane->link) ?
			      slow->times + 1 :
			      0;
	if (slow->times)
		atomic_fetch_add(&lane->link->engine->slow_looks, 1);
	slow->waits = awaited > retired;
	slow->retired = retired;
	if (slow->times >= config->slow_times && !slow->held)
		begin_hold(lane, now);
	return slow->waits || slow->held;
}

void shunt_mock_run(struct shunt_task *task)
{
	struct shunt_service *service = shunt_engine_of(task, loop.requests.mock)->service;
	struct shunt_engine *engine = service->engine;
	uint64_t now = shunt_now(engine);
	bool again = false;

	shunt_group_poll_fully(&engine->group);	/* perhaps nobody else does */
	for (struct shunt_link *link = service->links; link; link = link->next)
		for (uint32_t i = 0; atomic_load(&link->state) == SHUNT_LINK_UP && i < link->lane_count; i++)
			again |= look_at_lane(&link->lanes[i], now);
	task->not_before = now + (engine->config.slow_ms ? engine->config.slow_ms : 1) * 1000000;
	if (again)
		shunt_task_at(task, task->not_before);
}
