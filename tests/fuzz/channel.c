/* SPDX-License-Identifier: MIT */
/*
 * The messages of a link's channel. They are packets of any size with any number of descriptors, or a stream that is
 * cut anywhere and begins with anything. Messages must be received as they were sent, and no descriptor may be lost.
 * The peer may have no room for messages, or be gone. With an input of an odd size a stream's messages have codes:
 * nothing counts from the first on whose code is wrong.
 */
#include <errno.h>
#include "core/fd/own_fds.h"
#include "core/link/channel.h"
#include "tests/fuzz/fake.h"

#define BYTES sizeof(struct shunt_message)

static struct fuzz_input *in;
static struct shunt_channel channel;

/* All bytes moved by the channel's socket. */
static struct moved {
	uint8_t received[16 * BYTES], sent[64 * BYTES];
	size_t received_bytes, sent_bytes;
	uint8_t packet[2 * BYTES];
	size_t packet_bytes;
	bool truncated, over;
} moved;

static int fail(int err)
{
	errno = err;
	return -1;
}

/* The input of a channel with a key. */
static struct way {
	struct shunt_seal seal;		/* the peer's end */
	struct shunt_sealed packet;	/* the present one */
	size_t passed;			/* bytes of it */
	int packets, sound;		/* how many have been made, and how many of them before the first wrong one */
} way;

/* --- what comes --- */

/* As many as there is room for, as the kernel does. */
static void attach(struct msghdr *message, int wanted)
{
	int room = message->msg_controllen < CMSG_LEN(sizeof(int)) ? 0 : (message->msg_controllen - CMSG_LEN(0)) / sizeof(int);
	struct cmsghdr *control = message->msg_control;
	int count = wanted < room ? wanted : room;

	if (wanted > room)
		message->msg_flags |= MSG_CTRUNC;
	if (!count) {
		message->msg_controllen = 0;
		return;
	}
	control->cmsg_level = SOL_SOCKET;
	control->cmsg_type = SCM_RIGHTS;
	control->cmsg_len = CMSG_LEN(count * sizeof(int));
	for (int i = 0; i < count; i++)
		((int *)CMSG_DATA(control))[i] = fake_open();
	message->msg_controllen = CMSG_SPACE(count * sizeof(int));
}

static ssize_t packet(struct msghdr *message)
{
	static const uint16_t sizes[] = { BYTES, BYTES, BYTES, 0, 1, 8, BYTES - 1, BYTES + 1, 2 * BYTES };
	size_t bytes = sizes[fuzz_below(in, sizeof(sizes) / sizeof(sizes[0]))], most = message->msg_iov->iov_len;

	fuzz_take(in, moved.packet, bytes);
	moved.packet_bytes = bytes;
	memcpy(message->msg_iov->iov_base, moved.packet, bytes < most ? bytes : most);
	message->msg_flags = bytes > most ? MSG_TRUNC : 0;
	attach(message, fuzz_below(in, 4) ? fuzz_below(in, 3) : fuzz_byte(in));
	moved.truncated = message->msg_flags & MSG_CTRUNC;
	return bytes < most ? bytes : most;
}

static ssize_t stream(struct msghdr *message)
{
	size_t most = message->msg_iov->iov_len, bytes = 1 + fuzz_byte(in), room = sizeof(moved.received) - moved.received_bytes;

	bytes = bytes < most ? bytes : most;
	bytes = bytes < room ? bytes : room;
	fuzz_take(in, moved.received + moved.received_bytes, bytes);
	memcpy(message->msg_iov->iov_base, moved.received + moved.received_bytes, bytes);
	moved.received_bytes += bytes;
	moved.over |= !bytes;
	return bytes;
}

