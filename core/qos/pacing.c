/* SPDX-License-Identifier: MIT */
#include "core/qos/pacing.h"
#include <arpa/inet.h>
#include <errno.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include "core/engine.h"
#include "core/fork/fork_slots.h"
#include "core/qos/qos.h"
#include "core/qos/throttle.h"
#include "core/service.h"
#include "core/stream/track.h"
#include "core/stream/tuple.h"

/* TCP_INFO of each connection is asked for at most so often in a period. */
#define ANEW 8
/* ns: between two looks, and for each connection that the last one has found. */
#define APART 2000000ull
#define APART_EACH 1000ull
/* ns: for each, between two times that its use is asked for. */
#define ASKING_EACH 50000ull
#define UNLIMITED (~0ull)
#define UNREACHED 100000000000ull /* bytes a second that no track has: such a rate limits nothing */

/* --- of a stream --- */

/* Made when a limit first meets the stream. NULL: out of memory, and it is not paced. */
static struct shunt_pacing *pacing_of(struct shunt_stream *stream)
{
	struct shunt_pacing *pacing = atomic_load(&stream->pacing), *made;

	if (pacing)
		return pacing;
	made = calloc(1, sizeof(*made));
	if (!made || atomic_compare_exchange_strong(&stream->pacing, &pacing, made))
		return made;
	free(made);
	return pacing;
}

void shunt_pacing_inherit(struct shunt_stream *stream)
{
	struct shunt_pacing *pacing = atomic_load(&stream->pacing);

	if (!pacing)
		return;
	pacing->channel = pacing->matched_at = 0;
	pacing->portion.at = 0;
}

uint64_t shunt_pacing_rate(struct shunt_stream *stream)
{
	struct shunt_pacing *pacing = atomic_load(&stream->pacing);

	return pacing ? atomic_load(&pacing->rate) : 0;
}

/* --- the option; streams_lock held --- */

static bool read_kernels(struct shunt_stream *stream, uint64_t *value, bool *wide)
{
	socklen_t length = sizeof(*value);
	uint32_t narrow;

	*value = 0;
	if (shunt_stream_engine(stream)->sys->getsockopt(stream->fd, SOL_SOCKET, SO_MAX_PACING_RATE,
							 value, &length))
		return false;
	*wide = length == sizeof(*value);
	memcpy(&narrow, value, sizeof(narrow));
	if (!*wide)
		*value = narrow == UINT32_MAX ? UNLIMITED : narrow;
	return true;
}

static bool read_option(struct shunt_stream *stream)
{
	struct shunt_pacing *pacing = stream->pacing;

	return read_kernels(stream, &pacing->own, &pacing->wide);
}

/* As tcp_update_skb_after_send(): 0 limits nothing. */
static bool is_asked(struct shunt_stream *stream)
{
	uint64_t own;
	bool wide;

	if (shunt_pacing_rate(stream))
		own = stream->pacing->own;
	else if (stream->fd < 0 || !read_kernels(stream, &own, &wide))
		return false;
	return own && own < UNREACHED;
}

bool shunt_pacing_is_asked(struct shunt_stream *stream)
{
	struct shunt_engine *engine = shunt_stream_engine(stream);
	int saved = errno;
	bool asked;

	shunt_assert_held(&stream->tx.lock);
	shunt_lock_take(&engine->streams_lock);
	asked = is_asked(stream);
	shunt_lock_leave(&engine->streams_lock);
	errno = saved;
	return asked;
}

static bool write_option(struct shunt_stream *stream, uint64_t value)
{
	uint32_t narrow = value < UINT32_MAX ? (uint32_t)value : UINT32_MAX;
	bool wide = stream->pacing->wide;

	return !shunt_stream_engine(stream)->sys->setsockopt(
		stream->fd, SOL_SOCKET, SO_MAX_PACING_RATE, wide ? (void *)&value : (void *)&narrow,
		wide ? sizeof(value) : sizeof(narrow));
}

/* To the kernel 0 is no limit, either (tcp_update_skb_after_send()). */
static void write_smaller(struct shunt_stream *stream, uint64_t rate)
{
	struct shunt_pacing *pacing = stream->pacing;

	if (write_option(stream, pacing->own && pacing->own < rate ? pacing->own : rate))
		atomic_store(&pacing->rate, rate);
}

