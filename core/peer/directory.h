/* SPDX-License-Identifier: MIT */
/*
 * The directory of this host (docs/dev/PROTOCOL.md, "Across hosts"): a TCP listener at one port,
 * `directory`. Other hosts ask there who listens at an address of this host. It stands in for
 * the connection manager at iWARP devices, whose listener would take the TCP port of the program.
 *
 * The processes of a user share the port (SO_REUSEPORT), so each answers for all. A question for an
 * address of another process goes to that address's owner (directory_owner.h). An asker proves
 * nothing. Askers are few at a time, each has a deadline, and when one more comes the oldest goes.
 *
 * Service thread. Times are nanoseconds of shunt_now(). The owner sleeps on directory->fd until
 * shunt_directory_due() at the latest, then calls shunt_directory_step(). Errors are -errno.
 */
#ifndef SHUNT_CORE_PEER_DIRECTORY_H
#define SHUNT_CORE_PEER_DIRECTORY_H

#include "core/peer/directory_words.h"

#define SHUNT_DIRECTORY_GUESTS 16

struct shunt_engine;
struct shunt_rendezvous;

struct shunt_directory_guest {
	int fd; /* its TCP connection; -1: free */
	int owner; /* a connection to the process that is to answer; -1: none */
	size_t bytes; /* of the question that have come */
	uint64_t deadline;
	struct shunt_directory_question question;
};

struct shunt_directory {
	struct shunt_engine *engine;
	int fd; /* an epoll of the next and the guests'; private; -1: closed */
	int listener; /* -1: the port is another user's, or is not wanted */
	uint16_t port; /* network order */
	uint64_t paused; /* out of descriptors: nobody is accepted before */
	uint64_t retry; /* without a listener: when to try again */
	uint64_t patience; /* ns that a guest has */

	/*
	 * The answer to `said`, as the owner of the rendezvous gives it. `asked`: the address asked
	 * for, and the asker's. Returns the bytes, at most sizeof(*answer); not positive: none.
	 */
	int (*answer)(struct shunt_rendezvous *rendezvous, const struct shunt_tuple *asked,
		      const struct shunt_have_words *said, struct remote_answer *answer);

	uint64_t turned_away; /* guests that made no sense, or were too slow or too many */
	struct shunt_directory_guest guests[SHUNT_DIRECTORY_GUESTS];
};

/* `engine`, `port`, `patience` and `answer` have been set. 0 or -errno. The port may be another user's: see `retry`. */
int shunt_directory_open(struct shunt_directory *directory);
void shunt_directory_step(struct shunt_directory *directory);
/* SHUNT_NEVER: never. */
uint64_t shunt_directory_due(const struct shunt_directory *directory);
void shunt_directory_close(struct shunt_directory *directory);
/* In a fork's child: the same, and the parent's epoll and connections stay as they are. */
void shunt_directory_forget(struct shunt_directory *directory);

#endif
