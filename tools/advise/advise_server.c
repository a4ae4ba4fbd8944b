/* SPDX-License-Identifier: MIT */
/* Which processes are the server: those that listen at a port, or that hold the other ends of the client's connections. */
#include "tools/advise/advise.h"

#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/doctor/doctor.h"
#include "tools/common/output.h"
#include "tools/common/proc.h"
#include "tools/common/sockets.h"

#define CLIENTS_MAX 64

static int port_of(const char *address)
{
	const char *colon = strrchr(address, ':');

	return colon ? atoi(colon + 1) : 0;
}

bool advise_server_listens(int port)
{
	struct shunt_sockets sockets;
	bool found = false;

	shunt_sockets_read(getpid(), &sockets);
	for (size_t i = 0; i < sockets.count; i++)
		found |= sockets.of[i].state == TCP_LISTEN && port_of(sockets.of[i].local) == port;
	shunt_sockets_free(&sockets);
	return found;
}

static bool is_among(pid_t pid, const pid_t *pids, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (pids[i] == pid)
			return true;
	return false;
}

/* All that is asked for at once: sockets, and who holds them. */
struct view {
	struct shunt_sockets sockets;
	struct shunt_holders holders;
};

static void look(struct view *view)
{
	shunt_sockets_read(getpid(), &view->sockets);
	shunt_holders_read(&view->holders);
}

static void look_away(struct view *view)
{
	shunt_sockets_free(&view->sockets);
	shunt_holders_free(&view->holders);
}

int advise_server_any_port(const pid_t *pids, size_t count)
{
	struct view view;
	int port = 0;

	look(&view);
	for (size_t i = 0; i < view.sockets.count && !port; i++)
		for (size_t j = 0; j < view.holders.count && !port; j++)
			if (view.sockets.of[i].state == TCP_LISTEN && view.sockets.of[i].inode &&
			    view.holders.of[j].inode == view.sockets.of[i].inode &&
			    is_among(view.holders.of[j].pid, pids, count))
				port = port_of(view.sockets.of[i].local);
	look_away(&view);
	return port;
}

/* The name of a rendezvous: docs/dev/PROTOCOL.md, "Names". */
bool advise_server_offers(int port)
{
	FILE *file = fopen("/proc/net/unix", "re");
	char line[256];
	bool found = false;

	while (file && !found && fgets(line, sizeof(line), file)) {
		const char *name = strstr(line, " @shunt/tcp/");

		found = name && (!port || port_of(name) == port);
	}
	if (file)
		fclose(file);
	return found;
}

static void add_holders(struct advise_server *server, const struct shunt_holders *holders,
			unsigned long inode)
{
	for (size_t i = 0; inode && i < holders->count && server->count < ADVISE_SERVERS_MAX; i++)
		if (holders->of[i].inode == inode &&
		    !is_among(holders->of[i].pid, server->pids, server->count))
			server->pids[server->count++] = holders->of[i].pid;
}

static void add_listeners(struct advise_server *server, const struct view *view, int port)
{
	char name[32];

	for (size_t i = 0; i < view->sockets.count; i++)
		if (view->sockets.of[i].state == TCP_LISTEN &&
		    port_of(view->sockets.of[i].local) == port)
			add_holders(server, &view->holders, view->sockets.of[i].inode);
	if (server->count)
		shunt_escape(shunt_proc_name(server->pids[0], name, sizeof(name)), server->name,
			     sizeof(server->name));
}

bool advise_server_at(struct advise_server *server, int port)
{
	struct view view;

	look(&view);
	add_listeners(server, &view, port);
	look_away(&view);
	return server->count > 0;
}

/* The connections of one process of the client lead to `server`. */
static void follow(struct advise_server *server, const struct view *view, pid_t pid)
{
	struct shunt_sockets own;
	size_t holders;

	shunt_sockets_of(pid, &own);
	for (size_t i = 0; i < own.count && !server->count; i++) {
		const struct shunt_socket *other = shunt_sockets_find(
			&view->sockets, own.of[i].peer, own.of[i].local);

		server->missed = true;
		if (other && shunt_holders_find(&view->holders, other->inode, &holders)) {
			add_listeners(server, view, port_of(own.of[i].peer));
			add_holders(server, &view->holders, other->inode);
		}
	}
	shunt_sockets_free(&own);
}

bool advise_server_of(struct advise_server *server, pid_t client)
{
	pid_t pids[CLIENTS_MAX] = { client };
	size_t count = 1 + advise_tree_list(client, pids + 1, CLIENTS_MAX - 1);
	struct view view;
	char name[32];

	look(&view);
	for (size_t i = 0; i < count && !server->count; i++)
		follow(server, &view, pids[i]);
	look_away(&view);
	if (server->count && !*server->name)
		shunt_escape(shunt_proc_name(server->pids[0], name, sizeof(name)), server->name,
			     sizeof(server->name));
	return server->count > 0;
}

pid_t advise_server_plain(const struct advise_server *server)
{
	char path[PATH_MAX];
	bool deleted;

	for (size_t i = 0; i < server->count; i++)
		if (!shunt_doctor_library(server->pids[i], path, sizeof(path), &deleted))
			return server->pids[i];
	return 0;
}
