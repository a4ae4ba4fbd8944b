/* SPDX-License-Identifier: MIT */
/*
 * Limits of one peer: links, time until it introduces itself, claims that wait, places among the
 * co-listeners. docs/dev/PROTOCOL.md has the numbers. More is refused, and logged once.
 */
#ifndef SHUNT_CORE_PEER_LIMITS_H
#define SHUNT_CORE_PEER_LIMITS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include "shunt/wire.h"

#define SHUNT_LINKS_PER_PROCESS 256	/* accepted links; usual is one for each name */
#define SHUNT_CO_LISTENERS_PER_PROCESS 64	/* at our names for co-listeners; usual is one for each */
#define SHUNT_CO_LISTENERS 1024		/* of strangers, and as many of others: no more than that share, either */
#define SHUNT_PARKED_PER_LINK 16384	/* claims whose connections our program has not used yet */
#define SHUNT_GUESTS_PER_USER 64	/* accepted links on which nothing has been proven yet */
#define SHUNT_GUESTS 256		/* the same, of all users */
#define SHUNT_STRANGERS_SHARE 8		/* links of strangers, proven or not: RLIMIT_NOFILE divided by this, */
#define SHUNT_LINKS_OF_STRANGERS 8192	/* and no more; of each user half of it */
#define SHUNT_SPACE_OF_STRANGERS (8ull << 40)	/* bytes of address space that they map, of 128 TiB; both segments of a link count */
#define SHUNT_GUEST_USERS 64		/* whose wrong answers are remembered; the first stands for all of them */
#define SHUNT_WRONG_PER_USER 64		/* answers of proofs, in SHUNT_WRONG_NS */
#define SHUNT_WRONG 1024		/* the same, of all users */
#define SHUNT_VAIN_PER_USER 1024	/* what came to nothing without a wrong answer, in SHUNT_WRONG_NS */
#define SHUNT_VAIN 8192			/* the same, of all users */
#define SHUNT_WRONG_NS 60000000000ull	/* also how long a user with more of them is not heard */
#define SHUNT_DOUBTS 512		/* answers that are wrong unless their connection ends */
#define SHUNT_DOUBTS_PER_USER 256	/* more are wrong at once */
#define SHUNT_DOUBT_NS 1000000000ull	/* until that is known */
#define SHUNT_HELLO_NS 5000000000ull	/* most time from accept() to HELLO */

/* The sums of strangers. Gauges, written by the service thread; `refused` counts. */
struct shunt_strangers {
	_Atomic uint32_t links, unproven, co_listeners;
	_Atomic uint64_t space;
	_Atomic uint64_t refused; /* by any limit of a peer */
};

/* Wrong answers; proofs whose connection ended, and questions of relatives of nobody. */
enum shunt_sum { SHUNT_SUM_WRONG, SHUNT_SUM_VAIN, SHUNT_SUMS };

/* Sums of a user's processes, of things that came to nothing (possession.h, kin_door.h). */
struct shunt_guest_user {
	uid_t user;
	uint32_t sum[SHUNT_SUMS];
	uint64_t since;		/* the first of them; 0: there are none */
	uint64_t until;		/* the user is not heard */
};

/* The oldest comes first. Service thread. */
struct shunt_doubts {
	struct shunt_doubt {
		struct shunt_tuple peer;	/* the connection, as the peer sees it */
		uint64_t cookie;		/* of the peer's socket */
		uid_t user;
		uint64_t until;			/* ns, when it is decided */
	} of[SHUNT_DOUBTS];
	uint32_t count;
};

struct shunt_engine;
struct shunt_link;
struct shunt_service;
struct shunt_task;

/* Links, and connections to names for co-listeners, of all strangers together; of each user half of that. */
struct shunt_most {
	uint32_t links, co_listeners;
};

struct shunt_most shunt_limits_most(const struct shunt_engine *engine);
/* Links have come or ended: what strangers have is counted for the statistics. Service thread. */
void shunt_limits_tell(struct shunt_service *service);

/* One more of a peer, which has `count` already. False: it is refused. Service thread. */
bool shunt_limits_allow(struct shunt_service *service, uint32_t pid, uint32_t count, uint32_t most,
			const char *what);
/* One more link over the channel `fd`, of a stranger or not. Service thread. */
bool shunt_limits_link(struct shunt_service *service, int fd, bool strange);
/* A process of the user could not prove a connection that it claims. Service thread. */
void shunt_limits_wrong(struct shunt_service *service, uid_t user);
/*
 * The same, if the connection lives a moment later, too; `cookie` is the peer's socket's. An honest peer whose program
 * closes it has taken its bits back before the kernel knows of the end. Counted as in vain until then.
 */
void shunt_limits_doubt(struct shunt_service *service, uid_t user, const struct shunt_tuple *peer,
			uint64_t cookie);
/* A process of the user has begun what came to nothing, and has shown nothing wrong. Service thread. */
void shunt_limits_vain(struct shunt_service *service, uid_t user);
/* Neither has happened so often that the user, or that of the process at the other end, is not heard for a while. */
bool shunt_limits_hears_user(const struct shunt_service *service, uid_t user);
bool shunt_limits_hears(const struct shunt_service *service, int fd);
/* Ends links without a HELLO, and decides what is in doubt. */
void shunt_limits_run(struct shunt_task *task);

#endif
