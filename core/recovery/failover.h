/* SPDX-License-Identifier: MIT */
/*
 * A queue pair has died and both processes live. Every stream of the link goes on over TCP (XR-07, PF-54), also those
 * of its other lanes. Each end stops its QPs and takes the delivered bytes. It tells the peer of every stream how far
 * the link had brought it (LEAVE, and LEFT of stream 0 behind the last). Until then it sends nothing; then it sends what has
 * not arrived again, from what it has kept. The reader reads what the link has delivered, then TCP. Service thread.
 */
#ifndef SHUNT_CORE_RECOVERY_FAILOVER_H
#define SHUNT_CORE_RECOVERY_FAILOVER_H

#include <stdbool.h>
#include "shunt/wire.h"

struct shunt_engine;
struct shunt_link;
struct shunt_stream;

/*
 * Ours has, or the peer's: all of the link's are stopped. False: what they brought last was out of turn, so the
 * link is to be killed. Else shunt_failover_tell() comes next. Service thread.
 */
bool shunt_failover_begin(struct shunt_link *link, const char *why);
/* Tells the peer of every stream how far the link had brought it. Service thread. */
void shunt_failover_tell(struct shunt_link *link);
/* An operator's word: the queue pairs of all links on which nothing is lost with them. How many. Service thread. */
int shunt_failover_all(struct shunt_engine *engine);
/* The peer says of a stream, or of all, how it leaves a dead link. */
static inline bool shunt_failover_is_for(const struct shunt_message *message)
{
	return (message->type == SHUNT_MSG_LEAVE && message->leave.how != SHUNT_LEAVE_ONE) ||
	       (message->type == SHUNT_MSG_LEFT && !message->stream);
}

/* Such a message has come. Service thread. */
void shunt_failover_message(struct shunt_link *link, const struct shunt_message *message);
/*
 * The peer has been told, and will not be heard. Our directions go on behind what has been posted, all of which the device
 * has carried out (core/peer/silent.h). Service thread.
 */
void shunt_failover_alone(struct shunt_link *link);
/* Both ends have told all: the link may go. Service thread. */
bool shunt_failover_over(struct shunt_link *link);

#endif
