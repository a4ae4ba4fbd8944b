/* SPDX-License-Identifier: MIT */
/* Hostile peers, by hand. */
#include <dlfcn.h>
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include "tests/lab/cm/cm.h"

static struct rdma_cm_event *event_of(struct cm *cm)
{
	struct rdma_cm_event *event = NULL;
	double until = now() + PATIENCE;

	while (now() < until) {
		poll(&(struct pollfd) { .fd = cm_fd(cm), .events = POLLIN }, 1, 100);
		if (!cm->calls.get_cm_event(cm->channel, &event))
			return event;
	}
	return NULL;
}

/* The type of the next event. */
static enum rdma_cm_event_type next_type(struct cm *cm)
{
	struct rdma_cm_event *event = event_of(cm);
	enum rdma_cm_event_type type;

	assert_non_null(event);
	type = event->event;
	cm->calls.ack_cm_event(event);
	return type;
}

/* As core/device/cm/ask.c does: the kernel is asked again where its time was too short. */
static void resolve(struct rdma_cm_id *id, union cm_address *from, union cm_address *to)
{
	enum rdma_cm_event_type type;

	do {
		assert_int_equal(asker.calls.resolve_addr(id, &from->any, &to->any, 1000), 0);
		type = next_type(&asker);
	} while (type == RDMA_CM_EVENT_ADDR_ERROR);
	assert_int_equal(type, RDMA_CM_EVENT_ADDR_RESOLVED);
	assert_int_equal(asker.calls.resolve_route(id, PATIENCE), 0);
	assert_int_equal(next_type(&asker), RDMA_CM_EVENT_ROUTE_RESOLVED);
}

/* A connect request with these bytes; how it was rejected. */
static int raw_question(const void *data, uint8_t bytes)
{
	union cm_address from = at(here, 0), to = at(there, PORT);
	struct rdma_conn_param param = { .private_data = data, .private_data_len = bytes, .qp_num = 0xf00001 };
	struct rdma_cm_event *event;
	struct rdma_cm_id *id;
	int status;

	assert_int_equal(asker.calls.create_id(asker.channel, &id, NULL, RDMA_PS_TCP), 0);
	resolve(id, &from, &to);
	assert_int_equal(asker.calls.connect(id, &param), 0);
	for (double until = now() + PATIENCE; now() < until;) {
		struct pollfd pfd = { .fd = cm_fd(&asker), .events = POLLIN };

		step(&listener);
		if (poll(&pfd, 1, 10) == 1)
			break;
	}
	event = event_of(&asker);
	assert_non_null(event);
	assert_int_equal(event->event, RDMA_CM_EVENT_REJECTED);
	status = event->status;
	asker.calls.ack_cm_event(event);
	asker.calls.destroy_id(id);
	return status;
}

/* Every other one is well-formed except for its length. */
static void make_garbage(uint8_t *data, int bytes, int i, enum cm_kind kind)
{
	for (int j = 0; j < bytes; j++)
		data[j] = random();
	if (i % 2)
		memcpy(data, (uint8_t[]) { 'S', 'h', kind, bytes - 3 + i }, 4);
}

void garbage_questions(void **state)
{
	uint8_t data[56];

	(void)state;
	srandom(1);
	listening(&listener, there, PORT, false);
	assert_int_equal(raw_question(NULL, 0), 28);
	for (int i = 0; i < 40; i++) {
		make_garbage(data, sizeof(data), i, CM_KIND_QUESTION);
		assert_int_equal(raw_question(data, i < 3 ? i : (int)sizeof(data)), 28);
	}
	assert_int_equal(seen.questions, 0);
	answered(here, there, PORT);
}

/*
 * The next request of the asker's question, for the test instead of the listener; NULL once the question has its
 * answer, which is number `answer`. A question that is answered slowly is asked again.
 */
static struct rdma_cm_id *next_request(int answer)
{
	struct rdma_cm_event *event;
	struct rdma_cm_id *id = NULL;

	for (double until = now() + PATIENCE; !id && seen.answers < answer && now() < until;) {
		struct pollfd fds[2] = { { .fd = cm_fd(&asker), .events = POLLIN },
					 { .fd = cm_fd(&listener), .events = POLLIN } };

		poll(fds, 2, 100);
		step(&asker);
		if (listener.calls.get_cm_event(listener.channel, &event))
			continue;
		if (event->event == RDMA_CM_EVENT_CONNECT_REQUEST)
			id = event->id;
		listener.calls.ack_cm_event(event);
	}
	return id;
}

static int strange_answer(const void *data, uint8_t bytes)
{
	struct rdma_cm_id *id;
	int answer = seen.answers + 1;

	assert_int_equal(ask_from(&asker, here, there, PORT, PATIENCE), 0);
	while ((id = next_request(answer)) != NULL) {
		assert_int_equal(listener.calls.reject(id, data, bytes), 0);
		listener.calls.destroy_id(id);
	}
	assert_int_equal(seen.answers, answer);
	return seen.status;
}

void garbage_answers(void **state)
{
	uint8_t data[148];

	(void)state;
	srandom(2);
	listening(&listener, there, PORT, false);
	assert_int_equal(strange_answer(NULL, 0), -EPROTO);
	for (int i = 0; i < 40; i++) {
		make_garbage(data, sizeof(data), i, CM_KIND_ANSWER);
		assert_int_equal(strange_answer(data, i < 3 ? i : (int)sizeof(data)), -EPROTO);
		assert_int_equal(seen.bytes, 0);
	}
	answered(here, there, PORT);
}

/* Somebody else's service, which wants to be connected. */
void somebody_accepts(void **state)
{
	int (*accept_id)(struct rdma_cm_id *, struct rdma_conn_param *);
	struct rdma_conn_param param = { .qp_num = 5 };
	struct rdma_cm_id *id;
	void *symbol = dlsym(listener.library, "rdma_accept");

	(void)state;
	memcpy(&accept_id, &symbol, sizeof(symbol));
	listening(&listener, there, PORT, false);
	assert_int_equal(ask_from(&asker, here, there, PORT, PATIENCE), 0);
	while ((id = next_request(1)) != NULL)
		assert_int_equal(accept_id(id, &param), 0);
	assert_int_equal(seen.answers, 1);
	assert_int_equal(seen.status, -EPROTO);
}

/* A question that nobody answers is asked again. */
void asked_again(void **state)
{
	struct rdma_cm_id *held;
	double since = now();

	(void)state;
	listening(&listener, there, PORT, false);
	assert_int_equal(ask_from(&asker, here, there, PORT, PATIENCE), 0);
	held = next_request(1);
	assert_non_null(held);
	run(1, PATIENCE);
	assert_int_equal(seen.status, 0);
	assert_in_range(seen.connects, 2, PATIENCE);
	assert_in_range(seen.questions, 1, seen.connects - 1);
	print_message("# asked again, it took %.0f ms\n", now() - since);
	listener.calls.destroy_id(held);
}
