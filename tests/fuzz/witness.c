/* SPDX-License-Identifier: MIT */
/*
 * The kernel's answers as a witness: of a TCP socket, and of the two ends of a channel. An answer
 * is a proper one that the input changes, or the input's own bytes.
 */
#include <errno.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <linux/unix_diag.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include "core/peer/witness.h"
#include "core/service.h"
#include "tests/fuzz/fake.h"

#define MOST 5000	/* more than the engine takes */
#define ASKED 40	/* sockets, in two batches */

static struct fuzz_input *in;
static struct shunt_service service;
static struct shunt_tuple tuples[ASKED];
static int channel[2];
static uint32_t inode[2];
static uint32_t sequence;	/* of the next answer, if it is right */

/* --- what the kernel says --- */

static size_t add_attribute(uint8_t *to, size_t at, uint16_t type, const void *bytes, size_t count)
{
	struct nlattr header = { .nla_len = (uint16_t)(NLA_HDRLEN + count), .nla_type = type };

	memcpy(to + at, &header, sizeof(header));
	memcpy(to + at + NLA_HDRLEN, bytes, count);
	return at + NLA_ALIGN(NLA_HDRLEN + count);
}

static size_t say_tcp(uint8_t *to, const struct shunt_tuple *tuple)
{
	static const uint8_t states[] = { TCP_ESTABLISHED, TCP_CLOSE_WAIT, TCP_LISTEN,
					  TCP_TIME_WAIT };
	struct inet_diag_sockopt options = { .freebind = 1, .mc_loop = 1 };
	struct inet_diag_msg shown = { .idiag_state = states[fuzz_below(in, 4)], .id = { .idiag_cookie = { 1, 2 } } };
	uint8_t how = fuzz_byte(in);
	size_t at = NLMSG_SPACE(sizeof(shown));

	shown.idiag_family = how & 1 ? AF_INET6 : AF_INET;
	shown.id.idiag_sport = tuple->local_port;
	shown.id.idiag_dport = tuple->peer_port;
	memcpy(shown.id.idiag_src, tuple->local + (how & 1 ? 0 : 12), how & 1 ? 16 : 4);
	memcpy(shown.id.idiag_dst, tuple->peer + (how & 1 ? 0 : 12), how & 1 ? 16 : 4);
	memcpy(to + NLMSG_HDRLEN, &shown, sizeof(shown));
	if (how & 2)
		at = add_attribute(to, at, INET_DIAG_SHUTDOWN, "s", 1);
	if (how & 4)
		at = add_attribute(to, at, INET_DIAG_MEMINFO, &shown, 16);
	return how & 8 ? at : add_attribute(to, at, INET_DIAG_SOCKOPT, &options, sizeof(options));
}

static size_t say_unix(uint8_t *to)
{
	struct unix_diag_msg shown = { .udiag_family = AF_UNIX, .udiag_ino = inode[0] };
	size_t at = NLMSG_SPACE(sizeof(shown));
	uint8_t how = fuzz_byte(in);

	shown.udiag_ino += how & 1;
	memcpy(to + NLMSG_HDRLEN, &shown, sizeof(shown));
	if (how & 2)
		at = add_attribute(to, at, UNIX_DIAG_SHUTDOWN, "s", 1);
	return how & 4 ? at : add_attribute(to, at, UNIX_DIAG_PEER, &inode[1], sizeof(inode[1]));
}

/* How long the packet is. */
static size_t make_answer(uint8_t *to, bool of_channel)
{
	struct nlmsghdr header = { .nlmsg_type = SOCK_DIAG_BY_FAMILY };
	uint8_t how = fuzz_byte(in);
	size_t bytes;

	memset(to, 0, MOST);
	if (how == 0xff) {
		bytes = fuzz_below(in, 256) * 20;
		fuzz_take(in, to, bytes < MOST ? bytes : MOST);
		return bytes < MOST ? bytes : MOST;
	}
	bytes = of_channel ? say_unix(to) : say_tcp(to, &tuples[fuzz_below(in, 3)]);
	header.nlmsg_len = (uint32_t)bytes;
	header.nlmsg_seq = sequence + (how & 1 ? fuzz_below(in, 64) : 0);
	sequence++;
	if (how & 2)
		header.nlmsg_type = NLMSG_ERROR;
	if (how & 4)
		header.nlmsg_len = fuzz_u32(in);
	memcpy(to, &header, sizeof(header));
	if (how & 8)
		bytes = fuzz_below(in, 256);
	for (int i = 0; i < (how >> 4 & 7); i++)
		to[fuzz_below(in, 256)] = fuzz_byte(in);
	return bytes;
}

