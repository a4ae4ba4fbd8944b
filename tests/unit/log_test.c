/* SPDX-License-Identifier: MIT */
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
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/base/log.h"
#include "core/base/write_nosig.h"

#define MESSAGES_AT_ONCE 64	/* of one kind, at warn */

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

static const struct shunt_log_calls spying = { .write = spy };
static int kept = -1;	/* what descriptor 2 was before the test */

/* Descriptor 2 is a file whose messages nobody needs. */
static int clear(void **state)
{
	int null = open("/dev/null", O_WRONLY | O_CLOEXEC);

	(void)state;
	memset(&seen, 0, sizeof(seen));
	kept = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 10);
	if (null < 0 || kept < 0 || dup2(null, STDERR_FILENO) < 0)
		return -1;
	close(null);
	shunt_log_begin();
	return 0;
}

static int restore(void **state)
{
	(void)state;
	dup2(kept, STDERR_FILENO);
	close(kept);
	shunt_log_begin();
	return 0;
}

/* Makes descriptor 2 what `fd` is, and closes that. */
static void become_stderr(int fd)
{
	assert_true(fd >= 0);
	assert_int_equal(dup2(fd, STDERR_FILENO), STDERR_FILENO);
	if (fd != STDERR_FILENO)
		close(fd);
}

static int scratch(void)
{
	char name[] = "/tmp/shunt-log-XXXXXX";
	int fd = mkostemp(name, O_CLOEXEC);

	assert_true(fd >= 0);
	unlink(name);
	return fd;
}

/* "2026-11-25T20:15:01.123456Z " comes first. */
static const char *behind_time(const char *line)
{
	static const char shape[] = "dddd-dd-ddTdd:dd:dd.ddddddZ ";

	for (size_t i = 0; i < sizeof(shape) - 1; i++)
		assert_true(shape[i] == 'd' ? line[i] >= '0' && line[i] <= '9' :
					      line[i] == shape[i]);
	return line + sizeof(shape) - 1;
}

static void test_line(void **state)
{
	char expected[128];

	(void)state;
	shunt_log_setup(SHUNT_LOG_WARN, "", &spying);
	errno = ENOENT;
	shunt_log(SHUNT_LOG_WARN, "%s: %m", "no rendezvous");
	assert_int_equal(errno, ENOENT);
	snprintf(expected, sizeof(expected), "shunt[%d]: warn: no rendezvous: %s\n",
		 (int)getpid(), strerror(ENOENT));
	assert_string_equal(behind_time(seen.text), expected);
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
	shunt_log_setup(SHUNT_LOG_ERROR, NULL, &spying);
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
	shunt_log_setup(SHUNT_LOG_WARN, NULL, &spying);
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
	assert_non_null(strstr(text, "info: one\n2"));
	assert_non_null(strstr(text, "info: two\n"));
	unlink(path);
	assert_int_equal(rmdir(dir), 0);
}

/* A file that cannot be opened must not make messages disappear. */
static void test_file_missing(void **state)
{
	(void)state;
	shunt_log_setup(SHUNT_LOG_WARN, "/nonexistent/dir/log", &spying);
	errno = EAGAIN;
	shunt_log(SHUNT_LOG_WARN, "text");
	assert_int_equal(errno, EAGAIN);
	assert_int_equal(seen.fd, STDERR_FILENO);
}

