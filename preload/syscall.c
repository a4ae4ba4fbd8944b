/* SPDX-License-Identifier: MIT */
/*
 * syscall(): system calls by number, as some libraries make them. Only descriptors in the table take the way of the
 * libc call. Everything else jumps to the kernel, because a raw clone() or vfork() must not return through a frame of
 * ours. That is also why this is not variadic: all seven words are passed on where they are.
 */
#include <fcntl.h>
#include <linux/sched.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/select.h>
#include <sys/sendfile.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "preload/confine.h"
#include "preload/uring.h"
#include "preload/uring_watch.h"

typedef long raw_call(long number, long a, long b, long c, long d, long e, long f);

/* The exported syscall(), whose declaration is in calls.h, under a name with other parameters. */
SHUNT_EXPORTED raw_call shunt_syscall __asm__("syscall");

#define P(word) ((void *)(word))

static long making_call(long number, long a, long b, long c)
{
	switch (number) {
	case SYS_socket:
		return socket((int)a, (int)b, (int)c);
	case SYS_close_range:
		return close_range((unsigned int)a, (unsigned int)b, (int)c);
	default:
		return epoll_create1((int)a);
	}
}

static long descriptor_call(long number, int fd, long b, long c)
{
	switch (number) {
	case SYS_close:
		return close(fd);
	case SYS_dup:
		return dup(fd);
#ifdef SYS_dup2
	case SYS_dup2:
		return dup2(fd, (int)b);
#endif
	case SYS_dup3:
		return dup3(fd, (int)b, (int)c);
	case SYS_fcntl:
		return fcntl(fd, (int)b, P(c));
	case SYS_ioctl:
		return ioctl(fd, (unsigned long)b, P(c));
	case SYS_listen:
		return listen(fd, (int)b);
	case SYS_shutdown:
		return shutdown(fd, (int)b);
	case SYS_connect:
		return connect(fd, P(b), (socklen_t)c);
	default:
		return accept(fd, P(b), P(c));
	}
}

static off64_t offset_of(long low, long high)
{
	return sizeof(long) == 8 ? low : (off64_t)((uint64_t)high << 32 | (uint32_t)low);
}

static long data_call(long number, int fd, long b, long c, long d, long e, long f)
{
	switch (number) {
	case SYS_read:
		return read(fd, P(b), (size_t)c);
	case SYS_write:
		return write(fd, P(b), (size_t)c);
	case SYS_readv:
		return readv(fd, P(b), (int)c);
	case SYS_writev:
		return writev(fd, P(b), (int)c);
	case SYS_recvfrom:
		return recvfrom(fd, P(b), (size_t)c, (int)d, P(e), P(f));
	case SYS_sendto:
		return sendto(fd, P(b), (size_t)c, (int)d, P(e), (socklen_t)f);
	case SYS_recvmsg:
		return recvmsg(fd, P(b), (int)c);
	case SYS_sendmsg:
		return sendmsg(fd, P(b), (int)c);
	case SYS_preadv2:	/* the offset is two words of 32 bits, or one */
		return preadv64v2(fd, P(b), (int)c, offset_of(d, e), (int)f);
	case SYS_pwritev2:
		return pwritev64v2(fd, P(b), (int)c, offset_of(d, e), (int)f);
	case SYS_accept4:
		return accept4(fd, P(b), P(c), (int)d);
	case SYS_sendmmsg:
		return sendmmsg(fd, P(b), (unsigned int)c, (int)d);
	case SYS_recvmmsg:
		return recvmmsg(fd, P(b), (unsigned int)c, (int)d, P(e));
	case SYS_getsockopt:
		return getsockopt(fd, (int)b, (int)c, P(d), P(e));
	case SYS_setsockopt:
		return setsockopt(fd, (int)b, (int)c, P(d), (socklen_t)e);
	case SYS_sendfile:
		return sendfile64(fd, (int)b, P(c), (size_t)d);
#ifdef SYS_epoll_wait
	case SYS_epoll_wait:
		return epoll_wait(fd, P(b), (int)c, (int)d);
#endif
	case SYS_epoll_pwait:
		return epoll_pwait(fd, P(b), (int)c, (int)d, P(e));
	case SYS_epoll_pwait2:
		return epoll_pwait2(fd, P(b), (int)c, P(d), P(e));
	default:
		return epoll_ctl(fd, (int)b, (int)c, P(d));
	}
}