static void pace_held(struct shunt_stream *stream, uint64_t rate)
{
	int saved = errno;

	if (stream->fd >= 0 && pacing_of(stream) &&
	    (shunt_pacing_rate(stream) || read_option(stream)))
		write_smaller(stream, rate);
	errno = saved;
}

static void pace(struct shunt_stream *stream, uint64_t rate)
{
	struct shunt_engine *engine = shunt_stream_engine(stream);

	shunt_lock_take(&engine->streams_lock);
	pace_held(stream, rate);
	shunt_lock_leave(&engine->streams_lock);
}

void shunt_pacing_lift(struct shunt_stream *stream)
{
	struct shunt_engine *engine = shunt_stream_engine(stream);
	int saved = errno;

	if (!atomic_load(&stream->pacing))
		return;
	shunt_lock_take(&engine->streams_lock);
	if (stream->fd >= 0 && shunt_pacing_rate(stream)) {
		atomic_store(&stream->pacing->rate, 0);
		write_option(stream, stream->pacing->own);
	}
	shunt_lock_leave(&engine->streams_lock);
	errno = saved;
}

/* --- the option, as the program sees it --- */

int shunt_stream_set_pacing(struct shunt_stream *stream, int fd, const void *value,
			    socklen_t length)
{
	struct shunt_engine *engine = shunt_stream_engine(stream);
	uint64_t rate;
	int result = 0;

	/* The process with the link would not see it. */
	if (shunt_fork_slots_held(&stream->sharing))
		shunt_stream_retire(engine, fd, stream, SHUNT_CAUSE_OPTION);
	shunt_lock_take(&stream->tx.lock);
	shunt_lock_take(&engine->streams_lock);
	rate = shunt_pacing_rate(stream);
	if (engine->sys->setsockopt(fd, SOL_SOCKET, SO_MAX_PACING_RATE, value, length))
		result = -errno;
	else if (rate && stream->fd >= 0 && read_option(stream))
		write_smaller(stream, rate);
	shunt_lock_leave(&engine->streams_lock);
	if (!result)
		shunt_track_hold(stream, SHUNT_HELD_PACED, shunt_pacing_is_asked(stream));
	shunt_lock_leave(&stream->tx.lock);
	return result;
}

/* As sk_getsockopt(): all 64 bits where there is room for them. */
static void put_value(uint64_t own, void *value, socklen_t length)
{
	uint32_t narrow = own < UINT32_MAX ? (uint32_t)own : UINT32_MAX;

	if (length == sizeof(own))
		memcpy(value, &own, sizeof(own));
	else if (length <= sizeof(narrow))
		memcpy(value, &narrow, length);
}

int shunt_stream_get_pacing(struct shunt_stream *stream, int fd, void *value, socklen_t *length)
{
	struct shunt_engine *engine = shunt_stream_engine(stream);
	int result = 0;

	shunt_lock_take(&engine->streams_lock);
	if (engine->sys->getsockopt(fd, SOL_SOCKET, SO_MAX_PACING_RATE, value, length))
		result = -errno;
	else if (shunt_pacing_rate(stream))
		put_value(stream->pacing->own, value, *length);
	shunt_lock_leave(&engine->streams_lock);
	return result;
}

/* --- which limit --- */

/* The link that carries the stream, or carried it until it was retired. */
static struct shunt_link *link_of(const struct shunt_service *service, struct shunt_stream *stream)
{
	struct shunt_link *seat = atomic_load(&stream->seat->link), *link = service->links;
	uint32_t number = seat ? seat->channel.number : stream->pacing->channel;

	while (link && (seat ? link != seat : link->channel.number != number))
		link = link->next;
	if (link)
		stream->pacing->channel = number;
	return number ? link : NULL;
}

static bool read_client(struct shunt_stream *stream, struct shunt_qos_client *client)
{
	struct shunt_tuple tuple;

	memset(client, 0, sizeof(*client));
	if (shunt_tuple_of(stream->group->sys, stream->fd, &tuple))
		return false;
	memcpy(client->host, tuple.peer, sizeof(client->host));
	client->port = ntohs(tuple.local_port);
	return true;
}