/* The program has put a file of its own there since, or a connection. */
static void test_other_stderr(void **state)
{
	int ends[2];

	(void)state;
	shunt_log_setup(SHUNT_LOG_WARN, NULL, &spying);
	become_stderr(scratch());
	shunt_log(SHUNT_LOG_WARN, "into a file of the program");
	assert_int_equal(seen.writes, 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
	become_stderr(ends[0]);
	shunt_log(SHUNT_LOG_WARN, "into a connection of the program");
	close(STDERR_FILENO);
	shunt_log(SHUNT_LOG_WARN, "into nothing");
	assert_int_equal(seen.writes, 0);
	become_stderr(open("/dev/null", O_WRONLY));
	shunt_log(SHUNT_LOG_WARN, "it is back");
	assert_int_equal(seen.writes, 1);
	close(ends[1]);
}

/* A pipe or a file may be another program's; systemd's journal is read by people. */
static void test_not_asked(void **state)
{
	(void)state;
	become_stderr(scratch());
	shunt_log_begin();
	shunt_log_setup(SHUNT_LOG_DEBUG, NULL, &spying);
	shunt_log_set_asked(false);
	shunt_log(SHUNT_LOG_ERROR, "nobody has asked for it");
	assert_int_equal(seen.writes, 0);
	shunt_log_set_asked(true);
	shunt_log(SHUNT_LOG_ERROR, "now it is asked for");
	assert_true(seen.writes > 0);
}

/* As inetd starts its services: descriptor 2 is the client. */
static void test_socket_at_start(void **state)
{
	int ends[2];

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
	become_stderr(ends[0]);
	shunt_log_begin();
	shunt_log_setup(SHUNT_LOG_DEBUG, NULL, &spying);
	shunt_log(SHUNT_LOG_ERROR, "to the client");
	assert_int_equal(seen.writes, 0);
	close(ends[1]);
}

/* As systemd starts its services: the environment names the socket to the journal, and no other. */
static void test_journal(void **state)
{
	char named[64];
	struct stat st;
	int ends[2];

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
	become_stderr(ends[0]);
	assert_int_equal(fstat(STDERR_FILENO, &st), 0);
	snprintf(named, sizeof(named), "%llu:%llu", (unsigned long long)st.st_dev, (unsigned long long)st.st_ino);
	setenv("JOURNAL_STREAM", named, 1);
	shunt_log_begin();
	shunt_log_setup(SHUNT_LOG_WARN, NULL, &spying);
	shunt_log(SHUNT_LOG_WARN, "to the journal");
	assert_int_equal(seen.writes, 1);
	assert_memory_equal(seen.text, "shunt[", 6);	/* it notes the time itself */
	shunt_log_set_format(SHUNT_LOG_JSON);
	shunt_log(SHUNT_LOG_WARN, "to the journal");
	shunt_log_set_format(SHUNT_LOG_TEXT);
	assert_memory_equal(seen.text, "{\"time\":\"2", 10);
	seen.writes = 1;
	strcat(named, "1");
	setenv("JOURNAL_STREAM", named, 1);
	shunt_log_begin();
	shunt_log(SHUNT_LOG_WARN, "to another socket");
	assert_int_equal(seen.writes, 1);
	unsetenv("JOURNAL_STREAM");
	close(ends[1]);
}

/* No thread waits for who reads descriptor 2. */
static void test_full_pipe(void **state)
{
	char page[4096] = { 0 };
	int ends[2];

	(void)state;
	assert_int_equal(pipe2(ends, O_NONBLOCK), 0);
	while (write(ends[1], page, sizeof(page)) > 0)
		;
	become_stderr(ends[1]);
	shunt_log_begin();
	shunt_log_setup(SHUNT_LOG_WARN, NULL, &spying);
	shunt_log(SHUNT_LOG_WARN, "no room");
	assert_int_equal(seen.writes, 0);
	assert_int_equal(read(ends[0], page, sizeof(page)), sizeof(page));
	shunt_log(SHUNT_LOG_WARN, "room");
	assert_int_equal(seen.writes, 1);
	close(ends[0]);
}

/* Many of a kind are cut off and counted; other kinds and debug are not. */
static void test_flood(void **state)
{
	int written;

	(void)state;
	shunt_log_setup(SHUNT_LOG_DEBUG, NULL, &spying);
	for (int i = 0; i < 10000; i++)
		shunt_log(SHUNT_LOG_WARN, "a peer does it again: %d", i);
	written = seen.writes;
	assert_in_range(written, MESSAGES_AT_ONCE, 2 * MESSAGES_AT_ONCE);
	shunt_log(SHUNT_LOG_WARN, "something else");
	assert_int_equal(seen.writes, written + 1);
	for (int i = 0; i < 10000; i++)
		shunt_log(SHUNT_LOG_DEBUG, "step %d", i);
	assert_int_equal(seen.writes, written + 1 + 10000);
	shunt_log_setup(SHUNT_LOG_WARN, NULL, &spying);
	for (int i = 0; i < 3; i++)
		shunt_log(SHUNT_LOG_WARN, "after a while: %d", i);
	assert_non_null(strstr(seen.text, "warn: after a while: 2\n"));
}

/* Nothing but a plain file of one's own is appended to. */
static void test_file_not_ours(void **state)
{
	char dir[] = "/tmp/shunt-log-XXXXXX", path[64], other[64], text[512];
	struct stat st;

	(void)state;
	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/log", dir);
	snprintf(other, sizeof(other), "%s/other", dir);
	assert_int_equal(close(open(other, O_CREAT | O_WRONLY, 0600)), 0);

	assert_int_equal(symlink(other, path), 0);
	shunt_log_setup(SHUNT_LOG_WARN, path, &spying);
	shunt_log(SHUNT_LOG_WARN, "one");
	assert_int_equal(seen.fd, STDERR_FILENO);
	assert_non_null(strstr(seen.text, "warn: one\n"));
	assert_int_equal(seen.writes, 2);	/* and why, once */
	shunt_log(SHUNT_LOG_WARN, "two");
	assert_int_equal(seen.writes, 3);
	unlink(path);

	assert_int_equal(link(other, path), 0);
	shunt_log(SHUNT_LOG_WARN, "a second name of some file");
	assert_int_equal(seen.fd, STDERR_FILENO);
	unlink(path);

	assert_int_equal(mkfifo(path, 0600), 0);
	shunt_log(SHUNT_LOG_WARN, "a pipe that nobody reads");
	assert_int_equal(seen.fd, STDERR_FILENO);
	unlink(path);

	if (!geteuid()) {
		assert_int_equal(close(open(path, O_CREAT | O_WRONLY, 0666)), 0);
		assert_int_equal(chown(path, 65534, 65534), 0);
		shunt_log(SHUNT_LOG_WARN, "another user's");
		assert_int_equal(seen.fd, STDERR_FILENO);
		unlink(path);
	}
	shunt_log_setup(SHUNT_LOG_WARN, path, NULL);
	shunt_log(SHUNT_LOG_WARN, "ours");
	slurp(path, text, sizeof(text));
	assert_non_null(strstr(text, "warn: ours\n"));
	assert_int_equal(stat(other, &st), 0);
	assert_int_equal(st.st_size, 0);
	unlink(path);
	unlink(other);
	assert_int_equal(rmdir(dir), 0);
}

/* A failed write of our own raises no signal for the program: both signals would end it. */
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
	assert_int_equal(shunt_write_nosig(write, fd, "four", 4), 2);
	assert_int_equal(shunt_write_nosig(write, fd, "ur", 2), -1);
	assert_int_equal(errno, EFBIG);
	setrlimit(RLIMIT_FSIZE, &before);
	close(fd);
	assert_int_equal(pipe(ends), 0);
	close(ends[0]);
	assert_int_equal(shunt_write_nosig(write, ends[1], "x", 1), -1);
	assert_int_equal(errno, EPIPE);
	close(ends[1]);
	sigpending(&pending);
	pthread_sigmask(SIG_SETMASK, NULL, &mask);
	assert_false(sigismember(&pending, SIGPIPE) || sigismember(&pending, SIGXFSZ));
	assert_false(sigismember(&mask, SIGPIPE) || sigismember(&mask, SIGXFSZ));
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, clear, restore)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_line),
		TEST(test_levels),
		TEST(test_long_and_hostile),
		TEST(test_file),
		TEST(test_file_missing),
		TEST(test_file_not_ours),
		TEST(test_other_stderr),
		TEST(test_not_asked),
		TEST(test_socket_at_start),
		TEST(test_journal),
		TEST(test_full_pipe),
		TEST(test_flood),
		TEST(test_no_signal),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
