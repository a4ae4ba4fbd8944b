/* SPDX-License-Identifier: MIT */
/*
 * hardened OPTION... -- COMMAND...: runs the command with what a systemd unit can ask for (systemd.exec(5)), done as
 * systemd does it, without systemd. It ends with 77 where the machine does not allow it.
 *
 * families=NAME,...		RestrictAddressFamilies=: sockets of other families are EAFNOSUPPORT
 * write-xor-execute		MemoryDenyWriteExecute=, the filter that systemd sets
 * mdwe				the same, by PR_SET_MDWE
 * memlock=BYTES		LimitMEMLOCK=
 * restrict-namespaces		RestrictNamespaces=
 * locked			LockPersonality=, RestrictRealtime=, RestrictSUIDSGID=
 * calls=FILE			SystemCallFilter=: the process is killed by a call whose number is not in the file
 * no-new-privileges		NoNewPrivileges=
 * no-capabilities		CapabilityBoundingSet= without any
 * user=UID			User=, DynamicUser=
 * private-users		PrivateUsers=: only its own user is there
 * private-mounts		PrivateTmp=, ProtectSystem= and all that gives a mount namespace
 * private-devices		PrivateDevices=
 * proc-invisible, proc-pid	ProtectProc=invisible, ProcSubset=pid
 * no-proc			RootDirectory= without MountAPIVFS=
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/audit.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/shm.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>
#include "tests/plain.h"

#define MISSING 77
#define ROOM 2048	/* instructions of a filter */

static void need(int result, const char *what)
{
	if (result) {
		perror(what);
		exit(MISSING);
	}
}

/* --- filters --- */

static struct sock_filter code[ROOM];
static unsigned short length;

static void add(struct sock_filter one)
{
	if (length == ROOM)
		die("too many instructions");
	code[length++] = one;
}

static void load(size_t offset)
{
	add((struct sock_filter) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (unsigned int)offset));
}

static void answer(unsigned int what)
{
	add((struct sock_filter) BPF_STMT(BPF_RET | BPF_K, what));
}

static void begin(void)
{
	length = 0;
	load(offsetof(struct seccomp_data, nr));
}

/* One call alone, whatever its arguments. */
static void refuse(int number, unsigned int error)
{
	add((struct sock_filter) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned int)number, 0, 1));
	answer(SECCOMP_RET_ERRNO | error);
}

/* The call, if its argument has one of the bits. */
static void refuse_bits(int number, int argument, unsigned int bits, unsigned int error)
{
	add((struct sock_filter) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned int)number, 0, 4));
	load(offsetof(struct seccomp_data, args) + 8 * (size_t)argument);
	add((struct sock_filter) BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, bits, 0, 1));
	answer(SECCOMP_RET_ERRNO | error);
	answer(SECCOMP_RET_ALLOW);
}

static void filter(unsigned int otherwise)
{
	struct sock_fprog program = {0, code};

	answer(otherwise);
	program.len = length;
	need(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "no_new_privs");
	need(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program), "seccomp");
}

static void families(const char *names)
{
	static const struct { const char *name; unsigned int family; } all[] = {
		{"unix", AF_UNIX}, {"inet", AF_INET}, {"inet6", AF_INET6}, {"netlink", AF_NETLINK},
	};

	begin();
	add((struct sock_filter) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_socket, 1, 0));
	answer(SECCOMP_RET_ALLOW);
	load(offsetof(struct seccomp_data, args));
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		const char *at = strstr(names, all[i].name);

		if (!at || (at[strlen(all[i].name)] && at[strlen(all[i].name)] != ','))
			continue;
		add((struct sock_filter) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, all[i].family, 0, 1));
		answer(SECCOMP_RET_ALLOW);
	}
	filter(SECCOMP_RET_ERRNO | EAFNOSUPPORT);
}

static void write_xor_execute(void)
{
	begin();
	/* mmap() of both at once: the bits are asked for one after the other. */
	add((struct sock_filter) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mmap, 0, 5));
	load(offsetof(struct seccomp_data, args) + 16);
	add((struct sock_filter) BPF_STMT(BPF_ALU | BPF_AND | BPF_K, PROT_WRITE | PROT_EXEC));
	add((struct sock_filter) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, PROT_WRITE | PROT_EXEC, 0, 1));
	answer(SECCOMP_RET_ERRNO | EPERM);
	answer(SECCOMP_RET_ALLOW);
	refuse_bits(SYS_mprotect, 2, PROT_EXEC, EPERM);
	refuse_bits(SYS_pkey_mprotect, 2, PROT_EXEC, EPERM);
	refuse_bits(SYS_shmat, 2, SHM_EXEC, EPERM);
	filter(SECCOMP_RET_ALLOW);
}

static void restrict_namespaces(void)
{
	const unsigned int all = CLONE_NEWCGROUP | CLONE_NEWIPC | CLONE_NEWNET | CLONE_NEWNS | CLONE_NEWPID |
				 CLONE_NEWUSER | CLONE_NEWUTS;

	begin();
	refuse(SYS_clone3, ENOSYS);	/* its flags are in memory */
	refuse(SYS_setns, EPERM);
	refuse_bits(SYS_unshare, 0, all, EPERM);
	refuse_bits(SYS_clone, 0, all, EPERM);
	filter(SECCOMP_RET_ALLOW);
}

