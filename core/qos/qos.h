/* SPDX-License-Identifier: MIT */
/*
 * Limits by class (HA-01, HA-05). A node is a process that accepts connections and has rules. A client is the process
 * at the other end of a link. The node finds the class of each client, and tells it what it may send; the client's own
 * engine holds to that (throttle.h). The node's sends to the clients of a class share the same limit, at the node.
 *
 *   rules*.c    the text of rules, and which class a client matches
 *   facts.c     what files say of programs and users
 *   tokens.c    the bucket
 *   portions.c  a limit that several share
 *   pacing.c    a limit on TCP
 *   tally.c     tokens of a node with a capacity, counted
 *   throttle.c  the gate before a link's lanes
 *   node.c      the classes of a node and their clients
 *   meter.c     what arrives of a client, and whether it may
 *   holding.c   a client that sends beyond its tokens is held
 *   client.c    what a client says and is told
 *   qos_show.c  for people, and for `shunt stat`
 *
 * All of it is the service thread's, except the gate. Statistics read under group.lock.
 */
#ifndef SHUNT_CORE_QOS_QOS_H
#define SHUNT_CORE_QOS_QOS_H

#include <stdbool.h>
#include <stddef.h>
#include "core/qos/pacing.h"
#include "core/qos/rules.h"
#include "core/qos/tally.h"
#include "core/qos/tokens.h"

struct shunt_answer;
struct shunt_engine;
struct shunt_link;
struct shunt_message;
struct shunt_monitor;
struct shunt_service;
struct shunt_stream;
struct shunt_task;
struct shunt_throttle;

struct shunt_qos_state { /* of a class */
	uint32_t clients; /* links */
	bool uneven; /* its portions are to be found anew */
	uint64_t split_at; /* when they were */
	uint32_t joined; /* clients that have come since */
	uint64_t free_in, free_out; /* of the limit: a rate that nobody has been given */
	uint64_t tokens, waits; /* of ours, of links that have ended or left it */
	uint64_t told_tokens, told_waits; /* the same of clients, as they report */
	uint64_t cheats; /* times that a client was named (holding.h); group.lock */
	struct shunt_pace pace; /* of ours; group.lock */
	struct shunt_paced paced; /* of ours on TCP */
	struct shunt_qos_tally tally; /* group.lock */
};

struct shunt_qos { /* of a node */
	struct shunt_qos_rules rules;
	uint32_t number; /* of all rules that the service has had */
	uint64_t since; /* ns: when they came into force */
	struct shunt_monitor *monitor; /* NULL: the rules have no capacity, and nobody needs tokens */
	struct shunt_qos_node node; /* group.lock; of rules with a capacity */
	struct shunt_qos_state classes[SHUNT_QOS_CLASSES];
};

/* --- node.c --- */

/* The rules of SHUNT_QOS are in force from now on; bad ones are said, and there are none. */
void shunt_qos_begin(struct shunt_service *service);
/* The rules go with the service: nobody is told. `copy`: it is one in a fork's child. */
void shunt_qos_end(struct shunt_service *service, bool copy);
/* These rules and no others; "" for no rules. 0; or -errno, one line, and the former ones stay. */
int shunt_qos_set(struct shunt_service *service, const char *text, char *error, size_t bytes);
/* Our connection is about to be carried by the link: before its peer is told so, it is told its class. */
void shunt_qos_granted(struct shunt_link *link, const struct shunt_stream *stream);
/* The link carries nothing any more: the others of its class have more. */
void shunt_qos_left(struct shunt_link *link);
/* No report has come for so long that the client sends nothing. */
bool shunt_qos_is_silent(const struct shunt_qos *qos, const struct shunt_throttle *throttle,
			 uint64_t now);
/* The limit of the class is shared anew, also with those on TCP while there is a look (pacing.h). */
void shunt_qos_split(struct shunt_service *service, uint32_t class, uint64_t now);
/* Portions that have become uneven. `task` is told when to look again. */
void shunt_qos_balance(struct shunt_service *service, struct shunt_task *task, uint64_t now);
/* A DECLARE or a REPORT. NULL; or what is wrong with it. */
const char *shunt_qos_node_hears(struct shunt_link *link, const struct shunt_message *message);

/* --- client.c --- */

/* The link is up: the peer learns of the class that our user wants. */
void shunt_qos_introduce(struct shunt_link *link);
/* A message of QOS…: a wrong one ends the link. The descriptors stay the caller's. */
void shunt_qos_hear(struct shunt_link *link, const struct shunt_message *message, const int *fds,
		    int count);
/* The link's lanes and its streams on TCP share the rate that the link was told. */
void shunt_qos_share(struct shunt_link *link, uint64_t now);
/* Throttles whose lanes wait, reports and portions. */
void shunt_qos_run(struct shunt_task *task);

/* --- qos_show.c --- */

void shunt_qos_show(struct shunt_service *service, struct shunt_answer *answer);
/* The rules, as a text that may be put in force again. */
void shunt_qos_show_rules(struct shunt_service *service, struct shunt_answer *answer);
/* Its last periods, the newest first. */
void shunt_qos_show_periods(struct shunt_service *service, struct shunt_answer *answer);
/* The member of the statistics, `"qos":{…},`, the caller's to free; NULL: there is nothing to say. group.lock held. */
char *shunt_qos_json(struct shunt_engine *engine);

#endif
