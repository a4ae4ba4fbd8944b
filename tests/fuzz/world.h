/* SPDX-License-Identifier: MIT */
/*
 * Three engines in one thread, under the simulator's clock and TCP. The hostile peer owns a valid link to the victim,
 * and uses it as the script says. Nothing may disturb the streams of the victim's honest peer. The engines and the
 * honest link stay from input to input; everything of the hostile peer is gone after each.
 */
#ifndef FUZZ_WORLD_H
#define FUZZ_WORLD_H

#include "core/device/soft/device.h"
#include "core/engine.h"
#include "core/service.h"
#include "tests/fuzz/fuzz.h"
#include "tests/sim/sys.h"
#include "tests/sim/tcp.h"

#define FUZZ_CONNS 4	/* between the hostile peer and the victim, of one input */

enum fuzz_who { FUZZ_VICTIM, FUZZ_HOSTILE, FUZZ_HONEST, FUZZ_ENGINES };

struct fuzz_conn {
	struct sim_sock sock[2];	/* connected, accepted */
	enum fuzz_who who[2];
	int fd[2];			/* -1: closed */
	uint64_t sent[2], received[2];	/* of an honest one, by sending side */
};

struct fuzz_world {
	struct shunt_engine *engine[FUZZ_ENGINES];
	int epfd;			/* the victim's program waits there, too */
	struct fuzz_conn honest[2];
	struct fuzz_conn conn[FUZZ_CONNS];
	int conns;
	uint64_t start;			/* offset of the first byte of the connections to be made */
	bool born;			/* connections that both ends have closed are used again */
	bool raw;			/* the hostile peer has no engine: the fuzzer speaks for it */
	uint64_t links;			/* that the victim has made with this input; some are made again after a while */
};

extern struct fuzz_world fuzz_world;

/* Changes the calls of the hostile peer's engine on their way to the victim: hostile.c. NULL: nothing is. */
extern ssize_t (*fuzz_world_sendmsg)(int fd, const struct msghdr *message, int flags);

/* Of the victim and the honest peer; a fuzzer may put calls of its own there. */
struct shunt_sys *fuzz_world_sys(void);
/* Makes the world, or finds it clean. */
void fuzz_world_begin(void);
/* The engine calls its witness, if it has none. */
void fuzz_world_witness(enum fuzz_who who);
/* Descriptors may stay behind this time. */
void fuzz_world_grows(void);
/* A connection; NULL: there are enough. */
struct fuzz_conn *fuzz_world_connect(enum fuzz_who from, enum fuzz_who to);
/* Which side of it that is. */
int fuzz_world_side(const struct fuzz_conn *conn, enum fuzz_who who);
/* NULL: closed, or the kernel's. */
struct shunt_stream *fuzz_world_stream(struct fuzz_conn *conn, enum fuzz_who who);
/* As the program of that side: bytes or -errno. */
ssize_t fuzz_world_send(struct fuzz_conn *conn, int side, const void *bytes, size_t count, int flags);
ssize_t fuzz_world_receive(struct fuzz_conn *conn, int side, void *bytes, size_t count, int flags);
void fuzz_world_close(struct fuzz_conn *conn, int side);
/* A program connects where a spare leads, or accepts one: its number, or -errno. The caller closes it. */
int fuzz_world_born_connect(enum fuzz_who from, enum fuzz_who to);
int fuzz_world_born_accept(enum fuzz_who who);
/* Everybody does what is to be done. */
void fuzz_world_turn(void);
/* A few honest bytes each way. */
void fuzz_world_honest(size_t bytes);
/* The hostile peer's link, if it is up; and the QP that it ends in. */
struct shunt_link *fuzz_world_link(enum fuzz_who who);
struct soft_qp *fuzz_world_qp(struct shunt_link *link);
/* All connections of the input are closed, its links end, and nothing is left of them. */
void fuzz_world_end(void);

#endif
