/* SPDX-License-Identifier: MIT */
/*
 * The channel of a link: messages of one size, in order, between two processes.
 *
 *   unix   a SOCK_SEQPACKET socket within one host: a packet a message; a HELLO may have two descriptors.
 *   tcp    a stream between two hosts: no descriptors. The connecting side begins it with a cookie,
 *          which remote_listener.c takes off at the other end. The first message must be a HELLO of our byte order.
 *          With SHUNT_KEY each message has a code behind it (seal.h).
 *
 * Both are non-blocking. Messages that a channel has no room for are kept, in order, until it has.
 * A channel may be moved by assignment. Its owner guards the sending half (send, flush, waits,
 * close) with a lock; the receiving half is one thread's.
 */
#ifndef SHUNT_CORE_LINK_CHANNEL_H
#define SHUNT_CORE_LINK_CHANNEL_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>
#include "core/base/verbs.h"
#include "core/link/seal.h"
#include "shunt/wire.h"

struct shunt_device;
struct shunt_links;
struct shunt_sys;
struct shunt_outgoing;	/* what the channel had no room for */

enum shunt_channel_kind { SHUNT_CHANNEL_UNIX, SHUNT_CHANNEL_TCP };

#define SHUNT_CHANNEL_FDS (2 + SHUNT_WAITERS)	/* that a message may have */
#define SHUNT_CHANNEL_KEPT 8192	/* messages that a stranger may leave unread, beside what its socket holds */
#define SHUNT_COOKIE_BYTES 16

/* A message as it travels between hosts that have a key. */
struct shunt_sealed {
	struct shunt_message message;
	uint8_t code[SHUNT_SEAL_BYTES];
};

/* By which device of ours, and how, packets go to a peer. */
struct shunt_course {
	struct shunt_device *device; /* NULL: whichever there is */
	struct shunt_way way; /* for which it was opened */
	struct shunt_path path;
};

struct shunt_channel {
	struct shunt_links *links;	/* of the process */
	enum shunt_channel_kind kind;
	int fd;			/* private, ours; -1: closed */
	struct shunt_course course; /* tcp: how packets of its link go to the peer */
	uint32_t number;	/* of the process's channels; not 0 */
	bool proves;		/* unix: a connection is proven before it is claimed here (core/peer/possession.h) */
	bool proven;		/* such a one has been, so the peer is no stranger any more */
	bool other_netns;		/* unix: the peer is in another network namespace, and the nonce proves (SHUNT_DIR) */
	bool awaits_knock;	/* unix: we have knocked, and the peer has not yet */
	bool known;		/* unix: both have */
	/* The peer's own name for itself, a hint: unix when it is known, tcp when a claim was sent on to it. */
	struct shunt_identity peer;
	bool other_version;	/* unix: which is why the peer's knock was wrong */
	bool admitted;		/* unix: a stranger that could send descriptors for a while */
	bool takes_fds;		/* unix: a HELLO is due, or a QOS_POOL, which alone may have descriptors */
	struct shunt_outgoing *first, *last;
	uint32_t kept;		/* how many these are */
	const char *wrong;	/* after -EPROTO: in words */

	/* tcp */
	uint8_t here[16], there[16];	/* addresses of its ends, as in a tuple; all 0: not known */
	bool begun;		/* a first message has come and was a HELLO */
	struct shunt_seal seal;	/* set by the channel's maker before the first message, where there is a key */
	size_t in_bytes;
	union {			/* of the next message, so far */
		struct shunt_message message;
		struct shunt_sealed sealed;
		uint8_t bytes[sizeof(struct shunt_sealed)];
	} in;
};

/* Around a connected descriptor of our own (a tcp one that has been let in, too). */
void shunt_channel_init(struct shunt_channel *channel, struct shunt_links *links,
			enum shunt_channel_kind kind, int fd);
/* The peer may be linked for connections alone that it proves; no descriptor is taken from it before. */
void shunt_channel_strange(struct shunt_channel *channel);
/*
 * The peer is in another network namespace. It is a stranger, but no witness sees both ends: the nonce in TCP proves
 * each connection, and memory is shared before, as between hosts.
 */
void shunt_channel_other_netns(struct shunt_channel *channel);
/* A connection has been proven: a HELLO is due, with descriptors. */
void shunt_channel_proven(struct shunt_channel *channel);
/* A QOS_POOL may come, which within one host has a descriptor. */
void shunt_channel_expect_fd(struct shunt_channel *channel);
/* No more descriptors are due: the kernel refuses a stranger's (SO_PASSRIGHTS). */
void shunt_channel_expect_no_fd(struct shunt_channel *channel);

/*
 * A unix channel's first message, KNOCK, by the process of this name. The peer's must come next. A peer that need not
 * prove anything must have sent it as the very process that the kernel named at connect(). A listening socket's
 * credentials are those of listen(), and its owner may have changed since. At the connecting end such a one has to
 * prove. 0 or -errno.
 */
int shunt_channel_knock(struct shunt_channel *channel, const struct shunt_identity *process);

/*
 * A tcp channel to a gate, from the address `from` (its port counts too; NULL: any). The connection is
 * made while messages are already being kept. A peer that is silent for `silence_ms`, also while it
 * connects, ends it. 0 or -errno.
 */
int shunt_channel_connect(struct shunt_channel *channel, struct shunt_links *links,
			  const struct sockaddr *from, const struct sockaddr *to,
			  const uint8_t cookie[SHUNT_COOKIE_BYTES], uint32_t silence_ms);

/* A tcp channel that has been let in: its addresses are the kernel's. 0 or -errno. */
int shunt_channel_locate(struct shunt_channel *channel);

/*
 * May the channel speak of a connection between these addresses, ours and the peer's? A tcp channel of its own two alone:
 * a peer that has another address holds no end of the connection. A unix channel of all.
 */
bool shunt_channel_joins(const struct shunt_channel *channel, const uint8_t here[16],
			 const uint8_t there[16]);

/*
 * Options of a tcp channel's socket: no delay, and an end when the peer's host has not answered for `silence_ms`.
 * Bytes that wait for acknowledgement, or for room at the peer, end it at that time. An idle connection is looked
 * after in whole seconds, and ends after two at the earliest. 0 or -errno.
 */
int shunt_channel_options(const struct shunt_sys *sys, int fd, uint32_t silence_ms);

/*
 * Sends a message, or keeps it. fds stay the caller's. 0 or -errno: it is not sent. -ENOBUFS: a stranger does not read
 * what it is told.
 */
int shunt_channel_send(struct shunt_channel *channel, const struct shunt_message *message, const int *fds, int count);
/* The same, but nothing is kept: -EAGAIN. */
int shunt_channel_send_now(struct shunt_channel *channel, const struct shunt_message *message);
/* There is room: sends what was kept. */
void shunt_channel_flush(struct shunt_channel *channel);
/* Is anything kept? Then somebody should flush when there is room. */
bool shunt_channel_waits(const struct shunt_channel *channel);

/*
 * The next message and its descriptors, which are the caller's then. 1; 0: none yet; -EPROTO: the
 * peer breaks the protocol, see channel->wrong; another -errno: it is gone.
 */
int shunt_channel_receive(struct shunt_channel *channel, struct shunt_message *message, int fds[SHUNT_CHANNEL_FDS],
			  int *count);

/* Kept messages are dropped. May be called again. */
void shunt_channel_close(struct shunt_channel *channel);

#endif
