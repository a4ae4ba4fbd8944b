/* SPDX-License-Identifier: MIT */
/*
 * A process confines itself, or changes who it is, in the midst of a connection. Each thread has to
 * be confined, there may be no other, and every byte comes.
 */
#include "cases.h"
#include "tests/calls/carried.h"

#include <dirent.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#define MANY (3 << 20)	/* bytes: more than a ring, less than two sockets' buffers */
#define NOBODY 65534

static int is_told(const char *line)
{
	static const char *const told[] = {"Uid:", "Gid:", "Groups:", "CapEff:", "CapBnd:", "NoNewPrivs:",
					   "Seccomp:"};

	for (size_t i = 0; i < sizeof(told) / sizeof(told[0]); i++)
		if (!strncmp(line, told[i], strlen(told[i])))
			return 1;
	return 0;
}

static void show_thread(struct end *e, const char *task)
{
	char path[300], line[256];
	FILE *file;

	snprintf(path, sizeof(path), "/proc/self/task/%s/status", task);
	file = fopen(path, "r");
	while (file && fgets(line, sizeof(line), file)) {
		line[strcspn(line, "\n")] = 0;
		if (is_told(line))
			say(e, "%s", line);
	}
	if (file)
		fclose(file);
}

/* The users, rights and filters of each thread. */
static void show_threads(struct end *e)
{
	DIR *tasks = opendir("/proc/self/task");
	struct dirent *task;
	int count = 0;

	while (tasks && (task = readdir(tasks))) {
		if (task->d_name[0] == '.')
			continue;
		show_thread(e, task->d_name);
		count++;
	}
	if (tasks)
		closedir(tasks);
	say(e, "%d threads", count);
}

/* --- what is called --- */

static void drop_all(struct end *e)
{
	struct __user_cap_header_struct head = {_LINUX_CAPABILITY_VERSION_3, 0};
	struct __user_cap_data_struct none[2] = {{0}};

	TRY(e, prctl(PR_CAPBSET_DROP, CAP_SYS_ADMIN, 0, 0, 0));
	TRY(e, prctl(PR_CAPBSET_DROP, CAP_NET_RAW, 0, 0, 0));
	TRY(e, prctl(PR_SET_SECUREBITS, 0, 0, 0, 0));
	TRY(e, prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0));
	TRY(e, syscall(SYS_capset, &head, none));
	TRY(e, prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
}

static void filter(struct end *e)
{
	struct sock_filter allow[] = {BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
	struct sock_fprog program = {1, allow};

	TRY(e, prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, NULL));	/* is there such a thing? */
	TRY(e, prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
	TRY(e, prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program));
}

static void filter_by_number(struct end *e)
{
	struct sock_filter allow[] = {BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
	struct sock_fprog program = {1, allow};

	TRY(e, syscall(SYS_prctl, PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
	TRY(e, syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program));
}

static void own_namespaces(struct end *e)
{
	TRY(e, unshare(CLONE_NEWUSER | CLONE_NEWNS));
}

static void own_namespaces_by_number(struct end *e)
{
	TRY(e, syscall(SYS_unshare, CLONE_NEWUSER));
	TRY(e, syscall(SYS_setns, -1, 0));
}

static void other_user(struct end *e)
{
	gid_t group = NOBODY;

	TRY(e, setgroups(1, &group));
	TRY(e, setresgid(NOBODY, NOBODY, NOBODY));
	TRY(e, setresuid(NOBODY, NOBODY, NOBODY));
	TRY(e, setuid(0));
}

static void other_user_by_number(struct end *e)
{
	TRY(e, syscall(SYS_setgroups, 0, NULL));
	TRY(e, syscall(SYS_setregid, NOBODY, NOBODY));
	TRY(e, syscall(SYS_setreuid, NOBODY, NOBODY));
}

/* A daemon that acts for somebody and for itself in turns. */
static void back_and_forth(struct end *e)
{
	for (int i = 0; i < 40; i++) {
		MUST(e, getuid() ? 0 : seteuid(NOBODY));
		ask_often(e, e->fd, 3);
		MUST(e, getuid() ? 0 : seteuid(0));
	}
}

/* Nothing of this confines. */
static void harmless(struct end *e)
{
	TRY(e, prctl(PR_SET_NAME, "harmless", 0, 0, 0));
	TRY(e, prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0));
	TRY(e, prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0));
	TRY(e, unshare(0));
}

