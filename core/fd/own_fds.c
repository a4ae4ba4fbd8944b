/* SPDX-License-Identifier: MIT */
#include "core/fd/own_fds.h"
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>
#include "core/base/narrow.h"
#include "core/fd/thread.h"

/* High enough that programs do not meet them, low enough that the kernel's table, which fork()
 * copies up to the highest number, stays small. */
#define FLOOR 1920

static int floor_for(struct shunt_fds *fds)
{
	struct rlimit limit;
	int top = shunt_narrow_int(fds->files->limit);

	if (!getrlimit(RLIMIT_NOFILE, &limit) && limit.rlim_cur < (rlim_t)top)
		top = (int)limit.rlim_cur;	/* less than it was */
	return top / 2 < FLOOR ? top / 2 : FLOOR;
}

int shunt_own_fds_mark(struct shunt_fds *fds, int fd)
{
	static struct shunt_file mark = { SHUNT_FILE_PRIVATE };

	if (fd < 0 || (size_t)fd >= fds->files->limit)
		return -EMFILE;
	shunt_files_set(fds->files, fd, &mark);
	return 0;
}

/*
 * Makers and closers wait for each other, but never for long. A closer may be stuck in a lingering
 * close. A maker may wait for a lock whose holder runs a signal handler that closes.
 */
#define PATIENCE 20000000	/* ns */

/*
 * A call on a number that the program has closed waits longer. Too early it may reach a socket of
 * ours, whose maker a busy machine has put aside.
 */
#define PATIENCE_CLOSED 1000000000	/* ns */

static void await_none(struct shunt_fds *fds, _Atomic unsigned int *others, uint64_t patience)
{
	uint64_t until = 0;

	while (atomic_load(others)) {
		uint64_t now = fds->sys->now();

		until = until ? until : now + patience;
		if (now >= until)
			return;
		sched_yield();
	}
}

void shunt_own_fds_begin(struct shunt_fds *fds)
{
	shunt_signal_defer_enter();
	if (shunt_thread.making++)
		return;
	atomic_fetch_add(&fds->files->making, 1);
	atomic_fetch_add(&fds->files->made, 1);
	if (!shunt_thread.closing)
		await_none(fds, &fds->files->closing, PATIENCE);
}

void shunt_own_fds_end(struct shunt_fds *fds)
{
	if (!--shunt_thread.making)
		atomic_fetch_sub(&fds->files->making, 1);
	shunt_signal_defer_leave();
}

void shunt_numbers_await(struct shunt_fds *fds)
{
	if (!shunt_thread.making)
		await_none(fds, &fds->files->making, PATIENCE);
}

unsigned int shunt_numbers_made(struct shunt_fds *fds)
{
	shunt_numbers_await(fds);
	return atomic_load(&fds->files->made);
}

/* Again and again, until nobody else was making one meanwhile. A fork waits: its child would keep the second name. */
int shunt_numbers_lowest(struct shunt_fds *fds, int fd, int least, unsigned int before)
{
	const struct shunt_sys *sys = fds->sys;
	struct shunt_files *files = fds->files;
	int saved = errno;

	while (fd > least && atomic_load(&files->made) != before && !shunt_thread.making) {
		int command = sys->fcntl(fd, F_GETFD) & FD_CLOEXEC ? F_DUPFD_CLOEXEC : F_DUPFD;
		int other;

		before = shunt_numbers_made(fds) + 1;	/* ours is one, too */
		shunt_own_fds_begin(fds);
		other = sys->fcntl(fd, command, least);
		if (other >= 0)
			sys->close(other < fd ? fd : other);
		shunt_own_fds_end(fds);
		if (other >= 0 && other < fd)
			fd = other;
	}
	errno = saved;
	return fd;
}

static void numbers_enter(struct shunt_fds *fds, uint64_t patience)
{
	shunt_numbers_await(fds);
	shunt_signal_defer_enter();
	shunt_thread.closing++;
	atomic_fetch_add(&fds->files->closing, 1);
	if (!shunt_thread.making)
		await_none(fds, &fds->files->making, patience);
}

void shunt_numbers_enter(struct shunt_fds *fds)
{
	numbers_enter(fds, PATIENCE);
}

