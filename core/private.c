/*
 * Descriptors of our own: near the top of the table, close-on-exec, and invisible to the program
 * (PF-48, PF-65).
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>
#include "core/engine.h"

/* High enough that programs do not meet them, low enough that the kernel's table, which fork()
 * copies up to the highest number, stays small. */
#define FLOOR 16384

static int floor_for(struct shunt_engine *engine)
{
	struct rlimit limit;
	int top = engine->files->limit;

	if (!getrlimit(RLIMIT_NOFILE, &limit) && limit.rlim_cur < (rlim_t)top)
		top = limit.rlim_cur;
	return top / 2 < FLOOR ? top / 2 : FLOOR;
}

static int name(struct shunt_engine *engine, int fd)
{
	static struct shunt_file mark = { SHUNT_FILE_PRIVATE };

	if (fd < 0 || (size_t)fd >= engine->files->limit)
		return -EMFILE;
	shunt_files_set(engine->files, fd, &mark);
	return 0;
}

int shunt_private_adopt(struct shunt_engine *engine, int fd)
{
	int high, result = -errno;

	if (fd < 0)
		return result;
	high = shunt_private_copy(engine, fd);
	engine->sys->close(fd);
	return high;
}

int shunt_private_copy(struct shunt_engine *engine, int fd)
{
	int high = engine->sys->fcntl(fd, F_DUPFD_CLOEXEC, floor_for(engine));

	if (high >= 0 && name(engine, high)) {
		engine->sys->close(high);
		return -EMFILE;
	}
	return high < 0 ? -errno : high;
}

static void forget(struct shunt_engine *engine, int fd)
{
	if (fd >= 0 && (size_t)fd < engine->files->limit)
		shunt_files_set(engine->files, fd, NULL);
}

void shunt_private_close(struct shunt_engine *engine, int fd)
{
	if (fd < 0)
		return;
	forget(engine, fd);
	engine->sys->close(fd);
}
