/* SPDX-License-Identifier: MIT */
/* Two ends of the connection manager, what they were told, and the tests that cm.c runs from other files. */
#ifndef LAB_CM_CM_H
#define LAB_CM_CM_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <cmocka.h>
#include "core/device/cm/inside.h"

#define PORT 7000
#define HIGH 500	/* where kept descriptors go */
#define PATIENCE 60000	/* ms: only what hangs takes so long */

extern const char here[], there[], here6[], there6[];	/* rxe0, rxe1 */
extern const char hole[];	/* its neighbour entry leads nowhere */

struct seen {
	int questions, answers, losts;	/* calls back */
	int connects;			/* connect requests of either end: a slow answer takes several */
	int rejected;			/* answers with EPROTO */
	int status, bytes;		/* of the last answer */
	bool routed;
	uint8_t answer[CM_ANSWER_MAX], question[CM_QUESTION_MAX];
	int asked_bytes, refuse, again;
	struct cm_listener *leave;	/* within its callback */
	struct cm_route route, asked_route;
	void *listener_arg, *ask_arg;
	double slowest;			/* ms in one call of the library */
	const char *slowest_call;
};

/* --- ends.c --- */

extern struct cm asker, listener;
extern struct seen seen;
extern pid_t child;	/* ended with its test */
extern const struct cm_callbacks callbacks;

void open_both(void);
void close_both(void);
void end_child(void);
int set_up(void **state);
int tear_down(void **state);

/* --- timed.c --- */

void time_calls(struct cm *cm);

/* --- ask.c --- */

double now(void);	/* ms */
union cm_address at(const char *text, uint16_t port);
/* Open descriptors: all, or those with low numbers. */
int descriptors(bool low);
void step(struct cm *cm);
/* Until so many answers have come; no longer than `ms`. */
void run(int answers, double ms);
/* Each question has been heard, and none more often than it was asked. */
void each_was_heard(int questions);
int ask_from(struct cm *cm, const char *from, const char *to, uint16_t port, double ms);
/* Asks and waits for the end. */
int ask(const char *from, const char *to, uint16_t port, double ms);
/* And the answer is right. */
void answered(const char *from, const char *to, uint16_t port);
struct cm_listener *listening(struct cm *cm, const char *address, uint16_t port, bool only_v6);
/* The error of listening there; the listener ends at once. */
int listen_error(const char *address, uint16_t port, bool only_v6);
void good_route(const struct cm_route *route, const char *device, const char *local, const char *peer);

/* --- the tests that cm.c runs from other files --- */

/* answers.c */
void question_and_answer(void **state);
void by_ipv6(void **state);
void lengths(void **state);
void wildcards(void **state);
void mapped_addresses(void **state);
void callbacks_call(void **state);
void cancelled(void **state);

/* silence.c */
void nobody_listens(void **state);
void black_holes(void **state);
void no_way(void **state);
void a_stopped_listener(void **state);
void another_process_listens(void **state);
void a_forks_child(void **state);

/* hostile.c */
void garbage_questions(void **state);
void garbage_answers(void **state);
void somebody_accepts(void **state);
void asked_again(void **state);

/* many.c */
void a_thousand_in_a_row(void **state);
void many_at_once(void **state);
void nothing_is_left(void **state);
void a_device_goes(void **state);

#endif
