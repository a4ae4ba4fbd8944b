/* SPDX-License-Identifier: MIT */
#include "preload/gate.h"
#include "preload/process.h"
#include <poll.h>
#include <sys/select.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "preload/touch.h"

#ifdef __x86_64__

#define INTEGERS __attribute__((target("general-regs-only")))

/* Calls whose meaning is another than: on the first argument, a descriptor. */
enum what { NOTHING, FIRST, TRANSFERS, FIRST_OR_SECOND, FIRST_OR_THIRD, SET, WAITS };

INTEGERS static inline enum what sort(long number)
{
	switch (number) {
	case SYS_read:
	case SYS_write:
	case SYS_readv:
	case SYS_writev:
	case SYS_recvfrom:
	case SYS_sendto:
	case SYS_recvmsg:
	case SYS_sendmsg:
	case SYS_recvmmsg:
	case SYS_sendmmsg:
	case SYS_preadv2:
	case SYS_pwritev2:
		return TRANSFERS;
	case SYS_close:
	case SYS_dup:
	case SYS_fcntl:
	case SYS_ioctl:
	case SYS_listen:
	case SYS_shutdown:
	case SYS_connect:
	case SYS_accept:
	case SYS_accept4:
	case SYS_getsockopt:
	case SYS_setsockopt:
	case SYS_epoll_wait:
	case SYS_epoll_pwait:
	case SYS_epoll_pwait2:
		return FIRST;
	case SYS_dup2:
	case SYS_dup3:
	case SYS_sendfile:
		return FIRST_OR_SECOND;
	case SYS_splice:
	case SYS_epoll_ctl:
		return FIRST_OR_THIRD;
	case SYS_epoll_create1:
	case SYS_close_range:
		return SET;
	case SYS_poll:
	case SYS_ppoll:
	case SYS_pselect6:
		return WAITS;
	default:
		return NOTHING;
	}
}

/* Shunt's own descriptors do not exist for the program, and nobody comes to their numbers by accident. */
INTEGERS static inline struct shunt_file *carried(long fd)
{
	struct shunt_file *file = shunt_files_get(
		__atomic_load_n(&shunt_process.files, __ATOMIC_ACQUIRE), (int)fd);

	return likely(!file) || file->kind == SHUNT_FILE_PRIVATE ||
			       file->kind == SHUNT_FILE_CLOSED ?
		       NULL :
		       file;
}

INTEGERS static inline bool is_plain(struct shunt_file *file)
{
	return file->kind == SHUNT_FILE_STREAM &&
	       shunt_stream_is_plain((struct shunt_stream *)file);
}

INTEGERS bool shunt_gate_wants(const struct shunt_gate_frame *frame)
{
	enum what what = sort(frame->number);
	struct shunt_file *file;

	if (what == NOTHING || !__atomic_load_n(&shunt_process.engine, __ATOMIC_ACQUIRE))
		return false;
	switch (what) {
	case TRANSFERS:
		file = carried(frame->a);
		return file && !is_plain(file);
	case FIRST:
		return carried(frame->a);
	case FIRST_OR_SECOND:
		return carried(frame->a) || carried(frame->b);
	case FIRST_OR_THIRD:
		return carried(frame->a) || carried(frame->c);
	default:
		return true;
	}
}

/* --- with all registers --- */

static bool is_waited_for(long fd)
{
	struct shunt_file *file = carried(fd);

	return file && !is_plain(file);
}

/* Arguments that the kernel would refuse are left to it. */
static bool polls_carried(const struct pollfd *fds, size_t count)
{
	if (!count || count > SHUNT_FILES_MAX || shunt_unreadable(fds, count * sizeof(*fds)))
		return false;
	for (size_t i = 0; i < count; i++)
		if (is_waited_for(fds[i].fd))
			return true;
	return false;
}

static bool selects_carried(const fd_set *set, long count)
{
	const uint64_t *words = (const uint64_t *)set;

	if (!set || count <= 0 || count > SHUNT_FILES_MAX ||
	    shunt_unreadable(set, ((size_t)count + 63) / 64 * 8))
		return false;
	for (long fd = 0; fd < count; fd++)
		if (words[fd / 64] >> fd % 64 & 1 && is_waited_for(fd))
			return true;
	return false;
}

/* A wait for others stays a cancellation point of the C library's, such as those of its resolver. */
static bool waits_for_carried(const struct shunt_gate_frame *frame)
{
	if (frame->number != SYS_pselect6)
		return polls_carried((const struct pollfd *)frame->a, (size_t)frame->b);
	return selects_carried((const fd_set *)frame->b, frame->a) ||
	       selects_carried((const fd_set *)frame->c, frame->a) ||
	       selects_carried((const fd_set *)frame->d, frame->a);
}

/* A child that shares this memory has descriptors of its own. A filter may forbid to ask, and then none is on a link. */
static bool is_childs(void)
{
	return !shunt_process_confined() && shunt_real.syscall(SYS_getpid) != shunt_process.pid;
}

/* pselect6 leaves there what is left of the time, and pselect() does not. */
static void take_off(struct timespec *timeout, uint64_t ns)
{
	uint64_t left = (uint64_t)timeout->tv_sec * 1000000000 + (uint64_t)timeout->tv_nsec;

	left = ns < left ? left - ns : 0;
	timeout->tv_sec = (time_t)(left / 1000000000);
	timeout->tv_nsec = (long)(left % 1000000000);
}

static long call_of_program(const struct shunt_gate_frame *frame)
{
	return shunt_syscall_of_program(frame->number, frame->a, frame->b, frame->c, frame->d,
					frame->e, frame->f);
}

static long timed_call(const struct shunt_gate_frame *frame)
{
	struct timespec *timeout = (struct timespec *)frame->e;
	uint64_t from = shunt_process_sys.now();
	long result = call_of_program(frame);

	if (timeout && !shunt_bad_pointer(timeout))
		take_off(timeout, shunt_process_sys.now() - from);
	return result;
}

bool shunt_gate_call(struct shunt_gate_frame *frame)
{
	int saved = errno;
	long result;

	if ((sort(frame->number) == WAITS && !waits_for_carried(frame)) || is_childs())
		return false;
	result = frame->number == SYS_pselect6 ? timed_call(frame) : call_of_program(frame);
	frame->number = result == -1 ? -errno : result;
	errno = saved;
	return true;
}

#endif
