/* SPDX-License-Identifier: MIT */
/*
 * One end of a connection: which message is under way in each direction, where its bytes lie, and
 * the work on them. Server and client have it in common. It does not know when a message is due.
 */
#ifndef SHUNT_TOOLS_PERF_TALK_H
#define SHUNT_TOOLS_PERF_TALK_H

#include <sys/types.h>

#include "tools/perf/end/perf_end.h"

enum perf_side { PERF_AT_SERVER, PERF_AT_CLIENT };

struct perf_talk {
	enum perf_side side;
	uint32_t index;			/* of the connection */
	struct perf_sizes sizes;
	struct perf_work work;
	bool works;			/* this end touches and scans */
	bool whole;			/* received by messages; else as the bytes come */
	/* sending */
	const uint8_t *out;		/* the message under way; NULL: none */
	size_t out_size, out_sent;
	uint64_t tx, sent;		/* bytes; messages begun */
	/* receiving */
	uint8_t *in;			/* where the message under way goes; NULL: none, or not whole */
	size_t in_part;			/* bytes of it that have come */
	uint64_t rx, received;		/* bytes; messages complete */
	uint64_t at;			/* client: when the last bytes were there; read or written, too */
	/* memory of both */
	struct perf_order orders[2];	/* of the two sizes */
	struct perf_buffers tx_buffers, dummies, rx_buffers;
	struct perf_account account;	/* lines and checked bytes only */
	char why[96];			/* of -EBADMSG */
};

/*
 * 0 or -ENOMEM. The connections of the run share what "fresh" says of the cache. The pattern must
 * have room for the messages.
 */
int perf_talk_init(struct perf_talk *talk, enum perf_side side,
		   const struct perf_greeting *greeting);
void perf_talk_free(struct perf_talk *talk);
/* The most bytes that perf_talk_init() takes. */
uint64_t perf_talk_memory(const struct perf_greeting *greeting);

static inline bool perf_talk_sends(const struct perf_talk *talk)
{
	return talk->out;
}

/* Begins the next message: takes its buffer, and touches. */
void perf_talk_begin(struct perf_talk *talk);
/* Sends what is left of it: 0, -EAGAIN, or another -errno. */
int perf_talk_send(struct perf_talk *talk, int fd);
/*
 * One recv(), into `buffer` unless messages are received whole. Returns the bytes, 0 at the end, or
 * -errno. -EBADMSG: a byte is wrong, and `why` says which.
 */
ssize_t perf_talk_receive(struct perf_talk *talk, int fd, uint8_t *buffer, size_t size);
/* Whether the last message to come is complete. */
bool perf_talk_between(const struct perf_talk *talk);

#endif
