/* SPDX-License-Identifier: MIT */
/* The process at the other end of a connection, where that is on this host, and whether it is the cause. */
#include "tools/doctor/doctor.h"

#include <limits.h>
#include <pwd.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "core/base/conf.h"
#include "tools/common/output.h"

#define NAME_BYTES 64

__attribute__((format(printf, 3, 4))) static void set(json_t *object, const char *key,
						      const char *format, ...)
{
	char text[1024], shown[1024];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	json_object_set_new(object, key, json_string(shunt_escape(text, shown, sizeof(shown))));
}

static const char *text_of(const json_t *object, const char *key)
{
	const char *text = json_string_value(json_object_get(object, key));

	return text ? text : "";
}

const json_t *shunt_doctor_stream(const struct shunt_stat *stat, const char *local,
				  const char *peer)
{
	const json_t *stream;
	size_t i;

	json_array_foreach(json_object_get(stat ? stat->process : NULL, "streams"), i,
			   stream) if (!strcmp(text_of(stream, "local"), local) &&
				       !strcmp(text_of(stream, "peer"), peer)) return stream;
	return NULL;
}

/* ---- its socket ---- */

static bool is_loopback(const char *address)
{
	return !strncmp(address, "127.", 4) || !strncmp(address, "[::1]", 5);
}

/* In the network namespace of the process, else in another one that has such a connection. */
static const struct shunt_socket *find_socket(const struct shunt_ward *ward, pid_t pid,
					      const char *local, const char *peer, bool *elsewhere)
{
	const struct shunt_network *own = shunt_ward_network(ward, pid);
	const struct shunt_socket *socket = own ? shunt_sockets_find(&own->sockets, peer, local) :
						  NULL;

	*elsewhere = false;
	if (socket || is_loopback(peer))
		return socket;
	*elsewhere = true;
	for (size_t i = 0; i < ward->network_count && !socket; i++)
		if (&ward->networks[i] != own)
			socket = shunt_sockets_find(&ward->networks[i].sockets, peer, local);
	return socket;
}

static void name_user(json_t *about, uid_t user)
{
	struct passwd entry, *found = NULL;
	char buf[NAME_BYTES * 32];

	if (!getpwuid_r(user, &entry, buf, sizeof(buf), &found) && found)
		set(about, "user", "%s", found->pw_name);
	else
		set(about, "user", "%u", user);
}

/* ---- is it the cause? ---- */

static void judge_unloaded(json_t *about, pid_t pid)
{
	const char *go, *why = shunt_doctor_program(pid, &go);

	if (why) {
		set(about, "what", "the peer runs without Shunt, and cannot run with it: %s", why);
		set(about, "do",
		    "nothing is to be done, unless the peer's program can be replaced");
	} else {
		set(about, "what", "the peer runs without Shunt");
		set(about, "do",
		    "start it with `shunt run`, or by LD_PRELOAD in its unit (docs/SERVICES.md)");
	}
}

static void judge_settings(json_t *about, pid_t pid)
{
	struct shunt_environment environment = { 0 };
	const struct shunt_conf_asker asker = { .get = shunt_environment_get, .arg = &environment };
	static struct shunt_conf conf;
	struct shunt_config config;
	const char *device;

	shunt_environment_read(pid, &environment);
	shunt_conf_read(&conf, &asker);
	shunt_conf_load(&conf, &config, &asker, NULL);
	if (!config.enable)
		set(about, "what", "the peer was started with SHUNT_ENABLE=0");
	else if (shunt_config_device(config.device, &device) == SHUNT_DEVICE_NONE)
		set(about, "what", "the peer was started with SHUNT_DEVICE=none");
	if (*text_of(about, "what"))
		set(about, "do", "unset it, and start the peer anew");
	shunt_environment_free(&environment);
}

static void judge_answer(json_t *about, const struct shunt_stat *stat, const char *local,
			 const char *peer)
{
	const json_t *stream = shunt_doctor_stream(stat, peer, local);
	const char *version = text_of(stat->process, "version");
	char reason[256];

	set(about, "version", "%s", version);
	set(about, "state", "%s", text_of(stream, "state"));
	set(about, "reason", "%s", shunt_reason_said(stream, reason, sizeof(reason)));
	if (strcmp(version, PACKAGE_VERSION) && !*text_of(about, "what")) {
		set(about, "what", "the peer runs Shunt %s, and this command is %s",
		    *version ? version : "of an older version", PACKAGE_VERSION);
		set(about, "do", "start both programs anew with one version of Shunt");
	}
}

static void judge(json_t *about, const struct shunt_ward *ward, pid_t holder, const char *local,
		  const char *peer)
{
	const struct shunt_stat *stat = shunt_ward_stat(ward, holder);
	char path[PATH_MAX];
	bool deleted;
	int loaded = shunt_doctor_library(holder, path, sizeof(path), &deleted);

	if (loaded >= 0)
		json_object_set_new(about, "shunt", json_boolean(loaded));
	if (!loaded)
		judge_unloaded(about, holder);
	if (loaded > 0)
		judge_settings(about, holder);
	if (stat && stat->process)
		judge_answer(about, stat, local, peer);
}

json_t *shunt_doctor_peer(const struct shunt_ward *ward, pid_t pid, const char *local,
			  const char *peer)
{
	json_t *about = json_object();
	bool elsewhere;
	const struct shunt_socket *socket = find_socket(ward, pid, local, peer, &elsewhere);
	char name[NAME_BYTES];
	size_t holders;
	pid_t holder;

	json_object_set_new(about, "found", json_boolean(socket != NULL));
	if (!socket)
		return about;
	name_user(about, socket->user);
	holder = shunt_holders_find(&ward->holders, socket->inode, &holders);
	json_object_set_new(about, "holders", json_integer((json_int_t)holders));
	if (!holder)
		return about;
	json_object_set_new(about, "pid", json_integer(holder));
	set(about, "program", "%s", shunt_proc_name(holder, name, sizeof(name)));
	judge(about, ward, holder, local, peer);
	if (elsewhere && !*text_of(about, "what")) {
		set(about, "what", "the peer is on this host, in another network namespace");
		set(about, "do", "SHUNT_DIR with a directory that both mount (docs/CONTAINERS.md)");
	}
	return about;
}
