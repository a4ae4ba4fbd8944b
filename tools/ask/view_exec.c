/* SPDX-License-Identifier: MIT */
/* shunt top and shunt monitor: another program in this one's place (view.c). */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/shunt.h"

/* Beside this program in a build tree, else where `make install` put it. */
static void find_view(char path[PATH_MAX + 32])
{
	static const char *const beside[] = { "/shunt-view", "/../lib/shunt/shunt-view" };
	char self[PATH_MAX];
	ssize_t len = readlink("/proc/self/exe", self, sizeof(self) - 1);
	char *slash;

	self[len > 0 ? len : 0] = '\0';
	slash = strrchr(self, '/');
	for (size_t i = 0; slash && i < sizeof(beside) / sizeof(beside[0]); i++) {
		snprintf(path, PATH_MAX + 32, "%.*s%s", (int)(slash - self), self, beside[i]);
		if (!access(path, X_OK))
			return;
	}
	snprintf(path, PATH_MAX + 32, "%s/shunt-view", SHUNT_PKGLIBDIR);
}

/* argv[0] is the subcommand. Returns only if there is no such program. */
static int become(int argc, char **argv)
{
	char path[PATH_MAX + 32];
	char **words = calloc((size_t)argc + 2, sizeof(*words));

	if (!words)
		abort();
	words[0] = (char *)"shunt";
	memcpy(words + 1, argv, (size_t)argc * sizeof(*words));
	find_view(path);
	execv(path, words);
	fprintf(stderr,
		"shunt %s: %s: %s; build it with `make`, or install it with `make install`\n",
		argv[0], path, strerror(errno));
	free(words);
	return EXIT_FAILED;
}

int shunt_top(int argc, char **argv)
{
	return become(argc, argv);
}

int shunt_monitor(int argc, char **argv)
{
	return become(argc, argv);
}
