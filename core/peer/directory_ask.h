/* SPDX-License-Identifier: MIT */
/*
 * A question to the directory of another host (directory.h): a TCP connection for one question and one answer. Its
 * owner calls shunt_directory_ask_step() when the descriptor is readable or writable, and ends it at a time of its own.
 * Service thread. Nothing waits. Errors are -errno.
 */
#ifndef SHUNT_CORE_PEER_DIRECTORY_ASK_H
#define SHUNT_CORE_PEER_DIRECTORY_ASK_H

#include "core/peer/directory_words.h"

struct shunt_engine;

struct shunt_directory_ask {
	struct shunt_engine *engine;
	int fd; /* private; -1: no question is under way */
	size_t sent, got;
	struct shunt_directory_question question;
	struct shunt_directory_answer answer;
};

/*
 * Asks the directory at `port` (network order) of the tuple's peer, from the tuple's local address, who listens at the
 * peer's address and port. `ask->fd` is to be watched for EPOLLIN and EPOLLOUT then. 0 or -errno: nothing has begun.
 */
int shunt_directory_ask_begin(struct shunt_directory_ask *ask, struct shunt_engine *engine,
			      const struct shunt_tuple *tuple, uint16_t port, const void *words,
			      unsigned int bytes);
/* The question has been sent: only EPOLLIN is worth watching. */
static inline bool shunt_directory_ask_is_sent(const struct shunt_directory_ask *ask)
{
	return ask->sent == sizeof(ask->question);
}
/*
 * Bytes of `ask->answer.words`; 0: not yet; -ECONNREFUSED: the peer's host has no directory.
 * -EPROTO: its directory does not answer, or not as we do. Another -errno: it cannot be reached.
 */
int shunt_directory_ask_step(struct shunt_directory_ask *ask);
/* No loop watches the descriptor any more. May be called again. */
void shunt_directory_ask_end(struct shunt_directory_ask *ask);

#endif
