/* SPDX-License-Identifier: MIT */
/*
 * The simulator: two engines in one thread, connected by a scripted TCP and the soft device, driven
 * by one seed. Results of programs are checked byte by byte against the kernel's.
 */
#ifndef SIM_H
#define SIM_H

#include <setjmp.h>
#include <stdio.h>
#include "core/engine.h"
#include "core/service.h"
#include "tests/sim/random.h"
#include "tests/sim/role.h"
#include "tests/sim/sys.h"
#include "tests/sim/tcp.h"

#define SIM_CONNS 6
#define SIM_BORN_CONNS 48	/* of a seed with births, of which few are open at a time */
#define SIM_EVENTS 8

enum sim_life { SIM_UNBORN, SIM_OPEN, SIM_CLOSED };
enum sim_style { SIM_BLIND, SIM_POLLS, SIM_EPOLL, SIM_STYLES };

struct sim_conn;

struct sim_end {		/* one end of a connection: a little program */
	struct sim_conn *conn;
	int side;		/* 0 connected, 1 accepted */
	int which;		/* its engine */
	int fd, twin;		/* twin: a dup, or -1 */
	enum sim_life life;
	enum sim_style style;
	uint64_t sent, received, goal;
	uint32_t salt;		/* of what it sends */
	uint32_t watch_events;	/* SIM_EPOLL: 0 not registered */
	bool spent;		/* EPOLLONESHOT has fired */
	bool may_read, may_write;	/* SIM_EPOLL: reported, not yet exhausted */
	bool trusts_short;	/* a short count means exhausted (epoll(7), Q9) … */
	bool told_end;		/* … but not when the end of the stream is behind it */
	bool shut_write, shut_read, eof, error;
	bool told_reset;	/* which is told once (sk_err) */
	bool lazy;		/* reads rarely */
	bool drops;		/* closes when it pleases */
	bool brief;		/* closes without a shutdown, as soon as it has all */
};

struct sim_conn {
	struct sim_sock *sock;	/* two: a pair of the world's; one that is born takes another's, which gets its own */
	struct sim_end end[2];
	uint8_t options[2];	/* what the program has made of its socket's (witness.h) */
	bool opened, established;
	bool born;		/* of a spare */
	bool lost;		/* it has not come to accept(), which may be so */
	bool reset_ok;		/* the kernel may reset it, or has: bytes and ends may be lost */
};

struct sim_world {
	struct shunt_engine *engine[2];
	struct shunt_config config[2];
	struct sim_sock listener[2];
	int listener_fd[2];
	int epfd[2];
	size_t table;		/* slots of an engine's table as it was made */
	int lowest, high;	/* free real descriptors when it began */
	struct in_addr address;
	struct sim_sock pair[SIM_BORN_CONNS][2];
	struct sim_conn conn[SIM_BORN_CONNS];
	int conns;
	bool born;	/* connections that both ends have closed are used again: born.c */
	bool dead[2];	/* that process was killed */
	uint64_t again;		/* bytes that links have carried of streams that had returned */
	uint64_t start[2];	/* offset of the first byte that connectors send, and acceptors */
	bool hands;	/* connections go to other processes, */
	uint64_t handed, handed_on;	/* so often; and so many came to a link after that */
	bool imm; /* the device has no WRITE_WITH_IMM */
	bool dying;	/* queue pairs die again and again, and streams return: nothing may be lost */
	bool retires, nonces, mocks, kills, killed, broken, silent, faulty, no_listener;	/* broken: a queue pair has died, and nothing may be lost */
};

extern struct sim_world sim_world;
extern bool sim_verbose;
extern uint64_t sim_step;

/* No link has been given more tokens than its limit has by now (core/qos/). */
void sim_world_tokens(void);
/* Ends the seed: a printf line that says what was wrong. */
_Noreturn void sim_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));
void sim_trace(const char *format, ...) __attribute__((format(printf, 1, 2)));
#define trace(...) do { if (__builtin_expect(sim_verbose, 0)) sim_trace(__VA_ARGS__); } while (0)

/* After a seed, for its last line. */
void sim_count(bool broken, uint64_t returned, uint64_t again, uint64_t proven, uint64_t births);
/* Connections that went to another process, and how many of these came to a link there. */
void sim_count_hands(uint64_t handed, uint64_t linked);
/* SIM_AVOID in the environment names it: for hunting past a known fault. */
bool sim_avoids(const char *what);

/* --- imm.c: a device without WRITE_WITH_IMM --- */
bool sim_imm_chosen(uint64_t seed);

/* --- world.c --- */
void sim_world_make(uint64_t seed);
/* Nothing may be left of the connections. */
void sim_world_check(void);
/* After each step. */
void sim_world_rung(void);
void sim_world_end(void);
void sim_world_show(void);

/* --- end.c: what a program does, and what it must see --- */
void sim_end_open(struct sim_end *end);
void sim_end_send(struct sim_end *end, uint64_t most, bool must);
void sim_end_receive(struct sim_end *end, uint64_t most, bool must, int flags);
void sim_end_poll(struct sim_end *end);
void sim_end_queues(struct sim_end *end);
void sim_end_shutdown(struct sim_end *end, int how);
void sim_end_close(struct sim_end *end);
void sim_end_twin(struct sim_end *end);
struct shunt_stream *sim_end_stream(struct sim_end *end);
static inline struct sim_end *sim_end_peer(struct sim_end *end)
{
	return &end->conn->end[!end->side];
}

/* --- watch.c: programs that use epoll --- */
void sim_watch_add(struct sim_end *end);
void sim_watch_drop(struct sim_end *end);
void sim_watch_rearm(struct sim_end *end);
void sim_watch_wait(int which);

/* --- play.c: who does what, when --- */
void sim_play(void);
/* Reads and writes until it is done, in its own style, and closes then. True: it got somewhere. */
bool sim_play_finish(struct sim_end *end);
/* Everybody but the programs goes on. True: something moved. */
bool sim_play_advance(void);
/* How long a wait may last. */
struct timespec sim_patience(void);

#endif
