/* SPDX-License-Identifier: MIT */
/* Why a child failed, in its own last words. */
#include "tools/bench/bench.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include "tools/common/output.h"

#define SAID_MAX 160

static void last_line(const char *path, char line[SAID_MAX])
{
	char buf[SAID_MAX];
	FILE *file = fopen(path, "re");

	while (file && fgets(buf, sizeof(buf), file)) {
		buf[strcspn(buf, "\n")] = '\0';
		if (*buf)
			shunt_escape(buf, line, SAID_MAX);
	}
	if (file)
		fclose(file);
}

int shunt_child_explain(const char *who, int rc, const struct shunt_child *child, const char *out,
			const char *err, char why[SHUNT_WHY_MAX])
{
	char said[SAID_MAX] = "it said nothing";

	if (rc == -EINTR)
		return rc;
	last_line(out, said);
	last_line(err, said);
	if (rc == -ETIMEDOUT)
		snprintf(why, SHUNT_WHY_MAX, "the %s did not get anywhere in time: %s", who, said);
	else if (WIFSIGNALED(child->status))
		snprintf(why, SHUNT_WHY_MAX, "the %s was killed by signal %d (%s): %s", who,
			 WTERMSIG(child->status), strsignal(WTERMSIG(child->status)), said);
	else
		snprintf(why, SHUNT_WHY_MAX, "the %s ended with status %d: %s", who,
			 WEXITSTATUS(child->status), said);
	return -1;
}
