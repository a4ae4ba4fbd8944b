/* SPDX-License-Identifier: MIT */
#include "core/loop/porter.h"
#include "core/base/log.h"
#include "core/fd/own_fds.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef SO_PASSRIGHTS
#define SO_PASSRIGHTS 83
#endif

#define STACK_BYTES (128 * 1024)

/* --- at the door --- */

void shunt_porter_guard(struct shunt_porter *porter, int door)
{
	const int off = 0;

	if (porter->loop->fds->sys->setsockopt(door, SOL_SOCKET, SO_PASSRIGHTS, &off, sizeof(off)))
		atomic_store(&porter->unguarded, true);
}

void shunt_porter_trust(struct shunt_porter *porter, int fd)
{
	const int on = 1;

	porter->loop->fds->sys->setsockopt(fd, SOL_SOCKET, SO_PASSRIGHTS, &on, sizeof(on));
}

bool shunt_porter_has_room(struct shunt_porter *porter)
{
	bool room;

	shunt_lock_take(&porter->lock);
	room = porter->count < SHUNT_PORTER_MOST;
	shunt_lock_leave(&porter->lock);
	return room;
}

bool shunt_porter_is_full(struct shunt_porter *porter)
{
	bool full;

	shunt_lock_take(&porter->lock);
	full = porter->count >= SHUNT_PORTER_MOST;
	if (full)
		atomic_store(&porter->shut, true);
	shunt_lock_leave(&porter->lock);
	return full;
}

/* --- the thread --- */

/* As the service thread (no_new_privs.h). */
static void follow(struct shunt_porter *porter)
{
	if (!atomic_load(&porter->loop->no_new_privs) || atomic_load(&porter->follows))
		return;
	(void)porter->loop->fds->sys->prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	atomic_store(&porter->follows, true);
}

/* Something waits for the thread, or it is not to stay. porter.lock held. */
static void call(struct shunt_porter *porter)
{
	shunt_assert_held(&porter->lock);
	atomic_fetch_add(&porter->calls, 1);
	if (porter->rests)
		syscall(SYS_futex, &porter->calls, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

/* Nothing waits: the thread rests if it is to stay. False: it ends. porter.lock held, and given up meanwhile: not analysed. */
SHUNT_NO_LOCK_ANALYSIS static bool rest(struct shunt_porter *porter)
{
	uint32_t calls = atomic_load(&porter->calls);

	if (!porter->stays) {
		porter->at_work = false;
		return false;
	}
	porter->rests = true;
	shunt_lock_leave(&porter->lock);
	syscall(SYS_futex, &porter->calls, FUTEX_WAIT_PRIVATE, calls, NULL, NULL, 0);
	shunt_lock_take(&porter->lock);
	porter->rests = false;
	return true;
}

/* The next descriptor to close; -1: none, and the thread is over. */
static int next_to_go(struct shunt_porter *porter)
{
	int fd = -1;

	shunt_lock_take(&porter->lock);
	follow(porter);
	while (!porter->count && rest(porter))
		follow(porter);
	if (porter->count)
		fd = porter->waiting[--porter->count];
	shunt_lock_leave(&porter->lock);
	if (fd >= 0 && atomic_load(&porter->shut))
		shunt_loop_post(porter->loop, &porter->emptied);
	return fd;
}

/* Another file takes its number first. That is what takes time: no number is in the making. */
static void stranger_let_go(struct shunt_porter *porter, int fd)
{
	porter->loop->fds->sys->dup3(porter->loop->wake_fd, fd, O_CLOEXEC);
	shunt_own_fds_close(porter->loop->fds, fd);
}

static void *run(void *arg)
{
	struct shunt_porter *porter = arg;
	int fd;

	atomic_store(&porter->tid, (pid_t)syscall(SYS_gettid));
	while ((fd = next_to_go(porter)) >= 0)
		stranger_let_go(porter, fd);
	return NULL;
}

/* Without a thread they wait: the next stranger asks for one again. */
static bool start(struct shunt_porter *porter)
{
	pthread_attr_t attr;
	sigset_t all, before;
	pthread_t thread;
	int failed;

	atomic_store(&porter->follows, false);
	sigfillset(&all);
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, STACK_BYTES);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	failed = pthread_create(&thread, &attr, run, porter);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attr);
	return !failed;
}

/* Under porter.lock: who forbids the process new threads waits until this one is there. */
static void begin(struct shunt_porter *porter)
{
	shunt_assert_held(&porter->lock);
	porter->at_work = porter->at_work || start(porter);
}

/* lock held. */
static bool has_place(struct shunt_porter *porter)
{
	uint32_t room = porter->room ? 2 * porter->room : SHUNT_PORTER_MOST;
	int *waiting;

	if (porter->count < porter->room)
		return true;
	while (room <= porter->count)
		room *= 2;
	waiting = realloc(porter->waiting, room * sizeof(*waiting));
	if (!waiting)
		return false;
	porter->waiting = waiting;
	porter->room = room;
	return true;
}

