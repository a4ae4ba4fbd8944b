/* SPDX-License-Identifier: MIT */
/*
 * The question to another host and its answer (docs/dev/PROTOCOL.md, "Across hosts"), as the private
 * data of the connection manager. Also the channel's keys and cookie, which follow from them. With
 * a key both have chance of their sender and a code, and the channel's keys come from both.
 * Everything that is read is hostile. No lock, nothing waits.
 */
#ifndef SHUNT_CORE_PEER_REMOTE_WORDS_H
#define SHUNT_CORE_PEER_REMOTE_WORDS_H

#include <stddef.h>
#include <stdint.h>
#include "core/link/channel.h"

#define SHUNT_REMOTE_MAGIC 0x53484131u	/* "SHA1": also tells the byte order */
#define SHUNT_REMOTE_CHANCE 16		/* bytes */

struct remote_question {
	uint32_t magic;
	uint32_t version;
	uint8_t chance[SHUNT_REMOTE_CHANCE];	/* with a key, as is the next */
	uint8_t code[SHUNT_SEAL_BYTES];		/* over what stands before it */
};
#define SHUNT_REMOTE_QUESTION_BARE offsetof(struct remote_question, chance)

struct remote_answer {
	uint32_t magic;
	uint32_t version;
	uint16_t port;		/* of the gate, network order; 0: none, and `why` says why */
	uint16_t why;
	uint8_t cookie[SHUNT_COOKIE_BYTES];
	uint8_t chance[SHUNT_REMOTE_CHANCE];	/* with a key, as is the next */
	uint8_t code[SHUNT_SEAL_BYTES];		/* over the question and what stands before it */
};
#define SHUNT_REMOTE_ANSWER_BARE offsetof(struct remote_answer, chance)
#define SHUNT_REMOTE_WHY_KEY 1	/* the question has no code, or one that is not of the answerer's key */
#define SHUNT_REMOTE_WHY_VERSION 2	/* the question is of another version than the answer's */

enum shunt_remote_sense {
	SHUNT_REMOTE_SOUND,
	SHUNT_REMOTE_SENSELESS,		/* of another byte order, or nothing of ours */
	SHUNT_REMOTE_OTHER_VERSION,	/* the `version` that was read says which */
	SHUNT_REMOTE_OTHER_KEY,		/* its sender has another key, or one of the two has none */
};

/* NULL for `key` is no key, here and below. Makers return how many bytes travel; readers are given those that came. */
unsigned int shunt_remote_question_make(struct remote_question *question, const uint8_t *key,
					const uint8_t chance[SHUNT_REMOTE_CHANCE]);
enum shunt_remote_sense shunt_remote_question_read(struct remote_question *question,
						   const uint8_t *key, const void *given,
						   unsigned int bytes);

/* `port`, `cookie` and, with a key, `chance` have been set. */
unsigned int shunt_remote_answer_make(struct remote_answer *answer, const uint8_t *key,
				      const struct remote_question *question);
/* There is no gate for this asker. */
unsigned int shunt_remote_answer_refuse(struct remote_answer *answer, uint16_t why);
/* SOUND: there is a gate. A refusal has no code, so anybody on the way can make one: it costs the link alone. */
enum shunt_remote_sense shunt_remote_answer_read(struct remote_answer *answer, const uint8_t *key,
						 const struct remote_question *question,
						 const void *given, unsigned int bytes);

/*
 * The first bytes and the seal of the channel between these two. `shown` is what the asker shows at
 * the gate: the cookie, which with a key is never sent as it is. `seal` is that of the asker's end,
 * or of the answerer's; off without a key.
 */
void shunt_remote_words_bind(const uint8_t *key, const struct remote_question *question,
			     const struct remote_answer *answer, bool asker,
			     struct shunt_seal *seal, uint8_t shown[SHUNT_COOKIE_BYTES]);

/*
 * The same for a claimant that was sent on (core/peer/invite.h). It is the asker, and its words
 * have come from the owner, who has the same key.
 */
void shunt_remote_words_onward(const uint8_t *key, const struct shunt_onward *onward, bool asker,
			       struct shunt_seal *seal, uint8_t shown[SHUNT_COOKIE_BYTES]);

#endif
