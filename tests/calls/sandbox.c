/* SPDX-License-Identifier: MIT */
/*
 * sandbox server CALL|list	listens, says "port N", echoes one connection; when TCP carries no more of
 *				it (TEST_LINK), or MEANWHILE bytes have come, it makes the call that
 *				confines it, says what it returned and what every thread is then, echoes
 *				on, and says that again with its next connection
 * sandbox client PORT		sends a pattern on two connections, one after the other, and checks what
 *				comes back; it never waits for an answer before it sends more
 *
 * Threads are told without their ids. All that is said is the same in a bare run.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/keyctl.h>
#include <linux/landlock.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include "tests/calls/carried.h"
#include "tests/plain.h"

#define NOBODY 65534
#define OTHER 65533
#define BLOCK 4096
#define MEANWHILE (16 << 20)	/* bytes that are echoed before the call at least; more than sockets buffer */
#define MARK '!'	/* echoed where the call was made */
#define SENT (8 << 20)		/* by the client after it was told that the call is made, and on the second connection */

int capset(void *header, const void *data);

static int listening;

/* --- what a thread is --- */

static int is_told(const char *line)
{
	static const char *const told[] = {"Uid:", "Gid:", "Groups:", "CapInh:", "CapPrm:", "CapEff:", "CapBnd:",
					   "CapAmb:", "NoNewPrivs:", "Seccomp:", "Seccomp_filters:",
					   "Speculation_Store_Bypass:", "SpeculationIndirectBranch:"};

	for (size_t i = 0; i < sizeof(told) / sizeof(told[0]); i++)
		if (!strncmp(line, told[i], strlen(told[i])))
			return 1;
	return 0;
}

/* Its namespaces, beside those of the main thread: numbers differ between runs. False: it is about to end. */
static int tell_namespaces(int task, FILE *to)
{
	static const char *const names[] = {"cgroup", "ipc", "mnt", "net", "pid", "user", "uts"};
	char path[64];
	struct stat here, there;

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		snprintf(path, sizeof(path), "/proc/self/ns/%s", names[i]);
		int known = !stat(path, &here);

		snprintf(path, sizeof(path), "ns/%s", names[i]);
		if (known && fstatat(task, path, &there, 0))
			return 0;
		fprintf(to, " %s:%s", names[i], !known ? "?" : here.st_ino == there.st_ino ? "same" : "ANOTHER");
	}
	return 1;
}

/* False: it has ended, or is about to. */
static int tell_thread(int tasks, const char *name, FILE *to)
{
	int task = openat(tasks, name, O_RDONLY | O_DIRECTORY), alive = 0;
	int status = task < 0 ? -1 : openat(task, "status", O_RDONLY);
	FILE *file = status < 0 ? NULL : fdopen(status, "r");
	char line[512];

	while (file && fgets(line, sizeof(line), file)) {
		line[strcspn(line, "\n")] = 0;
		if (is_told(line))
			fprintf(to, " %s", line);
		alive |= !strncmp(line, "State:", 6) && !strchr("ZX", line[7]);
	}
	if (file)
		fclose(file);
	alive = alive && tell_namespaces(task, to);
	if (task >= 0)
		close(task);
	return alive;
}

static void tell_threads(const char *when)
{
	int tasks = open("/proc/self/task", O_RDONLY | O_DIRECTORY), count = 0;
	DIR *dir = fdopendir(tasks);
	struct dirent *entry;

	if (!dir)
		die("/proc/self/task");
	while ((entry = readdir(dir))) {
		char *text = NULL;
		size_t size = 0;
		FILE *to = open_memstream(&text, &size);

		if (!to)
			die("open_memstream");
		int alive = entry->d_name[0] != '.' && tell_thread(tasks, entry->d_name, to);

		fclose(to);
		if (alive)
			printf("thread:%s\n", text);
		count += alive;
		free(text);
	}
	closedir(dir);
	printf("%s: %d threads\n", when, count);
	fflush(stdout);
}

/* --- the calls --- */

#define TRY(call)									\
	do {										\
		errno = 0;								\
		long result_ = (call);							\
		printf("%s = %ld%s%s\n", #call, result_ > 0 ? 1 : result_, result_ < 0 ? " " : "",	\
		       result_ < 0 ? strerrorname_np(errno) : "");			\
	} while (0)