void shunt_numbers_leave(struct shunt_fds *fds)
{
	atomic_fetch_sub(&fds->files->closing, 1);
	shunt_thread.closing--;
	shunt_signal_defer_leave();
}

/* Another thread may have given it to a new file. */
static void slot_replace(struct shunt_files *files, int fd, struct shunt_file *from,
			 struct shunt_file *to)
{
	if ((size_t)(unsigned int)fd >= files->limit)
		return;
	if (to)
		shunt_files_use(files, fd);
	atomic_compare_exchange_strong(&files->slot[fd], &from, to);
}

void shunt_numbers_closed(struct shunt_fds *fds, int fd)
{
	slot_replace(fds->files, fd, NULL, &fds->files->closed);
}

static bool is_open(struct shunt_fds *fds, int fd)
{
	return fds->sys->fcntl(fd, F_GETFD) >= 0;
}

/*
 * While nobody makes descriptors of our own, what is open at a number that the program has closed is
 * the program's again. True: it is, or a maker is so slow that nobody can tell, and the next call
 * looks again. A maker itself may be using a number of ours.
 */
static bool number_look(struct shunt_fds *fds, int fd)
{
	struct shunt_files *files = fds->files;
	int saved = errno;
	bool open = !atomic_load(&files->making) || is_open(fds, fd);

	if (open) {
		numbers_enter(fds, PATIENCE_CLOSED);
		open = is_open(fds, fd);
		if (open && !atomic_load(&files->making))
			slot_replace(files, fd, &files->closed, NULL);
		shunt_numbers_leave(fds);
	}
	errno = saved;
	return open;
}

bool shunt_numbers_gone(struct shunt_fds *fds, int fd)
{
	return shunt_files_closed(fds->files, fd) && !shunt_thread.making;
}

struct shunt_file *shunt_numbers_look(struct shunt_fds *fds, int fd)
{
	bool usable = !shunt_numbers_gone(fds, fd) || number_look(fds, fd);
	struct shunt_file *file = shunt_files_get(fds->files, fd);

	return file == &fds->files->closed && usable ? NULL : file;
}

int shunt_own_fds_adopt(struct shunt_fds *fds, int fd)
{
	int high, result = -errno;

	if (fd < 0)
		return result;
	high = shunt_own_fds_copy(fds, fd);
	fds->sys->close(fd);
	return high;
}

int shunt_own_fds_copy(struct shunt_fds *fds, int fd)
{
	int high;

	shunt_own_fds_begin(fds);
	high = fds->sys->fcntl(fd, F_DUPFD_CLOEXEC, floor_for(fds));
	if (high < 0) {
		high = -errno;
	} else if (shunt_own_fds_mark(fds, high)) {
		fds->sys->close(high);
		high = -EMFILE;
	}
	shunt_own_fds_end(fds);
	return high;
}

void shunt_own_fds_forget(struct shunt_fds *fds, int fd)
{
	if (fd >= 0 && (size_t)fd < fds->files->limit)
		shunt_files_set(fds->files, fd, NULL);
}

void shunt_own_fds_close(struct shunt_fds *fds, int fd)
{
	if (fd < 0)
		return;
	shunt_own_fds_begin(fds);	/* a fork between the two would give its child one that nobody knows */
	shunt_own_fds_forget(fds, fd);
	fds->sys->close(fd);
	shunt_own_fds_end(fds);
}

/*
 * The table also knows descriptors without an object yet, as a peer that another thread was letting
 * in when the fork came. Kept open in the child, it would hide our end from that peer. A handler
 * that has forked may return to a sleep, which needs its waker.
 */
void shunt_own_fds_abandon(struct shunt_fds *fds)
{
	shunt_files_each(fds->files, fd) {
		struct shunt_file *file = shunt_files_get(fds->files, fd);

		if (!file || file->kind != SHUNT_FILE_PRIVATE || fd == shunt_thread.sleep_fd - 1)
			continue;
		shunt_own_fds_forget(fds, fd);
		fds->sys->close(fd);
	}
}

int shunt_own_fds_keep(void *fds, int fd)
{
	return shunt_own_fds_copy(fds, fd);
}

void shunt_own_fds_drop(void *fds, int fd)
{
	shunt_own_fds_close(fds, fd);
}