/* Without a link, only host and port are known: a rule that asks for more is not met. */
static uint32_t match(const struct shunt_service *service, struct shunt_stream *stream)
{
	struct shunt_pacing *pacing = stream->pacing;
	struct shunt_qos_client client;

	if (pacing->matched_at == service->qos->number)
		return pacing->class;
	if (!read_client(stream, &client))
		return SHUNT_QOS_NO_CLASS;
	pacing->class = shunt_qos_match(&service->qos->rules, &client);
	pacing->matched_at = service->qos->number;
	return pacing->class;
}

static bool is_up(const struct shunt_link *link)
{
	return link && atomic_load(&((struct shunt_link *)link)->state) == SHUNT_LINK_UP;
}

/* Those that share a limit with the stream while it is on TCP; NULL: it has none. */
static struct shunt_paced *paced_of(struct shunt_service *service, struct shunt_stream *stream)
{
	struct shunt_link *link = link_of(service, stream);
	uint32_t class = SHUNT_QOS_NO_CLASS;

	if (stream->role == SHUNT_CONNECTOR)
		return link && link->initiator && link->throttle && link->throttle->limit ?
			       &link->throttle->paced :
			       NULL;
	if (service->qos && is_up(link))
		class = link->throttle ? link->throttle->class : SHUNT_QOS_NO_CLASS;
	else if (service->qos)
		class = match(service, stream);
	return class != SHUNT_QOS_NO_CLASS && service->qos->rules.classes[class].limit ?
		       &service->qos->classes[class].paced :
		       NULL;
}

/* Something keeps a stream that has a link on TCP: see shunt_track_choose(). */
static bool is_kept(struct shunt_stream *stream)
{
	return atomic_load(&stream->seat->out.held) ||
	       atomic_load(&stream->seat->leaving.asked) != SHUNT_NOT_ASKED ||
	       !shunt_stream_stays(stream) ||
	       atomic_load(&stream->seat->in.proof.state) == SHUNT_DISPROVEN ||
	       atomic_load(&stream->seat->out.show) == SHUNT_WITHDRAWN ||
	       !is_up(stream->seat->link);
}

/* Its next bytes go by TCP. One that is about to go to the link is not counted. */
static bool is_on_tcp(struct shunt_stream *stream)
{
	uint8_t state = atomic_load(&stream->state);

	if (state == SHUNT_CANDIDATE)
		return !atomic_load(&stream->seat->link);
	if (state != SHUNT_LINKED)
		return state == SHUNT_PLAIN;
	return !shunt_heading_on_link(&stream->seat->out.heading) && is_kept(stream);
}

/* --- what it uses --- */

struct use {
	uint64_t sent, arrived; /* bytes of TCP; sent ones have been acknowledged */
	bool is_short; /* more wait to be sent */
};

static bool read_use(struct shunt_stream *stream, struct use *use)
{
	struct tcp_info info = { 0 };
	socklen_t length = sizeof(info);
	bool known;

	shunt_lock_take(&shunt_stream_engine(stream)->streams_lock);
	known = stream->fd >= 0 && !shunt_stream_engine(stream)->sys->getsockopt(
					   stream->fd, IPPROTO_TCP, TCP_INFO, &info, &length);
	shunt_lock_leave(&shunt_stream_engine(stream)->streams_lock);
	*use = (struct use) { info.tcpi_bytes_acked, info.tcpi_bytes_received,
			      info.tcpi_notsent_bytes != 0 };
	return known && length >= offsetof(struct tcp_info, tcpi_notsent_bytes) +
					  sizeof(info.tcpi_notsent_bytes);
}

/* Bytes before the first look count where the connection was accepted under the limit. Whole tokens, as in the meter. */
static void arrivals_count(struct shunt_service *service, struct shunt_stream *stream,
			   struct shunt_paced *paced, uint64_t bytes)
{
	struct shunt_pacing *pacing = stream->pacing;
	struct shunt_link *link = link_of(service, stream);
	bool counts = pacing->anew || pacing->portion.at;
	uint64_t tokens = counts ? bytes / SHUNT_TOKEN_BYTES - pacing->arrived / SHUNT_TOKEN_BYTES :
				   0;

	pacing->arrived = bytes;
	pacing->anew = false;
	shunt_lock_take(&service->engine->group.lock);
	paced->arrived += tokens;
	if (link && link->throttle && paced != &link->throttle->paced)
		link->throttle->paced.arrived += tokens;
	shunt_lock_leave(&service->engine->group.lock);
}