/* --- when --- */

/* The peer echoes: some of it is read before, the rest after. */
static void between(struct end *e, void (*call)(struct end *e))
{
	put(e, e->fd, "0123456789");
	arrived(e, e->fd, 10);
	show(e, e->fd, 4, 0);
	call(e);
	show(e, e->fd, 6, MSG_WAITALL);
	ask(e, e->fd);
	ask_often(e, e->fd, 300);
	shutdown(e->fd, SHUT_WR);
	drain(e, e->fd);
}

#define BETWEEN(name, calls)			\
	static void name(struct end *e)		\
	{					\
		between(e, calls);		\
		show_threads(e);		\
	}
BETWEEN(privileges, drop_all)
BETWEEN(seccomp, filter)
BETWEEN(seccomp_number, filter_by_number)
BETWEEN(namespaces, own_namespaces)
BETWEEN(namespaces_number, own_namespaces_by_number)
BETWEEN(user, other_user)
BETWEEN(user_number, other_user_by_number)

/* Here the service thread may come back in between. */
static void toggles(struct end *e)
{
	between(e, back_and_forth);
}

static void nothing_confines(struct end *e)
{
	between(e, harmless);
}

/* As much as fits lies between the ends, both ways, and the peer is not reading. */
static void much(struct end *e)
{
	unsigned char buf[4096];
	uint64_t sent = 0, got;
	ssize_t r;

	nonblock(e, e->fd, 1);
	for (; sent < MANY; sent += r) {
		pattern(buf, sizeof(buf), sent);
		r = send(e->fd, buf, sizeof(buf), 0);
		if (r <= 0)
			break;
	}
	nonblock(e, e->fd, 0);
	meet(e);
	filter(e);
	show_threads(e);
	pass(e, &sent, sizeof(sent));
	take(e, &got, sizeof(got));
	say(e, "the peer has %s", got == sent ? "all of it" : "lost some");
	check_pattern(e, e->fd, 0, 100000, 5000);
	say(e, "and so have we");
	shutdown(e->fd, SHUT_WR);
	drain(e, e->fd);
}

static void much_peer(struct end *e)
{
	unsigned char buf[4096];
	uint64_t sent, got = 0;

	send_pattern(e, e->fd, 0, 100000, 5000);
	meet(e);
	take(e, &sent, sizeof(sent));
	while (got < sent) {
		ssize_t r = recv(e->fd, buf, sizeof(buf), 0);

		if (r <= 0 || mismatch(buf, (size_t)r, got) != (size_t)r)
			break;
		got += (uint64_t)r;
	}
	pass(e, &got, sizeof(got));
	shutdown(e->fd, SHUT_WR);
	drain(e, e->fd);
}

/* The peer has ended its direction, and all of that is unread. */
static void ended_before(struct end *e)
{
	meet(e);
	arrived(e, e->fd, 10);
	filter(e);
	show_threads(e);
	show(e, e->fd, 10, MSG_WAITALL);
	drain(e, e->fd);
	put(e, e->fd, "goodbye");
	shutdown(e->fd, SHUT_WR);
}

static void ended_before_peer(struct end *e)
{
	put(e, e->fd, "0123456789");
	shutdown(e->fd, SHUT_WR);
	meet(e);
	drain(e, e->fd);
}

/* Another thread waits for bytes meanwhile, and a set does. */
static void waited_for(struct end *e)
{
	struct job j, w;
	int set = set_of(e, e->fd, EPOLLIN | EPOLLRDHUP);

	job_sleeps(e, &w, job_wait, set);
	job_sleeps(e, &j, job_recv, e->fd);
	drop_all(e);	/* no signal of libc interrupts the waits */
	put(e, e->fd, "echo");
	job_report(e, "recv", &j);
	shutdown(e->fd, SHUT_WR);
	job_join(e, &w);
	say(e, "the set woke: %ld", w.result);
	drain(e, e->fd);
}

#define ALLOW(number)								\
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1),			\
	BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)

