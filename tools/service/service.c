/* SPDX-License-Identifier: MIT */
/* shunt service: units of systemd that run under Shunt. */
#include "tools/shunt.h"

#include <errno.h>
#include <getopt.h>
#include <glob.h>
#include <jansson.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tools/common/output.h"
#include "tools/service/cluster.h"
#include "tools/service/drop_in.h"
#include "tools/service/unit_file.h"

extern char **environ;

static const char help[] =
	"Usage: shunt service enable [--now] [--root DIR] UNIT...\n"
	"       shunt service disable [--now] [--root DIR] UNIT... | --all\n"
	"       shunt service show [--root DIR] UNIT\n"
	"       shunt service list [--root DIR] [--json]\n\n"
	"Has services of systemd run under Shunt, by a drop-in beside their units. Lists of families and of\n"
	"paths in the unit are added to. A unit starts, too, when Shunt has been removed. Both ends of a\n"
	"connection must run under Shunt.\n\n"
	"  enable      writes the drop-in\n"
	"  disable     removes it; what others have written stays\n"
	"  show        shows what enable would write\n"
	"  list        shows the units that have one\n\n"
	"  --now       restarts the units, too\n"
	"  --all       all units that have one\n"
	"  --root DIR  units of the system in this folder, such as an image\n"
	"  --json      as JSON\n\n"
	"A cluster of PostgreSQL, as postgresql@15-main, gets a line in its file `environment` instead.\n\n"
	"Exit status: 0; 1 if a unit is not there or a file cannot be written; 2 for wrong usage.\n";

struct request {
	const char *root;
	char library[PATH_MAX];
	bool now, all, json;
};

static int say(const char *unit, const char *what)
{
	fprintf(stderr, "shunt service: %s: %s\n", unit, what);
	return EXIT_FAILED;
}

/* 0, or the exit status. */
static int read_unit(const struct request *request, const char *name, struct shunt_unit *unit)
{
	int rc = shunt_unit_read(request->root, name, unit);

	switch (rc) {
	case 0:
		return 0;
	case -ENOENT:
		return say(
			name,
			"there is no such unit; `systemctl list-unit-files --type=service` shows them");
	case -EINVAL:
		return say(name, "that is not the name of a service");
	case -ENOTSUP:
		return say(name, "the unit is masked; `systemctl unmask` ends that");
	default:
		return say(name, strerror(-rc));
	}
}

/* --- the drop-in --- */

enum { FOLDER_MAX = PATH_MAX - sizeof("/" SHUNT_DROP_IN ".new") };

static bool folder_of(const struct request *request, const char *unit, char path[FOLDER_MAX])
{
	return snprintf(path, FOLDER_MAX, "%s/etc/systemd/system/%s.d", request->root, unit) <
	       FOLDER_MAX;
}

static bool is_ours(const char *path)
{
	char line[sizeof(SHUNT_DROP_IN_MARK)] = "";
	FILE *file = fopen(path, "re");
	bool ours = file && fgets(line, sizeof(line), file) && !strcmp(line, SHUNT_DROP_IN_MARK);

	if (file)
		fclose(file);
	return ours;
}

static int write_drop_in(const struct request *request, const struct shunt_unit *unit)
{
	char folder[FOLDER_MAX], path[PATH_MAX], fresh[PATH_MAX];
	FILE *out;

	if (!folder_of(request, unit->name, folder))
		return say(unit->name, strerror(ENAMETOOLONG));
	snprintf(path, sizeof(path), "%s/" SHUNT_DROP_IN, folder);
	snprintf(fresh, sizeof(fresh), "%s/" SHUNT_DROP_IN ".new", folder);
	if (!access(path, F_OK) && !is_ours(path))
		return say(path, "somebody else has written that file: it stays as it is");
	if (mkdir(folder, 0755) && errno != EEXIST)
		return say(folder, strerror(errno));
	out = fopen(fresh, "we");
	if (!out)
		return say(fresh, strerror(errno));
	shunt_drop_in_write(out, unit, request->library);
	if ((ferror(out) | fclose(out)) || rename(fresh, path)) {
		say(path, strerror(errno));
		unlink(fresh);
		return EXIT_FAILED;
	}
	printf("%s\n", path);
	return 0;
}

