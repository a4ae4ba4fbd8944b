/* SPDX-License-Identifier: MIT */
#include "core/stream/decision.h"
#include "core/poll/group.h"
#include "core/stream/streams.h"
#include <arpa/inet.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include "core/base/address.h"
#include "core/stream/tuple.h"
#include "core/trace/probe.h"

/* "[::1]:40000 to [::1]:6379" */
#define PAIR_ROOM (2 * SHUNT_ADDRESS_ROOM + 4)

/* The claiming end is the connecting one. */
static void write_pair(char text[PAIR_ROOM], const struct shunt_tuple *tuple)
{
	char local[SHUNT_ADDRESS_ROOM], peer[SHUNT_ADDRESS_ROOM];

	shunt_address_text(tuple->local, tuple->local_port, local);
	shunt_address_text(tuple->peer, tuple->peer_port, peer);
	snprintf(text, PAIR_ROOM, "%s to %s", local, peer);
}

/* Before a claim nobody has asked for the tuple. */
void shunt_decision_say(enum shunt_log_level level, struct shunt_stream *stream, const char *format,
			...)
{
	struct shunt_log_about about = { .fd = atomic_load(&stream->fd),
					 .accepted = stream->role == SHUNT_ACCEPTOR };
	struct shunt_tuple tuple = stream->tuple;
	int saved = errno;
	va_list args;

	if (!shunt_log_wants(level))
		return;
	if (shunt_tuple_is_known(&stream->tuple) ||
	    (about.fd >= 0 && !shunt_tuple_of(stream->group->sys, about.fd, &tuple)))
		about.tuple = &tuple;
	errno = saved;
	va_start(args, format);
	shunt_log_vwrite_about(level, &about, format, args);
	va_end(args);
}

void shunt_decision_linked(struct shunt_stream *stream)
{
	const struct shunt_link *link = stream->seat->link;

	if (!link)
		return;
	shunt_decision_say(SHUNT_LOG_INFO, stream, "on a link to process %u (%s)",
			   link->peer_pid, link->device->context->device->name);
	shunt_decision_say(SHUNT_LOG_DEBUG, stream, "heading %p, intake %p, claim %p, end %p",
			   (void *)&stream->seat->out.heading, (void *)&stream->seat->in.intake,
			   (void *)&stream->claim.state, (void *)&stream->end);
}

void shunt_decision_plain(struct shunt_stream *stream, enum shunt_cause cause)
{
	bool linked = atomic_load(&stream->state) == SHUNT_LINKED;
	char text[SHUNT_CAUSE_ROOM];

	shunt_decision_say(SHUNT_LOG_INFO, stream, "%s: %s",
			   linked ? "back on TCP" : "stays on TCP", shunt_cause_say(cause, text));
}

/* --- claims of peers --- */

static void say_claim(enum shunt_log_level level, const struct shunt_link *link, const struct shunt_tuple *claimed,
		      const char *what)
{
	struct shunt_tuple tuple = shunt_tuple_reverse(claimed);
	const struct shunt_log_about about = { .fd = -1, .tuple = &tuple, .accepted = true };
	char pair[PAIR_ROOM];

	write_pair(pair, claimed);
	shunt_log_write_about(level, &about, "claim of process %u, %s: %s", link->peer_pid, pair,
			      what);
}

void shunt_decision_say_claim(const struct shunt_link *link, const struct shunt_tuple *claimed, const char *what)
{
	say_claim(SHUNT_LOG_DEBUG, link, claimed, what);
}

/* By enum shunt_refusal. */
static const struct {
	enum shunt_cause told;
	const char *text;
} refusals[] = {
	[SHUNT_REFUSED_NOT_HAD] = { SHUNT_CAUSE_NOT_HAD,
				    "refused: no process that was heard of has accepted it" },
	[SHUNT_REFUSED_UNUSED] = { SHUNT_CAUSE_PEER_UNUSED,
				   "refused: the program has not used it in time" },
	[SHUNT_REFUSED_STRANGER] = { SHUNT_CAUSE_PEER_STRANGER,
				     "refused: a process of another user accepts at this address and was not let in" },
	[SHUNT_REFUSED_NO_ROOM] = { SHUNT_CAUSE_PEER_NO_ROOM,
				    "refused: out of memory, or closed already" },
	[SHUNT_REFUSED_UNSEEN] = { SHUNT_CAUSE_UNSEEN,
				   "refused: the kernel does not show the claimant's socket" },
	[SHUNT_REFUSED_DISPROVEN] = { SHUNT_CAUSE_DISPROVEN,
				      "refused: the claimant has not proven that it holds it" },
	[SHUNT_REFUSED_SILENT] = { SHUNT_CAUSE_SILENT, "refused: its proof has taken too long" },
	[SHUNT_REFUSED_ELSEWHERE] = { SHUNT_CAUSE_ELSEWHERE,
				      "refused: it is of other addresses than the channel" },
	[SHUNT_REFUSED_RULE] = { SHUNT_CAUSE_PEER_RULE, "refused: a rule (SHUNT_RULES)" },
	[SHUNT_REFUSED_NO_GATE] = { SHUNT_CAUSE_PEER_NO_GATE,
				    "refused: the process that has it cannot let another host in" },
	[SHUNT_REFUSED_UNPROVEN] = { SHUNT_CAUSE_UNPROVEN,
				     "refused: this process may not be traced by its own user any more" },
};

void shunt_decision_refused(const struct shunt_link *link, const struct shunt_tuple *claimed, enum shunt_refusal why)
{
	SHUNT_PROBE3(claim_refused, -1, link->peer_pid, refusals[why].text);
	if (shunt_log_wants(SHUNT_LOG_INFO))
		say_claim(SHUNT_LOG_INFO, link, claimed, refusals[why].text);
}

/* A peer may be of a later version, or lie. */
enum shunt_cause shunt_decision_told(uint32_t why)
{
	return why < sizeof(refusals) / sizeof(refusals[0]) ? refusals[why].told :
							      SHUNT_CAUSE_NOT_HAD;
}
