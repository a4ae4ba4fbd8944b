/* SPDX-License-Identifier: MIT */
/* Settings are tried, each against the shunted default, in pairs and by the rule of the verdict. */
#include "tools/advise.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define VARIABLES_MAX 4

/* "SHUNT_A=1 SHUNT_B=2" as variables up to NULL. */
static void split(char *text, char *variables[VARIABLES_MAX + 1])
{
	size_t count = 0;
	char *word;

	while (count < VARIABLES_MAX && (word = strsep(&text, " ")))
		variables[count++] = word;
	variables[count] = NULL;
}

static int try_one(struct advise_result *result, struct advise_try *try)
{
	char text[128], title[160], *variables[VARIABLES_MAX + 1];
	struct advise_way ways[2] = { { .shunted = true }, { .shunted = true, .variables = variables } };
	int rc;

	snprintf(text, sizeof(text), "%s", try->cause.settings);
	snprintf(title, sizeof(title), "with %s", try->cause.settings);
	split(text, variables);
	advise_pairs_init(&try->pairs);
	rc = advise_pairs_measure(result->bench, ways, title, &try->pairs, try->why);
	try->failed = rc && rc != -EINTR;
	return rc == -EINTR ? rc : 0;
}

int advise_try_all(struct advise_result *result)
{
	struct advise_cause causes[ADVISE_CAUSES_MAX];
	size_t count = advise_causes(result->pairs.client, result->pairs.server, causes);
	int rc = 0;

	for (size_t i = 0; i < count && result->try_count < ADVISE_TRIES_MAX && !rc; i++) {
		const char *equals = strchr(causes[i].settings, '=');
		char name[32];

		/* A variable that the user has set is the user's choice. */
		snprintf(name, sizeof(name), "%.*s", (int)(equals - causes[i].settings), causes[i].settings);
		if (getenv(name))
			continue;
		result->tries[result->try_count].cause = causes[i];
		rc = try_one(result, &result->tries[result->try_count++]);
	}
	return rc;
}
