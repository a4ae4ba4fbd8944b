/* SPDX-License-Identifier: MIT */
/*
 * The one engine of this process, made at the first descriptor that could concern it. Also the way
 * from a descriptor to the engine's object for it.
 */
#ifndef SHUNT_PRELOAD_PROCESS_H
#define SHUNT_PRELOAD_PROCESS_H

#include <errno.h>
#include <netinet/in.h>
#include "preload/calls.h"
#include "preload/gate.h"
#include "core/api.h"
#include "core/fd/own_fds.h"
#include "core/poll/cancel.h"

#ifndef IPPROTO_MPTCP
#define IPPROTO_MPTCP 262
#endif

#define likely(x) __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)

/* For helpers of an exported call that ask shunt_is_own_fd() or shunt_linked(). */
#define SHUNT_INLINE inline __attribute__((always_inline))

struct shunt_process {
	struct shunt_files *files;	/* never NULL: an empty table until there is an engine */
	struct shunt_engine *engine;	/* set before files, then constant */
	_Atomic int uring;		/* enum shunt_uring: what was last answered about rings of io_uring */
	pid_t pid;			/* whose memory this is */
	bool cancels;			/* some thread has been cancelled */
	_Atomic bool multipath;		/* it has had a listener of MPTCP (accept.c) */
	_Atomic pthread_t leaver;	/* the thread that ends it; 0: none (exit.c) */
	_Atomic bool confined;		/* it has confined itself, and nothing more is to leave TCP */
	struct shunt_lock limits_lock;	/* held while a thread gets ready to forbid the process new ones (rlimit.c) */
	bool anew;			/* the service thread has ended: it begins anew with the next wait (confine.c) */
};

extern struct shunt_process shunt_process;

/* make.c: makes the engine, unless it exists. False: there will not be one. errno is kept. */
bool shunt_process_engine(void);
/* settings.c: the configuration; NULL with SHUNT_ENABLE=0. */
const struct shunt_config *shunt_process_config(void);
/* False with SHUNT_ENABLE=0: nothing is wrapped. Reads the configuration at the first call. */
bool shunt_process_enabled(void);
/*
 * True in a child of vfork() (or clone with CLONE_VM). It uses our memory, but has its own
 * descriptors and signal handlers, so its changes to them must not be written down.
 */
bool shunt_process_foreign(void);
/* Once, before a child can be made; in the child of a fork; before a child that shares memory is made. */
void shunt_process_begin(void);
void shunt_process_ours(void);
void shunt_process_shared(void);
/* Is the address in Shunt's own code, or in that of a library which its device uses? */
bool shunt_process_is_code(const void *address);
/* syscall.c: syscall(2) for code that is the program's, whatever address it is called from. */
long shunt_syscall_of_program(long number, long a, long b, long c, long d, long e, long f);
/* signal.c: from now on faults in copies of ours end there. */
void shunt_signal_watch_faults(void);
/* At the end of the process; nothing in a process that is not the engine's. */
void shunt_process_finish(void);
/* fork.c: for all forks to come. */
void shunt_process_atfork(void);
bool shunt_process_confined(void);
/* confine.c */
void shunt_process_begin_anew(void);
/* Is there an engine? And from now on there is none. */
bool shunt_process_has_engine(void);
void shunt_process_no_engine(void);
/*
 * make.c: in the child of a fork for which the engine, if any, was not prepared. Objects that another
 * thread was making are gone with that thread. `again`: an engine of our own may be made later;
 * otherwise every descriptor is the kernel's, for ever.
 */
void shunt_process_forget(bool again);
/*
 * Around a fork without handlers: the first before it, the second in the parent, with the first's result. The third
 * is for the child, which has copies of memory and descriptors; with NULL where nothing was prepared. All keep errno.
 */