static void paced_measure(struct shunt_service *service, struct shunt_stream *stream,
			  struct shunt_paced *paced, uint64_t now)
{
	struct shunt_portion *portion = &stream->pacing->portion;
	uint64_t tokens, before = portion->taken;
	struct use use;

	portion->least = SHUNT_PACING_LEAST;
	if (portion->at && !shunt_portion_is_due(portion, paced->every, now))
		return;
	if (!read_use(stream, &use)) {
		shunt_portion_begin(portion, 0, 0, now);
		return;
	}
	arrivals_count(service, stream, paced, use.arrived);
	tokens = use.sent / SHUNT_TOKEN_BYTES;
	if (!portion->at) {
		shunt_portion_begin(portion, tokens, 0, now);
		return;
	}
	shunt_portion_used(portion, tokens, portion->waits + use.is_short, now);
	shunt_lock_take(&shunt_stream_engine(stream)->group.lock);
	paced->tokens += portion->taken - before;
	paced->waits += use.is_short;
	shunt_lock_leave(&shunt_stream_engine(stream)->group.lock);
}

/* --- a look --- */

static void paced_begin(struct shunt_paced *paced, uint64_t period)
{
	paced->first = NULL;
	paced->every = period / ANEW;
}

/* streams_lock held. */
static bool is_of_interest(struct shunt_stream *stream, void *arg)
{
	(void)arg;
	return stream->fd >= 0 && stream->role != SHUNT_LISTENER &&
	       (is_on_tcp(stream) || shunt_pacing_rate(stream));
}

/* On the link the socket keeps its rate: if the stream comes back, it is paced from its first byte. */
static bool take_in(struct shunt_service *service, struct shunt_stream *stream, uint64_t now)
{
	struct shunt_pacing *pacing = pacing_of(stream);
	struct shunt_paced *paced = pacing ? paced_of(service, stream) : NULL;

	if (!paced)
		shunt_pacing_lift(stream);
	if (!paced || !is_on_tcp(stream)) {
		if (pacing)
			pacing->portion.at = 0;
		return false;
	}
	paced_measure(service, stream, paced, now);
	shunt_streams_hold(stream);
	pacing->next = paced->first;
	paced->first = stream;
	return true;
}

static uint32_t paced_gather(struct shunt_service *service, uint64_t now, uint64_t *next)
{
	struct shunt_sweep sweep = { .wants = is_of_interest };
	struct shunt_qos *qos = service->qos;
	struct shunt_stream *stream;
	uint32_t count = 0;

	for (uint32_t i = 0; qos && i < qos->rules.count; i++)
		paced_begin(&qos->classes[i].paced, qos->rules.period_ms * 1000000ull);
	for (struct shunt_link *link = service->links; link; link = link->next)
		if (link->throttle)
			paced_begin(&link->throttle->paced, link->throttle->period);
	while ((stream = shunt_streams_next(service->engine, &sweep)) != NULL) {
		if (!take_in(service, stream, now))
			continue;
		count++;
		if (!stream->pacing->portion.known && *next > now + SHUNT_PORTION_NEW)
			*next = now + SHUNT_PORTION_NEW;
	}
	return count;
}

/* Sums up for the statistics. The streams are let go of. */
static void paced_end(struct shunt_engine *engine, struct shunt_paced *paced)
{
	struct shunt_stream *stream = paced->first, *next;
	uint64_t rate = 0, used = 0;
	uint32_t count = 0;

	for (; stream; stream = next, count++) {
		next = stream->pacing->next;
		rate += stream->pacing->portion.rate;
		used += stream->pacing->portion.used;
		shunt_streams_unhold(stream);
	}
	paced->first = NULL;
	shunt_lock_take(&engine->group.lock);
	paced->rate = rate;
	paced->used = used;
	paced->count = count;
	shunt_lock_leave(&engine->group.lock);
}

struct shunt_portion *shunt_pacing_join(const struct shunt_paced *paced,
					struct shunt_portion *first)
{
	for (struct shunt_stream *stream = paced->first; stream; stream = stream->pacing->next) {
		stream->pacing->portion.next = first;
		first = &stream->pacing->portion;
	}
	return first;
}

