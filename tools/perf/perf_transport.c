/* SPDX-License-Identifier: MIT */
/* Plain TCP, Shunt, and Shunt with other values of its variables. */
#include "tools/perf/perf.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/config.h"
#include "tools/shunt.h"

static int wrong(const char *what, const char *text)
{
	fprintf(stderr, "shunt perf: %s '%s'; `shunt perf --help` says how\n", what, text);
	return -1;
}

static bool is_name(const char *name, size_t length)
{
	if (!length || length >= sizeof(((struct perf_transport *)NULL)->name))
		return false;
	for (size_t i = 0; i < length; i++)
		if (!isalnum((unsigned char)name[i]) && !strchr("_-+.", name[i]))
			return false;
	return true;
}

static struct perf_transport *add(struct perf_transports *transports, const char *name, size_t length)
{
	struct perf_transport *transport = &transports->list[transports->count];

	if (transports->count == PERF_TRANSPORTS_MAX) {
		wrong("too many transports and variants (16 at most) with", name);
		return NULL;
	}
	if (!is_name(name, length)) {
		wrong("no name of 1 to 31 letters, digits and _-+. at the start of", name);
		return NULL;
	}
	memset(transport, 0, sizeof(*transport));
	memcpy(transport->name, name, length);
	for (size_t i = 0; i < transports->count; i++) {
		if (!strcmp(transports->list[i].name, transport->name)) {
			wrong("two transports of the name", transport->name);
			return NULL;
		}
	}
	transports->count++;
	return transport;
}

int perf_transports_parse(struct perf_transports *transports, const char *text)
{
	transports->count = 0;
	transports->has_base = false;
	for (;;) {
		size_t length = strcspn(text, ",");
		struct perf_transport *transport = add(transports, text, length);

		if (!transport)
			return -1;
		transport->shunt = !strcmp(transport->name, "shunt");
		if (!transport->shunt && strcmp(transport->name, "tcp"))
			return wrong("transports are tcp and shunt (see also --variant), not",
				     transport->name);
		if (!transport->shunt) {
			transports->base = transports->count - 1;
			transports->has_base = true;
		}
		if (!text[length])
			return 0;
		text += length + 1;
	}
}

/* The variant's variables, or else the environment's. */
static const char *get_variable(const char *name, void *arg)
{
	const struct perf_transport *transport = arg;
	size_t length = strlen(name);

	for (char *const *variable = transport->variables; *variable; variable++)
		if (!strncmp(*variable, name, length) && (*variable)[length] == '=')
			return *variable + length + 1;
	return getenv(name);
}

static void complain(const char *line, void *arg)
{
	fprintf(stderr, "shunt perf: variant %s: %s\n", ((struct perf_transport *)arg)->name, line);
}

static int check_variable(char *variable)
{
	size_t length = strcspn(variable, "=");
	char name[64];

	snprintf(name, sizeof(name), "%.*s", (int)length, variable);
	if (!variable[length])
		return wrong("no VARIABLE=VALUE:", variable);
	if (!strcmp(name, "SHUNT_STATS"))
		return wrong("the statistics are read by this command, so no variant may have", name);
	if (length >= sizeof(name) || !shunt_config_known(name))
		return wrong("no variable of Shunt (`shunt config` lists them):", variable);
	return 0;
}

/* Text behind a comma that is no variable belongs to the value before. */
static char *next_variable(char **rest)
{
	char *variable = *rest, *comma = variable;

	if (!variable)
		return NULL;
	while ((comma = strchr(comma, ',')) && strncmp(comma + 1, "SHUNT_", 6))
		comma++;
	*rest = comma ? comma + 1 : NULL;
	if (comma)
		*comma = '\0';
	return variable;
}

int perf_transports_variant(struct perf_transports *transports, const char *text)
{
	size_t length = strcspn(text, "="), count = 0;
	struct perf_transport *transport;
	struct shunt_config config;
	char *rest, *variable;

	if (!text[length] || strlen(text) >= sizeof(transport->text))
		return wrong("not NAME=VARIABLE=VALUE,...:", text);
	transport = add(transports, text, length);
	if (!transport)
		return -1;
	transport->shunt = true;
	strcpy(transport->text, text + length + 1);
	rest = transport->text;
	while ((variable = next_variable(&rest))) {
		if (count == PERF_VARIABLES_MAX)
			return wrong("more than 16 variables in", text);
		if (check_variable(variable))
			return -1;
		transport->variables[count++] = variable;
	}
	return shunt_config_load(&config, get_variable, transport, complain, transport) ? -1 : 0;
}