static struct __user_cap_header_struct head = {_LINUX_CAPABILITY_VERSION_3, 0};
static struct __user_cap_data_struct none[2];
static struct sock_filter allow_all[] = {BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
static struct sock_fprog program = {1, allow_all};

static void c_setuid(void) { TRY(setuid(NOBODY)); }
static void n_setuid(void) { TRY(syscall(SYS_setuid, NOBODY)); }
static void c_setgid(void) { TRY(setgid(NOBODY)); }
static void n_setgid(void) { TRY(syscall(SYS_setgid, NOBODY)); }
static void c_setreuid(void) { TRY(setreuid(NOBODY, NOBODY)); }
static void n_setreuid(void) { TRY(syscall(SYS_setreuid, NOBODY, NOBODY)); }
static void c_setregid(void) { TRY(setregid(NOBODY, NOBODY)); }
static void n_setregid(void) { TRY(syscall(SYS_setregid, NOBODY, NOBODY)); }
static void c_setresuid(void) { TRY(setresuid(NOBODY, NOBODY, NOBODY)); }
static void n_setresuid(void) { TRY(syscall(SYS_setresuid, NOBODY, NOBODY, NOBODY)); }
static void c_setresgid(void) { TRY(setresgid(NOBODY, NOBODY, NOBODY)); }
static void n_setresgid(void) { TRY(syscall(SYS_setresgid, NOBODY, NOBODY, NOBODY)); }

/* Whatever has ended for the call before is there again. */
static void look_for_connections(void)
{
	struct pollfd p = {.fd = listening, .events = POLLIN};

	(void)prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);	/* the kernel may have taken that away, and /proc with it */
	if (poll(&p, 1, 0))
		die("poll");
}

/* The real id is given up before; the rest with calls that leave it. */
static void saved_last(void)
{
	TRY(syscall(SYS_setresuid, NOBODY, 0, 0));
	look_for_connections();
	TRY(syscall(SYS_setresuid, -1, NOBODY, NOBODY));
	TRY(syscall(SYS_setuid, 0));
}

static void effective_last(void)
{
	TRY(syscall(SYS_setresuid, NOBODY, 0, NOBODY));
	look_for_connections();
	TRY(syscall(SYS_setresuid, -1, NOBODY, -1));
	TRY(syscall(SYS_setuid, 0));
}

static void pair_last(void)
{
	TRY(syscall(SYS_setresuid, OTHER, 0, 0));
	look_for_connections();
	TRY(syscall(SYS_setreuid, -1, NOBODY));
	TRY(syscall(SYS_setuid, 0));
}

static void groups_last(void)
{
	TRY(syscall(SYS_setgroups, 0, NULL));
	TRY(syscall(SYS_setresgid, NOBODY, 0, 0));
	look_for_connections();
	TRY(syscall(SYS_setresgid, -1, NOBODY, NOBODY));
}

/* As daemons do. */
static void daemon_user(void)
{
	gid_t group = OTHER;

	TRY(prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0));
	TRY(setgroups(1, &group));
	TRY(setgid(NOBODY));
	TRY(setuid(NOBODY));
	TRY(capset(&head, none));
}

static void c_capset(void) { TRY(capset(&head, none)); }
static void n_capset(void) { TRY(syscall(SYS_capset, &head, none)); }
static void c_no_new_privs(void) { TRY(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)); }
static void n_no_new_privs(void) { TRY(syscall(SYS_prctl, PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)); }
static void c_bounding(void) { TRY(prctl(PR_CAPBSET_DROP, CAP_SYS_ADMIN, 0, 0, 0)); }
static void n_bounding(void) { TRY(syscall(SYS_prctl, PR_CAPBSET_DROP, CAP_NET_RAW, 0, 0, 0)); }

static void c_ambient(void)
{
	struct __user_cap_data_struct some[2];

	TRY(syscall(SYS_capget, &head, some));
	some[0].inheritable = some[0].permitted;
	TRY(capset(&head, some));
	TRY(prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, CAP_CHOWN, 0, 0));
	TRY(prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_IS_SET, CAP_CHOWN, 0, 0));
}

static void c_securebits(void) { TRY(prctl(PR_SET_SECUREBITS, 1 << 2 | 1 << 3, 0, 0, 0)); }

static void c_speculation(void)
{
	TRY(prctl(PR_SET_SPECULATION_CTRL, PR_SPEC_STORE_BYPASS, PR_SPEC_DISABLE, 0, 0));
	TRY(prctl(PR_SET_SPECULATION_CTRL, PR_SPEC_INDIRECT_BRANCH, PR_SPEC_DISABLE, 0, 0));
}

static void core_scheduling(void) { TRY(prctl(62, 1, 0, 0, 0)); }
static void session_keyring(void) { TRY(syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, NULL)); }

static void c_seccomp(void)
{
	TRY(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
	TRY(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program));
}

