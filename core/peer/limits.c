/* SPDX-License-Identifier: MIT */
#include "core/peer/limits.h"
#include <string.h>
#include <sys/resource.h>
#include "core/base/narrow.h"
#include "core/lane/lanes.h"
#include "core/link/share.h"
#include "core/link/trust.h"
#include "core/peer/witness.h"
#include "core/service.h"

bool shunt_limits_allow(struct shunt_service *service, uint32_t pid, uint32_t count, uint32_t most,
			const char *what)
{
	if (count < most)
		return true;
	if (!service->limited)
		shunt_log(SHUNT_LOG_WARN, "process %u has %u %s here: more are refused", pid, count, what);
	service->limited = true;
	atomic_fetch_add(&service->engine->strangers.refused, 1);
	return false;
}

static bool is_barred(const struct shunt_service *service, uid_t user)
{
	uint64_t now = shunt_now(service->engine);

	for (int i = 0; i < SHUNT_GUEST_USERS; i++)
		if ((!i || service->users[i].user == user) && now < service->users[i].until)
			return true;
	return false;
}

static uint32_t least(uint32_t one, uint64_t other)
{
	return other < one ? shunt_narrow_u32(other) : one;
}

/*
 * A link has up to four descriptors, and maps two segments. The program needs some of both, too: for connections of its
 * own, for one.
 */
struct shunt_most shunt_limits_most(const struct shunt_engine *engine)
{
	struct rlimit limit = { 1024, 1024 };
	uint64_t both = 2 * engine->config.arena_bytes; /* 0 before it is configured */
	uint64_t space = both ? SHUNT_SPACE_OF_STRANGERS / both : UINT64_MAX;

	getrlimit(RLIMIT_NOFILE, &limit);
	return (struct shunt_most) {
		.links = least(least(SHUNT_LINKS_OF_STRANGERS, space),
			       limit.rlim_cur / SHUNT_STRANGERS_SHARE),
		.co_listeners = least(SHUNT_CO_LISTENERS, limit.rlim_cur / SHUNT_STRANGERS_SHARE),
	};
}

struct count {
	uint32_t links, unproven; /* of strangers */
	uint32_t links_of_user, unproven_of_user;
	uint32_t of_process; /* of strangers or not */
	uint64_t space; /* what those of strangers map */
};

/* From another network namespace nothing is proven before the link is up. */
static bool is_guest(const struct shunt_link *link)
{
	return link->channel.other_netns ?
		       atomic_load(&((struct shunt_link *)link)->state) == SHUNT_LINK_HELLO :
		       !link->channel.proven;
}

static void count_stranger(struct count *count, const struct shunt_link *link, uid_t user)
{
	bool guest = is_guest(link), of_user = link->peer_user == user;

	count->links++;
	count->links_of_user += of_user;
	count->unproven += guest;
	count->unproven_of_user += guest && of_user;
	count->space += shunt_share_space(link) + shunt_lanes_mapped(link);
}

/* Links that came to us, and those of the peer among them. */
static struct count count_links(const struct shunt_service *service, const struct ucred *peer)
{
	struct count count = { 0 };

	for (struct shunt_link *link = service->links; link; link = link->next) {
		if (link->initiator || atomic_load(&link->state) == SHUNT_LINK_DEAD)
			continue;
		count.of_process += link->channel.kind == SHUNT_CHANNEL_UNIX &&
				    link->peer_pid == (uint32_t)peer->pid &&
				    link->peer_user == peer->uid;
		if (link->channel.proves)
			count_stranger(&count, link, peer->uid);
	}
	return count;
}

static bool allows_stranger(struct shunt_service *service, const struct ucred *peer,
			    const struct count *count)
{
	uint32_t pid = (uint32_t)peer->pid, most = shunt_limits_most(service->engine).links;

	return !is_barred(service, peer->uid) &&
	       shunt_limits_allow(service, pid, count->unproven_of_user, SHUNT_GUESTS_PER_USER,
				  "links of its user that have proven nothing") &&
	       shunt_limits_allow(service, pid, count->unproven, SHUNT_GUESTS,
				  "links of others that have proven nothing") &&
	       shunt_limits_allow(service, pid, count->links_of_user, most / 2,
				  "links of its user") &&
	       shunt_limits_allow(service, pid, count->links, most, "links of others");
}

bool shunt_limits_link(struct shunt_service *service, int fd, bool strange)
{
	struct count count;
	struct ucred peer;

	if (!shunt_trust_peer(service->engine->sys, fd, &peer))
		return false;
	count = count_links(service, &peer);
	return (!strange || allows_stranger(service, &peer, &count)) &&
	       shunt_limits_allow(service, (uint32_t)peer.pid, count.of_process,
				  SHUNT_LINKS_PER_PROCESS, "links");
}

void shunt_limits_tell(struct shunt_service *service)
{
	struct shunt_strangers *strangers = &service->engine->strangers;
	struct count count = count_links(service, &(struct ucred) { 0 });

	atomic_store(&strangers->links, count.links);
	atomic_store(&strangers->unproven, count.unproven);
	atomic_store(&strangers->space, count.space);
}

/* --- wrong answers --- */

static struct shunt_guest_user *place_of(struct shunt_service *service, uid_t user)
{
	struct shunt_guest_user *oldest = &service->users[1];

