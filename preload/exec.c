/* SPDX-License-Identifier: MIT */
/*
 * The exec family. libc's members call each other inside libc, so each has a wrapper. Variadic ones
 * build the array for the others.
 *
 * - exec retires what stays open. It also retires what is on a link and close-on-exec, because unsent bytes would go
 *   with the engine. posix_spawn retires what the new program inherits.
 */
#include <unistd.h>
#include "preload/rights.h"

static inline void exec_prepare(void)
{
	if (unlikely(shunt_process.engine))
		shunt_rights_exec();
}

int execve(const char *path, char *const argv[], char *const envp[])
{
	exec_prepare();
	return real(execve)(path, argv, envp);
}

int execveat(int dir, const char *path, char *const argv[], char *const envp[], int flags)
{
	exec_prepare();
	return real(execveat)(dir, path, argv, envp, flags);
}

int fexecve(int fd, char *const argv[], char *const envp[])
{
	exec_prepare();
	return real(fexecve)(fd, argv, envp);
}

int execvpe(const char *file, char *const argv[], char *const envp[])
{
	exec_prepare();
	return real(execvpe)(file, argv, envp);
}

int execv(const char *path, char *const argv[])
{
	exec_prepare();
	return real(execve)(path, argv, environ);
}

int execvp(const char *file, char *const argv[])
{
	exec_prepare();
	return real(execvpe)(file, argv, environ);
}

/* How many arguments there are from `arg` on, with the final NULL. */
static size_t args_count(const char *arg, va_list rest)
{
	size_t n = 1;

	for (; arg; arg = va_arg(rest, const char *))
		n++;
	return n;
}

static void collect(char **argv, const char *arg, va_list rest)
{
	for (; arg; arg = va_arg(rest, const char *))
		*argv++ = (char *)arg;
	*argv = NULL;
}

/* As an array that lives as long as the caller: exec may be called after vfork(), without malloc. */
#define COLLECT(argv, arg, rest)                                                                   \
	va_list rest;                                                                              \
	va_start(rest, arg);                                                                       \
	char *argv[args_count(arg, rest)];                                                         \
	va_end(rest);                                                                              \
	va_start(rest, arg);                                                                       \
	collect(argv, arg, rest)

int execl(const char *path, const char *arg, ...)
{
	COLLECT(argv, arg, rest);
	va_end(rest);
	exec_prepare();
	return real(execve)(path, argv, environ);
}

int execlp(const char *file, const char *arg, ...)
{
	COLLECT(argv, arg, rest);
	va_end(rest);
	exec_prepare();
	return real(execvpe)(file, argv, environ);
}

/* The environment follows the final NULL. */
int execle(const char *path, const char *arg, ...)
{
	char *const *envp;
	va_list all;

	va_start(all, arg);
	for (const char *a = arg; a; a = va_arg(all, const char *))
		;
	envp = va_arg(all, char *const *);
	va_end(all);

	COLLECT(argv, arg, rest);
	va_end(rest);
	exec_prepare();
	return real(execve)(path, argv, envp);
}
