/* SPDX-License-Identifier: MIT */
/*
 * The claimant is sent to another process. Service thread.
 */
#ifndef SHUNT_CORE_PEER_REDIRECT_H
#define SHUNT_CORE_PEER_REDIRECT_H

struct shunt_link;
struct shunt_onward;
struct shunt_stream;

/* A REDIRECT of the peer. */
void shunt_redirect_follow(struct shunt_link *link, struct shunt_stream *stream,
			   const struct shunt_onward *onward);

#endif
