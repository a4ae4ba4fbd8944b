/* SPDX-License-Identifier: MIT */
/*
 * The connection manager (librdmacm, RDMA_PS_TCP) as a rendezvous: one question, one answer, no connection. A process
 * that listens with TCP listens here too, at the same address and port. An asker sends a connect request with the
 * question as its private data. The answer comes back as the private data of a rejection. No QP is made at either
 * end. The results are the answer and, at both ends, the route that the connection manager chose. The route is the
 * device and port, and what else a QP that is connected by hand must know.
 *
 * Nothing here waits for the network. One thread uses a struct cm; it sleeps on cm_fd() until cm_next_deadline() at
 * the latest, then calls cm_step(). Callbacks come from within cm_step() and may call everything but cm_step,
 * cm_close and cm_forget. Times are milliseconds of any monotonic clock, the caller's.
 *
 * Everything that comes from a peer is hostile, its address included: what an address in a question is worth, the
 * network decides.
 *
 * The library opens the event channel, and two descriptors for each device that a route has gone through. They stay
 * open as long as the process. They appear within cm_open, cm_listen, cm_ask and cm_step, and are moved by `keep` at
 * once. It must not be forked within those calls.
 *
 * Sources: rdma_cm(7), rdma_connect(3), rdma_reject(3). Sizes of private data: IBA specification volume 1, 12.6.5 and
 * 12.6.7. REQ has 92 bytes, of which the connection manager takes 36; REJ has 148.
 */
#ifndef SHUNT_CORE_DEVICE_CM_CM_H
#define SHUNT_CORE_DEVICE_CM_CM_H

#include <rdma/rdma_cma.h>
#include <stdbool.h>
#include <stdint.h>

#define CM_QUESTION_MAX 52	/* bytes */
#define CM_ANSWER_MAX 144
#define CM_CONTEXTS 16		/* devices whose descriptors are looked after */
#define CM_NEVER UINT64_MAX

union cm_address {
	struct sockaddr any;
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;
};

/* How the two ends see each other, from here. */
struct cm_route {
	char device[64];		/* its name, as ibv_get_device_name(3) has it */
	uint8_t port;
	bool iwarp; /* questions and listeners there would be TCP connections at the program's port: there are none */
	union ibv_gid sgid, dgid;	/* ours, the peer's; on iWARP not meaningful */
	uint16_t slid, dlid;		/* InfiniBand only, host order; else 0 */
	uint16_t pkey;			/* host order */
	enum ibv_mtu mtu;		/* of the path; 0: not known */
	uint8_t sl, traffic_class, hop_limit;
	uint8_t packet_life_time;	/* 4.096 us * 2^this */
	uint32_t flow_label;		/* host order */
	union cm_address local, peer;	/* with ports of the connection manager; the peer's is as it says */
};

struct cm_callbacks {
	/*
	 * A peer asks. Returns the bytes of answer that it wrote, at most CM_ANSWER_MAX; 0: an
	 * empty answer. Negative: no answer, the peer learns only that the address has a listener.
	 */
	int (*question)(void *listener_arg, const uint8_t *question, unsigned int bytes,
			const struct cm_route *route, uint8_t *answer);

	/*
	 * The end of an ask, exactly once for each that began and was not cancelled. status is 0
	 * with an answer. Without one it is
	 *   -ECONNREFUSED	nobody listens there
	 *   -EPROTO	somebody does who does not answer questions, or not as we do; or at this port, but
	 *		not at this address
	 *   -ETIMEDOUT	no answer until the deadline
	 *   -ENODEV	no RDMA device leads there, or it is gone
	 *   -EAGAIN	the two ends took it for an old one: ask again
	 *   -EOPNOTSUPP	an iWARP device leads there, see route->iwarp: no question was sent
	 * or another error with which the address or the route was not found. The route is NULL if none had
	 * been found.
	 */
	void (*answer)(void *ask_arg, int status, const uint8_t *answer, unsigned int bytes,
		       const struct cm_route *route);

	/* The listener's device is gone; nobody will ask it any more. cm_unlisten is still to be called. May be NULL. */
	void (*lost)(void *listener_arg);

	/* Of queue pairs (pair.h). */
	void (*joined)(void *pair_arg, int status);
	void (*parted)(void *pair_arg);

	/*
	 * Gives a descriptor a number out of the program's way: a duplicate or -errno. drop closes either. Both
	 * may be NULL: they stay where they are.
	 */
	int (*keep)(void *arg, int fd);
	void (*drop)(void *arg, int fd);
};