static void n_seccomp(void)
{
	TRY(syscall(SYS_prctl, PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
	TRY(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program));
}

static void tsync(void)
{
	TRY(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
	TRY(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program));
}

static void landlock(void)
{
	struct landlock_ruleset_attr attr = {.handled_access_fs = LANDLOCK_ACCESS_FS_MAKE_REG};
	int rules = (int)syscall(SYS_landlock_create_ruleset, &attr, sizeof(attr), 0);

	printf("landlock is %s\n", rules < 0 ? "missing" : "there");
	TRY(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
	TRY(syscall(SYS_landlock_restrict_self, rules, 0));
	TRY(open("/tmp/sandbox.forbidden", O_CREAT | O_WRONLY | O_EXCL, 0600));
	if (rules >= 0)
		close(rules);
}

static void c_unshare(void) { TRY(unshare(CLONE_NEWUSER | CLONE_NEWNS)); }
static void n_unshare(void) { TRY(syscall(SYS_unshare, CLONE_NEWUSER | CLONE_NEWNS)); }
static void unshare_each(void)
{
	TRY(unshare(CLONE_NEWUSER));
	TRY(unshare(CLONE_NEWIPC));
	TRY(unshare(CLONE_NEWUTS));
	TRY(syscall(SYS_unshare, CLONE_NEWPID));
	TRY(syscall(SYS_unshare, CLONE_NEWCGROUP));
	TRY(unshare(CLONE_FS | CLONE_FILES | CLONE_SYSVSEM));
}
static void unshare_net(void) { TRY(unshare(CLONE_NEWNET)); }
static void unshare_thread(void) { TRY(unshare(CLONE_THREAD | CLONE_SIGHAND | CLONE_VM)); }
static void unshare_fs(void)
{
	TRY(unshare(CLONE_FS));
	TRY(chdir("/"));
}

/* Into a mount namespace nobody comes whose root and folder are another thread's, too. */
static void c_setns(void) { TRY(setns(open("/proc/self/ns/mnt", O_RDONLY), CLONE_NEWNS)); }
static void n_setns(void) { TRY(syscall(SYS_setns, open("/proc/self/ns/uts", O_RDONLY), CLONE_NEWUTS)); }

/* The child is the one that is confined. */
static void leave_child(long pid)
{
	int status = -1;

	if (!pid) {
		tell_threads("child");
		_exit(0);
	}
	TRY(waitpid((pid_t)pid, &status, 0));
	TRY(status);
}

static void n_clone(void)
{
	fflush(stdout);
	leave_child(syscall(SYS_clone, CLONE_NEWUSER | CLONE_NEWNS | SIGCHLD, NULL, NULL, NULL, NULL));
}

static void n_clone3(void)
{
	struct clone_args args = {.flags = CLONE_NEWUSER | CLONE_NEWPID, .exit_signal = SIGCHLD};

	fflush(stdout);
	leave_child(syscall(SYS_clone3, &args, sizeof(args)));
}

static int in_child(void *unused)
{
	(void)unused;
	tell_threads("child");
	return 0;
}

static void c_clone(void)
{
	static char stack[1 << 16] __attribute__((aligned(16)));

	fflush(stdout);
	leave_child(clone(in_child, stack + sizeof(stack), CLONE_NEWUSER | CLONE_NEWNET | SIGCHLD, NULL));
}

static void forked(void)
{
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (!pid) {
		c_unshare();
		n_seccomp();
	}
	leave_child(pid);
}

/* Concern the whole process, or nothing. */
static void harmless(void)
{
	TRY(prctl(PR_SET_NAME, "harmless", 0, 0, 0));
	TRY(prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0));
	TRY(prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0));
	TRY(syscall(SYS_keyctl, KEYCTL_GET_KEYRING_ID, 0x7fffffff, 0));
	TRY(setresuid(-1, -1, -1));
	TRY(unshare(0));
	TRY(chroot("/"));
}

static const struct {
	const char *name;
	void (*call)(void);
} calls[] = {
	{"setuid", c_setuid}, {"setuid-number", n_setuid}, {"setgid", c_setgid}, {"setgid-number", n_setgid},
	{"setreuid", c_setreuid}, {"setreuid-number", n_setreuid}, {"setregid", c_setregid},
	{"setregid-number", n_setregid}, {"setresuid", c_setresuid}, {"setresuid-number", n_setresuid},
	{"setresgid", c_setresgid}, {"setresgid-number", n_setresgid}, {"saved-last", saved_last},
	{"effective-last", effective_last}, {"pair-last", pair_last}, {"groups-last", groups_last},
	{"daemon", daemon_user}, {"capset", c_capset}, {"capset-number", n_capset}, {"no_new_privs", c_no_new_privs},
	{"no_new_privs-number", n_no_new_privs}, {"bounding", c_bounding}, {"bounding-number", n_bounding},
	{"ambient", c_ambient}, {"securebits", c_securebits}, {"speculation", c_speculation},
	{"core-scheduling", core_scheduling}, {"session-keyring", session_keyring}, {"seccomp", c_seccomp},
	{"seccomp-number", n_seccomp}, {"tsync", tsync}, {"landlock", landlock}, {"unshare", c_unshare},
	{"unshare-number", n_unshare}, {"unshare-each", unshare_each}, {"unshare-net", unshare_net},
	{"unshare-thread", unshare_thread}, {"unshare-fs", unshare_fs}, {"setns", c_setns}, {"setns-number", n_setns},
	{"clone", c_clone}, {"clone-number", n_clone}, {"clone3", n_clone3}, {"fork", forked}, {"harmless", harmless},
};