static bool asks_channel;

static ssize_t take_question(int fd, const struct msghdr *message, int flags)
{
	(void)fd;
	(void)flags;
	sequence = ((const struct nlmsghdr *)message->msg_iov->iov_base)->nlmsg_seq;
	errno = ENOBUFS;
	return fuzz_below(in, 16) == 15 ? -1 : (ssize_t)message->msg_iov->iov_len;
}

static ssize_t give_answer(int fd, struct msghdr *message, int flags)
{
	uint8_t answer[MOST];
	struct sockaddr_nl *sender = message->msg_name;
	size_t bytes, room = message->msg_iov->iov_len;

	(void)fd;
	(void)flags;
	errno = fuzz_more(in) ? ENOBUFS : EAGAIN;
	if (!fuzz_more(in) || fuzz_below(in, 32) == 31)
		return -1;
	bytes = make_answer(answer, asks_channel);
	sender->nl_pid = fuzz_below(in, 16) == 15;
	message->msg_flags = bytes > room ? MSG_TRUNC : 0;
	memcpy(message->msg_iov->iov_base, answer, bytes < room ? bytes : room);
	return (ssize_t)(bytes < room ? bytes : room);
}

/* --- what is made of it --- */

static void check_seen(const struct shunt_sighting *seen)
{
	fuzz_check(seen->bits < 1 << SHUNT_WITNESS_BITS);
	fuzz_check(seen->seen || (!seen->bits && !seen->cookie && !seen->user));
}

/* Of this size exactly: AddressSanitizer sees what reads beyond it. */
static void read_one(void)
{
	const struct shunt_sighting before = { .user = 77 };
	struct shunt_sighting seen = before;
	uint8_t answer[MOST];
	size_t bytes = make_answer(answer, false);
	void *exact = malloc(bytes ? bytes : 1);

	memcpy(exact, answer, bytes);
	if (shunt_witness_read(exact, bytes, &tuples[0], &seen)) {
		fuzz_check(seen.seen);
		check_seen(&seen);
	} else {
		fuzz_check(!memcmp(&seen, &before, sizeof(seen)));
	}
	free(exact);
}

static void look(void)
{
	struct shunt_sighting seen[ASKED];
	uint32_t count = 1 + fuzz_below(in, ASKED);
	int result;

	asks_channel = false;
	result = shunt_witness_look(&service, tuples, seen, count);
	fuzz_check(result <= 0);
	for (uint32_t i = 0; i < count; i++)
		check_seen(&seen[i]);
}

static void see_channel(void)
{
	uint32_t ends[2] = { 0 };
	int result;

	asks_channel = true;
	result = shunt_witness_channel(&service, channel[0], ends);
	fuzz_check(result <= 0);
	fuzz_check(result || (ends[0] == inode[0] && ends[1]));
}

static void begin(void)
{
	struct stat file;

	fake_sys.sendmsg = take_question;
	fake_sys.recvmsg = give_answer;
	service.engine = fake_engine();
	service.witness.fd = 1;	/* anything: nobody closes it */
	fuzz_check(!socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, channel));
	for (int i = 0; i < 2; i++) {
		fuzz_check(!fstat(channel[i], &file));
		inode[i] = (uint32_t)file.st_ino;
	}
	for (int i = 0; i < ASKED; i++) {
		tuples[i] = (struct shunt_tuple) { .local_port = htons((uint16_t)(1000 + i)), .peer_port = htons(7) };
		tuples[i].local[15] = tuples[i].peer[15] = 1;
		if (i & 1)
			continue;
		memset(tuples[i].local + 10, 0xff, 2);
		memset(tuples[i].peer + 10, 0xff, 2);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_input input = { data, data + size };

	in = &input;
	if (!service.engine)
		begin();
	service.witness.sequence = fuzz_byte(in) & 1 ? UINT32_MAX - 5 : 0;
	for (int i = 0; i < 20 && fuzz_more(in); i++) {
		switch (fuzz_below(in, 3)) {
		case 0:
			read_one();
			break;
		case 1:
			look();
			break;
		default:
			see_channel();
		}
	}
	return 0;
}
