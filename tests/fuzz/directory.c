/* SPDX-License-Identifier: MIT */
/*
 * The directory: a client may say anything, in any pieces, at any time, and so may an owner that is
 * handed a question. A question is answered only if it is whole, and its asker is from outside and
 * has come to the address that it names. Each asker gets the answer of its own owner; nobody is
 * kept. And a question of ours, to a directory that says anything.
 */
#include <errno.h>
#include <netinet/in.h>
#include <sys/epoll.h>
#include "core/base/address.h"
#include "core/loop/loop.h"
#include "core/peer/directory.h"
#include "core/peer/directory_ask.h"
#include "core/peer/rendezvous.h"
#include "tests/fuzz/fake.h"

#define GUESTS 32
#define PATIENCE 1000000000ull
#define ROOM 200

static const uint8_t here[16] = { SHUNT_ADDRESS_V4, 10, 0, 0, 1 };

enum kind { NOTHING, LISTENER, GUEST, OWNER, ASK, OTHER };

/* The other end of a descriptor, and the words that it has said. */
struct end {
	enum kind kind;
	bool waits; /* a guest that has not been accepted */
	bool watched, ended;
	uint8_t from; /* a guest's last byte of its address: 2 is outside */
	uint8_t said[ROOM];
	unsigned int there, taken;
	int asker; /* an owner's guest; 0: it has not been asked */
};

static struct fuzz_input *in;
static struct end ends[FAKE_FDS];
static struct shunt_directory directory;
static struct shunt_directory_ask ask;
static struct shunt_rendezvous ours;
static int refusal; /* errno of the next call that may fail; 0: none */
static int answered; /* the guest whose question is being answered or has been handed on; 0: none */
static bool hears;

static int fail(int err)
{
	errno = err;
	return -1;
}

/* --- its surroundings --- */

static int make(enum kind kind)
{
	int fd = fake_open();

	if (fd >= 0)
		ends[fd] = (struct end) { .kind = kind };
	return fd;
}

static int sys_socket(int family, int type, int protocol)
{
	(void)protocol;
	if (type & SOCK_DGRAM && family != AF_UNIX && !(type & SOCK_STREAM))
		return make(OTHER);
	return make(family == AF_UNIX ? OWNER : family == AF_INET6 ? LISTENER : ASK);
}

/* Of a datagram socket: whether 10.0.0.3 is ours, too. */
static int sys_bind(int fd, const struct sockaddr *address, socklen_t length)
{
	const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)address;

	(void)length;
	fuzz_check(fake_is_open(fd));
	if (ends[fd].kind == OTHER)
		return v6->sin6_addr.s6_addr[15] == 3 ? 0 : fail(EADDRNOTAVAIL);
	return 0;
}

static int sys_listen(int fd, int backlog)
{
	(void)backlog;
	fuzz_check(fake_is_open(fd));
	return 0;
}

/* Owners are there for one name of two. */
static int sys_connect(int fd, const struct sockaddr *address, socklen_t length)
{
	(void)address, (void)length;
	fuzz_check(fake_is_open(fd));
	if (ends[fd].kind == ASK)
		return fail(EINPROGRESS);
	return fuzz_below(in, 2) ? fail(ECONNREFUSED) : 0;
}

static int tell_address(struct sockaddr *address, socklen_t *length, uint8_t last)
{
	struct sockaddr_in v4 = { .sin_family = AF_INET, .sin_port = htons(4711) };

	memcpy(&v4.sin_addr, here + 12, 4);
	((uint8_t *)&v4.sin_addr)[3] = last;
	memcpy(address, &v4, sizeof(v4));
	*length = sizeof(v4);
	return 0;
}

static int sys_getsockname(int fd, struct sockaddr *address, socklen_t *length)
{
	fuzz_check(fake_is_open(fd));
	return tell_address(address, length, 1);
}

static int sys_getpeername(int fd, struct sockaddr *address, socklen_t *length)
{
	fuzz_check(ends[fd].kind == GUEST && fake_is_open(fd));
	return ends[fd].ended ? fail(ENOTCONN) : tell_address(address, length, ends[fd].from);
}

static int sys_getsockopt(int fd, int level, int name, void *value, socklen_t *length)
{
	(void)fd, (void)level, (void)name, (void)value, (void)length;
	return fail(ENOPROTOOPT);
}

