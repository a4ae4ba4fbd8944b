/* SPDX-License-Identifier: MIT */
/* The channel of a link. */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include "tests/unit/sockets.h"
#include "core/base/address.h"
#include "core/fd/own_fds.h"

static void make_pair(struct shunt_channel pair[2], enum shunt_channel_kind kind)
{
	int fds[2];

	assert_int_equal(socketpair(AF_UNIX, (kind == SHUNT_CHANNEL_UNIX ? SOCK_SEQPACKET : SOCK_STREAM) |
				    SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds), 0);
	for (int i = 0; i < 2; i++)
		shunt_channel_init(&pair[i], &engine->links, kind,
				   shunt_own_fds_make(&engine->fds, fds[i]));
}

static void close_pair(struct shunt_channel pair[2])
{
	shunt_channel_close(&pair[0]);
	shunt_channel_close(&pair[1]);
}

/* The same from a sender that may have to wait for room. */
static int take_sent(struct shunt_channel pair[2], struct shunt_message *message)
{
	int result = take_whole(&pair[1], message);

	for (int i = 0; i < 1000 && !result && shunt_channel_waits(&pair[0]); i++) {
		shunt_channel_flush(&pair[0]);
		result = take_whole(&pair[1], message);
	}
	return result;
}

static void descriptors_travel(void **state)
{
	struct shunt_channel pair[2];
	struct shunt_message message = hello();
	int fds[SHUNT_CHANNEL_FDS] = { 0, 1 }, count, before;

	(void)state;
	make_pair(pair, SHUNT_CHANNEL_UNIX);
	before = descriptors();
	assert_int_equal(shunt_channel_send(&pair[0], &message, fds, 2), 0);
	assert_int_equal(shunt_channel_receive(&pair[1], &message, fds, &count), 1);
	assert_int_equal(count, 2);
	assert_int_equal(descriptors(), before + 2);
	close(fds[0]);
	close(fds[1]);
	assert_int_equal(shunt_channel_receive(&pair[1], &message, fds, &count), 0);
	close_pair(pair);
}

static void kept_messages_hold_their_descriptors(void **state)
{
	struct shunt_channel pair[2];
	struct shunt_message message = hello();
	int fds[SHUNT_CHANNEL_FDS] = { dup(0), -1 }, count, before = descriptors();

	(void)state;
	make_pair(pair, SHUNT_CHANNEL_UNIX);
	full = true;
	assert_int_equal(shunt_channel_send(&pair[0], &message, fds, 1), 0);
	close(fds[0]);
	assert_true(shunt_channel_waits(&pair[0]));
	shunt_channel_flush(&pair[0]);
	assert_true(shunt_channel_waits(&pair[0]));
	full = false;
	shunt_channel_flush(&pair[0]);
	assert_false(shunt_channel_waits(&pair[0]));
	assert_int_equal(shunt_channel_receive(&pair[1], &message, fds, &count), 1);
	assert_int_equal(count, 1);
	close(fds[0]);
	full = true;
	fds[0] = 0;
	shunt_channel_send(&pair[0], &message, fds, 1);
	close_pair(pair);
	assert_int_equal(descriptors(), before - 1);
}

static void met_pair(struct shunt_channel pair[2])
{
	struct shunt_message message;

	make_pair(pair, SHUNT_CHANNEL_UNIX);
	for (int i = 0; i < 2; i++)
		assert_int_equal(shunt_channel_knock(&pair[i], &engine->identity), 0);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(take(&pair[i], &message), 1);
		assert_int_equal(message.type, SHUNT_MSG_KNOCK);
		assert_true(pair[i].known && !pair[i].awaits_knock);
	}
}

static void both_knock(void **state)
{
	struct shunt_channel pair[2];
	struct shunt_message message = hello();
	int fds[SHUNT_CHANNEL_FDS], count;

	(void)state;
	met_pair(pair);
	assert_int_equal(shunt_channel_send(&pair[0], &message, (const int[]) { 0, 1 }, 2), 0);
	assert_int_equal(shunt_channel_receive(&pair[1], &message, fds, &count), 1);
	assert_int_equal(count, 2);
	close(fds[0]);
	close(fds[1]);
	close_pair(pair);
}

