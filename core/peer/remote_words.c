/* SPDX-License-Identifier: MIT */
#include "core/peer/remote_words.h"
#include <string.h>
#include "core/base/hmac.h"
#include "core/base/keyfile.h"

_Static_assert(sizeof(struct remote_question) == SHUNT_REMOTE_QUESTION_BARE + 32, "no gaps");
_Static_assert(sizeof(struct remote_answer) == SHUNT_REMOTE_ANSWER_BARE + 32, "no gaps");
_Static_assert(sizeof(struct shunt_onward) == SHUNT_IDENTITY_BYTES + SHUNT_TICKET_BYTES + 2,
	       "no gaps");
_Static_assert(SHUNT_TICKET_BYTES == SHUNT_COOKIE_BYTES, "a ticket is shown as a cookie is");

/* Labels keep what is made for one use from being of use elsewhere. They end with a zero byte. */
static void hmac_begin(struct shunt_hmac *hmac, const uint8_t key[SHUNT_KEY_BYTES],
		       const char *label)
{
	shunt_hmac_begin(hmac, key, SHUNT_KEY_BYTES);
	shunt_hmac_add(hmac, label, strlen(label) + 1);
}

/* The magic and the version are in front in every version; the rest may be longer or shorter. */
static bool is_of_other_version(const void *given, unsigned int bytes, uint32_t *version)
{
	uint32_t head[2];

	if (bytes < sizeof(head))
		return false;
	memcpy(head, given, sizeof(head));
	*version = head[1];
	return head[0] == SHUNT_REMOTE_MAGIC && head[1] != SHUNT_WIRE_VERSION;
}

/* --- the question --- */

static void question_code(const struct remote_question *question, const uint8_t *key,
			  uint8_t code[SHUNT_HMAC_BYTES])
{
	struct shunt_hmac hmac;

	hmac_begin(&hmac, key, "question");
	shunt_hmac_add(&hmac, question, offsetof(struct remote_question, code));
	shunt_hmac_end(&hmac, code);
}

unsigned int shunt_remote_question_make(struct remote_question *question, const uint8_t *key,
					const uint8_t chance[SHUNT_REMOTE_CHANCE])
{
	uint8_t code[SHUNT_HMAC_BYTES];

	*question = (struct remote_question) { .magic = SHUNT_REMOTE_MAGIC, .version = SHUNT_WIRE_VERSION };
	if (!key)
		return SHUNT_REMOTE_QUESTION_BARE;
	memcpy(question->chance, chance, sizeof(question->chance));
	question_code(question, key, code);
	memcpy(question->code, code, sizeof(question->code));
	return sizeof(*question);
}

enum shunt_remote_sense shunt_remote_question_read(struct remote_question *question,
						   const uint8_t *key, const void *given,
						   unsigned int bytes)
{
	uint8_t code[SHUNT_HMAC_BYTES];

	*question = (struct remote_question) { 0 };
	if (is_of_other_version(given, bytes, &question->version))
		return SHUNT_REMOTE_OTHER_VERSION;
	if (bytes != SHUNT_REMOTE_QUESTION_BARE && bytes != sizeof(*question))
		return SHUNT_REMOTE_SENSELESS;
	memcpy(question, given, bytes);
	if (question->magic != SHUNT_REMOTE_MAGIC)
		return SHUNT_REMOTE_SENSELESS;
	if ((bytes == sizeof(*question)) != (key != NULL))
		return SHUNT_REMOTE_OTHER_KEY;
	if (!key)
		return SHUNT_REMOTE_SOUND;
	question_code(question, key, code);
	return shunt_hmac_equal(question->code, code, sizeof(question->code)) ?
		       SHUNT_REMOTE_SOUND :
		       SHUNT_REMOTE_OTHER_KEY;
}

/* --- the answer --- */

static void answer_code(const struct remote_answer *answer, const uint8_t *key,
			const struct remote_question *question, uint8_t code[SHUNT_HMAC_BYTES])
{
	struct shunt_hmac hmac;

	hmac_begin(&hmac, key, "answer");
	shunt_hmac_add(&hmac, question, sizeof(*question));
	shunt_hmac_add(&hmac, answer, offsetof(struct remote_answer, code));
	shunt_hmac_end(&hmac, code);
}

unsigned int shunt_remote_answer_make(struct remote_answer *answer, const uint8_t *key,
				      const struct remote_question *question)
{
	uint8_t code[SHUNT_HMAC_BYTES];

	answer->magic = SHUNT_REMOTE_MAGIC;
	answer->version = SHUNT_WIRE_VERSION;
	answer->why = 0;
	if (!key)
		return SHUNT_REMOTE_ANSWER_BARE;
	answer_code(answer, key, question, code);
	memcpy(answer->code, code, sizeof(answer->code));
	return sizeof(*answer);
}

