/* SPDX-License-Identifier: MIT */
/*
 * A stranger's service thread does not answer LEAVE, and its time is over (core/link/patience.h). It may be hostile, or just
 * stopped. The link ends, and what becomes of each stream is decided without it, so that a peer that wakes up later decides
 * the same:
 *
 *	our end						the peer, later
 *	the queue pairs end, what they brought counts
 *	LEAVE of each stream, LEFT of stream 0		hears these, and ends its queue pairs, too
 *	shutdown(SHUT_RD): what came before is heard	LEFT can be sent no more: then it gives nothing back
 *	our direction goes on behind what was posted	has that in its ring
 *	the peer's goes on behind what the link brought	sends the rest again, from where LEAVE says
 *
 * So no byte is lost or comes twice, and nothing is reset. There are two exceptions. If the device has not carried out all
 * work requests, or a queue pair has died before, nobody knows what the peer has. Then the link ends as by the peer's death
 * (core/stream/loss.h). And a stream whose nonce is still expected is reset: the peer cannot say any more that none comes.
 */
#ifndef SHUNT_CORE_PEER_SILENT_H
#define SHUNT_CORE_PEER_SILENT_H

#include <stdbool.h>

struct shunt_link;
struct shunt_service;

/* Ends the link, if that is due; else there is another look when it is. Service thread, seats_lock held. */
void shunt_silent_look(struct shunt_service *service, struct shunt_link *link);

#endif
