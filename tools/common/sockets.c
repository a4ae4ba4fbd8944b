/* SPDX-License-Identifier: MIT */
#include "tools/common/sockets.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <dirent.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/common/proc.h"

/* ---- the kernel's table ---- */

/* Words of 32 bits as this machine has them, in network order in memory. False: it is no address. */
static bool parse_address(const char *text, char out[SHUNT_SOCKET_ADDRESS])
{
	size_t digits = strcspn(text, ":");
	uint32_t words[4];
	struct in6_addr six;
	char host[INET6_ADDRSTRLEN], *end;
	unsigned long port;

	if (digits != 8 && digits != 32)
		return false;
	for (size_t i = 0; i < digits / 8; i++) {
		char word[9] = "";

		memcpy(word, text + 8 * i, 8);
		words[i] = (uint32_t)strtoul(word, NULL, 16);
	}
	port = strtoul(text + digits + 1, &end, 16);
	memcpy(&six, words, digits / 2);
	if (digits == 8)
		inet_ntop(AF_INET, words, host, sizeof(host));
	else if (IN6_IS_ADDR_V4MAPPED(&six))
		inet_ntop(AF_INET, words + 3, host, sizeof(host));
	else
		inet_ntop(AF_INET6, words, host, sizeof(host));
	snprintf(out, SHUNT_SOCKET_ADDRESS, strchr(host, ':') ? "[%s]:%lu" : "%s:%lu", host, port);
	return true;
}

/* "  12: 0100007F:1F90 0100007F:A3C2 01 00000000:00000000 00:00000000 00000000  1000  0 4242 1 ..." */
static bool parse_line(const char *line, struct shunt_socket *socket)
{
	char local[40], peer[40];
	unsigned int state, user;

	*socket = (struct shunt_socket) { .fd = -1 };
	if (sscanf(line, " %*d: %39s %39s %x %*s %*s %*s %u %*d %lu", local, peer, &state, &user,
		   &socket->inode) != 5)
		return false;
	socket->state = (int)state;
	socket->user = user;
	return parse_address(local, socket->local) && parse_address(peer, socket->peer);
}

static void add(struct shunt_sockets *sockets, const struct shunt_socket *socket, size_t *room)
{
	if (sockets->count == *room) {
		*room = *room ? 2 * *room : 64;
		sockets->of = reallocarray(sockets->of, *room, sizeof(*sockets->of));
		if (!sockets->of)
			abort();
	}
	sockets->of[sockets->count++] = *socket;
}

void shunt_sockets_read(pid_t pid, struct shunt_sockets *sockets)
{
	static const char *const names[] = { "net/tcp", "net/tcp6" };
	size_t bytes = 0, room = 0;
	struct shunt_socket socket;
	char *line = NULL;

	*sockets = (struct shunt_sockets) { 0 };
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		FILE *file = shunt_proc_open(pid, names[i]);

		while (file && getline(&line, &bytes, file) > 0)
			if (parse_line(line, &socket))
				add(sockets, &socket, &room);
		if (file)
			fclose(file);
	}
	free(line);
}

void shunt_sockets_free(struct shunt_sockets *sockets)
{
	free(sockets->of);
	*sockets = (struct shunt_sockets) { 0 };
}

const struct shunt_socket *shunt_sockets_find(const struct shunt_sockets *sockets,
					      const char *local, const char *peer)
{
	for (size_t i = 0; i < sockets->count; i++) {
		const struct shunt_socket *socket = &sockets->of[i];

		if (socket->inode && !strcmp(socket->local, local) && !strcmp(socket->peer, peer))
			return socket;
	}
	return NULL;
}

/* ---- descriptors ---- */

static void add_holder(struct shunt_holders *holders, struct shunt_holder holder)
{
	/* Room is a power of two. */
	if (!(holders->count & (holders->count - 1)) || !holders->count) {
		holders->of = reallocarray(holders->of, holders->count ? 2 * holders->count : 1,
					   sizeof(*holders->of));
		if (!holders->of)
			abort();
	}
	holders->of[holders->count++] = holder;
}

static void read_holders_of(pid_t pid, struct shunt_holders *holders)
{
	struct shunt_holder holder = { .pid = pid };
	const struct dirent *entry;
	char path[64], target[64];
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
	dir = opendir(path);
	while (dir && (entry = readdir(dir))) {
		ssize_t got = readlinkat(dirfd(dir), entry->d_name, target, sizeof(target) - 1);

		target[got > 0 ? got : 0] = '\0';
		if (sscanf(target, "socket:[%lu]", &holder.inode) != 1)
			continue;
		holder.fd = atoi(entry->d_name);
		add_holder(holders, holder);
	}
	if (dir)
		closedir(dir);
}

static int compare(const void *a, const void *b)
{
	const struct shunt_holder *x = a, *y = b;

	if (x->inode != y->inode)
		return (x->inode > y->inode) - (x->inode < y->inode);
	return x->pid != y->pid ? (x->pid > y->pid) - (x->pid < y->pid) : x->fd - y->fd;
}

static void sort(struct shunt_holders *holders)
{
	if (holders->count)
		qsort(holders->of, holders->count, sizeof(*holders->of), compare);
}

void shunt_holders_read(struct shunt_holders *holders)
{
	DIR *dir = opendir("/proc");
	const struct dirent *entry;

	*holders = (struct shunt_holders) { 0 };
	while (dir && (entry = readdir(dir)))
		if (isdigit((unsigned char)entry->d_name[0]))
			read_holders_of((pid_t)atoi(entry->d_name), holders);
	if (dir)
		closedir(dir);
	sort(holders);
}

void shunt_holders_free(struct shunt_holders *holders)
{
	free(holders->of);
	*holders = (struct shunt_holders) { 0 };
}

/* The first of an inode; the count if there is none. */
static size_t find_first(const struct shunt_holders *holders, unsigned long inode)
{
	size_t low = 0, high = holders->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (holders->of[middle].inode < inode)
			low = middle + 1;
		else
			high = middle;
	}
	return low < holders->count && holders->of[low].inode == inode ? low : holders->count;
}

pid_t shunt_holders_find(const struct shunt_holders *holders, unsigned long inode, size_t *count)
{
	size_t first = find_first(holders, inode);
	pid_t last = 0;

	*count = 0;
	for (size_t i = first; i < holders->count && holders->of[i].inode == inode; i++) {
		*count += holders->of[i].pid != last;
		last = holders->of[i].pid;
	}
	return *count ? holders->of[first].pid : 0;
}

static bool is_connection(int state)
{
	return state == TCP_ESTABLISHED || state == TCP_FIN_WAIT1 || state == TCP_FIN_WAIT2 ||
	       state == TCP_CLOSE_WAIT;
}

void shunt_sockets_of(pid_t pid, struct shunt_sockets *sockets)
{
	struct shunt_holders own = { 0 };
	size_t kept = 0;

	read_holders_of(pid, &own);
	sort(&own);
	shunt_sockets_read(pid, sockets);
	for (size_t i = 0; i < sockets->count; i++) {
		size_t at = find_first(&own, sockets->of[i].inode);

		if (!is_connection(sockets->of[i].state) || at == own.count)
			continue;
		sockets->of[kept] = sockets->of[i];
		sockets->of[kept++].fd = own.of[at].fd;
	}
	sockets->count = kept;
	shunt_holders_free(&own);
}
