/* SPDX-License-Identifier: MIT */
/* Trust in a peer, by the kernel's answers. */
#include <errno.h>
#include <linux/capability.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>
#include "core/engine.h"
#include "core/link/trust.h"

#define PEER 4711
#define SOME (1u << CAP_NET_BIND_SERVICE)
#define TRACES (1u << CAP_SYS_PTRACE)

static struct world {		/* what the kernel says */
	uid_t user[3];
	gid_t group[3];
	int dumpable;
	struct ucred peer;
	uint32_t permitted, effective;	/* ours, the peer's */
	const char *proc, *peer_pid, *peer_user;	/* NULL: it does not tell */
	int attach;	/* 0, or -errno */
	enum shunt_yama yama;
} world;

static int fake_getresuid(uid_t *real, uid_t *effective, uid_t *saved)
{
	*real = world.user[0];
	*effective = world.user[1];
	*saved = world.user[2];
	return 0;
}

static int fake_getresgid(gid_t *real, gid_t *effective, gid_t *saved)
{
	*real = world.group[0];
	*effective = world.group[1];
	*saved = world.group[2];
	return 0;
}

static int fake_prctl(int option, ...)
{
	assert_int_equal(option, PR_GET_DUMPABLE);
	return world.dumpable;
}

static int fake_capget(void *header, void *data)
{
	struct __user_cap_header_struct *asked = header;
	struct __user_cap_data_struct *told = data;

	assert_true(asked->pid == 0 || asked->pid == PEER);
	told->permitted = asked->pid ? 0 : world.permitted;
	told->effective = asked->pid ? world.effective : 0;
	return 0;
}

static ssize_t fake_readlink(const char *path, char *buffer, size_t bytes)
{
	const char *text = NULL;

	if (!strcmp(path, "/proc/self"))
		text = world.proc;
	else if (!strcmp(path, "/proc/self/ns/pid"))
		text = "pid:[1]";
	else if (!strcmp(path, "/proc/self/ns/user"))
		text = "user:[2]";
	else if (!strcmp(path, "/proc/4711/ns/pid"))
		text = world.peer_pid;
	else if (!strcmp(path, "/proc/4711/ns/user"))
		text = world.peer_user;
	if (!text) {
		errno = EACCES;
		return -1;
	}
	assert_true(strlen(text) <= bytes);
	memcpy(buffer, text, strlen(text));
	return (ssize_t)strlen(text);
}

static int fake_getsockopt(int fd, int level, int name, void *value, socklen_t *length)
{
	assert_int_equal(fd, 5);
	assert_true(level == SOL_SOCKET && name == SO_PEERCRED && *length == sizeof(world.peer));
	memcpy(value, &world.peer, sizeof(world.peer));
	return 0;
}

static int fake_attach(pid_t pid)
{
	assert_int_equal(pid, PEER);
	return world.attach;
}

static enum shunt_yama fake_yama(void)
{
	return world.yama;
}

static const struct shunt_sys sys = { .attach = fake_attach, .yama = fake_yama,
				      .getresuid = fake_getresuid, .getresgid = fake_getresgid,
				      .prctl = fake_prctl, .capget = fake_capget,
				      .readlink = fake_readlink, .getsockopt = fake_getsockopt };
static struct shunt_engine engine;
static struct shunt_files files;
static char own_number[16];

/* Two plain processes of one user. */
static int be_equal(void **state)
{
	(void)state;
	snprintf(own_number, sizeof(own_number), "%d", (int)getpid());
	shunt_engine_surround(&engine, &sys);
	engine.fds.files = &files;
	world = (struct world) { .user = { 7, 7, 7 }, .group = { 8, 8, 8 }, .dumpable = 1,
				 .peer = { PEER, 7, 8 }, .proc = own_number,
				 .peer_pid = "pid:[1]", .peer_user = "user:[2]" };
	return 0;
}

static void expect(int result)
{
	errno = 42;
	assert_int_equal(shunt_trust_ask(&engine.fds, 5), result);
	assert_int_equal(errno, 42);
	assert_int_equal(!shunt_trust_reason(result), !result);
	assert_int_equal(shunt_trust_commands(&engine.fds, 5),
			 !result || !world.peer.uid || world.attach || world.yama);
}

static void equals_are_linked(void **state)
{
	(void)state;
	expect(0);
	assert_int_equal(shunt_trust_reason(-ECONNREFUSED), SHUNT_CAUSE_NONE);
}