void shunt_pacing_apply(const struct shunt_paced *paced, bool less)
{
	for (struct shunt_stream *stream = paced->first; stream; stream = stream->pacing->next) {
		uint64_t rate = stream->pacing->portion.rate * SHUNT_TOKEN_BYTES / 1000,
			 now = shunt_pacing_rate(stream);

		if (less ? !now || rate < now : rate > now + now / 256)
			pace(stream, rate);
	}
}

/* Those that shared before have more now, so a class whose last connection has gone is split, too. */
static void paced_share(struct shunt_service *service, uint64_t now)
{
	struct shunt_qos *qos = service->qos;

	for (uint32_t i = 0; qos && i < qos->rules.count; i++)
		if (qos->classes[i].paced.first || qos->classes[i].paced.count)
			shunt_qos_split(service, i, now);
	for (struct shunt_link *link = service->links; link; link = link->next)
		if (link->initiator && is_up(link) && link->throttle && link->throttle->limit)
			shunt_qos_share(link, now);
}

static void end_all(struct shunt_service *service)
{
	struct shunt_qos *qos = service->qos;

	for (uint32_t i = 0; qos && i < qos->rules.count; i++)
		paced_end(service->engine, &qos->classes[i].paced);
	for (struct shunt_link *link = service->links; link; link = link->next)
		if (link->throttle)
			paced_end(service->engine, &link->throttle->paced);
}

static uint64_t shortest_period(const struct shunt_service *service)
{
	uint64_t period = service->qos ? service->qos->rules.period_ms * 1000000ull : SHUNT_NEVER;

	for (struct shunt_link *link = service->links; link; link = link->next)
		if (link->throttle && link->throttle->limit && link->throttle->period < period)
			period = link->throttle->period;
	return period;
}

void shunt_pacing_look(struct shunt_service *service, uint64_t now)
{
	uint64_t next = now + shortest_period(service) / ANEW;
	uint32_t count = paced_gather(service, now, &next);

	paced_share(service, now);
	end_all(service);
	service->engine->work.tasks.pacing.not_before = now + APART + count * APART_EACH;
	if (count)
		shunt_task_at(&service->engine->work.tasks.pacing, next + count * ASKING_EACH);
}

void shunt_pacing_run(struct shunt_task *task)
{
	struct shunt_service *service = shunt_engine_of(task, work.tasks.pacing)->service;

	shunt_pacing_look(service, shunt_now(service->engine));
}

static bool has_limits(const struct shunt_service *service)
{
	const struct shunt_qos *qos = service->qos;

	for (uint32_t i = 0; qos && i < qos->rules.count; i++)
		if (qos->rules.classes[i].limit)
			return true;
	for (struct shunt_link *link = service->links; link; link = link->next)
		if (link->throttle && link->throttle->limit)
			return true;
	return false;
}

void shunt_pacing_rules_changed(struct shunt_service *service)
{
	bool paces = has_limits(service);

	if (atomic_exchange(&service->engine->paces, paces) || paces)
		shunt_pacing_look(service, shunt_now(service->engine));
}

/* --- one that comes --- */

/* As if all others of the class sent, too; the look that follows knows better. */
static uint64_t first_rate(struct shunt_engine *engine, const struct shunt_qos_client *client)
{
	struct shunt_qos *qos = engine->service ? engine->service->qos : NULL;
	uint32_t class = qos ? shunt_qos_match(&qos->rules, client) : SHUNT_QOS_NO_CLASS;

	if (class == SHUNT_QOS_NO_CLASS)
		return 0;
	return qos->rules.classes[class].limit * SHUNT_TOKEN_BYTES / 1000 /
	       (qos->classes[class].paced.count + qos->classes[class].clients + 1);
}

void shunt_pacing_accepted(struct shunt_stream *stream)
{
	struct shunt_engine *engine = shunt_stream_engine(stream);
	struct shunt_qos_client client;
	int saved = errno;
	uint64_t rate = 0;

	if (read_client(stream, &client)) {
		shunt_lock_take(&engine->group.lock);
		rate = first_rate(engine, &client);
		shunt_lock_leave(&engine->group.lock);
	}
	if (rate)
		pace(stream, rate);
	if (rate && atomic_load(&stream->pacing))
		stream->pacing->anew = true;
	if (engine->service) /* also where the limit has just gone */
		shunt_loop_post(&engine->loop, &engine->work.tasks.pacing);
	errno = saved;
}