static void locked(void)
{
	begin();
	refuse(SYS_personality, EPERM);
	refuse(SYS_sched_setscheduler, EPERM);
	refuse(SYS_openat2, ENOSYS);
	refuse_bits(SYS_fchmod, 1, S_ISUID | S_ISGID, EPERM);
	refuse_bits(SYS_fchmodat, 2, S_ISUID | S_ISGID, EPERM);
	filter(SECCOMP_RET_ALLOW);
}

static void calls_of(const char *path)
{
	FILE *file = fopen(path, "r");
	unsigned int number;

	if (!file)
		die(path);
	begin();
	while (fscanf(file, "%u", &number) == 1) {
		add((struct sock_filter) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1));
		answer(SECCOMP_RET_ALLOW);
	}
	fclose(file);
	filter(SECCOMP_RET_KILL_PROCESS);
}

/* --- limits, ids --- */

static void memlock(const char *bytes)
{
	struct rlimit limit = {strtoul(bytes, NULL, 0), strtoul(bytes, NULL, 0)};

	need(setrlimit(RLIMIT_MEMLOCK, &limit), "LimitMEMLOCK");
}

static void no_capabilities(void)
{
	for (unsigned long capability = 0; capability < 64; capability++)
		if (prctl(PR_CAPBSET_READ, capability) == 1)
			need(prctl(PR_CAPBSET_DROP, capability), "CapabilityBoundingSet");
}

static void user(const char *number)
{
	unsigned int id = (unsigned int)atoi(number);

	need(setgroups(0, NULL), "setgroups");
	need(setresgid(id, id, id), "setresgid");
	need(setresuid(id, id, id), "setresuid");
}

/* --- namespaces --- */

static void tell(const char *path, const char *what)
{
	int fd = open(path, O_WRONLY);

	need(fd < 0 || write(fd, what, strlen(what)) < 0, path);
	close(fd);
}

static void private_users(void)
{
	unsigned int uid = getuid(), gid = getgid();
	char map[64];

	need(unshare(CLONE_NEWUSER), "PrivateUsers");
	tell("/proc/self/setgroups", "deny");
	snprintf(map, sizeof(map), "%u %u 1", uid, uid);
	tell("/proc/self/uid_map", map);
	snprintf(map, sizeof(map), "%u %u 1", gid, gid);
	tell("/proc/self/gid_map", map);
}

static void private_mounts(void)
{
	need(unshare(CLONE_NEWNS), "a mount namespace");
	need(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL), "private mounts");
}

static void over(const char *path, const char *type, const char *data)
{
	private_mounts();
	need(mount(type, path, type, MS_NOSUID, data), path);
}

static void private_devices(void)
{
	over("/dev", "tmpfs", "mode=755");
	need(mknod("/dev/null", S_IFCHR | 0666, makedev(1, 3)), "/dev/null");
	need(mknod("/dev/urandom", S_IFCHR | 0666, makedev(1, 9)), "/dev/urandom");
}

static void apply(const char *option)
{
	const char *value = strchr(option, '=');

	value = value ? value + 1 : "";
	if (!strncmp(option, "families=", 9))
		families(value);
	else if (!strcmp(option, "write-xor-execute"))
		write_xor_execute();
	else if (!strcmp(option, "mdwe"))
		need(prctl(65, 1, 0, 0, 0), "PR_SET_MDWE");
	else if (!strncmp(option, "memlock=", 8))
		memlock(value);
	else if (!strcmp(option, "restrict-namespaces"))
		restrict_namespaces();
	else if (!strcmp(option, "locked"))
		locked();
	else if (!strncmp(option, "calls=", 6))
		calls_of(value);
	else if (!strcmp(option, "no-new-privileges"))
		need(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), option);
	else if (!strcmp(option, "no-capabilities"))
		no_capabilities();
	else if (!strncmp(option, "user=", 5))
		user(value);
	else if (!strcmp(option, "private-users"))
		private_users();
	else if (!strcmp(option, "private-mounts"))
		private_mounts();
	else if (!strcmp(option, "private-devices"))
		private_devices();
	else if (!strcmp(option, "proc-invisible"))
		over("/proc", "proc", "hidepid=invisible");
	else if (!strcmp(option, "proc-pid"))
		over("/proc", "proc", "subset=pid");
	else if (!strcmp(option, "no-proc"))
		over("/proc", "tmpfs", NULL);
	else if (strcmp(option, "nothing")) {
		fprintf(stderr, "no option %s\n", option);
		exit(2);
	}
}

int main(int argc, char **argv)
{
	int i;

	for (i = 1; i < argc && strcmp(argv[i], "--"); i++)
		apply(argv[i]);
	if (i + 1 >= argc)
		return 2;
	execvp(argv[i + 1], argv + i + 1);
	die(argv[i + 1]);
}
