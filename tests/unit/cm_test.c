/* SPDX-License-Identifier: MIT */
/* A missing connection manager, and a peer's private data. */
#include <arpa/inet.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>
#include "core/device/cm/inside.h"

static void is_refused(const char *library, int expected, const char *named)
{
	struct cm cm;

	assert_int_equal(cm_library_open(&cm, library), expected);
	assert_non_null(strstr(cm.error, named));
	assert_null(cm.library);
}

static void a_machine_without_the_library(void **state)
{
	(void)state;
	is_refused("librdmacm.so.none", -ENOENT, "librdmacm.so.none");
}

static void a_library_that_lacks_a_call(void **state)
{
	(void)state;
	is_refused("libc.so.6", -ENOSYS, "rdma_create_event_channel");
}

/* tests/lab has the machine with a device. */
static void a_machine_without_a_device(void **state)
{
	static const struct cm_callbacks callbacks;
	struct cm cm;
	int result, fd = dup(0);

	(void)state;
	close(fd);
	result = cm_open(&cm, &callbacks, NULL);
	if (!result) {
		cm_close(&cm);
		skip();
	}
	assert_true(result == -ENODEV || result == -ENOENT || result == -EACCES);
	assert_true(strlen(cm.error) > 0);
	assert_null(cm.library);
	assert_int_equal(dup(0), fd);
	close(fd);	/* cppcheck-suppress doubleFree ; it is another one */
}

static void what_is_framed_is_read(void **state)
{
	uint8_t padded[148] = { 0 }, data[CM_ANSWER_MAX];
	struct cm_frame frame, read;

	(void)state;
	memset(data, 7, sizeof(data));
	for (unsigned int bytes = 0; bytes <= CM_ANSWER_MAX; bytes++) {
		uint8_t length = cm_frame_make(&frame, CM_KIND_ANSWER, data, bytes);

		assert_in_range(length, bytes, sizeof(padded));
		memcpy(padded, &frame, length);
		assert_int_equal(cm_frame_read(&read, CM_KIND_ANSWER, CM_ANSWER_MAX, padded, sizeof(padded)), bytes);
		assert_int_equal(cm_frame_read(&read, CM_KIND_ANSWER, CM_ANSWER_MAX, padded, length), bytes);
		assert_memory_equal(read.data, data, bytes);
		assert_int_equal(cm_frame_read(&read, CM_KIND_ANSWER, CM_ANSWER_MAX, padded, length - 1), -EPROTO);
		assert_int_equal(cm_frame_read(&read, CM_KIND_QUESTION, CM_ANSWER_MAX, padded, length), -EPROTO);
	}
}

static void garbage_is_not_read(void **state)
{
	uint8_t given[56] = { 0 };
	struct cm_frame frame;

	(void)state;
	assert_int_equal(cm_frame_read(&frame, CM_KIND_QUESTION, CM_QUESTION_MAX, NULL, 0), -EPROTO);
	assert_int_equal(cm_frame_read(&frame, CM_KIND_QUESTION, CM_QUESTION_MAX, NULL, 56), -EPROTO);
	assert_int_equal(cm_frame_read(&frame, CM_KIND_QUESTION, CM_QUESTION_MAX, given, sizeof(given)), -EPROTO);
	cm_frame_make(&frame, CM_KIND_QUESTION, given, 20);
	memcpy(given, &frame, CM_FRAME_HEAD);
	assert_int_equal(cm_frame_read(&frame, CM_KIND_QUESTION, CM_QUESTION_MAX, given, 3), -EPROTO);
	assert_int_equal(cm_frame_read(&frame, CM_KIND_QUESTION, 19, given, sizeof(given)), -EPROTO);
	for (unsigned int claimed = CM_QUESTION_MAX + 1; claimed < 256; claimed++) {
		given[3] = claimed;
		assert_int_equal(cm_frame_read(&frame, CM_KIND_QUESTION, CM_QUESTION_MAX, given, sizeof(given)), -EPROTO);
	}
	given[3] = CM_QUESTION_MAX;
	assert_int_equal(cm_frame_read(&frame, CM_KIND_QUESTION, CM_QUESTION_MAX, given, sizeof(given)), CM_QUESTION_MAX);
}

static void mapped_addresses_are_ipv4(void **state)
{
	struct sockaddr_in6 v6 = { .sin6_family = AF_INET6, .sin6_port = htons(80) };
	struct sockaddr unix_address = { .sa_family = AF_UNIX };
	union cm_address address;

	(void)state;
	inet_pton(AF_INET6, "::ffff:10.1.2.3", &v6.sin6_addr);
	assert_int_equal(cm_address(&address, (struct sockaddr *)&v6), 0);
	assert_int_equal(address.v4.sin_family, AF_INET);
	assert_int_equal(address.v4.sin_port, htons(80));
	assert_int_equal(ntohl(address.v4.sin_addr.s_addr), 0x0a010203);
	inet_pton(AF_INET6, "fd77::1", &v6.sin6_addr);
	assert_int_equal(cm_address(&address, (struct sockaddr *)&v6), 0);
	assert_memory_equal(&address.v6, &v6, sizeof(v6));
	assert_int_equal(cm_address(&address, &unix_address), -EAFNOSUPPORT);
}

