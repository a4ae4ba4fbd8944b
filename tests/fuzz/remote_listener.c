/* SPDX-License-Identifier: MIT */
/*
 * The gate for processes of other hosts: whoever connects may show anything, in any pieces, at any time. Only who shows
 * a ticket's cookie is let in, with that ticket, once; nobody is let in after its time; nobody else is kept.
 */
#include <errno.h>
#include <netinet/in.h>
#include <sys/random.h>
#include "core/fd/own_fds.h"
#include "core/peer/remote_listener.h"
#include "tests/fuzz/fake.h"

#define GUESTS 32
#define TICKETS 70	/* more than there is room for */
#define PATIENCE 1000000000ull

enum { NEVER, VALID, SPENT };

static struct fuzz_input *in;
static struct shunt_remote_listener gate;
static int refusal;	/* errno of the next accept4 or setsockopt; 0: none */
static bool listens, hears;	/* the listener is in the epoll; its events are asked for */

static struct guest {
	int fd;			/* 0: none */
	bool accepted, watched, ended;
	uint8_t shown[32];
	unsigned int there, taken;
} guests[GUESTS];

static struct ticket {
	int state;
	uint64_t until;
	uint8_t cookie[SHUNT_COOKIE_BYTES];
} tickets[TICKETS];

static struct guest *guest_of(int fd)
{
	for (int i = 0; i < GUESTS; i++)
		if (guests[i].accepted && guests[i].fd == fd)
			return &guests[i];
	return NULL;
}

static int fail(int err)
{
	errno = err;
	return -1;
}

/* --- the gate's surroundings --- */

static int sys_socket(int family, int type, int protocol)
{
	(void)family, (void)type, (void)protocol;
	return fake_open();
}

static int sys_bind(int fd, const struct sockaddr *address, socklen_t length)
{
	(void)address, (void)length;
	return fake_is_open(fd) ? 0 : fail(EBADF);
}

static int sys_listen(int fd, int backlog)
{
	(void)backlog;
	return fake_is_open(fd) ? 0 : fail(EBADF);
}

static int sys_getsockname(int fd, struct sockaddr *address, socklen_t *length)
{
	(void)fd, (void)length;
	((struct sockaddr_in *)address)->sin_port = 77;
	return 0;
}

static int sys_epoll_create1(int flags)
{
	(void)flags;
	return fake_open();
}

static int sys_epoll_ctl(int epfd, int op, int fd, struct epoll_event *event)
{
	struct guest *guest = guest_of(fd);

	fuzz_check(epfd == gate.fd && fake_is_open(fd));
	if (fd == gate.listener) {
		listens = true;
		hears = event->events & EPOLLIN;
	} else {
		fuzz_check(guest);
		guest->watched = op != EPOLL_CTL_DEL;
	}
	return 0;
}

static int sys_epoll_pwait(int epfd, struct epoll_event *events, int max, int timeout, const sigset_t *mask)
{
	int n = 0;

	(void)timeout, (void)mask;
	fuzz_check(epfd == gate.fd && max == SHUNT_REMOTE_LISTENER_GUESTS + 1);
	for (int i = 0; i < GUESTS && listens && hears && !n; i++)
		if (guests[i].fd && !guests[i].accepted)
			events[n++] = (struct epoll_event) { EPOLLIN, { .u32 = SHUNT_REMOTE_LISTENER_GUESTS } };
	for (int i = 0; i < SHUNT_REMOTE_LISTENER_GUESTS && n < max; i++) {
		struct guest *guest = gate.guests[i].fd >= 0 ? guest_of(gate.guests[i].fd) : NULL;

		if (guest && guest->watched && (guest->there > guest->taken || guest->ended))
			events[n++] = (struct epoll_event) { EPOLLIN, { .u32 = i } };
	}
	return n;
}

static int sys_accept4(int fd, struct sockaddr *address, socklen_t *length, int flags)
{
	(void)address, (void)length, (void)flags;
	fuzz_check(fd == gate.listener);
	if (refusal) {
		int err = refusal;

		refusal = 0;
		return fail(err);
	}
	for (int i = 0; i < GUESTS; i++) {
		if (!guests[i].fd || guests[i].accepted)
			continue;
		guests[i].accepted = true;
		return guests[i].fd;
	}
	return fail(EAGAIN);
}

static ssize_t sys_recvmsg(int fd, struct msghdr *message, int flags)
{
	struct guest *guest = guest_of(fd);
	size_t most = message->msg_iov->iov_len;

	(void)flags;
	fuzz_check(guest && most);
	if (guest->there - guest->taken < most)
		most = guest->there - guest->taken;
	if (!most)
		return guest->ended ? 0 : fail(EAGAIN);
	memcpy(message->msg_iov->iov_base, guest->shown + guest->taken, most);
	guest->taken += most;
	return most;
}

static int sys_setsockopt(int fd, int level, int name, const void *value, socklen_t length)
{
	(void)fd, (void)level, (void)name, (void)value, (void)length;
	return refusal == EINVAL ? fail(EINVAL) : 0;
}

static int (*close_number)(int fd);

static int sys_close(int fd)
{
	struct guest *guest = guest_of(fd);

	if (guest)
		memset(guest, 0, sizeof(*guest));
	return close_number(fd);
}

