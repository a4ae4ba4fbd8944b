/* SPDX-License-Identifier: MIT */
/*
 * transfer: two plain programs that move bytes both ways and check each of them. Every byte depends
 * on the seed, the connection, the direction and its offset. So a lost, repeated or displaced byte
 * is found at its exact place. Chunks and calls are chosen at random from the seed.
 */
#ifndef TESTS_CALLS_TRANSFER_H
#define TESTS_CALLS_TRANSFER_H

#include <stddef.h>
#include <stdint.h>

enum mode { BLOCKING, POLL, SELECT, EPOLL_LT, EPOLL_ET, EPOLL_ONESHOT, MODES };

struct options {
	uint64_t bytes;		/* in each direction of each connection */
	uint64_t seed;
	size_t chunk_max;
	enum mode mode;
	int connections;
	int no_sendfile;	/* for runs that may not have files */
	int one_way;		/* only from the client to the server */
	int server;
	int port;		/* 0: any */
	const char *address;
	const char *until;	/* a file: when it is there the sender ends, though less than `bytes` are sent; NULL none */
};

/* One direction of a connection, as one end sees it. */
struct dir {
	uint64_t key;		/* of the bytes */
	uint64_t rng;		/* of the choices; differs at the two ends */
	uint64_t at, total;
	uint64_t sum;		/* of all bytes */
	double last, stall;	/* when bytes came, and the longest time without any, in seconds */
	int done;		/* sent and shut down, or the end was read */
	unsigned char *buf, *want;	/* chunk_max and a bit */
	size_t pending;		/* bytes of a chunk that are still to be sent */
	size_t skip;		/* where they start in buf */
};

struct conn {
	int fd, index;
	int ready;		/* POLLIN | POLLOUT still to be used (edges) */
	struct dir tx, rx;
};

extern const struct options *opt;

double now(void);
uint64_t mix(uint64_t x);
uint64_t roll(struct dir *d);	/* the next random number */
size_t chunk(struct dir *d, uint64_t left);	/* a size, log-uniform */
void generate(struct dir *d, unsigned char *buf, uint64_t at, size_t len);	/* 16 spare bytes */
uint64_t sum_of(const unsigned char *buf, size_t len);
void fail(const struct conn *c, const char *what, uint64_t at) __attribute__((noreturn));

/* One random call. 1: went on, 0: would block (non-blocking mode), done is set at the end. */
int send_some(struct conn *c);
int recv_some(struct conn *c);
void wait_for(int fd, int write, unsigned how);	/* poll, select, epoll level, epoll edge */

/* Until all directions of all connections are done. */
void run_threads(struct conn *c, int n);
void run_loop(struct conn *c, int n);

#endif
