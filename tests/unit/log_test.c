/* The log: levels, the shape of a line, where it goes, and that errno survives. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/log.h"
#include "core/quiet.h"

static struct {
	int writes, fd;
	size_t len;
	char text[2 * SHUNT_LOG_LINE_MAX];
} seen;

static ssize_t spy(int fd, const void *buf, size_t len)
{
	seen.writes++;
	seen.fd = fd;
	seen.len = len;
	memcpy(seen.text, buf, len);
	seen.text[len] = '\0';
	errno = EIO;
	return (ssize_t)len;
}

static int clear(void **state)
{
	(void)state;
	memset(&seen, 0, sizeof(seen));
	return 0;
}

static void test_line(void **state)
{
	char expected[128];

	(void)state;
	shunt_log_setup(SHUNT_LOG_WARN, "", spy);
	errno = ENOENT;
	shunt_log(SHUNT_LOG_WARN, "%s: %m", "no rendezvous");
	assert_int_equal(errno, ENOENT);
	snprintf(expected, sizeof(expected), "shunt[%d]: warn: no rendezvous: %s\n",
		 (int)getpid(), strerror(ENOENT));
	assert_string_equal(seen.text, expected);
	assert_int_equal(seen.writes, 1);
	assert_int_equal(seen.fd, STDERR_FILENO);
}

static int evaluated;

static int evaluate(void)
{
	return ++evaluated;
}

static void test_levels(void **state)
{
	(void)state;
	shunt_log_setup(SHUNT_LOG_ERROR, NULL, spy);
	shunt_log(SHUNT_LOG_WARN, "%d", evaluate());
	assert_int_equal(seen.writes, 0);
	assert_int_equal(evaluated, 0);
	shunt_log(SHUNT_LOG_ERROR, "%d", evaluate());
	assert_int_equal(seen.writes, 1);
	shunt_log_set_level(SHUNT_LOG_NONE);
	shunt_log(SHUNT_LOG_ERROR, "%d", evaluate());
	shunt_log_write(SHUNT_LOG_ERROR, "unasked");
	assert_int_equal(seen.writes, 1);
	shunt_log_set_level(SHUNT_LOG_DEBUG);
	shunt_log(SHUNT_LOG_DEBUG, "%d", evaluate());
	assert_int_equal(seen.writes, 2);
}

static void test_long_and_hostile(void **state)
{
	char text[3 * SHUNT_LOG_LINE_MAX];

	(void)state;
	memset(text, 'x', sizeof(text));
	text[sizeof(text) - 1] = '\0';
	shunt_log_setup(SHUNT_LOG_WARN, NULL, spy);
	shunt_log(SHUNT_LOG_WARN, "%s", text);
	assert_int_equal(seen.len, SHUNT_LOG_LINE_MAX);
	assert_int_equal(seen.text[seen.len - 1], '\n');
	shunt_log(SHUNT_LOG_WARN, "a\nshunt[1]: error: \033[2J\r");
	assert_non_null(strstr(seen.text, "a?shunt[1]: error: ?[2J?\n"));
}

static size_t slurp(const char *path, char *buf, size_t len)
{
	int fd = open(path, O_RDONLY);
	ssize_t n;

	assert_true(fd >= 0);
	n = read(fd, buf, len - 1);
	assert_true(n >= 0);
	close(fd);
	buf[n] = '\0';
	return (size_t)n;
}

/* Appended to, one file a process, and the same file after chdir(). */
static void test_file(void **state)
{
	char dir[] = "/tmp/shunt-log-XXXXXX", path[64], text[512];

	(void)state;
	assert_non_null(mkdtemp(dir));
	assert_int_equal(chdir(dir), 0);
	shunt_log_setup(SHUNT_LOG_INFO, "%p.log", NULL);
	assert_int_equal(chdir("/"), 0);
	shunt_log(SHUNT_LOG_INFO, "one");
	shunt_log(SHUNT_LOG_INFO, "two");
	snprintf(path, sizeof(path), "%s/%d.log", dir, (int)getpid());
	slurp(path, text, sizeof(text));
	assert_non_null(strstr(text, "info: one\nshunt["));
	assert_non_null(strstr(text, "info: two\n"));
	unlink(path);
	assert_int_equal(rmdir(dir), 0);
}

/* A file that cannot be opened must not make messages disappear. */
static void test_file_missing(void **state)
{
	(void)state;
	shunt_log_setup(SHUNT_LOG_WARN, "/nonexistent/dir/log", spy);
	errno = EAGAIN;
	shunt_log(SHUNT_LOG_WARN, "text");
	assert_int_equal(errno, EAGAIN);
	assert_int_equal(seen.fd, STDERR_FILENO);
}

/* What our own writes run into is no signal for the program: both would end it. */
static void test_no_signal(void **state)
{
	char name[] = "/tmp/shunt-quiet-XXXXXX";
	struct rlimit before, small;
	int fd = mkstemp(name), ends[2];
	sigset_t mask, pending;

	(void)state;
	assert_true(fd >= 0);
	unlink(name);
	getrlimit(RLIMIT_FSIZE, &before);
	small = (struct rlimit) { 2, before.rlim_max };
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
	assert_int_equal(shunt_quiet_write(write, fd, "four", 4), 2);
	assert_int_equal(shunt_quiet_write(write, fd, "ur", 2), -1);
	assert_int_equal(errno, EFBIG);
	setrlimit(RLIMIT_FSIZE, &before);
	close(fd);
	assert_int_equal(pipe(ends), 0);
	close(ends[0]);
	assert_int_equal(shunt_quiet_write(write, ends[1], "x", 1), -1);
	assert_int_equal(errno, EPIPE);
	close(ends[1]);
	sigpending(&pending);
	pthread_sigmask(SIG_SETMASK, NULL, &mask);
	assert_false(sigismember(&pending, SIGPIPE) || sigismember(&pending, SIGXFSZ));
	assert_false(sigismember(&mask, SIGPIPE) || sigismember(&mask, SIGXFSZ));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_line, clear),
		cmocka_unit_test_setup(test_levels, clear),
		cmocka_unit_test_setup(test_long_and_hostile, clear),
		cmocka_unit_test_setup(test_file, clear),
		cmocka_unit_test_setup(test_file_missing, clear),
		cmocka_unit_test(test_no_signal),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
