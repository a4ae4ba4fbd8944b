/* SPDX-License-Identifier: MIT */
/* Descriptors of our own: when the process forks, and at numbers that the program has closed. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include "core/fd/own_fds.h"
#include "core/fd/thread.h"
#include "tests/unit/sockets.h"

/* A child that lives until `stay` is closed. `known`: its handlers run. */
static pid_t fork_child(int stay[2], bool known)
{
	pid_t pid;
	char c;

	assert_int_equal(pipe(stay), 0);
	shunt_engine_fork_prepare(engine);
	pid = fork();
	assert_true(pid >= 0);
	if (pid) {
		shunt_engine_fork_parent(engine);
		close(stay[0]);
		return pid;
	}
	close(stay[1]);
	if (known)
		shunt_engine_fork_child(engine);
	else
		shunt_own_fds_abandon(&engine->fds);
	_exit(read(stay[0], &c, 1) ? 1 : 0);
}

static void end_child(pid_t pid, int stay)
{
	int status;

	close(stay);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

/* As with a peer that the service thread has accepted and put nowhere yet: it sees our end, whoever lives on. */
static void peer_sees_the_end(void **state)
{
	(void)state;
	for (int known = 0; known < 2; known++) {
		int pair[2], stay[2], ours;
		struct pollfd peer = { .events = POLLIN };
		pid_t pid;

		assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
		ours = shunt_own_fds_make(&engine->fds, pair[0]);
		assert_true(ours >= 0);
		pid = fork_child(stay, known);
		shunt_own_fds_close(&engine->fds, ours);
		peer.fd = pair[1];
		assert_int_equal(poll(&peer, 1, 10000), 1);
		assert_true(peer.revents & POLLHUP);
		end_child(pid, stay[1]);
		close(pair[1]);
	}
}

static bool is_open(int fd)
{
	return fcntl(fd, F_GETFD) >= 0;
}

/* One of ours has the lowest number while the program makes one; it is gone before that program goes on. */
static void the_lowest_number_is_free(void **state)
{
	unsigned int before = shunt_numbers_made(&engine->fds);
	int ours, fd, least = dup(0);

	(void)state;
	close(least);
	for (int flags = 0; flags < 2; flags++) {
		shunt_own_fds_begin(&engine->fds);
		ours = dup(0);
		fd = fcntl(0, flags ? F_DUPFD_CLOEXEC : F_DUPFD, 0);
		close(ours);
		shunt_own_fds_end(&engine->fds);
		assert_int_equal(fd, least + 1);
		fd = shunt_numbers_lowest(&engine->fds, fd, 0, before);
		assert_int_equal(fd, least);
		assert_false(is_open(least + 1));
		assert_int_equal(fcntl(fd, F_GETFD), flags ? FD_CLOEXEC : 0);
		assert_int_equal(shunt_numbers_lowest(&engine->fds, fd, 0, before), fd);
		close(fd);
	}
	fd = fcntl(0, F_DUPFD, least + 5);
	before--;
	assert_int_equal(shunt_numbers_lowest(&engine->fds, fd, least + 5, before), least + 5);
	assert_int_equal(
		shunt_numbers_lowest(&engine->fds, fd, 0, shunt_numbers_made(&engine->fds)),
		least + 5);
	close(fd);
}

static _Atomic bool in_close, forking, closed;

static int close_slowly(int fd)
{
	in_close = true;
	while (!forking)
		sched_yield();
	usleep(50000);	/* for a fork that does not wait */
	closed = true;
	return close(fd);
}

static void *closer(void *fd)
{
	shunt_own_fds_close(&engine->fds, *(int *)fd);
	return NULL;
}

/* One that is marked no more, and not closed yet, would be nobody's in the child. */
static void fork_awaits_close(void **state)
{
	const struct shunt_sys *before = engine->sys;
	struct shunt_sys slow = *before;
	pthread_t thread;
	int fd;

	(void)state;
	fd = shunt_own_fds_make(&engine->fds, eventfd(0, EFD_CLOEXEC));
	assert_true(fd >= 0);
	slow.close = close_slowly;
	shunt_engine_surround(engine, &slow);
	assert_int_equal(pthread_create(&thread, NULL, closer, &fd), 0);
	while (!in_close)
		sched_yield();
	forking = true;
	shunt_engine_fork_prepare(engine);	/* by the test's clock it has all the time in the world */
	assert_true(closed);
	shunt_engine_fork_parent(engine);
	pthread_join(thread, NULL);
	shunt_engine_surround(engine, before);
}

/* A thread that closes many does not wait for itself; the clock that would end that wait stands still. */
static void closer_closes_ours(void **state)
{
	int fd = shunt_own_fds_make(&engine->fds, eventfd(0, EFD_CLOEXEC));

	(void)state;
	shunt_numbers_enter(&engine->fds);
	shunt_own_fds_close(&engine->fds, fd);
	shunt_numbers_leave(&engine->fds);
	assert_int_equal(fcntl(fd, F_GETFD), -1);
	assert_int_equal(atomic_load(&engine->fds.files->making) +
				 atomic_load(&engine->fds.files->closing),
			 0);
}

/* The program's stay, and so does what the thread that forks sleeps on: a handler may have interrupted that. */
static void others_stay(void **state)
{
	int program[2], waker, pooled;
	pid_t pid;
	int status;

	(void)state;
	assert_int_equal(pipe(program), 0);
	waker = shunt_waker_take(&engine->fds);
	pooled = shunt_waker_take(&engine->fds);
	assert_true(waker >= 0 && pooled >= 0);
	shunt_waker_give(&engine->fds, pooled);
	shunt_thread.sleep_fd = waker + 1;
	shunt_engine_fork_prepare(engine);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		shunt_engine_fork_child(engine);
		_exit(is_open(program[0]) && is_open(program[1]) && is_open(waker) &&
				      !is_open(pooled) && !engine->fds.wakers.count ?
			      0 :
			      1);
	}
	shunt_engine_fork_parent(engine);
	shunt_thread.sleep_fd = 0;
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_true(is_open(waker) && is_open(pooled));
	shunt_own_fds_close(&engine->fds, waker);
	close(program[0]);
	close(program[1]);
}

