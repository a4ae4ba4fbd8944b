/* SPDX-License-Identifier: MIT */
/* A folder for the files of the programs that are measured. */
#include "tools/bench/bench.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int shunt_scratch_make(const char *command, char dir[PATH_MAX])
{
	const char *tmp = getenv("TMPDIR");

	snprintf(dir, PATH_MAX, "%s/shunt-%s-XXXXXX", tmp && *tmp ? tmp : "/tmp", command);
	if (mkdtemp(dir))
		return 0;
	fprintf(stderr, "shunt %s: cannot make the temporary directory %s: %m; set TMPDIR to one that "
			"can be written to\n", command, dir);
	return -1;
}

/* Servers leave plain files there, if anything. */
void shunt_scratch_remove(const char *path)
{
	DIR *dir = opendir(path);
	struct dirent *entry;

	while (dir && (entry = readdir(dir)))
		if (strcmp(entry->d_name, ".") && strcmp(entry->d_name, ".."))
			unlinkat(dirfd(dir), entry->d_name, 0);
	if (dir)
		closedir(dir);
	if (rmdir(path))
		perror(path);
}

/* One that does not exist any more. */
static void make_path(char path[SHUNT_FILE_MAX], const char *dir, const char *name)
{
	snprintf(path, SHUNT_FILE_MAX, "%s/%s", dir, name);
	unlink(path);
}

void shunt_scratch_pair(struct shunt_pair_files *files, const char *dir)
{
	make_path(files->server_out, dir, "server.out");
	make_path(files->server_err, dir, "server.err");
	make_path(files->server_stats, dir, "server.json");
	make_path(files->client_out, dir, "client.out");
	make_path(files->client_err, dir, "client.err");
	make_path(files->client_stats, dir, "client.json");
}
