/* SPDX-License-Identifier: MIT */
#include "preload/gate/gate.h"
#include "preload/process.h"
#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifdef __x86_64__

#define DEEPEST 65536	/* bytes of stack between a thunk and the site that its call ends at */
#define INTEGERS __attribute__((target("general-regs-only")))

/* Calls whose meaning is another than: on the first argument, a descriptor. */
enum what { NOTHING, FIRST, TRANSFERS, FIRST_OR_SECOND, FIRST_OR_THIRD, SET, WAITS };

INTEGERS static inline enum what sort(long number)
{
	switch (number) {
	case SYS_read: case SYS_write: case SYS_readv: case SYS_writev: case SYS_recvfrom: case SYS_sendto:
	case SYS_recvmsg: case SYS_sendmsg: case SYS_recvmmsg: case SYS_sendmmsg: case SYS_preadv2: case SYS_pwritev2:
		return TRANSFERS;
	case SYS_close: case SYS_dup: case SYS_fcntl: case SYS_ioctl: case SYS_listen: case SYS_shutdown:
	case SYS_connect: case SYS_accept: case SYS_accept4: case SYS_getsockopt: case SYS_setsockopt:
	case SYS_epoll_wait: case SYS_epoll_pwait: case SYS_epoll_pwait2:
		return FIRST;
	case SYS_dup2: case SYS_dup3: case SYS_sendfile:
		return FIRST_OR_SECOND;
	case SYS_splice: case SYS_epoll_ctl:
		return FIRST_OR_THIRD;
	case SYS_epoll_create1: case SYS_close_range:
		return SET;
	case SYS_poll: case SYS_ppoll: case SYS_pselect6:
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

	return likely(!file) || file->kind == SHUNT_FILE_PRIVATE || file->kind == SHUNT_FILE_CLOSED ?
		       NULL :
		       file;
}

INTEGERS static inline bool is_plain(struct shunt_file *file)
{
	return file->kind == SHUNT_FILE_STREAM && shunt_stream_is_plain((struct shunt_stream *)file);
}

INTEGERS bool shunt_gate_wants(const struct shunt_gate_frame *frame)
{
	enum what what = sort(frame->number);
	struct shunt_file *file;
	uintptr_t here = (uintptr_t)__builtin_frame_address(0), mark = shunt_gate_mark;

	if (what == NOTHING || mark - here < DEEPEST ||
	    !__atomic_load_n(&shunt_process.engine, __ATOMIC_ACQUIRE))
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

static long by_kernel(const struct shunt_gate_frame *frame)
{
	register long d __asm__("r10") = frame->d, e __asm__("r8") = frame->e, f __asm__("r9") = frame->f;
	long result;

	__asm__ volatile("syscall"
			 : "=a"(result)
			 : "a"(frame->number), "D"(frame->a), "S"(frame->b), "d"(frame->c), "r"(d), "r"(e), "r"(f)
			 : "rcx", "r11", "memory");
	return result;
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
	return shunt_syscall_of_program(frame->number, frame->a, frame->b, frame->c, frame->d, frame->e,
					frame->f);
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

long shunt_gate_call(const struct shunt_gate_frame *frame)
{
	int saved = errno;
	long result;

	/* A child that shares this memory has descriptors of its own. */
	if (shunt_real.syscall(SYS_getpid) != shunt_process.pid)
		return by_kernel(frame);
	result = frame->number == SYS_pselect6 ? timed_call(frame) : call_of_program(frame);
	if (result == -1)
		result = -errno;
	errno = saved;
	return result;
}

#endif
