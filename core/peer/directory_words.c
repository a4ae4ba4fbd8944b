/* SPDX-License-Identifier: MIT */
#include "core/peer/directory_words.h"
#include <errno.h>
#include <string.h>

_Static_assert(sizeof(struct shunt_directory_question) == 28 + sizeof(struct remote_question),
	       "no gaps");
_Static_assert(sizeof(struct shunt_directory_answer) == 8 + sizeof(struct remote_answer),
	       "no gaps");

void shunt_directory_question_make(struct shunt_directory_question *question,
				   const uint8_t address[16], uint16_t port, const void *words,
				   unsigned int bytes)
{
	*question = (struct shunt_directory_question) { .magic = SHUNT_DIRECTORY_MAGIC,
							.version = SHUNT_WIRE_VERSION,
							.port = port,
							.bytes = (uint16_t)bytes };
	memcpy(question->address, address, sizeof(question->address));
	memcpy(question->words, words, bytes);
}

int shunt_directory_question_read(const struct shunt_directory_question *question, size_t got)
{
	if (got >= sizeof(question->magic) && question->magic != SHUNT_DIRECTORY_MAGIC)
		return -EPROTO;
	if (got < offsetof(struct shunt_directory_question, address))
		return 0;
	if (question->version != SHUNT_WIRE_VERSION)
		return -EPROTONOSUPPORT;
	if (got < sizeof(*question))
		return 0;
	return question->bytes && question->bytes <= sizeof(question->words) ? 1 : -EPROTO;
}

void shunt_directory_answer_make(struct shunt_directory_answer *answer, const void *words,
				 unsigned int bytes)
{
	*answer = (struct shunt_directory_answer) { .magic = SHUNT_DIRECTORY_MAGIC,
						    .bytes = bytes };
	memcpy(answer->words, words, bytes);
}

int shunt_directory_answer_read(const struct shunt_directory_answer *answer, size_t got, bool ended)
{
	const size_t head = offsetof(struct shunt_directory_answer, words);
	size_t there = got > head ? got - head : 0;

	if (got >= sizeof(answer->magic) && answer->magic != SHUNT_DIRECTORY_MAGIC)
		return -EPROTO;
	if (got < sizeof(*answer) && !ended)
		return 0;
	if (!there || !answer->bytes || (answer->bytes > there && got < sizeof(*answer)))
		return -EPROTO;
	return (int)(answer->bytes < there ? answer->bytes :
					     there); /* at most sizeof(answer->words) */
}
