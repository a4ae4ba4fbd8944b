/* SPDX-License-Identifier: MIT */
/* Processes with their descendants. A daemon that leaves its parent comes to this process: it adopts orphans (advise.c). */
#include "tools/advise/advise.h"

#include <ctype.h>
#include <dirent.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tools/common/proc.h"
#include "tools/shunt.h"

struct process {
	pid_t pid, parent;
	double cpu;
	bool in; /* it belongs to the tree */
};

struct processes {
	struct process *of;
	size_t count;
};

/* The name of the program may have spaces and brackets. */
static bool read_process(pid_t pid, struct process *process)
{
	unsigned long user, system, user_children, system_children;
	char line[512] = "";
	FILE *file = shunt_proc_open(pid, "stat");
	const char *end;
	int parent;

	if (!file)
		return false;
	end = fgets(line, sizeof(line), file) ? strrchr(line, ')') : NULL;
	fclose(file);
	if (!end || sscanf(end + 1, " %*c %d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu %lu %lu",
			   &parent, &user, &system, &user_children, &system_children) != 5)
		return false;
	*process = (struct process) { pid, parent,
				      (double)(user + system + user_children + system_children) /
					      (double)sysconf(_SC_CLK_TCK),
				      false };
	return true;
}

static void read_all(struct processes *all)
{
	DIR *dir = opendir("/proc");
	const struct dirent *entry;
	struct process process;

	*all = (struct processes) { 0 };
	while (dir && (entry = readdir(dir))) {
		if (!isdigit((unsigned char)entry->d_name[0]) ||
		    !read_process((pid_t)atoi(entry->d_name), &process))
			continue;
		all->of = reallocarray(all->of, all->count + 1, sizeof(*all->of));
		if (!all->of)
			abort();
		all->of[all->count++] = process;
	}
	if (dir)
		closedir(dir);
}

/* Adds what descends from the processes that are in. */
static void close_tree(struct processes *all)
{
	for (bool grown = true; grown;) {
		grown = false;
		for (size_t i = 0; i < all->count; i++)
			for (size_t j = 0; j < all->count && !all->of[i].in; j++)
				if (all->of[j].in && all->of[j].pid == all->of[i].parent)
					grown = all->of[i].in = true;
	}
}

double advise_tree_cpu(const pid_t *roots, size_t count)
{
	struct processes all;
	double cpu = 0;

	read_all(&all);
	for (size_t i = 0; i < all.count; i++)
		for (size_t j = 0; j < count; j++)
			all.of[i].in |= all.of[i].pid == roots[j];
	close_tree(&all);
	for (size_t i = 0; i < all.count; i++)
		if (all.of[i].in)
			cpu += all.of[i].cpu;
	free(all.of);
	return cpu;
}

size_t advise_tree_list(pid_t root, pid_t *pids, size_t room)
{
	struct processes all;
	size_t count = 0;

	read_all(&all);
	for (size_t i = 0; i < all.count; i++)
		all.of[i].in = all.of[i].pid == root;
	close_tree(&all);
	for (size_t i = 0; i < all.count && count < room; i++)
		if (all.of[i].in && all.of[i].pid != root)
			pids[count++] = all.of[i].pid;
	free(all.of);
	return count;
}

/* How many there were. */
static size_t signal_all(int number)
{
	pid_t pids[256];
	size_t count = advise_tree_list(getpid(), pids, 256);

	for (size_t i = 0; i < count; i++)
		kill(pids[i], number);
	return count;
}

/* Some may start others meanwhile. Orphans come to us, so that there is an end. */
void advise_tree_end(double patience)
{
	static const struct timespec pause = { .tv_nsec = 5000000 };
	double end = shunt_seconds() + patience;
	pid_t pid = 0;

	if (!signal_all(SIGTERM))
		return;
	while (pid >= 0 && shunt_seconds() < end) {
		pid = waitpid(-1, NULL, WNOHANG);
		if (!pid)
			nanosleep(&pause, NULL);
	}
	while (pid >= 0 && signal_all(SIGKILL))
		pid = waitpid(-1, NULL, 0);
}