static int sys_setsockopt(int fd, int level, int name, const void *value, socklen_t length)
{
	(void)level, (void)name, (void)value, (void)length;
	fuzz_check(fake_is_open(fd));
	return 0;
}

static int sys_shutdown(int fd, int how)
{
	(void)how;
	fuzz_check(fake_is_open(fd));
	return 0;
}

/* Nobody's user is known: all are strangers. */
static int sys_getresuid(uid_t *real, uid_t *effective, uid_t *saved)
{
	(void)real, (void)effective, (void)saved;
	return fail(EPERM);
}

static int sys_epoll_create1(int flags)
{
	(void)flags;
	return make(OTHER);
}

static int sys_epoll_ctl(int epfd, int op, int fd, struct epoll_event *event)
{
	fuzz_check(epfd == directory.fd && fake_is_open(fd));
	ends[fd].watched = op != EPOLL_CTL_DEL;
	if (ends[fd].kind == LISTENER)
		hears = event->events & EPOLLIN;
	return 0;
}

static bool is_ready(int fd)
{
	return fd >= 0 && ends[fd].watched && (ends[fd].there > ends[fd].taken || ends[fd].ended);
}

static int sys_epoll_pwait(int epfd, struct epoll_event *events, int max, int timeout,
			   const sigset_t *mask)
{
	int n = 0;

	(void)timeout, (void)mask;
	fuzz_check(epfd == directory.fd && max == 2 * SHUNT_DIRECTORY_GUESTS + 1);
	for (int fd = 0; fd < FAKE_FDS && hears && !n; fd++)
		if (ends[fd].waits)
			events[n++] = (struct epoll_event) { EPOLLIN,
							     { .u32 = SHUNT_DIRECTORY_GUESTS } };
	for (uint32_t i = 0; i < SHUNT_DIRECTORY_GUESTS; i++) {
		if (is_ready(directory.guests[i].fd))
			events[n++] = (struct epoll_event) { EPOLLIN, { .u32 = i } };
		if (is_ready(directory.guests[i].owner))
			events[n++] = (struct epoll_event) {
				EPOLLIN, { .u32 = SHUNT_DIRECTORY_GUESTS + 1 + i }
			};
	}
	return n;
}

static int sys_accept4(int fd, struct sockaddr *address, socklen_t *length, int flags)
{
	(void)address, (void)length, (void)flags;
	fuzz_check(ends[fd].kind == LISTENER);
	if (refusal) {
		int err = refusal;

		refusal = 0;
		return fail(err);
	}
	for (int i = 0; i < FAKE_FDS; i++) {
		if (!ends[i].waits)
			continue;
		ends[i].waits = false;
		return i;
	}
	return fail(EAGAIN);
}

/* A packet of an owner is taken whole; the rest of it is lost. */
static ssize_t sys_recvmsg(int fd, struct msghdr *message, int flags)
{
	struct end *end = &ends[fd];
	size_t most = message->msg_iov->iov_len, there;

	(void)flags;
	fuzz_check(fake_is_open(fd) && most);
	message->msg_flags = 0;
	message->msg_controllen = 0;
	there = end->there - end->taken;
	if (end->kind == GUEST)
		answered = fd;
	if (!there)
		return end->ended ? 0 : fail(EAGAIN);
	if (there > most && end->kind == OWNER)
		message->msg_flags = MSG_TRUNC;
	most = there < most ? there : most;
	memcpy(message->msg_iov->iov_base, end->said + end->taken, most);
	end->taken += end->kind == OWNER ? there : most;
	return (ssize_t)most;
}

/* A whole question, right in all that the directory looks at. */
static bool is_fair(const struct end *guest)
{
	struct shunt_directory_question question;

	if (guest->taken < sizeof(question))
		return false;
	memcpy(&question, guest->said, sizeof(question));
	return question.magic == SHUNT_DIRECTORY_MAGIC && question.version == SHUNT_WIRE_VERSION &&
	       question.bytes && question.bytes <= sizeof(question.words) &&
	       !memcmp(question.address, here, 16) && guest->from == 2;
}

static bool is_other_version(const struct end *guest)
{
	uint32_t head[2];

	memcpy(head, guest->said, sizeof(head));
	return guest->taken >= sizeof(head) && head[0] == SHUNT_DIRECTORY_MAGIC &&
	       head[1] != SHUNT_WIRE_VERSION;
}