static int remove_drop_in(const struct request *request, const char *name)
{
	char folder[FOLDER_MAX], path[PATH_MAX];

	if (!folder_of(request, name, folder))
		return say(name, strerror(ENAMETOOLONG));
	snprintf(path, sizeof(path), "%s/" SHUNT_DROP_IN, folder);
	if (access(path, F_OK))
		return say(name, "it has no drop-in of Shunt");
	if (!is_ours(path))
		return say(path, "somebody else has written that file: it stays as it is");
	if (unlink(path))
		return say(path, strerror(errno));
	rmdir(folder);	/* others may have theirs there */
	printf("%s\n", path);
	return 0;
}

/* --- systemctl --- */

static int tell_systemd(char *const argv[])
{
	int status;
	pid_t pid;

	if (posix_spawnp(&pid, argv[0], NULL, NULL, argv, environ))
		return say(argv[0], "it cannot be started");
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return EXIT_FAILED;
	return status ? EXIT_FAILED : 0;
}

static int restart(const struct request *request, char **units, size_t count)
{
	char *reload[] = { "systemctl", "daemon-reload", NULL }, **argv;
	int rc;

	if (!count || *request->root)
		return 0;
	if (!request->now) {
		printf("# to take effect: systemctl daemon-reload && systemctl try-restart");
		for (size_t i = 0; i < count; i++)
			printf(" %s", units[i]);
		putchar('\n');
		return 0;
	}
	argv = calloc(count + 3, sizeof(*argv));
	if (!argv)
		abort();
	argv[0] = "systemctl";
	argv[1] = "try-restart";
	memcpy(argv + 2, units, count * sizeof(*argv));
	rc = tell_systemd(reload);
	rc = rc ? rc : tell_systemd(argv);
	free(argv);
	return rc;
}

/* --- the commands --- */

static int enable_one(const struct request *request, const char *name, struct shunt_unit *unit)
{
	int rc = read_unit(request, name, unit);

	if (rc)
		return rc;
	if (shunt_cluster_is(unit))
		return shunt_cluster_enable(request->root, unit->name, request->library);
	shunt_drop_in_warn(unit);
	return write_drop_in(request, unit);
}

static int disable_one(const struct request *request, const char *name, struct shunt_unit *unit)
{
	if (shunt_unit_read(request->root, name, unit) == -EINVAL)	/* the unit itself may be gone */
		return say(name, "that is not the name of a service");
	if (shunt_cluster_is(unit))
		return shunt_cluster_disable(request->root, unit->name);
	return remove_drop_in(request, unit->name);
}

static int change(const struct request *request, char **names, size_t count,
		  int (*one)(const struct request *request, const char *name,
			     struct shunt_unit *unit))
{
	char **done = calloc(count + 1, sizeof(*done));
	size_t changed = 0;
	int rc = 0, restarted;

	if (!done)
		abort();
	for (size_t i = 0; i < count; i++) {
		struct shunt_unit unit;
		int failed = one(request, names[i], &unit);

		if (!failed)
			done[changed++] = strdup(unit.name);
		rc = failed ? failed : rc;
		shunt_unit_free(&unit);
	}
	restarted = restart(request, done, changed);
	for (size_t i = 0; i < changed; i++)
		free(done[i]);
	free(done);
	return rc ? rc : restarted;
}

/* Units that have one. `found` is to be freed. */
static void find_enabled(const struct request *request, glob_t *found)
{
	char pattern[PATH_MAX];

	memset(found, 0, sizeof(*found));
	snprintf(pattern, sizeof(pattern), "%s/etc/systemd/system/*.service.d/" SHUNT_DROP_IN,
		 request->root);
	glob(pattern, 0, NULL, found);
	shunt_cluster_find(request->root, found);
}

