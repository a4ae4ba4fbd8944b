/* SPDX-License-Identifier: MIT */
/*
 * Finding the peer's process: an abstract Unix name for each listening address. Errors are
 * -errno. No lock unless one is named.
 */
#ifndef SHUNT_CORE_PEER_RENDEZVOUS_H
#define SHUNT_CORE_PEER_RENDEZVOUS_H

#include <string.h>
#include "core/loop/loop.h"
#include "core/peer/reconnect.h"
#include "core/peer/user_dir.h"

struct cm_listener;
struct shunt_crowd;
struct shunt_engine;
struct shunt_service;
struct shunt_stream;
struct shunt_tuple;

/*
 * One listening address of ours: what we offer there or, where another process was first, our
 * connection to that one. The memory stays as long as the process, and a fork's child goes on with
 * a copy. engine.rendezvous_lock, unless named otherwise.
 */
struct shunt_rendezvous {
	struct shunt_source source;
	struct shunt_name name;
	struct shunt_user_dir dir;		/* where the name is looked for first; no network: nowhere but here */
	bool in_user_dir;			/* fd and worker_fd are there (user_dir.h), and the abstract ones are the next two */
	int abstract_fd, abstract_worker_fd;	/* -1: they are fd and worker_fd, or another process's */
	_Atomic int fd;			/* ours; -1: we do not own the name */
	struct shunt_stream *listener;	/* one that has the address; NULL: closed */
	struct shunt_service *service;
	struct cm_listener *remote;	/* the same for other hosts; service thread, as is the next */
	bool tried_remote;
	uint8_t other_key[16];		/* the host that has asked last with another key than ours; all 0: none; the same */
	bool strangers;			/* a process of another user accepts there, too; the same */
	struct shunt_source worker_source;
	int worker_fd;			/* where others who accept there come in (listener_owner.c) */
	uint64_t leave_at;		/* no listener is left, but connections that may be claimed until then; 0: it has one */
	_Atomic uint32_t *_Atomic wanted;	/* any thread: claims come for connections that the owner does not have */
	_Atomic uint32_t own_wanted;	/* it points here, or where a fork's children see it too */
	uint64_t wanted_until;		/* service thread, as are the next */
	_Atomic bool is_worker;		/* any thread: we accept there without owning the name (listener_worker.c) */
	struct shunt_source owner_source;
	int owner_fd;			/* to the owner; -1 */
	_Atomic bool shared;		/* any thread: another process has said that it accepts there, too, or this one has a second listener there; it stays so */
	_Atomic bool alone;		/* any thread reads it: no owner has been found */
	bool turned_away;		/* service thread: the owner is another user's, or does not let us in */
	uint64_t look_at;		/* when to look for one again; of an owner: to take the abstract names */
	uint32_t failures;		/* to do so, in a row */
	struct shunt_rendezvous *next;
};

/*
 * Both ends of a stream's connection (tuple.h), and its network. streams_lock held: close() takes it before, or a call
 * under way would delay it.
 */
int shunt_rendezvous_learn(struct shunt_stream *stream);
/*
 * A channel to the process that offers a rendezvous for the tuple's peer, in its user's directory or by an abstract name, or -errno. `strange`, as in the next ones: the
 * two processes could not ptrace each other, so connections are to be proven (SHUNT_TRUST).
 */
int shunt_rendezvous_connect(struct shunt_engine *engine, const struct shunt_tuple *tuple,
			     const struct shunt_user_dir *where, struct shunt_name *name,
			     bool *strange);
/* The name of the rendezvous for a peer address; `any`: for its port on every address. */
void shunt_rendezvous_name(const uint8_t address[16], uint16_t port, bool any,
			   struct shunt_name *name);
/* The name of the rendezvous for the address that `fd` listens on. 0 or -errno. */
int shunt_rendezvous_of(struct shunt_engine *engine, int fd, struct shunt_name *name);
/* The names that a listener which takes connections to the address may have, the most exact first; how many. */
int shunt_rendezvous_names(const uint8_t address[16], uint16_t port, struct shunt_name names[SHUNT_NAMES]);
bool shunt_rendezvous_is_among(const struct shunt_name *name, const struct shunt_name *names, int count);
/* Does a listener of that name take connections to the address? */
bool shunt_rendezvous_covers(const struct shunt_name *name, const uint8_t address[16], uint16_t port);
/* Where its owner's co-listeners come in. */
void shunt_rendezvous_workers(const struct shunt_name *name, struct shunt_name *workers);
/*
 * The name in SHUNT_DIR under which a process of another network namespace offers an address (meeting.h). A '/' stands
 * where an abstract name has its zero byte.
 */
void shunt_rendezvous_meeting(const uint8_t address[16], uint16_t port, struct shunt_name *name);
static inline bool shunt_rendezvous_is_meeting(const struct shunt_name *name)
{
	return name->text[0] == '/';
}
/* The name of one process, for claims that were sent to it. */
void shunt_rendezvous_process(const struct shunt_identity *process, struct shunt_name *name);
/* The same in SHUNT_DIR. */
void shunt_rendezvous_process_meeting(const struct shunt_identity *process,
				      struct shunt_name *name);
/* Takes the name: a listening private descriptor, or -errno. */
int shunt_rendezvous_offer(struct shunt_engine *engine, const struct shunt_name *name);
/* A channel to the name's owner, if the two processes may be linked, or -errno. */
int shunt_rendezvous_knock(struct shunt_engine *engine, const struct shunt_name *name,
			   bool *strange);
/* The same in the directory of its user. */
int shunt_rendezvous_knock_user_dir(struct shunt_engine *engine, const struct shunt_user_dir *where,
				const struct shunt_name *name, bool *strange);
/* Names that are files go. */
void shunt_rendezvous_unname(struct shunt_engine *engine,
			     const struct shunt_rendezvous *rendezvous);
/* Names and descriptors of an address of ours go; those who wait there are added to the crowd. */
void shunt_rendezvous_close(struct shunt_engine *engine, struct shunt_rendezvous *rendezvous,
			    struct shunt_crowd *crowd);
/* The next peer that has come and may be linked, or -errno. */
int shunt_rendezvous_accept(struct shunt_engine *engine, int fd, bool *strange);

#endif
