/* SPDX-License-Identifier: MIT */
/*
 * Why a direction that was on the link went on over TCP, counted for `shunt stat`. Each move of the sending end has one
 * cause; the receiving end's is the peer's, which shows it.
 */
#ifndef SHUNT_CORE_STREAM_LEFT_H
#define SHUNT_CORE_STREAM_LEFT_H

#include <stdint.h>

struct shunt_stream;

enum shunt_left {
	SHUNT_LEFT_NEVER,
	SHUNT_LEFT_MOCK,	/* our operator's word */
	SHUNT_LEFT_PEER,	/* the peer's operator's */
	SHUNT_LEFT_SLOW,	/* the rule about slow completions (mock.h) */
	SHUNT_LEFT_PACED,	/* a rate that the program has set (core/qos/pacing.h) */
	SHUNT_LEFT_FLIP,	/* `flip` */
	SHUNT_LEFT_MEMORY,	/* no memory for bytes that wait for the link */
	SHUNT_LEFT_RETIRED,	/* it goes back for good (retire.c), ours or the peer's */
	SHUNT_LEFT_FAILED,	/* the queue pair has died, or the link has ended */
	SHUNT_LEFTS
};

/* For statistics; "" for SHUNT_LEFT_NEVER. */
const char *shunt_left_text(uint8_t left);
/* The sending direction is about to be TCP's. tx.lock held. */
void shunt_left_note(struct shunt_stream *stream, enum shunt_left why);
/* The same, by what keeps it on TCP now. */
void shunt_left_choose(struct shunt_stream *stream);

#endif
