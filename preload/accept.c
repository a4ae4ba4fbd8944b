/* SPDX-License-Identifier: MIT */
/*
 * accept() and accept4().
 *
 * A listener of MPTCP (Go's from 1.24 on) accepts sockets of both kinds: a connection from a peer without MPTCP is one of
 * TCP. Only those are streams, and SO_PROTOCOL tells. So a process that has had such a listener asks for it.
 */
#include <netinet/in.h>
#include <stddef.h>
#include <string.h>
#include "preload/process.h"
#include "preload/touch.h"

static inline bool is_stream(int fd)
{
	return likely(!atomic_load_explicit(&shunt_process.multipath, memory_order_relaxed)) ||
	       shunt_process_is_tcp(fd);
}

/* Where the kernel tells who calls: to the program, and if that does not ask, to `own`. */
struct caller {
	struct sockaddr *address;
	socklen_t *length;
	socklen_t room; /* there, before the call */
	struct {
		sa_family_t family;
		in_port_t port;
	} own;
	socklen_t own_length;
};

static void caller_ask(struct caller *caller, struct sockaddr *address, socklen_t *length)
{
	caller->address = address;
	caller->length = length;
	caller->room = 0;
	if (!address) {
		caller->address = (struct sockaddr *)&caller->own;
		caller->length = &caller->own_length;
		caller->room = caller->own_length = sizeof(caller->own);
	} else if (!shunt_unwritable(length, sizeof(*length))) {
		caller->room = *length;
	}
}

/* Once a connection of TCP has come: the kernel has written as much as there is room for. */
static uint16_t caller_port(const struct caller *caller)
{
	uint16_t port = 0;

	if (caller->room >= sizeof(caller->own))
		memcpy(&port,
		       (const char *)caller->address + offsetof(struct sockaddr_in, sin_port),
		       sizeof(port));
	return port;
}

static int accepted(struct shunt_file *file, int listener, int fd, bool nonblocking,
		    const struct caller *caller)
{
	int saved = errno;

	if (fd < 0 || shunt_process_foreign())
		return fd;
	shunt_signal_defer_enter();
	shunt_process_fresh(fd);
	if (shunt_as_stream(file) && is_stream(fd) && !shunt_process_is_stdio(fd)) {
		uint16_t port = caller ? caller_port(caller) : 0;

		if (!shunt_young_accepted(shunt_process.engine, shunt_as_stream(file), fd,
					  nonblocking, port))
			shunt_file_accepted(shunt_process.engine, listener, fd, nonblocking, port);
	}
	shunt_signal_defer_leave();
	errno = saved;
	return fd;
}

bool shunt_accept_adopt(int listener)
{
	int saved = errno, protocol = shunt_process_protocol(listener);
	bool done = false;

	if (protocol == IPPROTO_MPTCP)
		atomic_store(&shunt_process.multipath, true);
	if ((protocol == IPPROTO_TCP || protocol == IPPROTO_MPTCP) && shunt_process_engine()) {
		shunt_inside_do(shunt_file_adopted(shunt_process.engine, listener));
		done = true;
	}
	errno = saved;
	return done;
}

/*
 * A listener that this program has not made: inherited by exec, from systemd, or passed by another process. From now
 * on it is known.
 */
static int from_unknown(int listener, int fd, bool nonblocking)
{
	if (fd >= 0 && !shunt_process_is_stdio(listener) && !shunt_process_foreign() &&
	    shunt_accept_adopt(listener))
		accepted(shunt_lookup(listener), listener, fd, nonblocking, NULL);
	return fd;
}

/* Others the kernel refuses, before it waits. */
static bool are_good(int flags)
{
	return flags == SHUNT_ACCEPT_PLAIN || !(flags & ~(SOCK_CLOEXEC | SOCK_NONBLOCK));
}

static int copy_peer(const struct sockaddr_storage *peer, struct sockaddr *address,
		     socklen_t *length)
{
	socklen_t bytes = peer->ss_family == AF_INET ? sizeof(struct sockaddr_in) :
						       sizeof(struct sockaddr_in6);
	socklen_t room;

	if (shunt_unwritable(length, sizeof(*length)))
		return -EFAULT;
	room = *length;
	if ((int)room < 0)
		return -EINVAL;
	room = room < bytes ? room : bytes;
	if (room && shunt_unwritable(address, room))
		return -EFAULT;
	memcpy(address, peer, room);
	*length = bytes;
	return 0;
}

/* Where it cannot be told, the connection is closed again. */
static int tell(int fd, const struct sockaddr_storage *peer, struct sockaddr *address,
		socklen_t *length)
{
	int error = fd >= 0 && address ? copy_peer(peer, address, length) : 0;

	if (!error)
		return fd;
	close(fd);
	return error;
}

