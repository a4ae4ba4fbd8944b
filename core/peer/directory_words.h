/* SPDX-License-Identifier: MIT */
/*
 * The frames of a directory (directory.h): one question and one answer on a TCP connection. Each frame has a fixed size
 * and carries the words of remote_words.h. All that is read is hostile. No lock, nothing waits.
 */
#ifndef SHUNT_CORE_PEER_DIRECTORY_WORDS_H
#define SHUNT_CORE_PEER_DIRECTORY_WORDS_H

#include "core/peer/remote_words.h"

#define SHUNT_DIRECTORY_MAGIC 0x53484431u /* "SHD1": also tells the byte order */

struct shunt_directory_question {
	uint32_t magic;
	uint32_t version; /* SHUNT_WIRE_VERSION of the asker */
	uint8_t address[16]; /* of the listener in question, as in struct shunt_tuple */
	uint16_t port; /* of the listener, network order */
	uint16_t bytes; /* of `words` that count */
	uint8_t words[sizeof(struct remote_question)];
};

struct shunt_directory_answer {
	uint32_t magic;
	uint32_t bytes; /* of `words` that count */
	uint8_t words[sizeof(struct remote_answer)];
};

void shunt_directory_question_make(struct shunt_directory_question *question,
				   const uint8_t address[16], uint16_t port, const void *words,
				   unsigned int bytes);
/*
 * `got` bytes of the frame have come. 1: the frame is whole and sound; 0: more is to come; -EPROTONOSUPPORT: the asker
 * is of another version; -EPROTO: the frame makes no sense. An error may be told before the frame is whole.
 */
int shunt_directory_question_read(const struct shunt_directory_question *question, size_t got);

void shunt_directory_answer_make(struct shunt_directory_answer *answer, const void *words,
				 unsigned int bytes);
/*
 * `got` bytes of the frame have come; `ended`: no more will. How many bytes of `words` there are; 0: more is to come;
 * -EPROTO: the frame makes no sense. A frame of another version may be shorter or longer: its first words are told.
 */
int shunt_directory_answer_read(const struct shunt_directory_answer *answer, size_t got,
				bool ended);

#endif