	for (int i = 1; i < SHUNT_GUEST_USERS; i++) {
		struct shunt_guest_user *known = &service->users[i];

		if (known->since && known->user == user)
			return known;
		if (known->since < oldest->since)
			oldest = known;
	}
	*oldest = (struct shunt_guest_user) { .user = user };
	return oldest;
}

static const struct {
	uint32_t of_user, of_all;	/* in SHUNT_WRONG_NS */
	const char *what;
} most[SHUNT_SUMS] = {
	[SHUNT_SUM_WRONG] = { SHUNT_WRONG_PER_USER, SHUNT_WRONG,
			      "claim connections that they do not have" },
	[SHUNT_SUM_VAIN] = { SHUNT_VAIN_PER_USER, SHUNT_VAIN,
			     "begin too much that comes to nothing" },
};

static void count_one(struct shunt_guest_user *place, enum shunt_sum sum, uint32_t limit,
		      uint64_t now)
{
	if (!place->since || now - place->since >= SHUNT_WRONG_NS) {
		place->since = now;
		memset(place->sum, 0, sizeof(place->sum));
	}
	if (++place->sum[sum] >= limit)
		place->until = now + SHUNT_WRONG_NS;
}

static void count(struct shunt_service *service, uid_t user, enum shunt_sum sum)
{
	uint64_t now = shunt_now(service->engine);
	bool barred = is_barred(service, user);

	count_one(&service->users[0], sum, most[sum].of_all, now);
	count_one(place_of(service, user), sum, most[sum].of_user, now);
	if (barred || !is_barred(service, user))
		return;
	shunt_log(SHUNT_LOG_WARN, "processes of user %u %s: none is heard for a minute", user,
		  most[sum].what);
	for (struct shunt_link *link = service->links; link; link = link->next)
		if (link->channel.proves && is_guest(link) && link->peer_user == user)
			shunt_link_fail(link, "its user's processes claim what they do not have");
}

void shunt_limits_wrong(struct shunt_service *service, uid_t user)
{
	count(service, user, SHUNT_SUM_WRONG);
}

void shunt_limits_vain(struct shunt_service *service, uid_t user)
{
	count(service, user, SHUNT_SUM_VAIN);
}

bool shunt_limits_hears_user(const struct shunt_service *service, uid_t user)
{
	return !is_barred(service, user);
}

bool shunt_limits_hears(const struct shunt_service *service, int fd)
{
	struct ucred peer;

	return shunt_trust_peer(service->engine->sys, fd, &peer) && !is_barred(service, peer.uid);
}

/* --- answers that may be wrong --- */

static bool has_room(const struct shunt_doubts *doubts, uid_t user)
{
	uint32_t of_user = 0;

	for (uint32_t i = 0; i < doubts->count; i++)
		of_user += doubts->of[i].user == user;
	return doubts->count < SHUNT_DOUBTS && of_user < SHUNT_DOUBTS_PER_USER;
}

void shunt_limits_doubt(struct shunt_service *service, uid_t user, const struct shunt_tuple *peer,
			uint64_t cookie)
{
	struct shunt_doubts *doubts = &service->doubts;

	if (!has_room(doubts, user)) {
		shunt_limits_wrong(service, user);
		return;
	}
	doubts->of[doubts->count++] = (struct shunt_doubt) {
		.peer = *peer,
		.cookie = cookie,
		.user = user,
		.until = shunt_now(service->engine) + SHUNT_DOUBT_NS,
	};
	shunt_task_at(&service->tasks.limits, doubts->of[0].until);
	shunt_limits_vain(service, user);
}

/* A peer that does not have the connection cannot end it. */
static bool has_ended(struct shunt_service *service, const struct shunt_doubt *doubt)
{
	struct shunt_sighting seen;

	return !shunt_witness_look(service, &doubt->peer, &seen, 1) &&
	       (!seen.established || seen.cookie != doubt->cookie);
}

static void decide_doubts(struct shunt_service *service, struct shunt_task *task)
{
	uint64_t now = shunt_now(service->engine);
	struct shunt_doubts *doubts = &service->doubts;
	uint32_t done = 0;

	for (; done < doubts->count && doubts->of[done].until <= now; done++)
		if (!has_ended(service, &doubts->of[done]))
			shunt_limits_wrong(service, doubts->of[done].user);
	doubts->count -= done;
	memmove(doubts->of, doubts->of + done, doubts->count * sizeof(doubts->of[0]));
	if (doubts->count)
		shunt_task_at(task, doubts->of[0].until);
}

/* --- links without a HELLO --- */

/*
 * A peer that came to us is to say HELLO. A stranger that we came to is to knock, for it may be nobody's peer. Queue pairs
 * that are connected later are to be in the same time.
 */
static bool must_hurry(const struct shunt_link *link)
{
	return !link->initiator || link->joining || (link->channel.proves && !link->met);
}

void shunt_limits_run(struct shunt_task *task)
{
	struct shunt_service *service = shunt_service_of(task, limits);
	uint64_t now = shunt_now(service->engine);

	decide_doubts(service, task);
	for (struct shunt_link *link = service->links; link; link = link->next) {
		if (atomic_load(&link->state) != SHUNT_LINK_HELLO || !must_hurry(link))
			continue;
		if (now >= link->hello_by)
			shunt_link_fail(link, link->joining ?
						      "its queue pairs are not connected in time" :
						      "it does not introduce itself");
		else
			shunt_task_at(task, link->hello_by);
	}
}