struct shunt_engine *shunt_process_prepare_fork(void);
void shunt_process_parted(struct shunt_engine *engine);
void shunt_process_forked(struct shunt_engine *engine);
/* sys.c: the engine's surroundings, all of them real calls. */
extern struct shunt_sys shunt_process_sys;
void shunt_process_fill_sys(void);

/* accept.c: the socket, which the table does not know, listens. errno is kept. True: it is known now. */
bool shunt_accept_adopt(int listener);
/* The number is about to be closed or replaced. errno is kept, as by the next. */
void shunt_process_drop(int fd);
/* The second half of shunt_lowest(). */
int shunt_process_lowest(int fd, int least, unsigned int before);
/* The kernel has just made this number, so its entry in the table is stale. */
void shunt_process_fresh(int fd);

/* The same for a number that was in the table once, or has a young connection, which becomes a stream. */
struct shunt_file *shunt_process_look(int fd);
/* shunt_numbers_gone(); false where the table is not that of this process. */
bool shunt_process_gone(int fd);

/* NULL: the kernel's alone. */
static inline struct shunt_file *shunt_lookup(int fd)
{
	struct shunt_files *files = __atomic_load_n(&shunt_process.files, __ATOMIC_ACQUIRE);
	struct shunt_file *file = shunt_files_get(files, fd);

	if (likely(!file))
		return NULL;
	return unlikely(file->kind >= SHUNT_FILE_CLOSED) ? shunt_process_look(fd) : file;
}

/*
 * Our own descriptors exist only for our own code, which may call libc by name (a device does). The
 * exported call looks at its return address. Always inlined, so that this is the caller of the
 * exported call; helpers that ask must be inlined as well. Nothing is paid for other descriptors. A
 * number that is closed may be one of ours as soon as it has been looked at.
 */
static SHUNT_INLINE bool shunt_is_own_fd(const struct shunt_file *file)
{
	return unlikely(file && (file->kind == SHUNT_FILE_PRIVATE || file->kind == SHUNT_FILE_CLOSED)) &&
	       !shunt_process_is_code(__builtin_return_address(0));
}

/*
 * stdin, stdout and stderr are read and written inside libc. Unless its calls are seen (gate.h), a stream with such a
 * number stays with the kernel. Asked once there is an engine.
 */
static inline bool shunt_process_is_stdio(int fd)
{
	return unlikely(fd <= 2) && !shunt_gate_is_open();
}

/* Of a socket that the table does not know; 0: it is none. */
static inline int shunt_process_protocol(int fd)
{
	socklen_t length = sizeof(int);
	int protocol = 0;

	return real(getsockopt)(fd, SOL_SOCKET, SO_PROTOCOL, &protocol, &length) ? 0 : protocol;
}

static inline bool shunt_process_is_tcp(int fd)
{
	return shunt_process_protocol(fd) == IPPROTO_TCP;
}

static inline struct shunt_stream *shunt_as_stream(struct shunt_file *file)
{
	return file && file->kind == SHUNT_FILE_STREAM ? (struct shunt_stream *)file : NULL;
}

/*
 * The stream behind *fd if the engine serves it. NULL: make the real call with *fd, which is -1 for a descriptor of
 * our own, so that the kernel says EBADF. With *own the caller is our code, so the call must be no cancellation point
 * (core/poll/cancel.h).
 */
static SHUNT_INLINE struct shunt_stream *shunt_linked_or_own(int *fd, bool *own)
{
	struct shunt_file *file = shunt_lookup(*fd);
	struct shunt_stream *stream;

	*own = false;
	if (likely(!file))
		return NULL;
	stream = shunt_as_stream(file);
	if (stream)
		return shunt_stream_is_plain(stream) ? NULL : stream;
	if (shunt_is_own_fd(file))
		*fd = -1;
	else
		*own = file->kind == SHUNT_FILE_PRIVATE;
	return NULL;
}

static SHUNT_INLINE struct shunt_stream *shunt_linked(int *fd)
{
	bool own;

	return shunt_linked_or_own(fd, &own);
}

