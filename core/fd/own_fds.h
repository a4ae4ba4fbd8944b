/* SPDX-License-Identifier: MIT */
/*
 * Descriptors of our own: near the top of the table, close-on-exec, and invisible to the program
 * (PF-48, PF-65).
 */
#ifndef SHUNT_CORE_FD_OWN_FDS_H
#define SHUNT_CORE_FD_OWN_FDS_H

struct shunt_engine;

/*
 * Around the making of descriptors. For an instant they have low numbers, or high ones that are not
 * marked yet, and a program that closes everything would close them too. May be nested.
 */
void shunt_own_fds_begin(struct shunt_engine *engine);
void shunt_own_fds_end(struct shunt_engine *engine);
/* Moves fd high, marks it private and close-on-exec. The new number, or -errno (fd is closed). */
int shunt_own_fds_adopt(struct shunt_engine *engine, int fd);
/* The descriptor is ours from now on, with the number that it has. -EMFILE: it cannot be marked. */
int shunt_own_fds_mark(struct shunt_engine *engine, int fd);
/* Makes one with the call and adopts it. */
#define shunt_own_fds_make(engine, call)				\
	({								\
		int made_;						\
									\
		shunt_own_fds_begin(engine);				\
		made_ = shunt_own_fds_adopt(engine, call);		\
		shunt_own_fds_end(engine);				\
		made_;							\
	})
/* Closes one, if fd is not negative. Any thread. */
void shunt_own_fds_close(struct shunt_engine *engine, int fd);
/* The number is no longer ours, and its file is closed elsewhere. */
void shunt_own_fds_forget(struct shunt_engine *engine, int fd);
/* A private duplicate of any descriptor. */
int shunt_own_fds_copy(struct shunt_engine *engine, int fd);
/* A copy and a close as libraries of ours call them back (core/device/cm/cm.h): the argument is the engine. */
int shunt_own_fds_keep(void *engine, int fd);
void shunt_own_fds_drop(void *engine, int fd);

#endif