/* False: it does not wait, for lack of memory. */
static bool enqueue(struct shunt_porter *porter, int fd)
{
	bool room;

	shunt_lock_take(&porter->lock);
	room = has_place(porter);
	if (room)
		porter->waiting[porter->count++] = fd;
	begin(porter);
	call(porter);
	shunt_lock_leave(&porter->lock);
	return room;
}

void shunt_porter_dismiss(struct shunt_porter *porter, int fd)
{
	int saved = errno;

	if (fd < 0)
		return;
	if (!atomic_load(&porter->unguarded)) {
		shunt_own_fds_close(porter->loop->fds, fd);
	} else {
		porter->loop->fds->sys->shutdown(fd, SHUT_RDWR);
		shunt_porter_close_later(porter, fd);
	}
	errno = saved;
}

/*
 * Nothing can be added any more. A packet has credentials of its sender at least, and the kernel
 * says MSG_CTRUNC without room for them. At the end of the queue nothing is left out.
 */
static bool has_packets(struct shunt_porter *porter, int fd)
{
	const int on = 1;
	char byte, none;
	struct iovec iov = { &byte, 1 };
	struct msghdr message = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = &none };

	if (porter->loop->fds->sys->setsockopt(fd, SOL_SOCKET, SO_PASSCRED, &on, sizeof(on)))
		return true;
	return porter->loop->fds->sys->recvmsg(fd, &message, MSG_PEEK | MSG_DONTWAIT) ||
	       message.msg_flags & MSG_CTRUNC;
}

void shunt_porter_let_go(struct shunt_porter *porter, int fd)
{
	int saved = errno;

	if (fd < 0)
		return;
	porter->loop->fds->sys->shutdown(fd, SHUT_RDWR);
	if (has_packets(porter, fd))
		shunt_porter_close_later(porter, fd);
	else
		shunt_own_fds_close(porter->loop->fds, fd);
	errno = saved;
}

void shunt_porter_close_later(struct shunt_porter *porter, int fd)
{
	int saved = errno;

	if (porter->loop->manual)
		shunt_own_fds_close(porter->loop->fds, fd);
	else if (!enqueue(porter, fd))	/* it may take for ever to close, so it stays open */
		shunt_log(SHUNT_LOG_WARN, "out of memory: a stranger's descriptor stays open");
	errno = saved;
}

void shunt_porter_stay(struct shunt_porter *porter)
{
	if (porter->loop->manual)
		return;
	shunt_lock_take(&porter->lock);
	porter->stays = true;
	begin(porter);
	shunt_lock_leave(&porter->lock);
}

/* It is, from before it has begun until the kernel does not count it any more. */
static bool is_there(struct shunt_porter *porter)
{
	pid_t tid;
	bool at_work;

	shunt_lock_take(&porter->lock);
	at_work = porter->at_work;
	shunt_lock_leave(&porter->lock);
	tid = atomic_load(&porter->tid);
	return at_work || (tid && !syscall(SYS_tgkill, getpid(), tid, 0));
}

/* Until it has ended, or has set no_new_privs, too, if that will do. */
static bool await(struct shunt_porter *porter, bool ends, uint64_t until)
{
	shunt_lock_take(&porter->lock);
	porter->stays &= !ends;
	call(porter);
	shunt_lock_leave(&porter->lock);
	while (is_there(porter) && (ends || !atomic_load(&porter->follows))) {
		if (porter->loop->fds->sys->now() >= until)
			return false;
		sched_yield();
	}
	return true;
}

bool shunt_porter_await(struct shunt_porter *porter, uint64_t until)
{
	return await(porter, true, until);
}

bool shunt_porter_follows(struct shunt_porter *porter, uint64_t until)
{
	return await(porter, false, until);
}

/* --- a door is closed --- */

static int come_in(struct shunt_porter *porter, int door)
{
	return shunt_own_fds_make(
		porter->loop->fds,
		porter->loop->fds->sys->accept4(door, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK));
}

/* Nobody can come any more, and clients that have come are taken out first: the rest is closed in no time. */
void shunt_porter_close(struct shunt_porter *porter, int door, struct shunt_crowd *crowd)
{
	const struct shunt_sys *sys = porter->loop->fds->sys;
	int fd;

	if (door >= 0 && atomic_load(&porter->unguarded)) {
		sys->shutdown(door, SHUT_RD);
		while (crowd->count < SHUNT_PORTER_CROWD && (fd = come_in(porter, door)) >= 0)
			crowd->fd[crowd->count++] = fd;
	}
	shunt_own_fds_close(porter->loop->fds, door);
}

void shunt_porter_dismiss_all(struct shunt_porter *porter, struct shunt_crowd *crowd)
{
	while (crowd->count)
		shunt_porter_dismiss(porter, crowd->fd[--crowd->count]);
}