static void next_packet(void)
{
	uint8_t *bytes = (uint8_t *)&way.packet;

	fuzz_take(in, &way.packet.message, BYTES);
	if (!way.packets) {
		way.packet.message.type = SHUNT_MSG_HELLO;
		way.packet.message.hello.magic = SHUNT_WIRE_MAGIC;
	}
	memcpy(moved.received + moved.received_bytes, bytes, BYTES);
	moved.received_bytes += BYTES;
	shunt_seal_make(&way.seal, bytes, BYTES, way.packet.code);
	shunt_seal_sent(&way.seal);
	if (fuzz_below(in, 8) == 7)
		bytes[fuzz_below(in, sizeof(way.packet))] ^= (uint8_t)(1 + fuzz_below(in, 255));
	else
		way.sound += way.sound == way.packets;
	way.packets++;
	way.passed = 0;
}

static ssize_t sealed_stream(struct msghdr *message)
{
	size_t most = message->msg_iov->iov_len, bytes = 1 + fuzz_byte(in);

	if (way.passed == sizeof(way.packet) && moved.received_bytes == sizeof(moved.received)) {
		moved.over = true;
		return 0;
	}
	if (way.passed == sizeof(way.packet))
		next_packet();
	bytes = bytes < most ? bytes : most;
	bytes = bytes < sizeof(way.packet) - way.passed ? bytes : sizeof(way.packet) - way.passed;
	memcpy(message->msg_iov->iov_base, (uint8_t *)&way.packet + way.passed, bytes);
	way.passed += bytes;
	return (ssize_t)bytes;
}

static ssize_t receive(int fd, struct msghdr *message, int flags)
{
	fuzz_check(fd == channel.fd);
	if (flags & MSG_PEEK)	/* whether it is left anything when it closes */
		return fuzz_below(in, 2);
	switch (fuzz_below(in, 16)) {
	case 0:
		return fail(EAGAIN);
	case 1:
		return fail(EINTR);
	case 2:
		moved.over = true;
		message->msg_controllen = 0;
		return fuzz_below(in, 2) ? fail(ECONNRESET) : 0;
	default:
		return channel.kind == SHUNT_CHANNEL_UNIX ? packet(message) :
		       channel.seal.on ? sealed_stream(message) : stream(message);
	}
}

/* The k-th message of the stream is its k-th piece. */
static void check_stream(const struct shunt_message *message, int *taken)
{
	fuzz_check(moved.received_bytes >= (*taken + 1) * BYTES);
	fuzz_check(!memcmp(message, moved.received + *taken * BYTES, BYTES));
	fuzz_check(!channel.seal.on || *taken < way.sound);
	fuzz_check(*taken || (message->type == SHUNT_MSG_HELLO && message->hello.magic == SHUNT_WIRE_MAGIC));
	++*taken;
}

/* False: nothing more will come. */
static bool take_one(int *taken)
{
	struct shunt_message message;
	int fds[SHUNT_CHANNEL_FDS], count = -1, before = fake_count();
	int result = shunt_channel_receive(&channel, &message, fds, &count);

	fuzz_check(count >= 0 && count <= SHUNT_CHANNEL_FDS && fake_count() == before + count);
	if (result == 1 && channel.kind == SHUNT_CHANNEL_UNIX)
		fuzz_check(moved.packet_bytes == BYTES && !moved.truncated && !memcmp(&message, moved.packet, BYTES));
	if (result == 1 && channel.kind == SHUNT_CHANNEL_TCP)
		check_stream(&message, taken);
	fuzz_check(result == 1 || !count);
	fuzz_check(result != -EPROTO || channel.wrong);
	while (count)
		fake_sys.close(fds[--count]);
	return result >= 0;
}

/* --- what goes --- */

static ssize_t transmit(int fd, const struct msghdr *message, int flags)
{
	size_t bytes = message->msg_iov->iov_len;

	(void)flags;
	fuzz_check(fd == channel.fd);
	if (moved.over)
		return fail(EPIPE);
	switch (fuzz_below(in, 8)) {
	case 0 ... 2:
		return fail(EAGAIN);
	case 3:
		if (channel.kind == SHUNT_CHANNEL_TCP)
			bytes = 1 + fuzz_byte(in) % bytes;
		break;
	default:
		break;
	}
	if (moved.sent_bytes + bytes > sizeof(moved.sent))
		return fail(EAGAIN);
	memcpy(moved.sent + moved.sent_bytes, message->msg_iov->iov_base, bytes);
	moved.sent_bytes += bytes;
	return bytes;
}

