/* SPDX-License-Identifier: MIT */
#include "tools/service/cluster.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tools/shunt.h"

#define FOLDER "/etc/postgresql/"
#define FILE_NAME "/environment"
#define MARK " # by shunt service\n"

bool shunt_cluster_is(const struct shunt_unit *unit)
{
	const char *at = strchr(unit->name, '@'), *command = shunt_unit_value(unit, "ExecStart");

	return at && strchr(at, '-') && command && strstr(command, "/pg_ctlcluster ");
}

void shunt_cluster_show(FILE *out, const char *library)
{
	fprintf(out, "LD_PRELOAD = '%s'" MARK, library);
}

/* "15-main" of "postgresql@15-main.service" is 15/main. */
static bool path_of(const char *root, const char *unit, char path[PATH_MAX])
{
	const char *at = strchr(unit, '@') + 1, *dash = strchr(at, '-'), *end = strrchr(at, '.');

	return snprintf(path, PATH_MAX, "%s" FOLDER "%.*s/%.*s" FILE_NAME, root, (int)(dash - at),
			at, (int)(end - dash - 1), dash + 1) < PATH_MAX - 4;
}

static bool is_mark(const char *line)
{
	size_t length = strlen(line);

	return length > strlen(MARK) && !strcmp(line + length - strlen(MARK), MARK);
}

static int fail(const char *path, int error)
{
	fprintf(stderr, "shunt service: %s: %s\n", path, strerror(error));
	return EXIT_FAILED;
}

/* Copies the file without our line. 1: it had it; 0: it had not; -1: another preloads something. */
static int copy(FILE *from, FILE *to, bool adds)
{
	char *line = NULL;
	size_t room = 0;
	bool ends = true;
	int had = 0;

	while (had >= 0 && getline(&line, &room, from) > 0) {
		ends = line[strlen(line) - 1] == '\n';
		if (is_mark(line))
			had = 1;
		else if (adds && !strncmp(line, "LD_PRELOAD", 10))
			had = -1;
		else
			fputs(line, to);
	}
	if (adds && !ends)
		fputc('\n', to);	/* ours is a line of its own */
	free(line);
	return had;
}

/* The folder is the database user's, who may put a link there: it is not followed. */
static FILE *open_here(const char *path, int flags)
{
	int fd = open(path, flags | O_NOFOLLOW | O_CLOEXEC, 0600);
	FILE *file = fd < 0 ? NULL : fdopen(fd, flags & O_CREAT ? "w" : "r");

	if (fd >= 0 && !file)
		close(fd);
	return file;
}

/* The new file is its owner's, as the former was. */
static bool give(FILE *from, FILE *to)
{
	struct stat st;

	return !fstat(fileno(from), &st) && !fchmod(fileno(to), st.st_mode & 07777) &&
	       !fchown(fileno(to), st.st_uid, st.st_gid);
}

/* `library` NULL: the line is removed. */
static int change(const char *root, const char *unit, const char *library)
{
	char path[PATH_MAX], fresh[PATH_MAX + 4];
	FILE *from, *to;
	int had, rc;

	if (!path_of(root, unit, path))
		return fail(unit, ENAMETOOLONG);
	snprintf(fresh, sizeof(fresh), "%s.new", path);
	from = open_here(path, O_RDONLY);
	if (!from)
		return fail(path, errno);
	unlink(fresh);
	to = open_here(fresh, O_WRONLY | O_CREAT | O_EXCL);
	if (!to) {
		rc = fail(fresh, errno);
		fclose(from);
		return rc;
	}
	had = copy(from, to, library);
	if (library && had >= 0)
		shunt_cluster_show(to, library);
	rc = !give(from, to) || ferror(to);
	rc |= fclose(to);
	fclose(from);
	if (had < 0 || (!library && !had)) {
		unlink(fresh);
		fprintf(stderr, "shunt service: %s: %s\n", path,
			had < 0 ? "it preloads a library already: add Shunt's to that line" :
				  "it has no line of Shunt's");
		return EXIT_FAILED;
	}
	if (rc || rename(fresh, path)) {
		rc = fail(path, errno);
		unlink(fresh);
		return rc;
	}
	printf("%s\n", path);
	return 0;
}

int shunt_cluster_enable(const char *root, const char *unit, const char *library)
{
	return change(root, unit, library);
}

int shunt_cluster_disable(const char *root, const char *unit)
{
	return change(root, unit, NULL);
}

void shunt_cluster_find(const char *root, glob_t *found)
{
	char pattern[PATH_MAX];

	snprintf(pattern, sizeof(pattern), "%s" FOLDER "*/*" FILE_NAME, root);
	glob(pattern, GLOB_APPEND, NULL, found);
}

bool shunt_cluster_unit(const char *path, char name[NAME_MAX + 1])
{
	const char *folder = strstr(path, FOLDER), *version, *cluster, *end;
	char *line = NULL;
	size_t room = 0;
	bool has = false;
	FILE *file;

	if (!folder)
		return false;
	version = folder + strlen(FOLDER);
	cluster = strchr(version, '/') + 1;
	end = strchr(cluster, '/');
	file = fopen(path, "re");
	while (file && !has && getline(&line, &room, file) > 0)
		has = is_mark(line);
	free(line);
	if (file)
		fclose(file);
	snprintf(name, NAME_MAX + 1, has ? "postgresql@%.*s-%.*s.service" : "",
		 (int)(cluster - version - 1), version, (int)(end - cluster), cluster);
	return true;
}