/* A HELLO has come: whatever has descriptors from now on is refused, and they are not taken. */
static void descriptors_that_are_not_due(void **state)
{
	struct shunt_channel pair[2];
	struct shunt_message message = hello();
	int fds[SHUNT_CHANNEL_FDS] = { 0, 1 }, count, before;

	(void)state;
	met_pair(pair);
	before = descriptors();
	shunt_channel_send(&pair[0], &message, NULL, 0);
	assert_int_equal(take(&pair[1], &message), 1);
	message.type = SHUNT_MSG_CLAIM;
	assert_int_equal(shunt_channel_send(&pair[0], &message, fds, 1), 0);
	assert_int_equal(shunt_channel_receive(&pair[1], &message, fds, &count), -EPROTO);
	assert_int_equal(count, 0);
	assert_int_equal(descriptors(), before);
	close_pair(pair);
}

static void what_is_no_knock(void **state)
{
	struct shunt_channel pair[2];
	struct shunt_message wrong[3] = { hello(), hello(), hello() };
	int fds[SHUNT_CHANNEL_FDS] = { 0, 1 }, count, before;

	(void)state;
	engine->loop.manual = true;	/* descriptors are closed here, not by the porter */
	/* another message; one that makes no sense; and of another version, which is said */
	wrong[1].type = SHUNT_MSG_KNOCK;
	wrong[1].knock.proves = 2;
	for (int i = 0; i < 3; i++)
		wrong[i].hello.version = SHUNT_WIRE_VERSION - (i == 2);
	for (int i = 0; i < 3; i++) {
		make_pair(pair, SHUNT_CHANNEL_UNIX);
		before = descriptors();
		shunt_channel_send(&pair[0], &wrong[i], fds, i ? 0 : 2);
		shunt_channel_knock(&pair[1], &engine->identity);
		assert_int_equal(shunt_channel_receive(&pair[1], &wrong[i], fds, &count), -EPROTO);
		assert_int_equal(count, 0);
		assert_int_equal(descriptors(), before);
		assert_int_equal(!strcmp(pair[1].wrong, "it speaks another version"), i == 2);
		close_pair(pair);
	}
	engine->loop.manual = false;
}

/* The socket was another's when it was connected: a child has it now, and is to prove what it claims. */
static void another_process_knocks(void **state)
{
	struct shunt_channel pair[2];
	struct shunt_message message;
	pid_t child;

	(void)state;
	make_pair(pair, SHUNT_CHANNEL_UNIX);
	child = fork();
	if (!child)
		_exit(shunt_channel_knock(&pair[0], &engine->identity) ? 1 : 0);
	assert_int_equal(waitpid(child, NULL, 0), child);
	shunt_channel_knock(&pair[1], &engine->identity);
	assert_int_equal(take(&pair[1], &message), 1);
	assert_true(pair[1].proves);
	assert_false(pair[1].takes_fds);
	close_pair(pair);
}

static void packets_of_another_size(void **state)
{
	struct shunt_channel pair[2];
	struct shunt_message message = { 0 };

	(void)state;
	make_pair(pair, SHUNT_CHANNEL_UNIX);
	assert_int_equal(send(pair[0].fd, &message, 5, 0), 5);
	assert_int_equal(take(&pair[1], &message), -EPROTO);
	assert_non_null(pair[1].wrong);
	shunt_channel_close(&pair[0]);
	assert_true(take(&pair[1], &message) < 0);
	assert_int_not_equal(take(&pair[1], &message), -EPROTO);
	close_pair(pair);
}

static void streams_have_no_descriptors(void **state)
{
	struct shunt_channel pair[2];
	struct shunt_message message = hello();
	int fd = 0;

	(void)state;
	make_pair(pair, SHUNT_CHANNEL_TCP);
	assert_int_equal(shunt_channel_send(&pair[0], &message, &fd, 1), -EINVAL);
	assert_int_equal(take(&pair[1], &message), 0);
	close_pair(pair);
}

/* However the bytes are cut, at both ends, messages come whole and in order. */
static void a_stream_in_pieces(void **state)
{
	static const size_t pieces[] = { 1, 3, 7, 64, sizeof(struct shunt_message) - 1, 0 };

	(void)state;
	for (size_t piece = 0; piece < sizeof(pieces) / sizeof(pieces[0]); piece++) {
		struct shunt_channel pair[2];
		struct shunt_message message = hello();

		make_pair(pair, SHUNT_CHANNEL_TCP);
		at_most = pieces[piece];
		for (uint32_t i = 0; i < 20; i++) {
			message.stream = i;
			assert_int_equal(shunt_channel_send(&pair[0], &message, NULL, 0), 0);
			if (i == 10)
				shunt_channel_flush(&pair[0]);
			message.type = SHUNT_MSG_CLAIM;
		}
		for (uint32_t i = 0; i < 20; i++) {
			assert_int_equal(take_sent(pair, &message), 1);
			assert_int_equal(message.stream, i);
		}
		assert_false(shunt_channel_waits(&pair[0]));
		assert_int_equal(take_whole(&pair[1], &message), 0);
		close_pair(pair);
	}
}

