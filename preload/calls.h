/* SPDX-License-Identifier: MIT */
/*
 * The libc calls that Shunt stands for, one row each: return type, name, parameters. The structure of real calls, the
 * resolver, the declarations and the version script (mkmap.sh) come from these rows.
 *
 * SHUNT_CALLS are exported and have a real call behind them. SHUNT_OWN_CALLS are exported too, but made of other
 * calls. They are second names in libc, calls that libc makes inside itself, and liburing's, which make system calls
 * directly (uring.c).
 *
 * SHUNT_API_CALLS are no calls of libc: include/shunt/shunt.h finds them by name.
 *
 * Not here: fork(), for which pthread_atfork() is enough; bind(), getsockname() and other calls whose answer is the
 * kernel's.
 */
#ifndef SHUNT_PRELOAD_CALLS_H
#define SHUNT_PRELOAD_CALLS_H

/*
 * With this, glibc's headers would define some of the calls that we define. It counts only before
 * the first system header: the files that wrap these calls include this one first.
 */
#undef _FORTIFY_SOURCE

#include <dlfcn.h>
#include <grp.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/fsuid.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

struct io_uring;	/* liburing's, whatever its version */
struct io_uring_params;
struct shunt_traffic;

#define SHUNT_CALLS(X)											\
	X(int, socket, (int family, int type, int protocol))						\
	X(int, connect, (int fd, const struct sockaddr *address, socklen_t length))			\
	X(int, listen, (int fd, int backlog))								\
	X(int, accept, (int fd, struct sockaddr *address, socklen_t *length))				\
	X(int, accept4, (int fd, struct sockaddr *address, socklen_t *length, int flags))		\
	X(int, shutdown, (int fd, int how))								\
	X(int, getsockopt, (int fd, int level, int name, void *value, socklen_t *length))		\
	X(int, setsockopt, (int fd, int level, int name, const void *value, socklen_t length))		\
	X(int, ioctl, (int fd, unsigned long request, ...))						\
	X(int, sockatmark, (int fd))									\
	X(int, fcntl, (int fd, int command, ...))							\
	X(int, fcntl64, (int fd, int command, ...))							\
													\
	X(int, close, (int fd))										\
	X(int, close_range, (unsigned int first, unsigned int last, int flags))				\
	X(void, closefrom, (int first))									\
	X(int, dup, (int fd))										\
	X(int, dup2, (int fd, int other))								\
	X(int, dup3, (int fd, int other, int flags))							\
													\
	X(ssize_t, read, (int fd, void *buffer, size_t bytes))						\
	X(ssize_t, __read_chk, (int fd, void *buffer, size_t bytes, size_t room))			\
	X(ssize_t, readv, (int fd, const struct iovec *iov, int count))					\
	X(ssize_t, preadv2, (int fd, const struct iovec *iov, int count, off_t offset, int flags))	\
	X(ssize_t, preadv64v2, (int fd, const struct iovec *iov, int count, off64_t offset, int flags))	\
	X(ssize_t, recv, (int fd, void *buffer, size_t bytes, int flags))				\
	X(ssize_t, __recv_chk, (int fd, void *buffer, size_t bytes, size_t room, int flags))		\
	X(ssize_t, recvfrom, (int fd, void *buffer, size_t bytes, int flags, struct sockaddr *address,	\
			      socklen_t *length))							\
	X(ssize_t, __recvfrom_chk, (int fd, void *buffer, size_t bytes, size_t room, int flags,		\
				    struct sockaddr *address, socklen_t *length))			\
	X(ssize_t, recvmsg, (int fd, struct msghdr *message, int flags))				\
	X(int, recvmmsg, (int fd, struct mmsghdr *messages, unsigned int count, int flags,		\
			  struct timespec *timeout))							\
													\
	X(ssize_t, write, (int fd, const void *buffer, size_t bytes))					\
	X(ssize_t, writev, (int fd, const struct iovec *iov, int count))				\
	X(ssize_t, pwritev2, (int fd, const struct iovec *iov, int count, off_t offset, int flags))	\
	X(ssize_t, pwritev64v2, (int fd, const struct iovec *iov, int count, off64_t offset, int flags)) \
	X(ssize_t, send, (int fd, const void *buffer, size_t bytes, int flags))				\
	X(ssize_t, sendto, (int fd, const void *buffer, size_t bytes, int flags,			\
			    const struct sockaddr *address, socklen_t length))				\
	X(ssize_t, sendmsg, (int fd, const struct msghdr *message, int flags))				\
	X(int, sendmmsg, (int fd, struct mmsghdr *messages, unsigned int count, int flags))		\
	X(ssize_t, sendfile, (int out, int in, off_t *offset, size_t bytes))				\
	X(ssize_t, sendfile64, (int out, int in, off64_t *offset, size_t bytes))			\
	X(ssize_t, splice, (int in, off64_t *in_offset, int out, off64_t *out_offset, size_t bytes,	\
			    unsigned int flags))							\
													\
	X(int, poll, (struct pollfd *fds, nfds_t count, int timeout_ms))				\
	X(int, __poll_chk, (struct pollfd *fds, nfds_t count, int timeout_ms, size_t room))		\
	X(int, ppoll, (struct pollfd *fds, nfds_t count, const struct timespec *timeout,		\
		       const sigset_t *mask))								\
	X(int, __ppoll_chk, (struct pollfd *fds, nfds_t count, const struct timespec *timeout,		\
			     const sigset_t *mask, size_t room))					\
	X(int, select, (int nfds, fd_set *readable, fd_set *writable, fd_set *except,			\
			struct timeval *timeout))							\
	X(int, pselect, (int nfds, fd_set *readable, fd_set *writable, fd_set *except,			\
			 const struct timespec *timeout, const sigset_t *mask))				\
	X(int, epoll_create, (int size))								\
	X(int, epoll_create1, (int flags))								\
	X(int, epoll_ctl, (int epfd, int op, int fd, struct epoll_event *event))			\
	X(int, epoll_wait, (int epfd, struct epoll_event *events, int max, int timeout_ms))		\
	X(int, epoll_pwait, (int epfd, struct epoll_event *events, int max, int timeout_ms,		\
			     const sigset_t *mask))							\
	X(int, epoll_pwait2, (int epfd, struct epoll_event *events, int max,				\
			      const struct timespec *timeout, const sigset_t *mask))			\
													\
	X(FILE *, fdopen, (int fd, const char *mode))							\
	X(int, fclose, (FILE *file))									\
	X(int, vdprintf, (int fd, const char *format, va_list arguments))				\
	X(int, __vdprintf_chk, (int fd, int flag, const char *format, va_list arguments))		\
													\
	X(pid_t, _Fork, (void))										\
	X(pid_t, vfork, (void))										\
	X(int, clone, (int (*run)(void *), void *stack, int flags, void *arg, ...))			\
	X(int, execve, (const char *path, char *const argv[], char *const envp[]))			\
	X(int, execvpe, (const char *file, char *const argv[], char *const envp[]))			\
	X(int, execveat, (int dir, const char *path, char *const argv[], char *const envp[], int flags)) \
	X(int, fexecve, (int fd, char *const argv[], char *const envp[]))				\
	X(int, posix_spawn, (pid_t *pid, const char *path, const posix_spawn_file_actions_t *actions,	\
			     const posix_spawnattr_t *attributes, char *const argv[],			\
			     char *const envp[]))							\
	X(int, posix_spawnp, (pid_t *pid, const char *file, const posix_spawn_file_actions_t *actions,	\
			      const posix_spawnattr_t *attributes, char *const argv[],			\
			      char *const envp[]))							\
	X(int, system, (const char *command))								\
	X(FILE *, popen, (const char *command, const char *mode))					\
	X(int, posix_spawn_file_actions_adddup2, (posix_spawn_file_actions_t *actions, int fd,		\
						  int other))						\
	X(void, _exit, (int status))									\
	X(int, sigaction, (int number, const struct sigaction *action, struct sigaction *old))		\
	X(int, siginterrupt, (int number, int interrupt))						\
	X(int, pthread_cancel, (pthread_t thread))							\
													\
	X(int, setuid, (uid_t uid))									\
	X(int, setgid, (gid_t gid))									\
	X(int, setreuid, (uid_t real_uid, uid_t effective))						\
	X(int, setregid, (gid_t real_gid, gid_t effective))						\
	X(int, setresuid, (uid_t real_uid, uid_t effective, uid_t saved))				\
	X(int, setresgid, (gid_t real_gid, gid_t effective, gid_t saved))				\
	X(int, capset, (void *header, const void *data))						\
	X(int, prctl, (int option, ...))								\
	X(int, unshare, (int flags))									\
	X(int, setns, (int fd, int type))								\
	X(int, setrlimit, (__rlimit_resource_t resource, const struct rlimit *limit))			\
	X(int, setrlimit64, (__rlimit_resource_t resource, const struct rlimit64 *limit))		\
	X(int, prlimit, (pid_t pid, enum __rlimit_resource resource, const struct rlimit *limit,	\
			struct rlimit *old))								\
	X(int, prlimit64, (pid_t pid, enum __rlimit_resource resource, const struct rlimit64 *limit,	\
			  struct rlimit64 *old))							\
													\
	X(void *, mmap, (void *at, size_t bytes, int prot, int flags, int fd, off_t offset))		\
	X(void *, mmap64, (void *at, size_t bytes, int prot, int flags, int fd, off64_t offset))	\
	X(void *, dlmopen, (Lmid_t space, const char *file, int mode))					\
													\
	X(int, mlockall, (int flags))									\
	X(int, munlockall, (void))									\
													\
	X(long, syscall, (long number, ...))