/* "nginx.service" of ".../nginx.service.d/shunt.conf", or of a cluster's file; "": it is not ours. */
static void unit_of(const char *path, char name[NAME_MAX + 1])
{
	const char *end = strrchr(path, '/'), *from;

	*name = '\0';
	if (shunt_cluster_unit(path, name) || !is_ours(path))
		return;
	for (from = end; from > path && from[-1] != '/'; from--)
		;
	snprintf(name, NAME_MAX + 1, "%.*s", (int)(end - from) - 2, from);
}

static int list(const struct request *request)
{
	json_t *all = json_array();
	char name[NAME_MAX + 1];
	glob_t found;

	find_enabled(request, &found);
	for (size_t i = 0; i < found.gl_pathc; i++) {
		unit_of(found.gl_pathv[i], name);
		if (!*name)
			continue;
		if (request->json)
			json_array_append_new(all, json_pack("{s:s, s:s}", "unit", name, "file",
							     found.gl_pathv[i]));
		else
			printf("%-30s %s\n", name, found.gl_pathv[i]);
	}
	if (request->json)
		shunt_print_json(stdout, all, JSON_INDENT(2));
	json_decref(all);
	globfree(&found);
	return 0;
}

static int disable_all(const struct request *request)
{
	char name[NAME_MAX + 1], **names;
	size_t count = 0;
	glob_t found;
	int rc;

	find_enabled(request, &found);
	names = calloc(found.gl_pathc + 1, sizeof(*names));
	if (!names)
		abort();
	for (size_t i = 0; i < found.gl_pathc; i++) {
		unit_of(found.gl_pathv[i], name);
		if (*name)
			names[count++] = strdup(name);
	}
	rc = change(request, names, count, disable_one);
	for (size_t i = 0; i < count; i++)
		free(names[i]);
	free(names);
	globfree(&found);
	return rc;
}

static int show(const struct request *request, const char *name)
{
	struct shunt_unit unit;
	int rc = read_unit(request, name, &unit);

	if (!rc && shunt_cluster_is(&unit))
		shunt_cluster_show(stdout, request->library);
	else if (!rc)
		shunt_drop_in_write(stdout, &unit, request->library);
	shunt_unit_free(&unit);
	return rc;
}

static int wrong(void)
{
	fputs(help, stderr);
	return EXIT_USAGE;
}

int shunt_service(int argc, char **argv)
{
	static const struct option options[] = {
		{ "now", no_argument, NULL, 'n' },  { "all", no_argument, NULL, 'a' },
		{ "json", no_argument, NULL, 'j' }, { "root", required_argument, NULL, 'r' },
		{ "help", no_argument, NULL, 'h' }, { NULL, 0, NULL, 0 },
	};
	struct request request = { .root = "" };
	const char *word;
	int option, count;

	while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
		switch (option) {
		case 'n':
			request.now = true;
			break;
		case 'a':
			request.all = true;
			break;
		case 'j':
			request.json = true;
			break;
		case 'r':
			request.root = optarg;
			break;
		case 'h':
			fputs(help, stdout);
			return 0;
		default:
			return EXIT_USAGE;
		}
	}
	if (optind == argc)
		return wrong();
	word = argv[optind++];
	count = argc - optind;
	if (!strcmp(word, "list") && !count)
		return list(&request);
	if (!strcmp(word, "disable") && request.all && !count)
		return disable_all(&request);
	if (!strcmp(word, "disable") && count && !request.all)
		return change(&request, argv + optind, (size_t)count, disable_one);
	if ((strcmp(word, "enable") && strcmp(word, "show")) || !count || request.all ||
	    (!strcmp(word, "show") && count > 1))
		return wrong();
	if (shunt_library_find(request.library))
		return EXIT_FAILED;
	return strcmp(word, "show") ? change(&request, argv + optind, (size_t)count, enable_one) :
				      show(&request, argv[optind]);
}
