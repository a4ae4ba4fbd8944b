/* SPDX-License-Identifier: MIT */
/*
 * Marks: four options of a connected TCP socket that mean nothing to it, and that the kernel shows to others
 * (core/peer/witness.h has their bits). A proof sets them for a moment. The program's values are put back when the
 * proof is over. They also are when the program asks for one of the options, closes the descriptor or hands it on.
 */
#ifndef SHUNT_CORE_STREAM_MARKS_H
#define SHUNT_CORE_STREAM_MARKS_H

#include <stdbool.h>
#include <stdint.h>

struct shunt_stream;

#define SHUNT_MARKS_NONE 0xff	/* of struct shunt_marks.own: the socket has what the program gave it */
#define SHUNT_MARKS_TAKEN 0xfe	/* the same, but somebody is about to set them */

struct shunt_marks {	/* streams_lock, except a look at `own` */
	_Atomic uint8_t own;	/* the program's values, as bits; or one of the above */
	uint8_t now;		/* what the socket has instead */
	_Atomic uint8_t users;	/* calls of the program for one of the options that are under way; any thread */
};

/*
 * The socket shows these bits. `first`: of a proof; where it is not, false says also that somebody has had the marks
 * undone meanwhile. False: it cannot be done, and nothing is changed. Takes streams_lock. Service thread.
 */
bool shunt_marks_show(struct shunt_stream *stream, uint8_t bits, bool first);
/* The socket has the program's values again. Any thread; takes streams_lock. */
void shunt_marks_undo(struct shunt_stream *stream);
/* The same; streams_lock held, the descriptor is still ours. */
void shunt_marks_undo_held(struct shunt_stream *stream);
/* In a fork's child: the parent puts them back, the socket is the same. */
void shunt_marks_forget(struct shunt_stream *stream);

#endif
