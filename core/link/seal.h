/* SPDX-License-Identifier: MIT */
/*
 * The codes of a channel between hosts that have a key. Each message has one, over its bytes and its number, with a
 * key of the channel and the direction. So no message can be made, changed, left out, repeated or moved by a process
 * without the key. One direction is guarded as the channel's half is.
 */
#ifndef SHUNT_CORE_LINK_SEAL_H
#define SHUNT_CORE_LINK_SEAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SHUNT_SEAL_BYTES 16	/* of a code: the first of HMAC-SHA-256 */
#define SHUNT_SEAL_KEY_BYTES 32

struct shunt_seal_half {
	uint64_t number;	/* of the next message */
	uint8_t key[SHUNT_SEAL_KEY_BYTES];
};

struct shunt_seal {
	bool on;		/* the messages have codes */
	struct shunt_seal_half sending, receiving;
};

/* The code of the next message that is sent. It counts only after shunt_seal_sent(). */
void shunt_seal_make(const struct shunt_seal *seal, const void *message, size_t bytes,
		     uint8_t code[SHUNT_SEAL_BYTES]);
void shunt_seal_sent(struct shunt_seal *seal);

/* Is it the code of the next message that is to come? Then that has come. */
bool shunt_seal_check(struct shunt_seal *seal, const void *message, size_t bytes,
		      const uint8_t code[SHUNT_SEAL_BYTES]);

#endif