/* A peer that does not read: everything waits, and comes in order when it does. */
static void a_full_stream(void **state)
{
	struct shunt_channel pair[2];
	struct shunt_message message = hello();
	uint32_t sent = 0;

	(void)state;
	make_pair(pair, SHUNT_CHANNEL_TCP);
	while (!shunt_channel_waits(&pair[0]) || sent % 1000) {
		message.stream = sent++;
		assert_int_equal(shunt_channel_send(&pair[0], &message, NULL, 0), 0);
	}
	for (uint32_t i = 0; i < sent; i++) {
		assert_int_equal(take_sent(pair, &message), 1);
		assert_int_equal(message.stream, i);
	}
	assert_false(shunt_channel_waits(&pair[0]));
	close_pair(pair);
}

static void another_byte_order(void **state)
{
	struct shunt_channel pair[2];
	struct shunt_message message = hello();

	(void)state;
	make_pair(pair, SHUNT_CHANNEL_TCP);
	message.type = __builtin_bswap32(message.type);
	message.hello.magic = __builtin_bswap32(message.hello.magic);
	shunt_channel_send(&pair[0], &message, NULL, 0);
	message = hello();
	shunt_channel_send(&pair[0], &message, NULL, 0);
	assert_int_equal(take(&pair[1], &message), -EPROTO);
	assert_non_null(strstr(pair[1].wrong, "byte order"));
	assert_int_equal(take(&pair[1], &message), -EPROTO); /* and nothing behind it is read */
	close_pair(pair);
}

static void garbage_comes_first(void **state)
{
	struct shunt_channel pair[2];
	struct shunt_message message = { .type = SHUNT_MSG_CLAIM };

	(void)state;
	make_pair(pair, SHUNT_CHANNEL_TCP);
	shunt_channel_send(&pair[0], &message, NULL, 0);
	assert_int_equal(take(&pair[1], &message), -EPROTO);
	assert_non_null(pair[1].wrong);
	close_pair(pair);
}

static void a_stream_that_ends(void **state)
{
	struct shunt_channel pair[2];
	struct shunt_message message = hello();

	(void)state;
	make_pair(pair, SHUNT_CHANNEL_TCP);
	shunt_channel_send(&pair[0], &message, NULL, 0);
	assert_int_equal(send(pair[0].fd, &message, 5, 0), 5); /* half a message */
	shunt_channel_close(&pair[0]);
	assert_int_equal(take(&pair[1], &message), 1);
	assert_int_equal(take(&pair[1], &message), 0);
	assert_int_equal(take(&pair[1], &message), -EPIPE);
	assert_int_equal(shunt_channel_send(&pair[1], &message, NULL, 0), -EPIPE);
	close_pair(pair);
	close_pair(pair);
}

/* --- with a key --- */

/* Both have it; the keys of the two directions differ. */
static void make_sealed(struct shunt_channel pair[2])
{
	make_pair(pair, SHUNT_CHANNEL_TCP);
	for (int i = 0; i < 2; i++) {
		pair[i].seal.on = true;
		memset(pair[i].seal.sending.key, 1 + i, SHUNT_SEAL_KEY_BYTES);
		memset(pair[i].seal.receiving.key, 2 - i, SHUNT_SEAL_KEY_BYTES);
	}
}

/* Takes pair[0]'s bytes off the way to pair[1]. */
static void intercept(struct shunt_channel pair[2], struct shunt_sealed *sealed)
{
	assert_int_equal(recv(pair[1].fd, sealed, sizeof(*sealed), 0), sizeof(*sealed));
}

static void deliver(struct shunt_channel pair[2], const void *bytes, size_t count)
{
	assert_int_equal(send(pair[0].fd, bytes, count, 0), count);
}

static void sealed_messages_arrive(void **state)
{
	struct shunt_channel pair[2];
	struct shunt_message message = hello();

	(void)state;
	make_sealed(pair);
	at_most = 7;
	for (uint32_t i = 0; i < 20; i++) {
		message.stream = i;
		assert_int_equal(shunt_channel_send(&pair[0], &message, NULL, 0), 0);
		message.type = SHUNT_MSG_CLAIM;
	}
	for (uint32_t i = 0; i < 20; i++) {
		assert_int_equal(take_sent(pair, &message), 1);
		assert_int_equal(message.stream, i);
	}
	at_most = 0;
	message = hello();
	assert_int_equal(shunt_channel_send(&pair[1], &message, NULL, 0), 0);
	assert_int_equal(take(&pair[0], &message), 1);
	close_pair(pair);
}