/* The calls of librdmacm that are used. */
struct cm_calls {
	struct rdma_event_channel *(*create_event_channel)(void);
	void (*destroy_event_channel)(struct rdma_event_channel *channel);
	int (*create_id)(struct rdma_event_channel *channel, struct rdma_cm_id **id, void *context,
			 enum rdma_port_space space);
	int (*destroy_id)(struct rdma_cm_id *id);
	int (*set_option)(struct rdma_cm_id *id, int level, int name, void *value, size_t bytes);
	int (*bind_addr)(struct rdma_cm_id *id, struct sockaddr *address);
	int (*listen)(struct rdma_cm_id *id, int backlog);
	int (*resolve_addr)(struct rdma_cm_id *id, struct sockaddr *from, struct sockaddr *to, int timeout_ms);
	int (*resolve_route)(struct rdma_cm_id *id, int timeout_ms);
	int (*connect)(struct rdma_cm_id *id, struct rdma_conn_param *param);
	int (*accept)(struct rdma_cm_id *id, struct rdma_conn_param *param);
	int (*reject)(struct rdma_cm_id *id, const void *data, uint8_t bytes);
	int (*get_cm_event)(struct rdma_event_channel *channel, struct rdma_cm_event **event);
	int (*ack_cm_event)(struct rdma_cm_event *event);
};

struct cm_ask;
struct cm_listener;
struct cm_pair;

struct cm {
	struct cm_calls calls;
	const struct cm_callbacks *callbacks;
	void *arg;			/* of keep and drop */
	void *library;
	bool shared;			/* the program had opened librdmacm, too: devices are its and ours */
	struct rdma_event_channel *channel;
	uint64_t now;			/* of the present step */
	uint8_t reads; /* that a pair may have under way in each direction (pair.h) */
	int tos;			/* type of service (IP) of what is asked from now on, and of the routes; -1: the system's */
	struct cm_ask *asks;
	struct cm_listener *listeners;
	struct cm_pair *pairs;
	struct ibv_context *contexts[CM_CONTEXTS];	/* seen before */
	char error[160];		/* why the last cm_open or cm_listen failed, in words */
};

/*
 * 0, or -errno and cm->error: -ENOENT no librdmacm, -ENOSYS it lacks a call, -ENODEV no RDMA device
 * (or a kernel without rdma_ucm). Also -EACCES no permission, or another error of the system.
 */
int cm_open(struct cm *cm, const struct cm_callbacks *callbacks, void *arg);
/* Ends every ask, without a callback, and every listener. */
void cm_close(struct cm *cm);
/* The same in the child of a fork: what the parent has stays the parent's. */
void cm_forget(struct cm *cm);

/* To be slept on; readable when there is something to do. */
int cm_fd(const struct cm *cm);
/* When cm_step is due though nothing has happened; CM_NEVER. */
uint64_t cm_next_deadline(const struct cm *cm);
/* Handles what has happened, a limited part of it if it is much; cm_fd() is readable then still. */
void cm_step(struct cm *cm, uint64_t now_ms);

/*
 * Answers questions to this address and port; a wildcard is one here too. `only_v6`: a listener on :: is not asked by
 * way of IPv4 (IPV6_V6ONLY); without it, it is. An IPv4-mapped address is IPv4. 0, or -errno and cm->error:
 * -EADDRINUSE it is taken, -ENODEV it is no RDMA device's. Also -EOPNOTSUPP it is an iWARP device's, -EACCES a
 * privileged port. A wildcard listens at iWARP devices, too.
 */
int cm_listen(struct cm *cm, const struct sockaddr *address, bool only_v6, void *arg,
	      struct cm_listener **listener);
void cm_unlisten(struct cm *cm, struct cm_listener *listener);

/*
 * Asks who listens at `remote`, at latest until the deadline, and asks again each second: the other end may
 * hear a question more than once. `local`: from which address, its port does
 * not matter; NULL: any. 0, or -errno: it has not begun, and there will be no callback. *ask (which may
 * be NULL) is good until the callback.
 */
int cm_ask(struct cm *cm, const struct sockaddr *local, const struct sockaddr *remote, const void *question,
	   unsigned int bytes, uint64_t deadline_ms, void *arg, struct cm_ask **ask);
/* Ends it without a callback. */
void cm_cancel(struct cm *cm, struct cm_ask *ask);

/* IPv4-mapped becomes IPv4. 0 or -EAFNOSUPPORT. */
int cm_address(union cm_address *out, const struct sockaddr *given);

/* library.c: opens the library `file` and finds the calls; cm_library_close undoes it. */
int cm_library_open(struct cm *cm, const char *file);
void cm_library_close(struct cm *cm);

#endif
