/* SPDX-License-Identifier: MIT */
/* shunt run: everything that can be found wrong is found here, before the program starts. */
#include "tools/shunt.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const char help[] =
	"Usage: shunt run [--] PROGRAM [ARGUMENTS]\n\n"
	"Runs PROGRAM with its TCP connections accelerated wherever the peer is shunted too.\n"
	"The variables SHUNT_* (see `shunt config`) adjust it.\n\n"
	"Exit status: PROGRAM's; 2 if it was refused, 126 if it cannot be executed, 127 if it\n"
	"is not found.\n";

/* 0 to go on, else the exit status. *preload becomes 0 where the library could only do harm. */
static int check_program(const char *name, int *preload)
{
	const char *why = "";
	char path[PATH_MAX], words[SHUNT_PROGRAM_WORDS];
	int rc = shunt_program_find(name, path);

	if (rc) {
		fprintf(stderr, "shunt run: %s: %s\n", name, strerror(-rc));
		return rc == -ENOENT || rc == -ENOTDIR ? EXIT_NOT_FOUND : EXIT_NOT_EXECUTABLE;
	}
	switch (shunt_program_inspect(path, &why)) {
	case SHUNT_PROGRAM_PRIVILEGED:
		fprintf(stderr, "shunt run: refused to run %s: %s, and the dynamic linker ignores "
				"LD_PRELOAD for such programs. Run it without shunt, or run a copy of it "
				"without the privilege as a user that does not need it.\n", path, why);
		return EXIT_USAGE;
	case SHUNT_PROGRAM_STATIC:
		if (shunt_program_go(path, words, sizeof(words)) != SHUNT_PROGRAM_NOT_GO)
			why = words;
		fprintf(stderr, "shunt run: warning: %s: %s, so the library cannot be loaded into it; "
				"it runs on plain TCP\n", path, why);
		break;
	case SHUNT_PROGRAM_FOREIGN:
		fprintf(stderr, "shunt run: warning: %s: %s, so the library cannot be loaded into it; "
				"it runs on plain TCP\n", path, why);
		*preload = 0;
		break;
	case SHUNT_PROGRAM_OK:
		if (shunt_program_go(path, words, sizeof(words)) == SHUNT_PROGRAM_GO_LEFT)
			fprintf(stderr, "shunt run: warning: %s: %s; it runs on plain TCP\n", path,
				words);
		break;
	}
	return 0;
}

/* Where the dynamic linker cannot map it, it says so in its own words, and the program starts without it. */
static void check_library(const char *library, int *preload)
{
	int rc = shunt_library_loads(library);

	if (!rc)
		return;
	fprintf(stderr, "shunt run: warning: %s cannot be loaded (%s%s); the program runs on plain TCP\n", library,
		strerror(-rc), rc == -EPERM ? ": a file system mounted noexec, or NoExecPaths= of a systemd unit" : "");
	*preload = 0;
}

/* Those have another process start a program, or clear the environment: neither library nor SHUNT_* arrive there. */
static void check_starter(const char *name)
{
	static const char *const starters[] = { "service", "systemctl", "systemd-run", "invoke-rc.d", "rc-service", "docker",
						"podman", "kubectl", "machinectl" };
	const char *slash = strrchr(name, '/');

	for (size_t i = 0; i < sizeof(starters) / sizeof(starters[0]); i++)
		if (!strcmp(slash ? slash + 1 : name, starters[i]))
			fprintf(stderr, "shunt run: warning: what %s starts does not get its environment, and runs on plain TCP; "
					"run the program itself under shunt, or set LD_PRELOAD in its unit or container\n",
				starters[i]);
}

static int usage_error(const char *what, const char *name)
{
	fprintf(stderr, "shunt run: %s%s; `shunt run --help` says how\n", what, name);
	return EXIT_USAGE;
}

int shunt_run(int argc, char **argv)
{
	char library[PATH_MAX];
	int first = 1, preload = 1, rc;

	if (argc > 1 && !strcmp(argv[1], "--help")) {
		fputs(help, stdout);
		return 0;
	}
	if (argc > 1 && !strcmp(argv[1], "--"))
		first = 2;
	else if (argc > 1 && argv[1][0] == '-')
		return usage_error("no option ", argv[1]);
	if (first >= argc)
		return usage_error("no program to run", "");

	if (shunt_variables_check("shunt run"))
		return EXIT_USAGE;
	rc = check_program(argv[first], &preload);
	if (rc)
		return rc;
	check_starter(argv[first]);
	if (preload && shunt_library_find(library))
		return EXIT_USAGE;
	if (preload)
		check_library(library, &preload);
	if (preload && shunt_library_preload(library))
		return EXIT_USAGE;
	if (!preload)
		shunt_library_unload();

	execvp(argv[first], argv + first);
	rc = errno;
	fprintf(stderr, "shunt run: %s: %s\n", argv[first], strerror(rc));
	return rc == ENOENT ? EXIT_NOT_FOUND : EXIT_NOT_EXECUTABLE;
}