static void another_user_or_group_is_not(void **state)
{
	(void)state;
	world.peer.uid = 9;
	expect(-EPERM);
	world.peer.uid = 0;	/* root could trace us, but we could not trace root */
	expect(-EPERM);
	world.peer = (struct ucred) { PEER, 7, 9 };
	expect(-EPERM);
}

/* A daemon that has dropped from root, or that is root for a moment. */
static void who_may_not_be_traced_is_alone(void **state)
{
	(void)state;
	world.dumpable = 0;
	expect(-ENOKEY);
	world.dumpable = 2;
	expect(-ENOKEY);
	world.dumpable = 1;
	for (int i = 0; i < 3; i++) {
		world.user[i] = 0;
		expect(-ENOKEY);
		world.user[i] = 7;
		world.group[i] = 0;
		expect(-ENOKEY);
		world.group[i] = 8;
	}
	expect(0);
}

static void capabilities_are_the_peers_too(void **state)
{
	(void)state;
	world.permitted = SOME;
	expect(-EACCES);
	world.effective = SOME | 1;
	expect(0);
	world.permitted = 0;
	expect(0);
}

static void namespaces_are_the_same(void **state)
{
	(void)state;
	world.peer.pid = 0;
	expect(-EXDEV);
	world.peer.pid = PEER;
	world.peer_pid = "pid:[3]";
	expect(-EXDEV);
	world.peer_pid = "pid:[1]";
	world.peer_user = "user:[3]";
	expect(-EXDEV);
}

static void the_kernel_refuses(void **state)
{
	(void)state;
	world.peer_user = NULL;
	expect(-EACCES);
	be_equal(NULL);
	world.peer_pid = NULL;
	expect(-EACCES);
}

/* None, or one that another PID namespace has mounted: its numbers are others. */
static void without_proc_nobody_is_linked(void **state)
{
	(void)state;
	world.proc = NULL;
	expect(-ENOTDIR);
	world.proc = "1";
	expect(-ENOTDIR);
}

/* By whatever forbids it. Statistics ask for less: what /proc shows such a process. */
static void who_may_not_attach_is_a_stranger(void **state)
{
	(void)state;
	world.attach = -EPERM;
	expect(-EACCES);
	world.attach = -ENOSYS;
	expect(-EACCES);
	world.attach = -ESRCH;
	expect(-EACCES);
}

/* A parent may attach to its child, which may not attach to it: the parent's own right says nothing about the child's. */
static void yama_is_not_even(void **state)
{
	(void)state;
	for (world.yama = SHUNT_YAMA_RELATIVES; world.yama <= SHUNT_YAMA_NOBODY; world.yama++)
		expect(-EACCES);
	world.permitted = world.effective = TRACES;
	for (world.yama = SHUNT_YAMA_NONE; world.yama < SHUNT_YAMA_NOBODY; world.yama++)
		expect(0);
	expect(-EACCES);
	world.permitted = world.effective = SOME;
	world.yama = SHUNT_YAMA_RELATIVES;
	expect(-EACCES);
}

/* The kernel itself, about this process and one that has hidden itself. */
static void the_kernel_is_asked(void **state)
{
	int said[2];
	char byte;
	pid_t child;

	(void)state;
	assert_int_equal(shunt_attach_ask(getpid()), 0);
	assert_int_equal(pipe(said), 0);
	child = fork();
	if (!child) {
		prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
		byte = (char)write(said[1], "", 1);
		for (;;)
			pause();
	}
	assert_int_equal(read(said[0], &byte, 1), 1);
	if (geteuid() || shunt_attach_ask(child))	/* root may, unless it has lost the capability */
		assert_int_equal(shunt_attach_ask(child), -EPERM);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	assert_int_equal(shunt_attach_ask(child), -ESRCH);
	assert_in_range(shunt_attach_yama(), SHUNT_YAMA_NONE, SHUNT_YAMA_NOBODY);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(equals_are_linked, be_equal),
		cmocka_unit_test_setup(another_user_or_group_is_not, be_equal),
		cmocka_unit_test_setup(who_may_not_be_traced_is_alone, be_equal),
		cmocka_unit_test_setup(capabilities_are_the_peers_too, be_equal),
		cmocka_unit_test_setup(namespaces_are_the_same, be_equal),
		cmocka_unit_test_setup(the_kernel_refuses, be_equal),
		cmocka_unit_test_setup(without_proc_nobody_is_linked, be_equal),
		cmocka_unit_test_setup(who_may_not_attach_is_a_stranger, be_equal),
		cmocka_unit_test_setup(yama_is_not_even, be_equal),
		cmocka_unit_test_setup(the_kernel_is_asked, be_equal),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