/* On entry of a call that the engine serves, where libc's is a cancellation point. */
static inline void shunt_cancellation_point(void)
{
	if (unlikely(__atomic_load_n(&shunt_process.cancels, __ATOMIC_RELAXED)))
		shunt_cancel_begin();
}

/* Before a call that waits, perhaps for connections: peers must find us again. */
static inline void shunt_begin_anew(void)
{
	if (unlikely(__atomic_load_n(&shunt_process.anew, __ATOMIC_RELAXED)))
		shunt_process_begin_anew();
}

/* Before a number that is not in the table is closed or replaced, and before accept() takes one. */
static inline void shunt_numbers_quiet(void)
{
	struct shunt_files *files = __atomic_load_n(&shunt_process.files, __ATOMIC_ACQUIRE);

	if (unlikely(atomic_load_explicit(&files->making, memory_order_relaxed)))
		shunt_numbers_await(shunt_engine_fds(shunt_process.engine));
}

/* The call makes a descriptor at the lowest number from `least` on, and ours on their way up do not count. */
#define shunt_lowest(least, call)                                                                  \
	({                                                                                         \
		struct shunt_engine *engine_ = __atomic_load_n(&shunt_process.engine,              \
							       __ATOMIC_ACQUIRE);                  \
		unsigned int before_ = engine_ ? shunt_numbers_made(shunt_engine_fds(engine_)) :   \
						 0;                                                \
		int made_ = (call);                                                                \
                                                                                                   \
		made_ < 0 || !engine_ ? made_ : shunt_process_lowest(made_, least, before_);       \
	})

/*
 * A number that is not in the table has been closed: it was open, for some programs close all numbers
 * that there could be.
 */
void shunt_process_closed(int fd);

static inline void shunt_numbers_have_closed(int fd)
{
	if (unlikely(__atomic_load_n(&shunt_process.engine, __ATOMIC_ACQUIRE) != NULL))
		shunt_process_closed(fd);
}

/*
 * Pointers that cannot be: the kernel shall say EFAULT, not we crash (PF-63). Below vm.mmap_min_addr as
 * shipped, or in the kernel's half.
 */
static inline bool shunt_bad_pointer(const void *pointer)
{
	return (uintptr_t)pointer - 65536 > (UINTPTR_MAX >> 1) - 65536;
}

/* In the kernel's half, or reaches into it: what access_ok() refuses before anything is done. */
static inline bool shunt_bad_span(const void *pointer, size_t bytes)
{
	uintptr_t end = (uintptr_t)pointer + bytes;

	return end < bytes || end > UINTPTR_MAX >> 1;
}

/*
 * Evaluates to the call. No handler of the program's runs inside, so the call must not wait where nothing of ours wakes
 * it. Handlers that have come meanwhile run at its end, and may never return (core/base/signal_defer.h).
 */
#define shunt_inside(call) shunt_inside_masked(call, NULL)
/* The same around a wait with a signal mask. */
#define shunt_inside_masked(call, mask)					\
	({								\
		__typeof__(call) inside_;				\
									\
		shunt_signal_defer_enter();				\
		inside_ = (call);					\
		shunt_signal_defer_leave_masked(mask);			\
		inside_;						\
	})
/* Around one that has no result. */
#define shunt_inside_do(call)						\
	({								\
		shunt_signal_defer_enter();				\
		call;							\
		shunt_signal_defer_leave();				\
	})

/* -errno becomes -1 and errno; success leaves errno as it was, whatever happened inside. */
#define shunt_result(expression)				\
	({							\
		int *errno_ = &errno;				\
		int saved_ = *errno_;				\
		ssize_t result_ = (expression);			\
		*errno_ = result_ < 0 ? (int)-result_ : saved_;	\
		result_ < 0 ? -1 : result_;			\
	})

static inline int shunt_fail(int error)
{
	errno = error;
	return -1;
}

#endif
