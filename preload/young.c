/* SPDX-License-Identifier: MIT */
#include "preload/young.h"

/* The kernel checks pointers and sizes. No thread is cancelled in here: the record is locked. */
bool shunt_young_receives(struct shunt_young *young, ssize_t *got, long number, long a, long b,
			  long c, long d)
{
	shunt_cancellation_point();
	if (!shunt_young_begins(shunt_process.engine, young))
		return false;
	*got = real(syscall)(number, young->fd, a, b, c, d, 0);
	shunt_young_ends(young, *got, 0);
	return true;
}

bool shunt_young_sends(struct shunt_young *young, ssize_t *sent, long number, long a, long b,
		       long c, long d)
{
	shunt_cancellation_point();
	if (!shunt_young_begins(shunt_process.engine, young))
		return false;
	*sent = real(syscall)(number, young->fd, a, b, c, d, 0);
	shunt_young_ends(young, 0, *sent);
	return true;
}
