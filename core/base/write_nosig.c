/* SPDX-License-Identifier: MIT */
#include "core/base/write_nosig.h"
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <time.h>

/* The signal that the failed write has left behind for this thread, unless it could have been there before. */
static void swallow(int signal, const sigset_t *before)
{
	static const struct timespec none = { 0, 0 };
	sigset_t one;

	if (sigismember(before, signal))
		return;
	sigemptyset(&one);
	sigaddset(&one, signal);
	sigtimedwait(&one, NULL, &none);
}

ssize_t shunt_write_nosig(ssize_t (*call)(int fd, const void *buffer, size_t bytes), int fd,
			  const void *buffer, size_t bytes)
{
	sigset_t quiet, before;
	ssize_t wrote;
	int error;

	sigemptyset(&quiet);
	sigaddset(&quiet, SIGXFSZ);
	sigaddset(&quiet, SIGPIPE);
	pthread_sigmask(SIG_BLOCK, &quiet, &before);
	wrote = call(fd, buffer, bytes);
	error = errno;
	if (wrote < 0 && error == EFBIG)
		swallow(SIGXFSZ, &before);
	if (wrote < 0 && error == EPIPE)
		swallow(SIGPIPE, &before);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	errno = error;
	return wrote;
}