/* --- both ends --- */

/* The pattern, which has no MARK. */
static unsigned char at(uint64_t position)
{
	unsigned char byte = (unsigned char)(position * 131 >> 3 ^ position >> 11);

	return byte == MARK ? MARK + 1 : byte;
}

static void send_all(int fd, const char *buf, size_t length)
{
	while (length) {
		ssize_t r = send(fd, buf, length, MSG_NOSIGNAL);

		if (r <= 0)
			die("send");
		buf += r;
		length -= (size_t)r;
	}
}

/* Returns the bytes that were echoed: until the end, or until it is time for the call. */
static uint64_t echo(int fd, int until_call)
{
	const char *link = getenv("TEST_LINK");
	double until = now() + (link ? atof(link) / 1000 : 0);
	uint64_t bytes = 0, tcp = carried(fd);
	char buf[BLOCK];
	ssize_t r;

	while ((r = recv(fd, buf, sizeof(buf), 0)) > 0) {
		send_all(fd, buf, (size_t)r);
		bytes += (uint64_t)r;
		if (!until_call || bytes % MEANWHILE >= (uint64_t)r || bytes < MEANWHILE)
			continue;
		if (carried(fd) == tcp || now() > until)
			return bytes;
		tcp = carried(fd);
	}
	if (r < 0)
		die("recv");
	return bytes;
}

static void server(void (*call)(void))
{
	struct pollfd p = {.events = POLLIN};
	int fd;

	p.fd = listening = listener(loopback(0), 0, 8);
	fd = accept(listening, NULL, NULL);
	if (fd < 0)
		die("accept");
	echo(fd, 1);
	call();
	tell_threads("after the call");
	(void)prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
	send_all(fd, (char[]) {MARK}, 1);	/* the client sends what is left, and ends */
	echo(fd, 0);
	close(fd);
	printf("the first connection has ended\n");
	if (poll(&p, 1, -1) != 1 || (fd = accept(listening, NULL, NULL)) < 0)
		die("accept");
	echo(fd, 0);
	tell_threads("with the next connection");
}

/* Sends without waiting. `total`: bytes, 0: SENT more when a MARK has come. */
static void client(int port, uint64_t total)
{
	int fd = dial(loopback(port)), marked = total != 0;
	uint64_t sent = 0, got = 0;
	char buf[BLOCK];

	fcntl(fd, F_SETFL, O_NONBLOCK);
	for (;;) {
		struct pollfd p = {.fd = fd, .events = POLLIN};
		ssize_t r;

		if (!total || sent < total)
			p.events |= POLLOUT;
		if (poll(&p, 1, -1) != 1)
			die("poll");
		if (p.revents & POLLOUT) {
			for (size_t i = 0; i < sizeof(buf); i++)
				buf[i] = (char)at(sent + i);
			r = send(fd, buf, total && total - sent < BLOCK ? total - sent : BLOCK, MSG_NOSIGNAL);
			if (r < 0 && errno != EAGAIN)
				die("send");
			sent += r > 0 ? (uint64_t)r : 0;
			if (total && sent == total)
				shutdown(fd, SHUT_WR);
		}
		if (!(p.revents & (POLLIN | POLLHUP | POLLERR)))
			continue;
		r = recv(fd, buf, sizeof(buf), 0);
		if (r < 0 && errno != EAGAIN)
			die("recv");
		if (!r)
			break;
		for (ssize_t i = 0; i < r; i++) {
			if (!marked && buf[i] == MARK) {
				marked = 1;
				total = sent + SENT;
			} else if ((unsigned char)buf[i] != at(got++)) {
				printf("byte %llu is another one\n", (unsigned long long)got - 1);
				exit(1);
			}
		}
	}
	printf("%s\n", marked && got == sent && sent == total ? "every byte came back" : "bytes are missing");
	fflush(stdout);
	close(fd);
}

int main(int argc, char **argv)
{
	if (argc == 3 && !strcmp(argv[1], "client")) {
		client(atoi(argv[2]), 0);
		client(atoi(argv[2]), SENT);
		return 0;
	}
	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		if (argc == 2)
			printf("%s\n", calls[i].name);
		else if (!strcmp(argv[2], calls[i].name)) {
			server(calls[i].call);
			return 0;
		}
	}
	return argc != 2;
}
