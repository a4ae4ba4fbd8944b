/* SPDX-License-Identifier: MIT */
/* One end of a connection: its messages, their buffers, and the work on them. */
#include "tools/perf/end/perf_talk.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

/* ---- what is sent and received ---- */

static enum perf_direction direction(const struct perf_talk *talk, bool sends)
{
	return (talk->side == PERF_AT_CLIENT) == sends ? PERF_REQUESTS : PERF_REPLIES;
}

static uint32_t size_of(const struct perf_talk *talk, bool sends, uint64_t message)
{
	return perf_size(&talk->sizes, direction(talk, sends), message);
}

static const struct perf_order *order_of(const struct perf_talk *talk, size_t size)
{
	return &talk->orders[size != talk->orders[0].bytes];
}

static bool works_at(const struct perf_work *work, enum perf_side side)
{
	return work->side == PERF_SIDE_BOTH ||
	       (work->side == PERF_SIDE_SERVER) == (side == PERF_AT_SERVER);
}

/* Whether the lines that come begin with marks. */
static bool is_marked(const struct perf_talk *talk)
{
	const struct perf_work *work = &talk->work;

	return work->touch == PERF_TOUCH_TX && work->touch_op == PERF_TOUCH_WRITE &&
	       works_at(work, talk->side == PERF_AT_SERVER ? PERF_AT_CLIENT : PERF_AT_SERVER);
}

/* ---- memory ---- */

static uint32_t largest(const struct perf_sizes *sizes, enum perf_direction which)
{
	uint32_t size = which == PERF_REQUESTS ? sizes->request : sizes->reply;
	uint32_t other = which == PERF_REQUESTS ? sizes->reply : sizes->request;

	return sizes->writes && other > size ? other : size;
}

static size_t set_bytes(const struct perf_greeting *greeting)
{
	if (greeting->work.buffers != PERF_BUFFERS_FRESH)
		return 0;
	return perf_buffers_fresh() / greeting->conns;
}

static bool is_whole(const struct perf_work *work, bool works)
{
	return work->buffers != PERF_BUFFERS_TABLE ||
	       (works && (work->access != PERF_ACCESS_SEQ || work->scan == PERF_SCAN_READ ||
			  work->scan == PERF_SCAN_WRITE));
}

/* The two directions, dummies, and lists of lines; a set of buffers has up to two more than its bytes say. */
uint64_t perf_talk_memory(const struct perf_greeting *greeting)
{
	uint64_t both = (uint64_t)largest(&greeting->sizes, PERF_REQUESTS) +
			largest(&greeting->sizes, PERF_REPLIES) + 2 * PERF_LINE;

	if (!is_whole(&greeting->work, true))
		return sizeof(struct perf_talk);
	return sizeof(struct perf_talk) + both * 5 + 3 * set_bytes(greeting);
}

static int make_orders(struct perf_talk *talk)
{
	return perf_order_make(&talk->orders[0], talk->sizes.request, talk->work.access) ||
			       perf_order_make(&talk->orders[1], talk->sizes.reply,
					       talk->work.access) ?
		       -ENOMEM :
		       0;
}

static int make_buffers(struct perf_talk *talk, size_t set)
{
	size_t tx = largest(&talk->sizes, direction(talk, true));
	size_t rx = largest(&talk->sizes, direction(talk, false));
	const uint8_t *content = perf_pattern(talk->index, direction(talk, true), 0);
	bool owns = talk->work.buffers != PERF_BUFFERS_TABLE;
	bool dummies = talk->works && talk->work.touch == PERF_TOUCH_DUMMY;

	if (owns && tx && perf_buffers_make(&talk->tx_buffers, tx, set, content))
		return -ENOMEM;
	if (dummies && tx && perf_buffers_make(&talk->dummies, tx, set, content))
		return -ENOMEM;
	return rx ? perf_buffers_make(&talk->rx_buffers, rx, set,
				      perf_pattern(0, PERF_REQUESTS, 0)) :
		    0;
}

int perf_talk_init(struct perf_talk *talk, enum perf_side side,
		   const struct perf_greeting *greeting)
{
	memset(talk, 0, sizeof(*talk));
	talk->side = side;
	talk->index = greeting->index;
	talk->sizes = greeting->sizes;
	talk->work = greeting->work;
	talk->works = works_at(&talk->work, side);
	talk->whole = is_whole(&talk->work, talk->works);
	if (!talk->whole)
		return 0;
	if (!make_orders(talk) && !make_buffers(talk, set_bytes(greeting)))
		return 0;
	perf_talk_free(talk);
	return -ENOMEM;
}

void perf_talk_free(struct perf_talk *talk)
{
	perf_order_free(&talk->orders[0]);
	perf_order_free(&talk->orders[1]);
	perf_buffers_free(&talk->tx_buffers);
	perf_buffers_free(&talk->dummies);
	perf_buffers_free(&talk->rx_buffers);
}

/* ---- sending ---- */

static void touch(struct perf_talk *talk, uint8_t *tx)
{
	const struct perf_order *order = order_of(talk, talk->out_size);
	bool write = talk->work.touch_op == PERF_TOUCH_WRITE;

	if (!talk->works || talk->work.touch == PERF_TOUCH_NONE)
		return;
	if (talk->work.touch == PERF_TOUCH_TX) {
		perf_touch(tx, order, write, talk->sent);
		talk->account.touched += order->count;
	} else {
		perf_touch(perf_buffers_take(&talk->dummies), order, write, talk->sent);
		talk->account.dummies += order->count;
	}
}