/* A connection that is none of the kernel's queue. -EAGAIN: there is none, and the kernel is to be asked. */
static int born(struct shunt_file *file, bool again, int flags, struct sockaddr *address,
		socklen_t *length)
{
	struct sockaddr_storage peer;
	int fd = -EAGAIN;

	if (!shunt_as_stream(file) || shunt_process_foreign() || !are_good(flags))
		return -EAGAIN;
	shunt_inside_do(fd = shunt_born_accept(shunt_process.engine, shunt_as_stream(file), again,
					       flags, address ? &peer : NULL));
	return tell(fd, &peer, address, length);
}

/* The program's own call: a filter may allow only one of the two. */
static int ask_kernel(int listener, struct sockaddr *address, socklen_t *length, int flags)
{
	return flags == SHUNT_ACCEPT_PLAIN ? real(accept)(listener, address, length) :
				real(accept4)(listener, address, length, flags);
}

/* At a listener that blocks and may have births. SHUNT_ACCEPT_KERNEL: it is none any more. */
static int accept_waiting(int listener, struct shunt_accept *call, const struct caller *caller,
			  struct sockaddr *address)
{
	int made = -ERESTART, saved = errno;
	struct shunt_file *file = NULL;

	shunt_cancellation_point();
	shunt_numbers_quiet();
	while (made == -ERESTART) {
		file = shunt_lookup(listener);
		if (!shunt_as_stream(file) || !shunt_accept_waits(shunt_as_stream(file)))
			return SHUNT_ACCEPT_KERNEL;
		made = shunt_inside(shunt_accept_wait(shunt_process.engine, listener,
						      shunt_as_stream(file), call));
	}
	errno = saved;
	if (call->born)
		return tell(made, &call->peer, address, call->length);
	if (made < 0)
		return made;
	return accepted(shunt_lookup(listener) == file ? file : NULL, listener, made,
			call->flags != SHUNT_ACCEPT_PLAIN && call->flags & SOCK_NONBLOCK, caller);
}

static bool waits(struct shunt_file *file, int flags)
{
	return unlikely(shunt_as_stream(file) && shunt_accept_waits(shunt_as_stream(file))) &&
	       are_good(flags) && !shunt_process_foreign();
}

static int accept_known(struct shunt_file *file, int listener, struct sockaddr *address,
			socklen_t *length, int given)
{
	int flags = given == SHUNT_ACCEPT_PLAIN ? 0 : given, fd = SHUNT_ACCEPT_KERNEL, saved;
	struct caller caller;

	caller_ask(&caller, address, length);
	if (waits(file, given)) {
		struct shunt_accept call = { .address = caller.address, .length = caller.length, .flags = given };

		fd = accept_waiting(listener, &call, &caller, address);
	}
	saved = errno;

	if (fd != SHUNT_ACCEPT_KERNEL)
		return (int)shunt_result(fd);
	file = shunt_lookup(listener);
	fd = born(file, false, flags, address, length);
	if (fd != -EAGAIN)
		return (int)shunt_result(fd);
	shunt_numbers_quiet();	/* the kernel takes the number before it waits */
	fd = ask_kernel(shunt_is_own_fd(file) ? -1 : listener, caller.address, caller.length,
			given);
	fd = accepted(file, listener, fd, flags & SOCK_NONBLOCK, &caller);
	if (fd >= 0 || errno != EAGAIN)
		return fd;
	fd = born(file, true, flags, address, length);
	if (fd >= 0)
		errno = saved;
	return (int)shunt_result(fd);
}

int accept(int fd, struct sockaddr *address, socklen_t *length)
{
	struct shunt_file *file = shunt_lookup(fd);

	if (unlikely(!file)) {
		shunt_numbers_quiet();
		return from_unknown(fd, real(accept)(fd, address, length), false);
	}
	shunt_begin_anew();
	shunt_inside_do(shunt_file_accepting(shunt_process.engine, file));
	return accept_known(file, fd, address, length, SHUNT_ACCEPT_PLAIN);
}

int accept4(int fd, struct sockaddr *address, socklen_t *length, int flags)
{
	struct shunt_file *file = shunt_lookup(fd);

	if (unlikely(!file)) {
		shunt_numbers_quiet();
		return from_unknown(fd, real(accept4)(fd, address, length, flags), flags & SOCK_NONBLOCK);
	}
	shunt_begin_anew();
	shunt_inside_do(shunt_file_accepting(shunt_process.engine, file));
	return accept_known(file, fd, address, length, flags);
}
