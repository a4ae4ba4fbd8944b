/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include "tests/fuzz/fake.h"

#define LOWEST 100

uint64_t fake_clock = 1;
bool fake_full;

static bool is_open[FAKE_FDS];
static int count;

int fake_open(void)
{
	for (int fd = LOWEST; fd < FAKE_FDS && !fake_full; fd++) {
		if (is_open[fd])
			continue;
		is_open[fd] = true;
		count++;
		return fd;
	}
	errno = EMFILE;
	return -1;
}

bool fake_is_open(int fd)
{
	return fd >= 0 && fd < FAKE_FDS && is_open[fd];
}

int fake_count(void)
{
	return count;
}

static int fake_close(int fd)
{
	fuzz_check(fake_is_open(fd));	/* once each, and nobody else's */
	is_open[fd] = false;
	count--;
	return 0;
}

static int fake_fcntl(int fd, int command, ...)
{
	if (!fake_is_open(fd)) {
		errno = EBADF;
		return -1;
	}
	return command == F_DUPFD_CLOEXEC ? fake_open() : 0;
}

/* The descriptor has no name. */
static ssize_t fake_readlink(const char *path, char *text, size_t bytes)
{
	(void)path, (void)text, (void)bytes;
	return 0;
}

static uint64_t fake_now(void)
{
	return fake_clock;
}

struct shunt_sys fake_sys = { .close = fake_close, .fcntl = fake_fcntl,
			   .readlink = fake_readlink, .now = fake_now };

struct shunt_engine *fake_engine(void)
{
	static struct shunt_engine *engine;
	struct shunt_config config;

	if (!engine) {
		shunt_config_defaults(&config);
		config.born = SHUNT_BORN_OFF;
		config.seed = 1;
		engine = shunt_engine_create(&config, &fake_sys);
		fuzz_check(engine);
		engine->fds.files->limit = FAKE_FDS;
	}
	return engine;
}
