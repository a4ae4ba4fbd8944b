/* SPDX-License-Identifier: MIT */
/* Which class a client matches. */
#include <string.h>
#include "core/qos/rules.h"

/* A name of a user that nobody has looked up matches no client. */
static bool meets(const struct shunt_qos_class *class, const struct shunt_qos_client *client)
{
	if (class->by & SHUNT_QOS_BY_USER &&
	    (!client->has_user || class->user[0] || class->uid != client->uid))
		return false;
	if (class->by & SHUNT_QOS_BY_PROGRAM && strcmp(class->program, client->command) &&
	    strcmp(class->program, client->program))
		return false;
	if (class->by & SHUNT_QOS_BY_HOST && !shunt_network_has(&class->host, client->host))
		return false;
	if (class->by & SHUNT_QOS_BY_PORT && class->port != client->port)
		return false;
	return !(class->by & SHUNT_QOS_BY_DECLARED) || !strcmp(class->declared, client->declared);
}

uint32_t shunt_qos_match(const struct shunt_qos_rules *rules, const struct shunt_qos_client *client)
{
	for (uint32_t i = 0; i < rules->count; i++)
		if (meets(&rules->classes[i], client))
			return i;
	return SHUNT_QOS_NO_CLASS;
}