/* The calls of the kernel take a mask with its length: struct { const sigset_t *; size_t }. */
static long waiting_call(long number, long a, long b, long c, long d, long e, long f)
{
	switch (number) {
#ifdef SYS_poll
	case SYS_poll:
		return poll(P(a), (nfds_t)b, (int)c);
#endif
#ifdef SYS_select
	case SYS_select:
		return select((int)a, P(b), P(c), P(d), P(e));
#endif
	case SYS_ppoll:
		return ppoll(P(a), (nfds_t)b, P(c), P(d));
	default:
		return pselect((int)a, P(b), P(c), P(d), P(e), f ? *(const sigset_t **)f : NULL);
	}
}

/* Unlike libc's calls, syscall() is no cancellation point. */
static long known_call(bool data, long number, int fd, long b, long c, long d, long e, long f)
{
	long result;

	shunt_thread_hold_cancel();
	result = data ? data_call(number, fd, b, c, d, e, f) : descriptor_call(number, fd, b, c);
	shunt_thread_let_cancel();
	return result;
}

static long known_waiting_call(long number, long a, long b, long c, long d, long e, long f)
{
	long result;

	shunt_thread_hold_cancel();
	result = waiting_call(number, a, b, c, d, e, f);
	shunt_thread_let_cancel();
	return result;
}

/* How a call is looked at before it is given to the kernel. */
enum call {
	OTHER,
	SHARES,
	CLONES,
	MAKES,
	RING,
	DESCRIPTOR,
	REPLACES,
	DATA,
	SPLICES,
	WAITS,
	CONFINES,
	LIMITS,
	LOCKS
};

static SHUNT_INLINE enum call sort(long number)
{
	switch (number) {
#ifdef SYS_vfork
	case SYS_vfork:
		return SHARES;
#endif
#ifdef SYS_fork
	case SYS_fork:
#endif
	case SYS_clone: case SYS_clone3:
		return CLONES;
	case SYS_socket: case SYS_epoll_create1: case SYS_close_range:
		return MAKES;
	case SYS_io_uring_setup:
	case SYS_io_uring_enter:
	case SYS_io_uring_register:
	case SYS_io_submit:
#ifdef SYS_mmap
	case SYS_mmap:
#endif
		return RING;
#ifdef SYS_dup2
	case SYS_dup2:
#endif
	case SYS_dup3:
		return REPLACES;
	case SYS_close: case SYS_dup: case SYS_fcntl: case SYS_ioctl: case SYS_listen:
	case SYS_shutdown: case SYS_connect: case SYS_accept:
		return DESCRIPTOR;
	case SYS_read: case SYS_write: case SYS_readv: case SYS_writev: case SYS_recvfrom:
	case SYS_sendto: case SYS_recvmsg: case SYS_sendmsg: case SYS_accept4: case SYS_epoll_ctl:
	case SYS_preadv2: case SYS_pwritev2:
	case SYS_sendmmsg: case SYS_recvmmsg: case SYS_getsockopt: case SYS_setsockopt: case SYS_sendfile:
#ifdef SYS_epoll_wait
	case SYS_epoll_wait:
#endif
	case SYS_epoll_pwait: case SYS_epoll_pwait2:
		return DATA;
	case SYS_splice:
		return SPLICES;
#ifdef SYS_poll
	case SYS_poll:
#endif
#ifdef SYS_select
	case SYS_select:
#endif
	case SYS_ppoll: case SYS_pselect6:
		return WAITS;
	case SYS_setuid: case SYS_setgid: case SYS_setreuid: case SYS_setregid: case SYS_setresuid:
	case SYS_setresgid: case SYS_capset:
	case SYS_prctl: case SYS_seccomp: case SYS_unshare: case SYS_setns: case SYS_keyctl:
	case SHUNT_SYS_LSM_SET_SELF_ATTR:
#ifdef SYS_landlock_restrict_self
	case SYS_landlock_restrict_self:
#endif
		return CONFINES;
#ifdef SYS_setrlimit
	case SYS_setrlimit:
#endif
	case SYS_prlimit64:
		return LIMITS;
	case SYS_mlockall:
	case SYS_munlockall:
		return LOCKS;
	default:
		return OTHER;
	}
}

static long ring_call(long number, long a, long b, long c, long d, long e, long f)
{
	switch (number) {
	case SYS_io_uring_setup:
		return shunt_uring_setup((uint32_t)a, P(b));
	case SYS_io_uring_enter:
		return shunt_uring_enter((int)a, (uint32_t)b, (uint32_t)c, (uint32_t)d, P(e),
					 (size_t)f);
	case SYS_io_uring_register:
		return shunt_uring_register((int)a, (uint32_t)b, P(c), (uint32_t)d);
	case SYS_io_submit:
		return shunt_uring_aio((unsigned long)a, b, P(c));
	default:
		return (long)mmap(P(a), (size_t)b, (int)c, (int)d, (int)e, f);
	}
}