#define SHUNT_OWN_CALLS(X)										\
	X(sighandler_t, signal, (int number, sighandler_t handler))					\
	X(sighandler_t, bsd_signal, (int number, sighandler_t handler))					\
	X(sighandler_t, ssignal, (int number, sighandler_t handler))					\
	X(sighandler_t, sysv_signal, (int number, sighandler_t handler))				\
	X(sighandler_t, __sysv_signal, (int number, sighandler_t handler))				\
	X(sighandler_t, sigset, (int number, sighandler_t handler))					\
	X(int, __sigaction, (int number, const struct sigaction *action, struct sigaction *old))	\
	X(int, dprintf, (int fd, const char *format, ...))						\
	X(int, __dprintf_chk, (int fd, int flag, const char *format, ...))				\
	X(int, execv, (const char *path, char *const argv[]))						\
	X(int, execvp, (const char *file, char *const argv[]))						\
	X(int, execl, (const char *path, const char *arg, ...))						\
	X(int, execle, (const char *path, const char *arg, ...))					\
	X(int, execlp, (const char *file, const char *arg, ...))					\
	X(void, _Exit, (int status))									\
	X(pid_t, __vfork, (void))									\
	X(int, __clone, (int (*run)(void *), void *stack, int flags, void *arg, ...))			\
	X(ssize_t, __read, (int fd, void *buffer, size_t bytes))					\
	X(ssize_t, __write, (int fd, const void *buffer, size_t bytes))					\
	X(ssize_t, __send, (int fd, const void *buffer, size_t bytes, int flags))			\
	X(int, __connect, (int fd, const struct sockaddr *address, socklen_t length))			\
	X(int, __close, (int fd))									\
	X(int, __dup2, (int fd, int other))								\
	X(int, __fcntl, (int fd, int command, ...))							\
	X(int, __poll, (struct pollfd *fds, nfds_t count, int timeout_ms))				\
	X(int, __select, (int nfds, fd_set *readable, fd_set *writable, fd_set *except,			\
			  struct timeval *timeout))							\
	X(int, io_uring_setup, (unsigned int entries, struct io_uring_params *params))			\
	X(int, io_uring_queue_init, (unsigned int entries, struct io_uring *ring, unsigned int flags))	\
	X(int, io_uring_queue_init_params, (unsigned int entries, struct io_uring *ring,		\
					    struct io_uring_params *params))				\
	X(int, io_uring_queue_init_mem, (unsigned int entries, struct io_uring *ring,			\
					 struct io_uring_params *params, void *buffer, size_t bytes))	\
	X(int, io_uring_queue_mmap, (int fd, struct io_uring_params *params, struct io_uring *ring))	\
	X(void, io_uring_queue_exit, (struct io_uring *ring))						\
	X(int, io_uring_submit, (struct io_uring *ring))						\
	X(int, io_uring_submit_and_wait, (struct io_uring *ring, unsigned int count))			\
	X(int, io_uring_submit_and_get_events, (struct io_uring *ring))					\
	X(int, io_uring_submit_and_wait_timeout, (struct io_uring *ring, void **cqe,			\
						  unsigned int count, void *timeout, void *mask))	\
	X(int, io_uring_submit_and_wait_min_timeout, (struct io_uring *ring, void **cqe,		\
						      unsigned int count, void *timeout,		\
						      unsigned int least_us, void *mask))		\
	X(int, io_uring_submit_and_wait_reg, (struct io_uring *ring, void **cqe, unsigned int count,	\
					      int index))						\
	X(int, io_uring_wait_cqes, (struct io_uring *ring, void **cqe, unsigned int count,		\
				    void *timeout, void *mask))						\
	X(int, io_uring_wait_cqe_timeout, (struct io_uring *ring, void **cqe, void *timeout))		\
	X(int, __io_uring_get_cqe, (struct io_uring *ring, void **cqe, unsigned int submit,		\
				    unsigned int count, void *mask))					\
	X(int, io_uring_enter, (unsigned int fd, unsigned int count, unsigned int least,		\
				unsigned int flags, void *mask))					\
	X(int, io_uring_enter2, (unsigned int fd, unsigned int count, unsigned int least,		\
				 unsigned int flags, void *argument, size_t bytes))			\
	X(int, io_uring_register, (unsigned int fd, unsigned int operation, const void *argument,	\
				   unsigned int count))							\
	X(int, io_uring_register_files, (struct io_uring *ring, const int *files, unsigned int count))	\
	X(int, io_uring_register_files_tags, (struct io_uring *ring, const int *files,			\
					      const void *tags, unsigned int count))			\
	X(int, io_uring_register_files_update, (struct io_uring *ring, unsigned int from,		\
						const int *files, unsigned int count))			\
	X(int, io_uring_register_files_update_tag, (struct io_uring *ring, unsigned int from,		\
						    const int *files, const void *tags,			\
						    unsigned int count))

