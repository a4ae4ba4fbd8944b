/* SPDX-License-Identifier: MIT */
/*
 * posix_spawn() works inside libc, in a child that shares our memory: what the new program will
 * find open goes back to the kernel before. So do system() and popen(): what has no close-on-exec flag is
 * the shell's too.
 */
#include "preload/rights.h"

int posix_spawn(pid_t *pid, const char *path, const posix_spawn_file_actions_t *actions,
		const posix_spawnattr_t *attributes, char *const argv[], char *const envp[])
{
	if (unlikely(shunt_process.engine))
		shunt_rights_spawn();
	return real(posix_spawn)(pid, path, actions, attributes, argv, envp);
}

int posix_spawnp(pid_t *pid, const char *file, const posix_spawn_file_actions_t *actions,
		 const posix_spawnattr_t *attributes, char *const argv[], char *const envp[])
{
	if (unlikely(shunt_process.engine))
		shunt_rights_spawn();
	return real(posix_spawnp)(pid, file, actions, attributes, argv, envp);
}

/* Makes the number one that stays open, whatever its close-on-exec flag says now. */
int posix_spawn_file_actions_adddup2(posix_spawn_file_actions_t *actions, int fd, int other)
{
	shunt_rights_retire(fd, SHUNT_CAUSE_INHERITED);
	return real(posix_spawn_file_actions_adddup2)(actions, fd, other);
}

int system(const char *command)
{
	if (unlikely(shunt_process.engine && command))
		shunt_rights_spawn();
	return real(system)(command);
}

FILE *popen(const char *command, const char *mode)
{
	if (unlikely(shunt_process.engine))
		shunt_rights_spawn();
	return real(popen)(command, mode);
}