/* From here on anything but these four would kill it. */
static void strict(struct end *e)
{
	struct sock_filter few[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		ALLOW(SYS_read), ALLOW(SYS_write), ALLOW(SYS_close), ALLOW(SYS_exit_group),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
	};
	struct sock_fprog program = {sizeof(few) / sizeof(few[0]), few};
	char buf[10];

	put(e, e->fd, "0123456789");
	arrived(e, e->fd, 10);
	TRY(e, prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
	TRY(e, prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program));
	text(e, "read", buf, read(e->fd, buf, 10));
	TRY(e, write(e->fd, "echo", 4));
	text(e, "read", buf, read(e->fd, buf, 4));
	TRY(e, close(e->fd));
	say(e, "it lives");
	_exit(0);
}

/* --- many connections, each at a listener of its own, and so on a link of its own --- */

struct couple {
	int fd[2];
};

static void couple_make(struct end *e, struct couple *c)
{
	int l = make_listener(e, 0);

	c->fd[0] = dial(e);
	c->fd[1] = MUST(e, accept4(l, NULL, NULL, SOCK_CLOEXEC));
	close(l);
}

static void couple_use(struct end *e, const struct couple *c)
{
	char byte;

	for (int i = 0; i < 2; i++) {
		MUST(e, send(c->fd[i], "w", 1, 0) - 1);
		get(e, c->fd[!i], &byte, 1);
	}
}

/* Warmed up: until TCP carries nothing of it. */
static void couple_warm(struct end *e, const struct couple *c)
{
	const char *ms = getenv("TEST_WARM"), *link = getenv("TEST_LINK");
	double until = now() + (ms && atoi(ms) > 0 && link ? atoi(link) / 1e3 : 0);
	uint64_t before;

	do {
		before = carried(c->fd[0]) + carried(c->fd[1]);
		couple_use(e, c);
	} while (before != carried(c->fd[0]) + carried(c->fd[1]) && now() < until);
}

/* As a server that drops rights for each job, and takes them back. */
static void rights_fall_and_rise(struct end *e)
{
	struct __user_cap_header_struct head = {_LINUX_CAPABILITY_VERSION_3, 0};
	struct __user_cap_data_struct data[2], none[2];

	MUST(e, syscall(SYS_capget, &head, data));
	memcpy(none, data, sizeof(none));
	none[0].effective &= ~(1u << CAP_NET_ADMIN);
	MUST(e, syscall(SYS_capset, &head, none));
	MUST(e, syscall(SYS_capset, &head, data));
}

static void rights_of_many(struct end *e, int count, int rounds)
{
	struct couple couples[100];

	for (int round = 0; round < rounds; round++) {
		for (int i = 0; i < count; i++) {
			couple_make(e, &couples[i]);
			couple_warm(e, &couples[i]);
		}
		rights_fall_and_rise(e);
		for (int i = 0; i < count; i++)
			couple_use(e, &couples[i]);
		for (int i = 0; i < count; i++)
			close_both(couples[i].fd);
		say(e, "round %d is over", round);
	}
}

static void seventeen_rights(struct end *e)
{
	rights_of_many(e, 17, 3);
}

static void hundred_rights(struct end *e)
{
	rights_of_many(e, 100, 2);
}

const struct test cases_confine[] = {
	{"confine_privileges", PROCS, privileges, echo_peer},
	{"confine_seccomp", PROCS, seccomp, echo_peer},
	{"confine_seccomp_number", PROCS, seccomp_number, echo_peer},
	{"confine_namespaces", PROCS, namespaces, echo_peer},
	{"confine_namespaces_number", PROCS, namespaces_number, echo_peer},
	{"confine_user", PROCS, user, echo_peer},
	{"confine_user_number", PROCS, user_number, echo_peer},
	{"confine_toggles", PROCS, toggles, echo_peer},
	{"confine_harmless", PROCS, nothing_confines, echo_peer},
	{"confine_much", PROCS, much, much_peer},
	{"confine_ended_before", PROCS, ended_before, ended_before_peer},
	{"confine_waited_for", PROCS, waited_for, echo_peer},
	{"confine_strict", PROCS, strict, echo_peer},
	{"confine_rights_of_17", ALONE, seventeen_rights, NULL},
	{"confine_rights_of_100", ALONE, hundred_rights, NULL},
	{NULL, 0, NULL, NULL},
};
