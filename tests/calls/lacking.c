/* SPDX-License-Identifier: MIT */
/*
 * - lacking enosys|eperm COMMAND...: runs a command for which newer system calls fail, by seccomp(2).
 *   The error is an older kernel's (enosys), or that of an old container's filter (eperm).
 * - lacking passrights COMMAND...: SO_PASSRIGHTS is missing.
 * - lacking netlink COMMAND...: a policy forbids sockets of AF_NETLINK.
 * - lacking attach COMMAND...: a policy such as Yama's lets nobody attach to another process (ptrace).
 */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#define REFUSED(number)									\
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1),				\
	BPF_STMT(BPF_RET | BPF_K, 0 /* `how` */)

#define SO_PASSRIGHTS 83

/* The low half of an argument. */
#define ARGUMENT(n) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[n]) + \
			     (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__ ? 4 : 0))

static struct sock_filter passrights[] = {
	BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_setsockopt, 0, 5),
	ARGUMENT(1),
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SOL_SOCKET, 0, 3),
	ARGUMENT(2),
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SO_PASSRIGHTS, 0, 1),
	BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOPROTOOPT),
	BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
};

static struct sock_filter netlink[] = {
	BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_socket, 0, 3),
	ARGUMENT(0),
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AF_NETLINK, 0, 1),
	BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EAFNOSUPPORT),
	BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
};

static struct sock_filter attach[] = {
	BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_readv, 0, 1),
	BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
	BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
};

int main(int argc, char **argv)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		REFUSED(SYS_epoll_pwait2),
		REFUSED(SYS_close_range),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = {.len = sizeof(code) / sizeof(*code), .filter = code};
	int how;

	if (argc < 3 || (strcmp(argv[1], "enosys") && strcmp(argv[1], "eperm") &&
			 strcmp(argv[1], "passrights") && strcmp(argv[1], "netlink") &&
			 strcmp(argv[1], "attach")))
		return fprintf(stderr,
			       "lacking enosys|eperm|passrights|netlink|attach COMMAND...\n"),
		       2;
	how = strcmp(argv[1], "eperm") ? ENOSYS : EPERM;
	for (int i = 0; i < program.len; i++)
		if (code[i].code == (BPF_RET | BPF_K) && !code[i].k)
			code[i].k = SECCOMP_RET_ERRNO | how;
	if (!strcmp(argv[1], "passrights"))
		program = (struct sock_fprog) {.len = sizeof(passrights) / sizeof(*passrights),
					       .filter = passrights};
	if (!strcmp(argv[1], "netlink"))
		program = (struct sock_fprog) {.len = sizeof(netlink) / sizeof(*netlink), .filter = netlink};
	if (!strcmp(argv[1], "attach"))
		program = (struct sock_fprog) {.len = sizeof(attach) / sizeof(*attach), .filter = attach};
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program)) {
		perror("lacking: seccomp");
		return 3;
	}
	execvp(argv[2], argv + 2);
	perror(argv[2]);
	return 3;
}
