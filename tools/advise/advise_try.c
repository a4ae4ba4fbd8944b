/* SPDX-License-Identifier: MIT */
/* Settings are tried, each against the shunted default, in pairs and by the rule of the verdict. */
#include "tools/advise/advise.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define TUNE "SHUNT_TUNE="

static int try_one(struct advise_result *result, struct advise_try *try)
{
	char text[128], title[160], *variables[] = { text, NULL };
	struct advise_way ways[2] = { { .shunted = true },
				      { .shunted = true, .variables = variables } };
	int rc;

	snprintf(text, sizeof(text), "%s", try->cause.settings);
	snprintf(title, sizeof(title), "with %s", try->cause.settings);
	advise_pairs_init(&try->pairs);
	rc = advise_pairs_measure(result->bench, ways, title, &try->pairs, try->why);
	try->failed = rc && rc != -EINTR;
	return rc == -EINTR ? rc : 0;
}

/* The user has set the word with which these settings begin, and that counts. */
static bool is_chosen(const char *settings)
{
	static const char blanks[] = ", \t\n";
	const char *at = getenv("SHUNT_TUNE"), *word = settings + sizeof(TUNE) - 1;
	size_t length = strcspn(word, "=") + 1;

	while (at && *(at += strspn(at, blanks))) {
		if (!strncmp(at, word, length))
			return true;
		at += strcspn(at, blanks);
	}
	return false;
}

int advise_try_all(struct advise_result *result)
{
	struct advise_cause causes[ADVISE_CAUSES_MAX];
	size_t count = advise_causes(result->pairs.client, result->pairs.server, causes);
	int rc = 0;

	for (size_t i = 0; i < count && result->try_count < ADVISE_TRIES_MAX && !rc; i++) {
		if (is_chosen(causes[i].settings))
			continue;
		result->tries[result->try_count].cause = causes[i];
		rc = try_one(result, &result->tries[result->try_count++]);
	}
	return rc;
}