/* The state that a thread of the program finds at the number while another makes a descriptor of ours there. */
struct finding {
	int fd;
	struct shunt_file *file;
	_Atomic bool begun, done;
};

static void *find(void *arg)
{
	struct finding *finding = arg;

	finding->begun = true;
	errno = ENOENT;
	finding->file = shunt_numbers_look(&engine->fds, finding->fd);
	assert_int_equal(errno, ENOENT);
	finding->done = true;
	return NULL;
}

/* A number that was a socket of the program, which has closed it. */
static int closed_number(void)
{
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	assert_true(fd >= 0);
	shunt_file_socket(engine, fd, false);
	assert_ptr_not_equal(shunt_numbers_look(&engine->fds, fd), NULL);
	shunt_file_closing(engine, fd);
	engine->sys->close(fd);
	return fd;
}

/*
 * Calls on it do not reach the file that is open there on its way up. A caller waits, by the test's
 * clock as long as it takes.
 */
static void closed_stays_closed(void **state)
{
	struct finding finding = { .fd = closed_number() };
	pthread_t thread;
	int low, ours;

	(void)state;
	shunt_own_fds_begin(&engine->fds);
	low = eventfd(0, EFD_CLOEXEC);
	assert_int_equal(low, finding.fd);
	assert_ptr_equal(shunt_numbers_look(&engine->fds, low), NULL);	/* who makes it may use it */
	assert_int_equal(pthread_create(&thread, NULL, find, &finding), 0);
	while (!finding.begun)
		sched_yield();
	usleep(20000);	/* for one that does not wait */
	assert_false(finding.done);
	ours = shunt_own_fds_adopt(&engine->fds, low);
	shunt_own_fds_end(&engine->fds);
	pthread_join(thread, NULL);
	assert_ptr_not_equal(finding.file, NULL);
	assert_int_equal(finding.file->kind, SHUNT_FILE_CLOSED);
	assert_ptr_equal(shunt_file(engine, low), NULL);
	shunt_own_fds_close(&engine->fds, ours);
}

/* A maker is so slow that nobody waits for it: the call is the kernel's, and the next one looks again. */
static void slow_maker_decides_nothing(void **state)
{
	struct finding finding = { .fd = closed_number() };
	pthread_t thread;
	int low, ours;

	(void)state;
	shunt_own_fds_begin(&engine->fds);
	low = eventfd(0, EFD_CLOEXEC);
	assert_int_equal(low, finding.fd);
	assert_int_equal(pthread_create(&thread, NULL, find, &finding), 0);
	while (!finding.done) {
		__atomic_fetch_add(&clock_ns, MS, __ATOMIC_RELAXED);
		sched_yield();
	}
	pthread_join(thread, NULL);
	assert_ptr_equal(finding.file, NULL);
	assert_true(shunt_files_closed(engine->fds.files, low));
	ours = shunt_own_fds_adopt(&engine->fds, low);
	shunt_own_fds_end(&engine->fds);
	assert_int_equal(shunt_numbers_look(&engine->fds, low)->kind, SHUNT_FILE_CLOSED);
	shunt_own_fds_close(&engine->fds, ours);
}

/* Once the program has opened the number again it is as any other, and what another thread made of it stays. */
static void opened_again(void **state)
{
	int fd = closed_number();

	(void)state;
	assert_int_equal(dup2(STDERR_FILENO, fd), fd);
	assert_ptr_equal(shunt_numbers_look(&engine->fds, fd), NULL);
	assert_ptr_equal(shunt_file(engine, fd), NULL);
	assert_false(shunt_files_closed(engine->fds.files, fd));
	engine->sys->close(fd);
	shunt_numbers_closed(&engine->fds, fd);
	assert_int_equal(shunt_numbers_look(&engine->fds, fd)->kind, SHUNT_FILE_CLOSED);
	assert_int_equal(socket(AF_INET, SOCK_STREAM, 0), fd);
	shunt_file_socket(engine, fd, false);
	shunt_numbers_closed(&engine->fds, fd);	/* said late */
	assert_int_equal(shunt_numbers_look(&engine->fds, fd)->kind, SHUNT_FILE_STREAM);
	shunt_file_closing(engine, fd);
	engine->sys->close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(peer_sees_the_end, set_up),
		cmocka_unit_test_setup(fork_awaits_close, set_up),
		cmocka_unit_test_setup(closer_closes_ours, set_up),
		cmocka_unit_test_setup(the_lowest_number_is_free, set_up),
		cmocka_unit_test_setup(others_stay, set_up),
		cmocka_unit_test_setup(closed_stays_closed, set_up),
		cmocka_unit_test_setup(slow_maker_decides_nothing, set_up),
		cmocka_unit_test_setup(opened_again, set_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
