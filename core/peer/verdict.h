/* SPDX-License-Identifier: MIT */
/*
 * The rules that are in force (core/base/rule.h), and what they say of a connection. Each end asks
 * once, when it has the addresses and before a link is agreed on. The claimant does so before it
 * claims, the acceptor before it grants. Later rules do not change it. Service thread throughout.
 */
#ifndef SHUNT_CORE_PEER_VERDICT_H
#define SHUNT_CORE_PEER_VERDICT_H

#include <stdbool.h>

struct shunt_answer;
struct shunt_engine;
struct shunt_service;
struct shunt_stream;

/* The rules of the configuration, the first time; a later service thread has those that were in force. */
void shunt_verdict_begin(struct shunt_service *service);
/* True: a rule leaves the stream on TCP. A rule that holds it there until the operator's word is noted in it. */
bool shunt_verdict_leaves(struct shunt_stream *stream);
/* The command `rules`: 0, or -1 and why not. */
int shunt_verdict_command(struct shunt_engine *engine, int count, char **words,
			  struct shunt_answer *answer);

#endif