/* A message without a code, or with that of another key. */
static void who_lacks_the_key_is_not_heard(void **state)
{
	for (int i = 0; i < 2; i++) {
		struct shunt_channel pair[2];
		struct shunt_message message = hello();

		(void)state;
		make_sealed(pair);
		pair[0].seal.sending.key[0] ^= 1;
		pair[0].seal.on = i;
		shunt_channel_send(&pair[0], &message, NULL, 0);
		if (!i)
			deliver(pair, "sixteen bytes...", SHUNT_SEAL_BYTES);
		assert_int_equal(take(&pair[1], &message), -EPROTO);
		assert_non_null(strstr(pair[1].wrong, "SHUNT_KEY"));
		assert_int_equal(take(&pair[1], &message), -EPROTO);
		close_pair(pair);
	}
}

static void a_changed_message_ends_it(void **state)
{
	static const size_t places[] = { 0,
					 4,
					 8,
					 100,
					 sizeof(struct shunt_message) - 1,
					 sizeof(struct shunt_message),
					 sizeof(struct shunt_sealed) - 1 };

	(void)state;
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		struct shunt_channel pair[2];
		struct shunt_message message = hello();
		struct shunt_sealed sealed;

		make_sealed(pair);
		shunt_channel_send(&pair[0], &message, NULL, 0);
		intercept(pair, &sealed);
		((uint8_t *)&sealed)[places[i]] ^= 0x80;
		deliver(pair, &sealed, sizeof(sealed));
		assert_int_equal(take(&pair[1], &message), -EPROTO);
		close_pair(pair);
	}
}

/* Again, left out, in another order, or sent back. */
static void a_moved_message_ends_it(void **state)
{
	enum { AGAIN, WITHOUT, SWAPPED, REFLECTED, HOWS };

	(void)state;
	for (int how = AGAIN; how < HOWS; how++) {
		struct shunt_channel pair[2];
		struct shunt_message message = hello();
		struct shunt_sealed first, second;

		make_sealed(pair);
		shunt_channel_send(&pair[0], &message, NULL, 0);
		shunt_channel_send(&pair[0], &message, NULL, 0);
		intercept(pair, &first);
		intercept(pair, &second);
		if (how == REFLECTED) {
			assert_int_equal(send(pair[1].fd, &first, sizeof(first), 0), sizeof(first));
			assert_int_equal(take(&pair[0], &message), -EPROTO);
			close_pair(pair);
			continue;
		}
		deliver(pair, how == AGAIN ? &first : &second, sizeof(first));
		if (how == AGAIN) {
			assert_int_equal(take(&pair[1], &message), 1);
			deliver(pair, &first, sizeof(first));
		}
		if (how == SWAPPED)
			deliver(pair, &first, sizeof(first));
		assert_int_equal(take(&pair[1], &message), -EPROTO);
		close_pair(pair);
	}
}

/* A message that could not be sent has no number, so that the next one is not missed. */
static void an_unsent_message_does_not_count(void **state)
{
	struct shunt_channel pair[2];
	struct shunt_message message = hello();

	(void)state;
	make_sealed(pair);
	pair[0].proves = true;	/* it keeps a limited number */
	pair[0].kept = SHUNT_CHANNEL_KEPT;
	full = true;
	assert_int_equal(shunt_channel_send(&pair[0], &message, NULL, 0), -ENOBUFS);
	full = false;
	pair[0].proves = false;
	pair[0].kept = 0;
	assert_int_equal(shunt_channel_send(&pair[0], &message, NULL, 0), 0);
	assert_int_equal(take(&pair[1], &message), 1);
	close_pair(pair);
}

/* --- the addresses of its ends --- */

