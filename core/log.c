#include "core/log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/cancel.h"
#include "core/config.h"
#include "core/quiet.h"

/*
 * One log a process, whatever the number of engines, so these are the file's own. Set before there
 * are threads; the level may change later, and then nobody minds a message more or less.
 */
static enum shunt_log_level wanted = SHUNT_LOG_WARN;
static ssize_t (*write_call)(int fd, const void *buf, size_t len) = write;
static char file[2 * SHUNT_CONFIG_PATH_MAX];

/* An absolute path, so that the file stays the same one when the program changes its directory. */
static void set_file(const char *path)
{
	size_t len = 0;

	if (*path != '/' && getcwd(file, sizeof(file) - 1)) {
		len = strlen(file);
		file[len++] = '/';
	}
	if (snprintf(file + len, sizeof(file) - len, "%s", path) >= (int)(sizeof(file) - len))
		file[0] = '\0';
}

void shunt_log_setup(enum shunt_log_level level, const char *path,
		     ssize_t (*writer)(int fd, const void *buf, size_t len))
{
	int saved = errno;

	file[0] = '\0';
	if (path && *path)
		set_file(path);
	write_call = writer ? writer : write;
	shunt_log_set_level(level);
	errno = saved;
}

void shunt_log_set_level(enum shunt_log_level level)
{
	__atomic_store_n(&wanted, level, __ATOMIC_RELAXED);
}

int shunt_log_wants(enum shunt_log_level level)
{
	return level != SHUNT_LOG_NONE && level <= __atomic_load_n(&wanted, __ATOMIC_RELAXED);
}

/* What a message quotes may come from a peer: it must not start lines or move the cursor. */
static void make_printable(char *text, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if ((unsigned char)text[i] < ' ' || text[i] == 0x7f)
			text[i] = '?';
}

static size_t format_line(char *line, size_t room, enum shunt_log_level level, const char *format,
			  va_list args)
{
	static const char *const names[] = { "none", "error", "warn", "info", "debug" };
	size_t len;
	int n;

	len = (size_t)snprintf(line, room, "shunt[%d]: %s: ", (int)getpid(), names[level]);
	n = vsnprintf(line + len, room - len, format, args);
	if (n > 0)
		len += (size_t)n < room - len ? (size_t)n : room - len - 1;
	make_printable(line, len);
	line[len] = '\n';
	return len + 1;
}

/*
 * The file is opened for each message: messages are rare, a descriptor kept open would be one more
 * that the program can close or reuse under us, and the log can be rotated.
 */
static int open_file(void)
{
	char path[sizeof(file) + 16];

	if (!file[0] || !shunt_config_path_text(file, path, sizeof(path)))
		return -1;
	return open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOCTTY, 0644);
}

void shunt_log_write(enum shunt_log_level level, const char *format, ...)
{
	char line[SHUNT_LOG_LINE_MAX];
	int saved = errno;
	va_list args;
	size_t len;
	int fd, state;

	if (!shunt_log_wants(level))
		return;
	va_start(args, format);
	errno = saved;		/* for %m */
	len = format_line(line, sizeof(line), level, format, args);
	va_end(args);

	state = shunt_cancel_off();	/* any lock may be held */
	fd = open_file();
	/* What cannot be written is lost: there is nobody to tell. */
	if (shunt_quiet_write(write_call, fd < 0 ? STDERR_FILENO : fd, line, len) < 0)
		errno = saved;
	if (fd >= 0)
		close(fd);
	shunt_cancel_restore(state);
	errno = saved;
}
