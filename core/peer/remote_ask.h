/* SPDX-License-Identifier: MIT */
/*
 * Asking another host who listens at an address, and what both sides of that share. A stream waits in the inquiry
 * about its peer's address. Service thread.
 */
#ifndef SHUNT_CORE_PEER_REMOTE_ASK_H
#define SHUNT_CORE_PEER_REMOTE_ASK_H

#include "core/base/reason.h"
#include "core/device/cm/cm.h"
#include "core/fd/own_fds.h"
#include "core/fd/loading.h"
#include "core/loop/loop.h"
#include "core/peer/directory.h"
#include "core/peer/remote.h"
#include "core/peer/remote_listener.h"

struct shunt_engine;
struct shunt_service;
struct shunt_stream;

struct inquiry;

struct shunt_remote {
	struct shunt_service *service;
	struct cm cm;
	bool open;
	bool iwarp; /* the machine has such a device: the directory is asked and answers */
	uint64_t closed_until;	/* there was no device or no connection manager */
	uint64_t quiet_until;	/* a peer with another key is not told of before */
	struct shunt_source cm_source;
	struct shunt_source gate_source;
	struct shunt_remote_listener gates[2];	/* at the wildcards of IPv4 and IPv6 */
	struct shunt_source directory_source;
	struct shunt_directory directory;
	struct inquiry *inquiries;
};

uint64_t shunt_remote_ms(struct shunt_engine *engine);

/* Around calls of the connection manager's library: descriptors that it makes are ours, and no fork is under way. */
static inline void shunt_remote_enter(struct shunt_fds *fds)
{
	shunt_loading_begin(fds);
	shunt_own_fds_begin(fds);
}

static inline void shunt_remote_leave(struct shunt_fds *fds)
{
	shunt_own_fds_end(fds);
	shunt_loading_end(fds);
}

/* The peer of the stream is asked, or is already. False: it cannot be. */
bool shunt_remote_ask(struct shunt_remote *remote, struct shunt_stream *stream);
/* The connection manager's answer callback: see cm.h. */
void shunt_remote_answered(void *ask_arg, int status, const uint8_t *given, unsigned int bytes,
			   const struct cm_route *route);
/* Ends inquiries at directories that have taken too long. A task calls it: no event of their sockets is pending. */
void shunt_remote_ask_expire(struct shunt_remote *remote);
/* When the next of them has (ns); SHUNT_NEVER. */
uint64_t shunt_remote_ask_due(const struct shunt_remote *remote);
/* No inquiry is under way any more. Their streams stay on TCP, for that reason; NONE: they are not looked at. */
void shunt_remote_drop(struct shunt_remote *remote, enum shunt_cause cause);

#endif