static void check_question(struct end *owner, const struct shunt_have *have)
{
	fuzz_check(!owner->asker && answered && is_fair(&ends[answered]));
	fuzz_check(have->type == SHUNT_HAVE_QUESTION &&
		   have->said.bytes <= sizeof(struct remote_question));
	fuzz_check(!memcmp(have->said.words,
			   ends[answered].said + offsetof(struct shunt_directory_question, words),
			   have->said.bytes));
	fuzz_check(!memcmp(have->tuple.local, here, 16) && have->tuple.peer[15] == 2);
	owner->asker = answered;
}

static ssize_t sys_sendmsg(int fd, const struct msghdr *message, int flags)
{
	size_t bytes = message->msg_iov->iov_len;

	(void)flags;
	fuzz_check(fake_is_open(fd));
	if (refusal == EPIPE) {
		refusal = 0;
		return fail(EPIPE);
	}
	if (ends[fd].kind == OWNER) {
		fuzz_check(bytes == sizeof(struct shunt_have));
		check_question(&ends[fd], message->msg_iov->iov_base);
	} else if (ends[fd].kind == GUEST) {
		fuzz_check(bytes == sizeof(struct shunt_directory_answer));
		fuzz_check(is_fair(&ends[fd]) || is_other_version(&ends[fd]));
		fuzz_check(shunt_directory_answer_read(message->msg_iov->iov_base, bytes, true) >
			   0);
	} else {
		fuzz_check(ends[fd].kind == ASK);
		bytes = bytes > 1 ? 1 + fuzz_below(in, 200) % bytes : bytes;
	}
	return (ssize_t)bytes;
}

static int (*close_number)(int fd);

static int sys_close(int fd)
{
	fuzz_check(fd >= 0 && fd < FAKE_FDS);
	ends[fd] = (struct end) { .kind = NOTHING };
	return close_number(fd);
}

/* The number of a descriptor changes when it is made private. */
static int sys_fcntl(int fd, int command, ...)
{
	int made = fake_is_open(fd) ? fake_open() : fail(EBADF);

	(void)command;
	if (made >= 0)
		ends[made] = ends[fd];
	return made;
}

/* --- what it says --- */

static int answer(struct shunt_rendezvous *rendezvous, const struct shunt_tuple *asked,
		  const struct shunt_have_words *said, struct remote_answer *words)
{
	fuzz_check(rendezvous == &ours && answered && is_fair(&ends[answered]));
	fuzz_check(asked->local_port == htons(80) && said->bytes <= sizeof(struct remote_question));
	*words = (struct remote_answer) { .port = 1 };
	return fuzz_below(in, 4) ? (int)sizeof(*words) : -1;
}

/* --- what happens --- */

static void come(void)
{
	int fd, count = 0;

	for (int i = 0; i < FAKE_FDS; i++)
		count += ends[i].waits;
	fd = count < GUESTS ? make(GUEST) : -1;
	if (fd < 0)
		return;
	ends[fd].waits = true;
	ends[fd].from = (uint8_t)(fuzz_below(in, 8) ? 2 : 1 + fuzz_below(in, 3));
}

static struct end *some(enum kind kind)
{
	unsigned int at = fuzz_below(in, 64);

	for (int i = 0; i < 2 * FAKE_FDS; i++) {
		struct end *end = &ends[i % FAKE_FDS];

		if (end->kind == kind && !at--)
			return end;
	}
	return NULL;
}

/* Something like what is right, perhaps changed, as it goes on. */
static void say(struct end *end, const void *right, size_t bytes)
{
	unsigned int what = fuzz_below(in, 8), some_of = what < 4 ? ROOM : fuzz_byte(in), at;

	for (; end && some_of && end->there < ROOM; some_of--, end->there++) {
		if (end->there >= bytes && what < 4)
			break;
		end->said[end->there] = end->there < bytes ? ((const uint8_t *)right)[end->there] :
							     fuzz_byte(in);
	}
	if (end && what == 7)
		end->ended = true;
	if (end && what == 6 && (at = fuzz_below(in, ROOM)) >= end->taken)
		end->said[at] ^= fuzz_byte(in);
}

static void say_question(void)
{
	struct shunt_directory_question question;
	struct remote_question words;
	unsigned int bytes = shunt_remote_question_make(&words, NULL, NULL);

	shunt_directory_question_make(&question, here, htons(fuzz_below(in, 2) ? 80 : 81), &words,
				      bytes);
	say(some(GUEST), &question, sizeof(question));
}

