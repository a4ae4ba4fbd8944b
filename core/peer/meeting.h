/* SPDX-License-Identifier: MIT */
/*
 * Meeting processes of other network namespaces of this host, in a directory that both mount (SHUNT_DIR). A process
 * has one socket there, named for its identity. Each address at which it owns a rendezvous (rendezvous.h) is one more
 * name of that socket. A wildcard has the names of all addresses of the network namespace that others can reach. The
 * claimant looks there for the exact address of its peer before it asks the connection manager (remote.h).
 *
 * A link made there is one of strangers whose connections the nonce proves (channel.h, proof.h). A name may be
 * anybody's who may write in the directory. rendezvous_lock guards the names, which the end of the process removes.
 */
#ifndef SHUNT_CORE_PEER_MEETING_H
#define SHUNT_CORE_PEER_MEETING_H

#include <stdbool.h>

struct shunt_engine;
struct shunt_link;
struct shunt_meeting;
struct shunt_name;
struct shunt_service;
struct shunt_source;
struct shunt_stream;
struct shunt_task;

/* Offers what is to be offered now, and takes back what is not. */
void shunt_meeting_run(struct shunt_task *task);
/* Claims may be sent to this process under its identity. Service thread. */
void shunt_meeting_open(struct shunt_service *service);
/*
 * A channel to who offers the stream's peer address there, or -errno; `name` is what it was looked for. -ENOENT: the
 * directory is not used. Service thread.
 */
int shunt_meeting_connect(struct shunt_service *service, struct shunt_stream *stream,
			  struct shunt_name *name);

/* Names and socket go. No lock held but the service thread's. */
void shunt_meeting_end(struct shunt_service *service);
/* The process ends: its names go. Any thread. */
void shunt_meeting_finish(struct shunt_engine *engine);
/* In a fork's child, whose parent has the names. */
void shunt_meeting_abandon(struct shunt_service *service);

#endif