void perf_talk_begin(struct perf_talk *talk)
{
	talk->out_size = size_of(talk, true, talk->sent);
	talk->out_sent = 0;
	if (talk->tx_buffers.base) {
		uint8_t *tx = perf_buffers_take(&talk->tx_buffers);

		touch(talk, tx);
		talk->out = tx;
	} else {
		talk->out = perf_pattern(talk->index, direction(talk, true), talk->tx);
	}
	talk->sent++;
}

int perf_talk_send(struct perf_talk *talk, int fd)
{
	while (talk->out_sent < talk->out_size) {
		ssize_t sent = send(fd, talk->out + talk->out_sent, talk->out_size - talk->out_sent,
				    MSG_NOSIGNAL);

		if (sent < 0 && errno == EINTR)
			continue;
		if (sent < 0)
			return -errno;
		talk->tx += (uint64_t)sent;
		talk->out_sent += (size_t)sent;
	}
	talk->out = NULL;
	return 0;
}

/* ---- receiving ---- */

static int say_wrong(struct perf_talk *talk, uint64_t offset, uint8_t is, uint8_t should)
{
	snprintf(talk->why, sizeof(talk->why), "byte %llu of the %s is 0x%02x and should be 0x%02x",
		 (unsigned long long)offset,
		 direction(talk, false) == PERF_REQUESTS ? "requests" : "replies", is, should);
	return -EBADMSG;
}

/* Complete messages, of all that has come. */
static void count_messages(struct perf_talk *talk, size_t bytes)
{
	talk->rx += bytes;
	talk->in_part += bytes;
	if (!talk->sizes.writes) {
		uint32_t size = size_of(talk, false, 0);

		talk->received += talk->in_part / size;
		talk->in_part %= size;
		return;
	}
	while (talk->in_part >= size_of(talk, false, talk->received)) {
		talk->in_part -= size_of(talk, false, talk->received);
		talk->received++;
	}
}

static int check_bytes(struct perf_talk *talk, const uint8_t *bytes, size_t count)
{
	const uint8_t *right = perf_pattern(talk->index, direction(talk, false), talk->rx);
	size_t at = 0;

	talk->account.checked += count;
	if (!memcmp(right, bytes, count))
		return 0;
	while (right[at] == bytes[at])
		at++;
	return say_wrong(talk, talk->rx + at, bytes[at], right[at]);
}

static ssize_t receive_bytes(struct perf_talk *talk, int fd, uint8_t *buffer, size_t size)
{
	ssize_t got = recv(fd, buffer, size, 0);

	if (got <= 0)
		return got ? -errno : 0;
	if (!size_of(talk, false, 0))
		return say_wrong(talk, 0, buffer[0], 0);
	if (talk->side == PERF_AT_CLIENT)
		talk->at = perf_now();
	if (talk->works && talk->work.scan == PERF_SCAN_CHECK &&
	    check_bytes(talk, buffer, (size_t)got))
		return -EBADMSG;
	count_messages(talk, (size_t)got);
	return got;
}

static int check_message(struct perf_talk *talk, const struct perf_order *order)
{
	bool owned = talk->work.buffers != PERF_BUFFERS_TABLE, marked = is_marked(talk);
	uint64_t begin = talk->rx - order->bytes;
	const uint8_t *right = perf_pattern(talk->index, direction(talk, false), owned ? 0 : begin);
	size_t at = perf_compare(talk->in, right, order, marked, talk->received);

	talk->account.checked += order->bytes;
	if (at == order->bytes)
		return 0;
	return say_wrong(talk, begin + at, talk->in[at],
			 marked && !(at % PERF_LINE) ?
				 perf_mark(talk->received, (uint32_t)(at / PERF_LINE)) :
				 right[at]);
}

/* The program's work on a message that has come. */
static int use_message(struct perf_talk *talk)
{
	const struct perf_order *order = order_of(talk, talk->in_part);

	if (!talk->works || talk->work.scan == PERF_SCAN_NONE)
		return 0;
	talk->account.scanned += order->count;
	if (talk->work.scan == PERF_SCAN_CHECK)
		return check_message(talk, order);
	perf_scan(talk->in, order, talk->work.scan == PERF_SCAN_WRITE);
	if (talk->side == PERF_AT_CLIENT)
		talk->at = perf_now();
	return 0;
}

static ssize_t receive_whole(struct perf_talk *talk, int fd)
{
	size_t size = size_of(talk, false, talk->received);
	ssize_t got;
	uint8_t spare;

	if (!talk->in && size)
		talk->in = perf_buffers_take(&talk->rx_buffers);
	got = recv(fd, size ? talk->in + talk->in_part : &spare, size ? size - talk->in_part : 1,
		   0);
	if (got <= 0)
		return got ? -errno : 0;
	if (!size)
		return say_wrong(talk, 0, spare, 0);
	if (talk->side == PERF_AT_CLIENT)
		talk->at = perf_now();
	talk->rx += (uint64_t)got;
	talk->in_part += (size_t)got;
	if (talk->in_part < size)
		return got;
	if (use_message(talk))
		return -EBADMSG;
	talk->received++;
	talk->in_part = 0;
	talk->in = NULL;
	return got;
}

ssize_t perf_talk_receive(struct perf_talk *talk, int fd, uint8_t *buffer, size_t size)
{
	return talk->whole ? receive_whole(talk, fd) : receive_bytes(talk, fd, buffer, size);
}

bool perf_talk_between(const struct perf_talk *talk)
{
	return !talk->in_part;
}