/* One packet at a time. */
static void say_as_owner(void)
{
	struct shunt_have have = { .magic = SHUNT_WIRE_MAGIC,
				   .version = SHUNT_WIRE_VERSION,
				   .type = SHUNT_HAVE_ANSWER };
	struct end *owner = some(OWNER);
	unsigned int what = fuzz_below(in, 8);

	have.said.bytes = what ? fuzz_below(in, 70) : fuzz_u32(in);
	if (!owner || !owner->asker || owner->there > owner->taken)
		return;
	owner->there = owner->taken = 0;
	if (what == 7)
		owner->ended = true;
	else if (what == 6)
		owner->there = fuzz_below(in, ROOM);
	else
		memcpy(owner->said, &have,
		       owner->there = sizeof(have) < ROOM ? sizeof(have) : ROOM);
}

static void say_as_directory(void)
{
	struct remote_answer words = { .port = 1 };
	struct shunt_directory_answer right;

	shunt_directory_answer_make(&right, &words, shunt_remote_answer_make(&words, NULL, NULL));
	say(some(ASK), &right, sizeof(right));
}

static void go_on_asking(void)
{
	static const uint8_t there[16] = { SHUNT_ADDRESS_V4, 10, 0, 0, 2 };
	struct shunt_tuple tuple = { .peer_port = htons(80) };
	int result;

	memcpy(tuple.local, here, 16);
	memcpy(tuple.peer, there, 16);
	if (ask.fd < 0) {
		fuzz_check(!shunt_directory_ask_begin(&ask, fake_engine(), &tuple, htons(14791),
						      "x", 1) ||
			   fake_full || ask.fd < 0);
		return;
	}
	result = shunt_directory_ask_step(&ask);
	fuzz_check(result <= (int)sizeof(ask.answer.words) && ask.got <= sizeof(ask.answer));
	if (result)
		shunt_directory_ask_end(&ask);
}

static void step(void)
{
	static const int errors[] = { EMFILE, ENFILE, ECONNABORTED, EINTR, EPIPE, EPERM, ENOMEM };

	switch (fuzz_below(in, 9)) {
	case 0:
		come();
		break;
	case 1:
	case 2:
		say_question();
		break;
	case 3:
		fake_clock += 1ull << fuzz_below(in, 32);
		break;
	case 4:
		say_as_owner();
		break;
	case 5:
		refusal = errors[fuzz_below(in, 7)];
		break;
	case 6:
		say_as_directory();
		break;
	case 7:
		go_on_asking();
		break;
	default:
		shunt_directory_step(&directory);
		refusal = 0;
		fuzz_check(shunt_directory_due(&directory) > fake_clock);
	}
}

static void open_directory(void)
{
	if (!close_number)
		close_number = fake_sys.close;
	fake_sys = (struct shunt_sys) { .now = fake_sys.now,
					.close = sys_close,
					.fcntl = sys_fcntl,
					.socket = sys_socket,
					.bind = sys_bind,
					.listen = sys_listen,
					.connect = sys_connect,
					.accept4 = sys_accept4,
					.getsockname = sys_getsockname,
					.getpeername = sys_getpeername,
					.getsockopt = sys_getsockopt,
					.setsockopt = sys_setsockopt,
					.shutdown = sys_shutdown,
					.getresuid = sys_getresuid,
					.epoll_create1 = sys_epoll_create1,
					.epoll_ctl = sys_epoll_ctl,
					.epoll_pwait = sys_epoll_pwait,
					.recvmsg = sys_recvmsg,
					.sendmsg = sys_sendmsg };
	fake_engine()->loop.manual = true;
	ours.fd = 0;
	shunt_rendezvous_name(here, htons(80), false, &ours.name);
	fake_engine()->rendezvous = &ours;
	ask.fd = -1;
	directory = (struct shunt_directory) { .engine = fake_engine(),
					       .port = htons(14791),
					       .patience = PATIENCE,
					       .answer = answer };
	fuzz_check(!shunt_directory_open(&directory) && directory.listener >= 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_input input = { data, data + size };

	in = &input;
	fake_clock = 1;
	refusal = answered = 0;
	memset(ends, 0, sizeof(ends));
	open_directory();
	while (fuzz_more(in))
		step();
	shunt_directory_close(&directory);
	shunt_directory_ask_end(&ask);
	for (int fd = 0; fd < FAKE_FDS; fd++) /* who was never accepted */
		if (ends[fd].waits)
			fake_sys.close(fd);
	fuzz_check(!fake_count());
	return 0;
}