static int end(int fd, int how)
{
	(void)how;
	fuzz_check(fd == channel.fd);
	moved.over = true;
	return 0;
}

static int set(int fd, int level, int name, const void *value, socklen_t bytes)
{
	(void)level, (void)name, (void)value, (void)bytes;
	fuzz_check(fd == channel.fd);
	return fuzz_below(in, 2) ? 0 : fail(EINVAL);
}

/* Messages are numbered, so that what was sent shows that none is missing, twice or in pieces. */
static void send_one(uint32_t *number)
{
	struct shunt_message message;
	int fds[SHUNT_CHANNEL_FDS] = { 0 }, count = channel.kind == SHUNT_CHANNEL_UNIX ? fuzz_below(in, 3) : 0;
	int opened = 0, result;

	memset(&message, *number + 1, sizeof(message));
	while (opened < count)
		fds[opened++] = fake_open();
	fake_full = fuzz_below(in, 8) == 7;
	result = shunt_channel_send(&channel, &message, fds, count);
	fake_full = false;
	while (count)
		fake_sys.close(fds[--count]);
	if (!result)
		++*number;
}

static void check_sent(uint32_t number)
{
	size_t whole = channel.seal.on ? sizeof(struct shunt_sealed) : BYTES;

	fuzz_check(moved.sent_bytes <= number * whole || moved.over);
	for (size_t i = 0; i < moved.sent_bytes && !moved.over; i++)
		fuzz_check(i % whole >= BYTES || moved.sent[i] == (uint8_t)(i / whole + 1));
	fuzz_check(shunt_channel_waits(&channel) || moved.over ||
		   moved.sent_bytes == number * whole);
}

/* Each message has the code that its reader expects. */
static void check_codes(void)
{
	struct shunt_seal reader = { .receiving = channel.seal.sending };

	reader.receiving.number = 0;
	for (size_t at = 0; at + sizeof(way.packet) <= moved.sent_bytes && !moved.over;
	     at += sizeof(way.packet))
		fuzz_check(
			shunt_seal_check(&reader, moved.sent + at, BYTES, moved.sent + at + BYTES));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_input input = { data, data + size };
	struct shunt_engine *engine = fake_engine();
	uint32_t number = 0;
	int taken = 0, before = fake_count(), fd;

	in = &input;
	memset(&moved, 0, sizeof(moved));
	fake_sys.recvmsg = receive;
	fake_sys.sendmsg = transmit;
	fake_sys.shutdown = end;
	fake_sys.setsockopt = set;
	engine->loop.manual = true;
	fd = shunt_own_fds_make(&engine->fds, fake_open());
	fuzz_check(fd >= 0);
	shunt_channel_init(&channel, &engine->links,
			   fuzz_below(in, 2) ? SHUNT_CHANNEL_TCP : SHUNT_CHANNEL_UNIX, fd);
	way = (struct way) { .passed = sizeof(way.packet) };
	channel.seal.on = channel.kind == SHUNT_CHANNEL_TCP && size & 1;
	memset(channel.seal.sending.key, 1, SHUNT_SEAL_KEY_BYTES);
	memset(channel.seal.receiving.key, 2, SHUNT_SEAL_KEY_BYTES);
	way.seal.sending = channel.seal.receiving;
	while (fuzz_more(in)) {
		unsigned int what = fuzz_below(in, 8);

		if (what < 5 && !take_one(&taken))
			break;
		if (what == 5 || what == 6)
			send_one(&number);
		if (what == 7)
			shunt_channel_flush(&channel);
		check_sent(number);
	}
	if (channel.seal.on)
		check_codes();
	shunt_channel_close(&channel);
	shunt_channel_close(&channel);
	fuzz_check(fake_count() == before);
	return 0;
}