/* The number of a guest's descriptor changes when it is made private. */
static int sys_fcntl(int fd, int command, ...)
{
	struct guest *guest = guest_of(fd);
	int made;

	made = fake_is_open(fd) ? fake_open() : fail(EBADF);
	(void)command;
	if (guest && made >= 0)
		guest->fd = made;
	return made;
}

/* --- what it says --- */

static struct ticket *ticket_of(void *arg)
{
	struct ticket *ticket = arg;

	fuzz_check(ticket >= tickets && ticket < tickets + TICKETS && ticket->state == VALID);
	ticket->state = SPENT;
	return ticket;
}

static void let_in(void *gate_arg, void *ticket_arg, int fd)
{
	struct guest *guest = guest_of(fd);
	struct ticket *ticket = ticket_of(ticket_arg);

	fuzz_check(gate_arg == &gate && guest && guest->taken == SHUNT_COOKIE_BYTES);
	fuzz_check(!memcmp(guest->shown, ticket->cookie, SHUNT_COOKIE_BYTES) && ticket->until + PATIENCE >= fake_clock);
	shunt_own_fds_close(&fake_engine()->fds, fd);
}

static void expired(void *gate_arg, void *ticket_arg)
{
	fuzz_check(gate_arg == &gate);
	ticket_of(ticket_arg);
}

/* --- what happens --- */

static void come(void)
{
	for (int i = 0; i < GUESTS; i++) {
		if (guests[i].fd)
			continue;
		guests[i] = (struct guest) { .fd = fake_open() };
		if (guests[i].fd < 0)
			guests[i].fd = 0;
		return;
	}
}

static void show(void)
{
	struct guest *guest = &guests[fuzz_below(in, GUESTS)];
	const struct ticket *ticket = &tickets[fuzz_below(in, TICKETS)];
	unsigned int bytes = fuzz_below(in, 33), what = fuzz_below(in, 8);

	for (; bytes && guest->there < sizeof(guest->shown); bytes--, guest->there++)
		guest->shown[guest->there] = what ? ticket->cookie[guest->there % SHUNT_COOKIE_BYTES] : fuzz_byte(in);
	if (what == 7)
		guest->ended = true;
}

static void expect(void)
{
	struct ticket *ticket = tickets;
	int result;

	while (ticket < tickets + TICKETS && ticket->state == VALID)
		ticket++;
	if (ticket == tickets + TICKETS)
		return;
	result = shunt_remote_listener_expect(&gate, ticket, ticket->cookie);
	fuzz_check(result == 0 || result == -ENOSPC);
	ticket->state = result ? NEVER : VALID;
	ticket->until = fake_clock;
	if (result || !((ticket - tickets) & 1))
		return;
	/* With a key something else than the cookie is to be shown. */
	for (int i = 0; i < SHUNT_COOKIE_BYTES; i++)
		ticket->cookie[i] ^= 0x5a;
	shunt_remote_listener_show(&gate, ticket, ticket->cookie);
}

static void step(void)
{
	static const int errors[] = { EMFILE, ENFILE, ECONNABORTED, EINTR, EAGAIN, EPERM, EINVAL };

	switch (fuzz_below(in, 8)) {
	case 0:
		come();
		break;
	case 1: case 2:
		show();
		break;
	case 3:
		fake_clock += 1ull << fuzz_below(in, 32);
		break;
	case 4: case 5:
		expect();
		break;
	case 6:
		refusal = errors[fuzz_below(in, 7)];
		break;
	default:
		shunt_remote_listener_step(&gate);
		refusal = 0;
		fuzz_check(shunt_remote_listener_due(&gate) > fake_clock);
	}
}

static void open_gate(void)
{
	struct sockaddr_in any = { .sin_family = AF_INET };

	if (!close_number)
		close_number = fake_sys.close;
	fake_sys = (struct shunt_sys) { .now = fake_sys.now, .close = sys_close, .fcntl = sys_fcntl,
					.socket = sys_socket, .bind = sys_bind, .listen = sys_listen,
					.getsockname = sys_getsockname, .epoll_create1 = sys_epoll_create1,
					.epoll_ctl = sys_epoll_ctl, .epoll_pwait = sys_epoll_pwait, .accept4 = sys_accept4,
					.recvmsg = sys_recvmsg, .setsockopt = sys_setsockopt,
					.getrandom = getrandom };
	gate = (struct shunt_remote_listener) { .engine = fake_engine(), .patience = PATIENCE, .silence_ms = 1000, .arg = &gate,
				     .let_in = let_in, .expired = expired };
	fuzz_check(!shunt_remote_listener_open(&gate, (struct sockaddr *)&any));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_input input = { data, data + size };

	in = &input;
	fake_clock = 1;
	refusal = 0;
	memset(guests, 0, sizeof(guests));
	memset(tickets, 0, sizeof(tickets));
	open_gate();
	while (fuzz_more(in))
		step();
	shunt_remote_listener_close(&gate);
	for (int i = 0; i < TICKETS; i++)
		fuzz_check(tickets[i].state != VALID);
	for (int i = 0; i < GUESTS; i++)	/* who was never accepted */
		if (guests[i].fd && !guests[i].accepted)
			fake_sys.close(guests[i].fd);
	fuzz_check(!fake_count());
	return 0;
}
