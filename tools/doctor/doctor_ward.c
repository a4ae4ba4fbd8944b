/* SPDX-License-Identifier: MIT */
/* One look at everything that runs here: statistics, sockets by network namespace, their holders. */
#include "tools/doctor/doctor.h"

#include <ctype.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NETWORKS_MAX 64 /* that are looked at */

static const struct shunt_network *find_network(const struct shunt_ward *ward, const char *name)
{
	for (size_t i = 0; i < ward->network_count; i++)
		if (!strcmp(ward->networks[i].name, name))
			return &ward->networks[i];
	return NULL;
}

const struct shunt_network *shunt_ward_network(const struct shunt_ward *ward, pid_t pid)
{
	char name[64];

	return shunt_proc_link(pid, "ns/net", name, sizeof(name)) ? find_network(ward, name) : NULL;
}

static void add_network(struct shunt_ward *ward, pid_t pid)
{
	struct shunt_network *network = &ward->networks[ward->network_count];
	char name[64];

	if (ward->network_count == NETWORKS_MAX ||
	    !shunt_proc_link(pid, "ns/net", name, sizeof(name)) || find_network(ward, name))
		return;
	memcpy(network->name, name, sizeof(name));
	network->pid = pid;
	shunt_sockets_read(pid, &network->sockets);
	ward->network_count++;
}

int shunt_ward_begin(struct shunt_ward *ward)
{
	const struct dirent *entry;
	DIR *dir;

	if (shunt_look_ask(&ward->look, NULL, 0))
		return -1;
	shunt_holders_read(&ward->holders);
	ward->networks = calloc(NETWORKS_MAX, sizeof(*ward->networks));
	if (!ward->networks)
		abort();
	dir = opendir("/proc");
	while (dir && (entry = readdir(dir)))
		if (isdigit((unsigned char)entry->d_name[0]))
			add_network(ward, (pid_t)atoi(entry->d_name));
	if (dir)
		closedir(dir);
	return 0;
}

void shunt_ward_end(struct shunt_ward *ward)
{
	for (size_t i = 0; i < ward->network_count; i++)
		shunt_sockets_free(&ward->networks[i].sockets);
	free(ward->networks);
	shunt_holders_free(&ward->holders);
	shunt_look_free(&ward->look);
}

const struct shunt_stat *shunt_ward_stat(const struct shunt_ward *ward, pid_t pid)
{
	const struct shunt_stat *found = NULL;

	for (size_t i = 0; i < ward->look.count; i++) {
		const struct shunt_stat *stat = &ward->look.processes[i];

		if (stat->door.pid == pid && (!found || stat->process))
			found = stat;
	}
	return found;
}

pid_t shunt_ward_holder(const struct shunt_ward *ward, const char *local, const char *peer)
{
	for (size_t i = 0; i < ward->network_count; i++) {
		const struct shunt_socket *socket = shunt_sockets_find(&ward->networks[i].sockets,
								       local, peer);
		size_t count;
		pid_t pid = socket ? shunt_holders_find(&ward->holders, socket->inode, &count) : 0;

		if (pid)
			return pid;
	}
	return 0;
}