/* `program`: the caller is the program, whatever the return address is. */
static SHUNT_INLINE bool hidden(const struct shunt_file *file, bool program)
{
	return program ? unlikely(file && (file->kind == SHUNT_FILE_PRIVATE ||
					   file->kind == SHUNT_FILE_CLOSED)) :
			 shunt_is_own_fd(file);
}

static inline long call_pass(long number, long a, long b, long c, long d, long e, long f)
{
	return ((raw_call *)&real(syscall))(number, a, b, c, d, e, f);
}

/*
 * The child has a copy of everything, also of this stack. So it may return through frames of ours, and closes our
 * descriptors, as after _Fork(). Other children share memory or descriptors, or have a stack of their own.
 */
static bool forks(long number, long a, long b)
{
	const struct clone_args *args = P(a);

	if (number == SYS_clone)
		return !(a & (CLONE_VM | CLONE_FILES)) && !b;
	if (number == SYS_clone3)
		return !shunt_bad_pointer(args) && !(args->flags & (CLONE_VM | CLONE_FILES)) && !args->stack;
	return true;
}

/* Not while a descriptor of ours is in the making, which the child would keep without knowing it. */
static long fork_by_number(long number, long a, long b, long c, long d, long e, long f)
{
	struct shunt_engine *engine = shunt_process_prepare_fork();
	long pid = call_pass(number, a, b, c, d, e, f);

	if (pid)
		shunt_process_parted(engine);
	else
		shunt_process_forked(engine);
	return pid;
}

static SHUNT_INLINE long look(bool program, long number, long a, long b, long c, long d, long e,
			      long f)
{
	enum call call = sort(number);
	struct shunt_file *other;

	switch (call) {
	case CLONES:
		if (forks(number, a, b))
			return fork_by_number(number, a, b, c, d, e, f);
		/* fall through */
	case SHARES:
		shunt_process_shared();
		return call_pass(number, a, b, c, d, e, f);
	case MAKES:
		return making_call(number, a, b, c);
	case RING:
		return ring_call(number, a, b, c, d, e, f);
	case SPLICES:
		return splice((int)a, P(b), (int)c, P(d), (size_t)e, (unsigned int)f);
	case WAITS:
		if (!shunt_process.engine)
			return call_pass(number, a, b, c, d, e, f);
		return known_waiting_call(number, a, b, c, d, e, f);
	case CONFINES:
		return shunt_confine_call(number, a, b, c, d, e, f);
	case LIMITS:
		shunt_rlimit_look(number, a, b, c);
		return call_pass(number, a, b, c, d, e, f);
	case LOCKS:
		return number == SYS_mlockall ? mlockall((int)a) : munlockall();
	case REPLACES:
		other = shunt_lookup((int)b);
		if (other && other->kind == SHUNT_FILE_PRIVATE && hidden(other, program))
			return shunt_fail(EBADF);
		if (other && other->kind != SHUNT_FILE_CLOSED)
			return known_call(false, number, (int)a, b, c, d, e, f);
		/* fall through */
	default:
		if (hidden(shunt_lookup((int)a), program))
			return shunt_fail(EBADF);
		if (!shunt_lookup((int)a) && !(number == SYS_epoll_ctl && shunt_lookup((int)c)))
			return call_pass(number, a, b, c, d, e, f);
		return known_call(call == DATA, number, (int)a, b, c, d, e, f);
	}
}

/* Entered by a jump too, so the caller it sees is the program. */
__attribute__((noinline)) static long call_look(long number, long a, long b, long c, long d, long e,
						long f)
{
	return look(false, number, a, b, c, d, e, f);
}

/* Here are also calls that libc makes itself, and that the program makes by number only where it has no use for libc. */
long shunt_syscall_of_program(long number, long a, long b, long c, long d, long e, long f)
{
	switch (number) {
	case SYS_exit_group:
		_exit((int)a);
	case SYS_execve:
		return execve(P(a), P(b), P(c));
	case SYS_execveat:
		return execveat((int)a, P(b), P(c), P(d), (int)e);
	default:
		return sort(number) == OTHER ? call_pass(number, a, b, c, d, e, f) :
					       look(true, number, a, b, c, d, e, f);
	}
}

long shunt_syscall(long number, long a, long b, long c, long d, long e, long f)
{
	if (unlikely(sort(number) != OTHER))
		return call_look(number, a, b, c, d, e, f);
	return call_pass(number, a, b, c, d, e, f);
}
