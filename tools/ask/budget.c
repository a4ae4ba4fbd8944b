/* SPDX-License-Identifier: MIT */
#include "tools/ask/budget.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MB ((size_t)1 << 20)

const struct shunt_budget_limits shunt_budget_usual = { 256 * MB, 1024 * MB };
/* Three looks and their texts fit into the 256 MB of its unit (contrib/systemd/shunt-monitor.service). */
const struct shunt_budget_limits shunt_budget_monitor = { 16 * MB, 32 * MB };

/* ---- users ---- */

bool shunt_budget_trusts(uid_t user)
{
	return !user || user == geteuid();
}

struct shunt_budget_user *shunt_budget_of(struct shunt_budget *budget, uid_t user, bool named)
{
	if (named || shunt_budget_trusts(user))
		return &budget->ours;
	for (size_t i = 0; i < budget->count; i++)
		if (budget->strangers[i].user == user)
			return &budget->strangers[i];
	budget->strangers = reallocarray(budget->strangers, budget->count + 1,
					 sizeof(*budget->strangers));
	if (!budget->strangers)
		abort();
	budget->strangers[budget->count] = (struct shunt_budget_user) { .user = user };
	return &budget->strangers[budget->count++];
}

void shunt_budget_free(struct shunt_budget *budget)
{
	free(budget->strangers);
	budget->strangers = NULL;
	budget->count = 0;
}

static bool is_ours(const struct shunt_budget_user *user)
{
	return shunt_budget_trusts(user->user);
}

bool shunt_budget_door(struct shunt_budget_user *user)
{
	return user->doors++ < SHUNT_BUDGET_DOORS || is_ours(user);
}

bool shunt_budget_asks(struct shunt_budget_user *user)
{
	return user->abreast < SHUNT_BUDGET_ABREAST || is_ours(user);
}

bool shunt_budget_holds(struct shunt_budget *budget, struct shunt_budget_user *user, size_t bytes)
{
	size_t most = budget->limits->text;

	if (!is_ours(user) && budget->text + bytes > most)
		return false;
	if (user->text + bytes > (is_ours(user) ? most : most / 4))
		return false;
	user->text += bytes;
	budget->text += is_ours(user) ? 0 : bytes;
	return true;
}

void shunt_budget_drops(struct shunt_budget *budget, struct shunt_budget_user *user, size_t bytes)
{
	user->text -= bytes;
	budget->text -= is_ours(user) ? 0 : bytes;
}

/* The one that wants least, of those that have no share yet. */
static struct shunt_budget_user *modest(struct shunt_budget *budget)
{
	struct shunt_budget_user *least = NULL;

	for (size_t i = 0; i < budget->count; i++)
		if (!budget->strangers[i].judged &&
		    (!least || budget->strangers[i].wanted < least->wanted))
			least = &budget->strangers[i];
	return least;
}

void shunt_budget_share(struct shunt_budget *budget)
{
	size_t left = budget->limits->values;

	budget->ours.values = budget->limits->values;
	for (size_t users = budget->count; users; users--) {
		struct shunt_budget_user *user = modest(budget);
		size_t share = left / users;

		user->judged = true;
		user->values = user->wanted < share ? user->wanted : share;
		left -= user->values;
	}
}

/* ---- texts ---- */

/* Behind the string that begins at `at`. */
static size_t skip_string(const char *text, size_t bytes, size_t at)
{
	for (at++; at < bytes && text[at] != '"'; at++)
		at += text[at] == '\\';
	return at + 1;
}

/* The weights are what jansson allocates for each, as mallinfo2() counted it, rounded up. */
size_t shunt_budget_weigh(const char *text, size_t bytes)
{
	size_t weight = bytes;

	for (size_t at = 0; at < bytes;) {
		switch (text[at]) {
		case '"':
			weight += 112;
			at = skip_string(text, bytes, at);
			continue;
		case '{':
			weight += 256;
			break;
		case '[':
			weight += 160;
			break;
		case ',':
		case ':':
			weight += 48;
			break;
		}
		at++;
	}
	return weight;
}

/* Behind the value that begins at `at`: an array, with all that is in it. */
static size_t skip_array(const char *text, size_t bytes, size_t at)
{
	size_t depth = 0;

	while (at < bytes) {
		if (text[at] == '"') {
			at = skip_string(text, bytes, at);
			continue;
		}
		depth += text[at] == '[' || text[at] == '{';
		depth -= text[at] == ']' || text[at] == '}';
		at++;
		if (!depth)
			return at;
	}
	return bytes;
}

/* Where the array begins; `bytes`: there is none. */
static size_t find_streams(const char *text, size_t bytes)
{
	static const char key[] = "\"streams\"";
	size_t depth = 0, at = 0;

	while (at < bytes) {
		size_t behind = at + 1;

		if (text[at] == '"') {
			behind = skip_string(text, bytes, at);
			if (depth == 1 && behind < bytes && behind - at == sizeof(key) - 1 &&
			    !memcmp(text + at, key, sizeof(key) - 1)) {
				while (behind < bytes && strchr(" :\n", text[behind]) &&
				       text[behind])
					behind++;
				if (behind < bytes && text[behind] == '[')
					return behind;
			}
		} else if (text[at] == '[' || text[at] == '{') {
			depth++;
		} else if (depth && (text[at] == ']' || text[at] == '}')) {
			depth--;
		}
		at = behind;
	}
	return bytes;
}

size_t shunt_budget_cut_streams(char *text, size_t bytes)
{
	size_t begin = find_streams(text, bytes), end;

	if (begin == bytes)
		return bytes;
	end = skip_array(text, bytes, begin);
	if (end - begin < 2)
		return bytes;
	memcpy(text + begin, "[]", 2);
	memmove(text + begin + 2, text + end, bytes - end);
	return bytes - (end - begin) + 2;
}

json_t *shunt_budget_parse(const char *text, size_t bytes, size_t values, size_t flags,
			   json_error_t *error)
{
	if (shunt_budget_weigh(text, bytes) <= values)
		return json_loadb(text, bytes, flags, error);
	if (error)
		snprintf(error->text, sizeof(error->text),
			 "it is more than this look has room for");
	return NULL;
}