#define SHUNT_API_CALLS(X)										\
	X(const char *, shunt_api_version, (void))							\
	X(int, shunt_api_track, (int fd))								\
	X(int, shunt_api_traffic, (int fd, struct shunt_traffic *traffic, size_t bytes))

struct shunt_calls {
#define X(type, name, parameters) type (*name) parameters;
	SHUNT_CALLS(X)
#undef X
};

/*
 * Exported. The library itself means these definitions, also where the program or another preloaded library has calls of
 * the same name: that is the linker's -Bsymbolic-functions. Protected visibility would do it, too. But a program that is
 * not position-independent has addresses of calls in itself. ld.so of glibc 2.35 warns of each that is protected.
 */
#define SHUNT_EXPORTED __attribute__((visibility("default")))
#define X(type, name, parameters) SHUNT_EXPORTED type name parameters;
SHUNT_CALLS(X)
SHUNT_OWN_CALLS(X)
SHUNT_API_CALLS(X)
#undef X

#ifndef __clang__
#define SHUNT_COPY(call) copy(call),	/* GCC wants the same attributes on both names */
#else
#define SHUNT_COPY(call)
#endif

/* A second name of a call, in the file that defines it. */
#define SHUNT_SAME(second, first)						\
	extern __typeof__(first) second						\
		__attribute__((alias(#first), SHUNT_COPY(first) visibility("default")))

extern struct shunt_calls shunt_real;

/* Safe at any time and from any thread: it stores the same values again. */
void shunt_calls_resolve(void);
/* When the library is loaded. dlopen(3) takes memory, so no other call may do it. */
void shunt_calls_find_clock(void);
/* libc's own function of that name, past others in front of it; NULL: none. libc stays loaded, and the handle open. */
void *shunt_calls_of_libc(const char *name);
/* memory.c: from now on our memory is libc's own, if we have none yet. When the library is loaded. */
void shunt_memory_resolve(void);

/*
 * The real call. Before our constructor runs (another library's may be first) the pointer is still
 * NULL; afterwards never: what this libc lacks fails with ENOSYS.
 */
#define real(name)								\
	(*({									\
		if (__builtin_expect(!shunt_real.name, 0))			\
			shunt_calls_resolve();					\
		shunt_real.name;						\
	}))

#endif
