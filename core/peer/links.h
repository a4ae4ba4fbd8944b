/* SPDX-License-Identifier: MIT */
/*
 * The links of the process: a peer comes to a rendezvous, a link is added, and one that is over is
 * destroyed. Service thread.
 */
#ifndef SHUNT_CORE_PEER_LINKS_H
#define SHUNT_CORE_PEER_LINKS_H

#include <stdbool.h>
#include <stdint.h>
#include "core/base/reason.h"

struct remote_answer;
struct shunt_engine;
struct shunt_have;
struct shunt_have_words;
struct shunt_lane;
struct shunt_link;
struct shunt_onward;
struct shunt_rendezvous;
struct shunt_service;
struct shunt_source;
struct shunt_stream;
struct shunt_task;
struct ibv_qp;
struct ibv_cq;
struct shunt_device;
struct shunt_tuple;

/*
 * The files that make and end links, and devices, tell of a link by these. Service thread, seats_lock held, except
 * for `failed`.
 */
struct shunt_link_hooks {
	/* Its queue pair or its device is dead: see shunt_link_fail(). group.lock held. */
	void (*failed)(struct shunt_link *link, const char *why);
	/* Its channel has something, or room: see loop.h. */
	void (*ready)(struct shunt_source *source, uint32_t events);
	/* The next message of its channel, which has one. False: there is no more to hear of it. */
	bool (*next)(struct shunt_link *link);
	/* One more of its queue pairs is connected: of those that `join` of the device has left for later. */
	void (*joined)(struct shunt_link *link);
	/* The peer has knocked, and has to prove what we claim of it: claims that wait for the link can ask. */
	void (*met)(struct shunt_link *link);
	/* Our claim's connection has been proven on its channel; or not, and why; or another process is said to have it. */
	void (*proven)(struct shunt_link *link, struct shunt_stream *stream);
	void (*unproven)(struct shunt_link *link, struct shunt_stream *stream,
			 enum shunt_cause cause);
	void (*sent_on)(struct shunt_link *link, struct shunt_stream *stream,
			const struct shunt_onward *onward);
	/* It is up, or has shown that it works: claims that wait for it can go. */
	void (*up)(struct shunt_link *link);
	/* All WRs that were posted on the lane have settled. */
	void (*settled)(struct shunt_link *link, const struct shunt_lane *lane);
	/* It is over, after a failover. True: its channel is kept for the way back. */
	bool (*over)(struct shunt_link *link);
	/* It carries nothing more: claims that wait for it find another. */
	void (*down)(struct shunt_link *link);
	/* Where other hosts come in for a connection that was accepted: a TCP port, network order; 0: nowhere. */
	uint16_t (*gate)(struct shunt_service *service, const struct shunt_tuple *accepted);
	/* The owner of our address has invited a process of another host. */
	void (*invited)(struct shunt_service *service, const struct shunt_have *have);
	/* Another host asks at the directory of another process: see directory.h, `answer`. */
	int (*asked)(struct shunt_rendezvous *rendezvous, const struct shunt_tuple *asked,
		     const struct shunt_have_words *said, struct remote_answer *answer);
};

/* A peer's process has come to a rendezvous, whose `source` this is: see loop.h. */
void shunt_links_welcome(struct shunt_source *source, uint32_t events);
/* One more link; it may be dead at once. */
void shunt_links_add(struct shunt_service *service, struct shunt_link *link);
/* The same, where the loop knows its channel. */
void shunt_links_list(struct shunt_service *service, struct shunt_link *link);
/* Links that are over and have no stream are destroyed. seats_lock held. */
void shunt_links_bury(struct shunt_service *service);
/* WRs that were posted on lanes have settled; links that are over are buried, and streams reaped. */
void shunt_links_run(struct shunt_task *task);

/* See struct shunt_device_hooks. */
void shunt_links_qp_failed(struct shunt_device *device, const struct ibv_qp *qp, const char *why);
void shunt_links_cq_failed(struct shunt_device *device, const struct ibv_cq *cq);
void shunt_links_device_lost(struct shunt_device *device);
void shunt_links_qp_joined(struct shunt_device *device, const struct ibv_qp *qp);

#endif