static void it_joins_its_own_ends(void **state)
{
	static const uint8_t v4[3][16] = { { SHUNT_ADDRESS_V4, 127, 0, 0, 1 },
					   { SHUNT_ADDRESS_V4, 127, 0, 0, 2 },
					   { SHUNT_ADDRESS_V4, 127, 0, 0, 3 } };
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(0x7f000002) };
	struct sockaddr_in from = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(0x7f000001) };
	static const uint8_t cookie[SHUNT_COOKIE_BYTES];
	int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct shunt_channel near, far;
	socklen_t length = sizeof(to);

	(void)state;
	assert_int_equal(bind(listener, (struct sockaddr *)&to, sizeof(to)), 0);
	assert_int_equal(listen(listener, 1), 0);
	assert_int_equal(getsockname(listener, (struct sockaddr *)&to, &length), 0);
	assert_int_equal(shunt_channel_connect(&near, &engine->links, (struct sockaddr *)&from,
					       (struct sockaddr *)&to, cookie, 3000),
			 0);
	shunt_channel_init(&far, &engine->links, SHUNT_CHANNEL_TCP,
			   shunt_own_fds_make(&engine->fds, accept(listener, NULL, NULL)));
	assert_false(shunt_channel_joins(&far, v4[1], v4[0]));	/* it has not been looked at */
	assert_int_equal(shunt_channel_locate(&far), 0);
	for (int here = 0; here < 3; here++)
		for (int there = 0; there < 3; there++) {
			assert_int_equal(shunt_channel_joins(&near, v4[here], v4[there]),
					 here == 0 && there == 1);
			assert_int_equal(shunt_channel_joins(&far, v4[here], v4[there]),
					 here == 1 && there == 0);
		}
	close(listener);
	shunt_channel_close(&near);
	shunt_channel_close(&far);
}

/* A gate of IPv6 that hears IPv4, too, shows an address as IPv4-mapped. */
static void a_mapped_address_is_the_same(void **state)
{
	static const uint8_t v4[16] = { SHUNT_ADDRESS_V4, 127, 0, 0, 1 };
	static const uint8_t v6[16] = { [15] = 1 };
	struct sockaddr_in6 any = { .sin6_family = AF_INET6 };
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int listener = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0), off = 0, fd;
	socklen_t length = sizeof(any);
	struct shunt_channel far;

	(void)state;
	setsockopt(listener, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off));
	if (listener < 0 || bind(listener, (struct sockaddr *)&any, sizeof(any)))
		skip();
	assert_int_equal(listen(listener, 1), 0);
	assert_int_equal(getsockname(listener, (struct sockaddr *)&any, &length), 0);
	to.sin_port = any.sin6_port;
	fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof(to)), 0);
	shunt_channel_init(&far, &engine->links, SHUNT_CHANNEL_TCP,
			   shunt_own_fds_make(&engine->fds, accept(listener, NULL, NULL)));
	assert_int_equal(shunt_channel_locate(&far), 0);
	assert_true(shunt_channel_joins(&far, v4, v4));
	assert_false(shunt_channel_joins(&far, v6, v6));
	close(fd);
	close(listener);
	shunt_channel_close(&far);
}

/* The peer had not read all, either: that is said, but what it has said itself comes first. */
static void last_words_are_heard(void **state)
{
	struct shunt_channel pair[2];
	struct shunt_message message = hello();

	(void)state;
	make_pair(pair, SHUNT_CHANNEL_UNIX);
	shunt_channel_send(&pair[1], &message, NULL, 0);
	shunt_channel_send(&pair[0], &message, NULL, 0);
	shunt_channel_close(&pair[0]);
	assert_int_equal(take(&pair[1], &message), 1);
	assert_int_equal(take(&pair[1], &message), -EPIPE);
	close_pair(pair);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(descriptors_travel, set_up),
		cmocka_unit_test_setup(kept_messages_hold_their_descriptors, set_up),
		cmocka_unit_test_setup(both_knock, set_up),
		cmocka_unit_test_setup(descriptors_that_are_not_due, set_up),
		cmocka_unit_test_setup(what_is_no_knock, set_up),
		cmocka_unit_test_setup(another_process_knocks, set_up),
		cmocka_unit_test_setup(packets_of_another_size, set_up),
		cmocka_unit_test_setup(streams_have_no_descriptors, set_up),
		cmocka_unit_test_setup(a_stream_in_pieces, set_up),
		cmocka_unit_test_setup(a_full_stream, set_up),
		cmocka_unit_test_setup(another_byte_order, set_up),
		cmocka_unit_test_setup(garbage_comes_first, set_up),
		cmocka_unit_test_setup(a_stream_that_ends, set_up),
		cmocka_unit_test_setup(sealed_messages_arrive, set_up),
		cmocka_unit_test_setup(who_lacks_the_key_is_not_heard, set_up),
		cmocka_unit_test_setup(a_changed_message_ends_it, set_up),
		cmocka_unit_test_setup(a_moved_message_ends_it, set_up),
		cmocka_unit_test_setup(an_unsent_message_does_not_count, set_up),
		cmocka_unit_test_setup(it_joins_its_own_ends, set_up),
		cmocka_unit_test_setup(a_mapped_address_is_the_same, set_up),
		cmocka_unit_test_setup(last_words_are_heard, set_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