unsigned int shunt_remote_answer_refuse(struct remote_answer *answer, uint16_t why)
{
	*answer = (struct remote_answer) { .magic = SHUNT_REMOTE_MAGIC, .version = SHUNT_WIRE_VERSION, .why = why };
	return SHUNT_REMOTE_ANSWER_BARE;
}

enum shunt_remote_sense shunt_remote_answer_read(struct remote_answer *answer, const uint8_t *key,
						 const struct remote_question *question,
						 const void *given, unsigned int bytes)
{
	uint8_t code[SHUNT_HMAC_BYTES];

	*answer = (struct remote_answer) { 0 };
	if (is_of_other_version(given, bytes, &answer->version))
		return SHUNT_REMOTE_OTHER_VERSION;
	if (bytes != SHUNT_REMOTE_ANSWER_BARE && bytes != sizeof(*answer))
		return SHUNT_REMOTE_SENSELESS;
	memcpy(answer, given, bytes);
	if (answer->magic != SHUNT_REMOTE_MAGIC)
		return SHUNT_REMOTE_SENSELESS;
	if (!answer->port)
		return answer->why == SHUNT_REMOTE_WHY_KEY ? SHUNT_REMOTE_OTHER_KEY :
							     SHUNT_REMOTE_SENSELESS;
	if ((bytes == sizeof(*answer)) != (key != NULL))
		return SHUNT_REMOTE_OTHER_KEY;
	if (!key)
		return SHUNT_REMOTE_SOUND;
	answer_code(answer, key, question, code);
	return shunt_hmac_equal(answer->code, code, sizeof(answer->code)) ? SHUNT_REMOTE_SOUND :
									    SHUNT_REMOTE_OTHER_KEY;
}

/* --- the channel --- */

static void derive(const uint8_t from[SHUNT_HMAC_BYTES], const char *label, uint8_t *to,
		   size_t bytes)
{
	uint8_t made[SHUNT_HMAC_BYTES];
	struct shunt_hmac hmac;

	hmac_begin(&hmac, from, label);
	shunt_hmac_end(&hmac, made);
	memcpy(to, made, bytes);
	explicit_bzero(made, sizeof(made));
}

/* Everything from the one secret of both ends, which is over then. */
static void begin_channel(uint8_t both[SHUNT_HMAC_BYTES], bool asker, struct shunt_seal *seal,
			  uint8_t shown[SHUNT_COOKIE_BYTES])
{
	derive(both, "gate", shown, SHUNT_COOKIE_BYTES);
	derive(both, asker ? "from asker" : "from answerer", seal->sending.key,
	       SHUNT_SEAL_KEY_BYTES);
	derive(both, asker ? "from answerer" : "from asker", seal->receiving.key,
	       SHUNT_SEAL_KEY_BYTES);
	explicit_bzero(both, SHUNT_HMAC_BYTES);
	seal->on = true;
}

void shunt_remote_words_bind(const uint8_t *key, const struct remote_question *question,
			     const struct remote_answer *answer, bool asker,
			     struct shunt_seal *seal, uint8_t shown[SHUNT_COOKIE_BYTES])
{
	uint8_t both[SHUNT_HMAC_BYTES];
	struct shunt_hmac hmac;

	memset(seal, 0, sizeof(*seal));
	if (!key) {
		memcpy(shown, answer->cookie, SHUNT_COOKIE_BYTES);
		return;
	}
	hmac_begin(&hmac, key, "channel");
	shunt_hmac_add(&hmac, question, sizeof(*question));
	shunt_hmac_add(&hmac, answer, sizeof(*answer));
	shunt_hmac_end(&hmac, both);
	begin_channel(both, asker, seal, shown);
}

void shunt_remote_words_onward(const uint8_t *key, const struct shunt_onward *onward, bool asker,
			       struct shunt_seal *seal, uint8_t shown[SHUNT_COOKIE_BYTES])
{
	uint8_t both[SHUNT_HMAC_BYTES];
	struct shunt_hmac hmac;

	memset(seal, 0, sizeof(*seal));
	if (!key) {
		memcpy(shown, onward->ticket, SHUNT_COOKIE_BYTES);
		return;
	}
	hmac_begin(&hmac, key, "onward");
	shunt_hmac_add(&hmac, onward, sizeof(*onward));
	shunt_hmac_end(&hmac, both);
	begin_channel(both, asker, seal, shown);
}