/* --- a device of iWARP, with a library that is here --- */

static struct rdma_cm_id ids[2];
static int made, destroyed, acknowledged, listened, connected, status_of_ask;
static bool by_iwarp;

static int create_id(struct rdma_event_channel *channel, struct rdma_cm_id **id, void *context,
		     enum rdma_port_space space)
{
	(void)channel;
	(void)space;
	*id = &ids[made++];
	**id = (struct rdma_cm_id) { .context = context };
	return 0;
}

static int destroy_id(struct rdma_cm_id *id)
{
	assert_ptr_equal(id, &ids[destroyed]);
	destroyed++;
	return 0;
}

static int find_device(struct rdma_cm_id *id)
{
	static struct ibv_device device = { .name = "siw0", .transport_type = IBV_TRANSPORT_IWARP };
	static struct ibv_context context = { .device = &device };

	id->verbs = &context;
	return 0;
}

static int bind_addr(struct rdma_cm_id *id, struct sockaddr *address)
{
	(void)address;
	return find_device(id);
}

static int listen_id(struct rdma_cm_id *id, int backlog)
{
	(void)id;
	(void)backlog;
	listened++;
	return 0;
}

static int resolve_addr(struct rdma_cm_id *id, struct sockaddr *from, struct sockaddr *to,
			int timeout_ms)
{
	(void)from;
	(void)to;
	(void)timeout_ms;
	return find_device(id);
}

static int connect_id(struct rdma_cm_id *id, struct rdma_conn_param *param)
{
	(void)id;
	(void)param;
	connected++;
	return 0;
}

static int acknowledge(struct rdma_cm_event *event)
{
	(void)event;
	acknowledged++;
	return 0;
}

static void note_answer(void *arg, int status, const uint8_t *answer, unsigned int bytes,
			const struct cm_route *route)
{
	assert_null(answer);
	assert_int_equal(bytes, 0);
	*(int *)arg = status;
	by_iwarp = route && route->iwarp && !strcmp(route->device, "siw0");
}

static const struct cm_callbacks callbacks = { .answer = note_answer };

static struct cm library(void)
{
	made = destroyed = acknowledged = listened = connected = 0;
	return (struct cm) { .callbacks = &callbacks,
			     .tos = -1,
			     .calls = { .create_id = create_id,
					.destroy_id = destroy_id,
					.bind_addr = bind_addr,
					.listen = listen_id,
					.resolve_addr = resolve_addr,
					.connect = connect_id,
					.ack_cm_event = acknowledge } };
}

/* A listener there is one of TCP, at the program's port. */
static void nobody_listens_at_an_iwarp_device(void **state)
{
	struct sockaddr_in at = { .sin_family = AF_INET };
	struct cm_listener *listener = NULL;
	struct cm cm = library();

	(void)state;
	assert_int_equal(cm_listen(&cm, (struct sockaddr *)&at, false, NULL, &listener),
			 -EOPNOTSUPP);
	assert_non_null(strstr(cm.error, "iWARP"));
	assert_null(listener);
	assert_null(cm.listeners);
	assert_int_equal(listened, 0);
	assert_int_equal(destroyed, 1);
}

/* A question there is a TCP connection to the program. */
static void nobody_is_asked_by_an_iwarp_device(void **state)
{
	struct sockaddr_in to = { .sin_family = AF_INET };
	struct rdma_cm_event event = { .id = &ids[0], .event = RDMA_CM_EVENT_ROUTE_RESOLVED };
	struct cm cm = library();

	(void)state;
	status_of_ask = 0;
	assert_int_equal(
		cm_ask(&cm, NULL, (struct sockaddr *)&to, "x", 1, CM_NEVER, &status_of_ask, NULL),
		0);
	cm_ask_event(&cm, (struct cm_ask *)ids[0].context, &event);
	assert_int_equal(status_of_ask, -EOPNOTSUPP);
	assert_true(by_iwarp);
	assert_int_equal(connected, 0);
	assert_int_equal(acknowledged, 1);
	assert_int_equal(destroyed, 1);
	assert_null(cm.asks);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_machine_without_the_library),
		cmocka_unit_test(a_library_that_lacks_a_call),
		cmocka_unit_test(a_machine_without_a_device),
		cmocka_unit_test(what_is_framed_is_read),
		cmocka_unit_test(garbage_is_not_read),
		cmocka_unit_test(mapped_addresses_are_ipv4),
		cmocka_unit_test(nobody_listens_at_an_iwarp_device),
		cmocka_unit_test(nobody_is_asked_by_an_iwarp_device),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
