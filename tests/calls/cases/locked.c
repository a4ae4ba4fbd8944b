/* SPDX-License-Identifier: MIT */
/* mlockall(): as much is locked as the program has, give or take what a thread of a library reserves. */
#include "cases.h"

#include <sys/mman.h>
#include <sys/syscall.h>

#define MUCH (200 << 10)	/* KiB */

static void say_status(struct end *e, const char *name)
{
	char line[256];
	FILE *status = fopen("/proc/self/status", "r");
	long kib = -1;

	while (status && fgets(line, sizeof(line), status))
		if (!strncmp(line, name, strlen(name)))
			kib = atol(line + strlen(name) + 1);
	if (status)
		fclose(status);
	say(e, "%s %s", name, kib > MUCH ? "much" : kib > 0 ? "some" : kib ? "unknown" : "none");
}

/* Without the privilege all of a process counts against a limit, and what a library maps, too. */
static int may(struct end *e)
{
	if (geteuid())
		say(e, "not root");
	return !geteuid();
}

static void lock(struct end *e, int flags)
{
	if (flags < 0)
		TRY(e, syscall(SYS_mlockall, -flags));
	else
		TRY(e, mlockall(flags));
}

static void counted(struct end *e)
{
	unsigned char there = 0;
	char *p = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	say_status(e, "VmLck");
	say_status(e, "VmRSS");
	TRY(e, mincore(p, 4096, &there));	/* brought in already: MCL_FUTURE */
	say(e, "there %d", there & 1);
	munmap(p, 4096);
}

static void after(struct end *e, int flags)
{
	if (!may(e))
		return;
	lock(e, flags);
	counted(e);
	ask(e, e->fd);
	for (int i = 0; i < 3; i++) {
		int fd = e->client ? dial_warm(e) : pick_up_warm(e);

		close(fd);
	}
	counted(e);
	TRY(e, munlockall());
	counted(e);
}

static void all(struct end *e)
{
	after(e, MCL_CURRENT | MCL_FUTURE);
}

static void by_number(struct end *e)
{
	after(e, -(MCL_CURRENT | MCL_FUTURE));
}

static void current(struct end *e)
{
	after(e, MCL_CURRENT);
}

static void on_fault(struct end *e)
{
	after(e, MCL_CURRENT | MCL_FUTURE | 4);	/* MCL_ONFAULT */
}

static void wrong(struct end *e)
{
	lock(e, 0);
	lock(e, 64);
	lock(e, MCL_FUTURE | 64);
	lock(e, 4);
	TRY(e, munlockall());
	if (may(e))
		say_status(e, "VmLck");
}

static void peer(struct end *e)
{
	char buf[16];

	if (geteuid())
		return;
	get(e, e->fd, buf, 4);
	put(e, e->fd, "echo");
	for (int i = 0; i < 3; i++)
		close(e->client ? dial_warm(e) : pick_up_warm(e));
}

/* Before there is a connection. */
static void first(struct end *e)
{
	if (!may(e))
		return;
	lock(e, MCL_CURRENT | MCL_FUTURE);
	for (int i = 0; i < 2; i++) {
		int fd = dial_warm(e);

		ask(e, fd);
		close(fd);
	}
	counted(e);
}

static void first_peer(struct end *e)
{
	char buf[16];

	if (geteuid())
		return;
	for (int i = 0; i < 2; i++) {
		int fd = pick_up_warm(e);

		get(e, fd, buf, 4);
		put(e, fd, "echo");
		close(fd);
	}
}

const struct test cases_locked[] = {
	{"locked_all", PROCS, all, peer},
	{"locked_by_number", PROCS, by_number, peer},
	{"locked_current", PROCS, current, peer},
	{"locked_on_fault", PROCS, on_fault, peer},
	{"locked_wrong", PROCS, wrong, nothing},
	{"locked_first", RAW | PROCS, first, first_peer},
	{NULL, 0, NULL, NULL},
};
