/* SPDX-License-Identifier: MIT */
/*
 * The work of both ends on the bytes of a message, beside sending and receiving it: LN-02 to LN-04
 * of docs/dev/MECHANISMS.md. The sender touches the buffer that it is about to send, or another one of
 * that size; the receiver scans what has come.
 */
#ifndef SHUNT_TOOLS_PERF_WORK_H
#define SHUNT_TOOLS_PERF_WORK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PERF_LINE 64	/* bytes of a cache line */
#define PERF_STRIDE 16	/* lines */

/* In each of them, 0 is the default. The names are in perf_work.c. */
enum { PERF_TOUCH_NONE, PERF_TOUCH_TX, PERF_TOUCH_DUMMY };
enum { PERF_TOUCH_WRITE, PERF_TOUCH_READ };
enum { PERF_SCAN_CHECK, PERF_SCAN_READ, PERF_SCAN_WRITE, PERF_SCAN_NONE };
enum { PERF_ACCESS_SEQ, PERF_ACCESS_STRIDE, PERF_ACCESS_RANDOM };
enum { PERF_SIDE_BOTH, PERF_SIDE_SERVER, PERF_SIDE_CLIENT };
enum { PERF_BUFFERS_TABLE, PERF_BUFFERS_REUSED, PERF_BUFFERS_FRESH };

/* Also as it travels in a greeting. */
struct perf_work {
	uint8_t touch, touch_op, scan, access, side, buffers, unused[2];
};

#define PERF_WORK_FIELDS 6
#define PERF_WORK_TEXT_MAX (PERF_WORK_FIELDS + 1)

/* ---- perf_work.c ---- */

/* For --help. */
extern const char perf_work_help[];
/* Its option, without "--"; NULL past the last. */
const char *perf_work_field(size_t field);
/* The name of its value. */
const char *perf_work_name(const struct perf_work *work, size_t field);
/* 0, or -1 where it has no such value. */
int perf_work_set(struct perf_work *work, size_t field, const char *name);
/* "tx, dummy or none" */
const char *perf_work_names(size_t field);
/* After the last perf_work_set(): what one value asks of another. */
void perf_work_settle(struct perf_work *work);
bool perf_work_valid(const struct perf_work *work);
/* As an argument of an end, and back: 0, or -1. */
void perf_work_text(const struct perf_work *work, char text[PERF_WORK_TEXT_MAX]);
int perf_work_parse(struct perf_work *work, const char *text);

/* ---- perf_touch.c ---- */

/* In which order the lines of a message are accessed. */
struct perf_order {
	size_t bytes;	/* of the message */
	size_t count;	/* lines */
	uint32_t *lines;
};

/* 0 or -ENOMEM. The order depends on nothing but the two numbers. */
int perf_order_make(struct perf_order *order, size_t bytes, unsigned int access);
void perf_order_free(struct perf_order *order);

/* One buffer, or a set of them that are used in turns. */
struct perf_buffers {
	uint8_t *base;
	size_t slot;	/* bytes from one to the next */
	size_t count, next;
};

/*
 * Each holds the first bytes of `content`, and its pages are there. `set` is how many bytes the set has at
 * least; there is one buffer where it is 0. 0 or -ENOMEM.
 */
int perf_buffers_make(struct perf_buffers *buffers, size_t bytes, size_t set,
		      const uint8_t *content);
uint8_t *perf_buffers_take(struct perf_buffers *buffers);
void perf_buffers_free(struct perf_buffers *buffers);
/* How many bytes sets that are used in turns need to be larger than the last-level cache. */
size_t perf_buffers_fresh(void);

/* The first byte of a line, where senders write to what they send. */
static inline uint8_t perf_mark(uint64_t message, uint32_t line)
{
	return (uint8_t)(message * 7 + line * 13 + 1);
}

/* Writes to or reads from each line of a buffer. */
void perf_touch(uint8_t *bytes, const struct perf_order *order, bool write, uint64_t message);
void perf_scan(uint8_t *bytes, const struct perf_order *order, bool write);
/*
 * Compares all bytes with those that are right, in lines that begin with a mark where `marked`. The
 * offset of the first wrong one, or `order->bytes`.
 */
size_t perf_compare(const uint8_t *bytes, const uint8_t *right, const struct perf_order *order,
		    bool marked, uint64_t message);

#endif
