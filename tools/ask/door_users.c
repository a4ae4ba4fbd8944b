/* SPDX-License-Identifier: MIT */
/* The users of doors, before anybody knocks: sock_diag(7) shows the user of a listening Unix socket. */
#include "tools/ask/door.h"

#include <errno.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/sock_diag.h>
#include <linux/unix_diag.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#define ANSWER_BYTES 65536

struct question {
	struct nlmsghdr header;
	struct unix_diag_req request;
};

static int compare_inode(const void *a, const void *b)
{
	const struct shunt_door *const *x = a, *const *y = b;

	return ((*x)->inode > (*y)->inode) - ((*x)->inode < (*y)->inode);
}

/* One listening socket. */
static void take(const struct nlmsghdr *header, struct shunt_door **doors, size_t count)
{
	const struct unix_diag_msg *shown = NLMSG_DATA(header);
	struct shunt_door wanted = { .inode = shown->udiag_ino }, *key = &wanted, **found;
	int left = (int)(header->nlmsg_len - NLMSG_LENGTH(sizeof(*shown)));
	const struct rtattr *attribute = (const void *)(shown + 1);

	found = bsearch(&key, doors, count, sizeof(struct shunt_door *), compare_inode);
	for (; found && RTA_OK(attribute, left); attribute = RTA_NEXT(attribute, left))
		if (attribute->rta_type == UNIX_DIAG_UID &&
		    RTA_PAYLOAD(attribute) >= sizeof(uint32_t))
			memcpy(&(*found)->user, RTA_DATA(attribute), sizeof(uint32_t));
}

/* False: there is no more. */
static bool hear(int fd, struct shunt_door **doors, size_t count)
{
	static _Alignas(struct nlmsghdr) char answer[ANSWER_BYTES];
	const struct nlmsghdr *header = (const void *)answer;
	ssize_t got = recv(fd, answer, sizeof(answer), 0);
	size_t left = got > 0 ? (size_t)got : 0;

	if (got <= 0)
		return got < 0 && errno == EINTR;
	for (; NLMSG_OK(header, left); header = NLMSG_NEXT(header, left)) {
		if (header->nlmsg_type != SOCK_DIAG_BY_FAMILY)
			return false;
		if (header->nlmsg_len >= NLMSG_LENGTH(sizeof(struct unix_diag_msg)))
			take(header, doors, count);
	}
	return true;
}

static void ask(struct shunt_door **doors, size_t count)
{
	struct question question = {
		.header = { .nlmsg_len = sizeof(question),
			    .nlmsg_type = SOCK_DIAG_BY_FAMILY,
			    .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP },
		.request = { .sdiag_family = AF_UNIX,
			     .udiag_states = 1U << TCP_LISTEN,
			     .udiag_show = UDIAG_SHOW_UID },
	};
	struct sockaddr_nl kernel = { .nl_family = AF_NETLINK };
	struct timeval patience = { .tv_sec = 1 };
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);

	if (fd < 0)
		return;
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	if (sendto(fd, &question, sizeof(question), 0, (struct sockaddr *)&kernel, sizeof(kernel)) >
	    0)
		while (hear(fd, doors, count))
			;
	close(fd);
}

void shunt_door_users(struct shunt_doors *doors)
{
	struct shunt_door **by_inode = calloc(doors->count + 1, sizeof(struct shunt_door *));

	if (!by_inode)
		abort();
	for (size_t i = 0; i < doors->count; i++)
		by_inode[i] = &doors->door[i];
	if (doors->count) {
		qsort(by_inode, doors->count, sizeof(struct shunt_door *), compare_inode);
		ask(by_inode, doors->count);
	}
	free(by_inode);
}
