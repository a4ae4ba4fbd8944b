/* SPDX-License-Identifier: MIT */
/* Connections of a process: why those on TCP are there, and sockets that Shunt does not know. */
#include "tools/doctor.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/advice.h"
#include "tools/output.h"

/* Descriptors of Shunt's own begin here, or at half of the limit (core/fd/own_fds.c). */
#define OWN_FLOOR 16384
#define TEXT_BYTES 1024

static const char *text_of(const json_t *object, const char *key)
{
	const char *text = json_string_value(json_object_get(object, key));

	return text ? text : "";
}

static bool is_asked(const struct shunt_ward *ward, const char *local, const char *peer)
{
	return !ward->local || (!strcmp(ward->local, local) && !strcmp(ward->peer, peer));
}

/* ---- one connection ---- */

/* "redis-server, process 17 of user redis" */
static void name_peer(const json_t *about, char *text, size_t room)
{
	json_int_t pid = json_integer_value(json_object_get(about, "pid"));

	*text = '\0';
	if (pid)
		snprintf(text, room, " (the peer: %s, process %lld of user %s)",
			 text_of(about, "program"), (long long)pid, text_of(about, "user"));
	else if (json_is_true(json_object_get(about, "found")))
		snprintf(
			text, room,
			" (the peer: a process of user %s, which only that user and root may examine)",
			text_of(about, "user"));
}

/* A connection that waits, and of which nobody asks, is a row only where its peer will never answer. */
static void add_connection(struct shunt_patient *patient, const struct shunt_ward *ward,
			   const char *local, const char *peer, int fd, const char *reason,
			   const char *todo, bool waits)
{
	json_t *about = shunt_doctor_peer(ward, patient->pid, local, peer);
	const char *theirs = text_of(about, "reason");
	char what[TEXT_BYTES], shown[TEXT_BYTES], name[256];

	if (waits && !ward->local && !*text_of(about, "what")) {
		json_decref(about);
		return;
	}
	if (*text_of(about, "what")) {
		reason = text_of(about, "what");
		todo = text_of(about, "do");
	}
	name_peer(about, name, sizeof(name));
	if (!strcmp(theirs, reason))
		theirs = "";
	snprintf(what, sizeof(what), "%s%s%s%s", shunt_escape(reason, shown, sizeof(shown)), name,
		 *theirs ? "; the peer says: " : "", theirs);
	json_array_append_new(patient->on_tcp,
			      json_pack("{s:s, s:s, s:i, s:s, s:s, s:o}", "local", local, "peer",
					peer, "fd", fd, "what", what, "do", todo ? todo : "",
					"peer_process", about));
}

/* ---- what Shunt knows ---- */

static void look_at_stream(struct shunt_patient *patient, const struct shunt_ward *ward,
			   const json_t *stream)
{
	const char *local = text_of(stream, "local"), *peer = text_of(stream, "peer");
	const char *state = text_of(stream, "state"), *held = text_of(stream, "held");
	const char *reason = text_of(stream, "reason");
	int fd = (int)json_integer_value(json_object_get(stream, "fd"));
	char text[TEXT_BYTES];

	patient->connections++;
	if (!strcmp(state, "linked") && !*held) {
		patient->linked++;
		if (ward->local && is_asked(ward, local, peer))
			shunt_findings_add(&patient->findings, SHUNT_WELL, "connection",
					   "%s %s is on the link", local, peer);
		return;
	}
	patient->waiting += !strcmp(state, "candidate");
	if (!is_asked(ward, local, peer))
		return;
	if (*held) {
		snprintf(text, sizeof(text), "it is on TCP because of: %s", held);
		add_connection(
			patient, ward, local, peer, fd, text,
			strstr(held, "operator") ?
				"shunt adm PROCESS mock auto, at the end that says so" :
				"completions are slow: look at the network and at the peer's load",
			false);
	} else if (!strcmp(state, "candidate")) {
		snprintf(text, sizeof(text), "it waits for %s", text_of(stream, "waits_for"));
		add_connection(patient, ward, local, peer, fd, text, "wait until it has been used",
			       true);
	} else {
		add_connection(patient, ward, local, peer, fd,
			       *reason ? reason : "it is on TCP, and no reason is known",
			       shunt_advice_for(reason), false);
	}
}

/* ---- what it does not know ---- */

/* Shunt's own sockets: channels to other hosts. */
static int own_floor(pid_t pid)
{
	char *line = shunt_proc_line(pid, "limits", "Max open files");
	unsigned long long limit = line ? strtoull(line + strcspn(line, "0123456789"), NULL, 10) :
					  0;

	free(line);
	return limit && limit / 2 < OWN_FLOOR ? (int)(limit / 2) : OWN_FLOOR;
}

static bool has_inode(const struct shunt_sockets *sockets, unsigned long inode)
{
	for (size_t i = 0; i < sockets->count; i++)
		if (sockets->of[i].inode == inode)
			return true;
	return false;
}

/* Those that were there before the process was asked, and still are. */
static void look_for_strangers(struct shunt_patient *patient, const struct shunt_ward *ward,
			       const struct shunt_sockets *before)
{
	bool answers = patient->stat && patient->stat->process;
	int floor = patient->loaded ? own_floor(patient->pid) : INT_MAX;
	struct shunt_sockets now;

	shunt_sockets_of(patient->pid, &now);
	for (size_t i = 0; i < now.count; i++) {
		const struct shunt_socket *socket = &now.of[i];
		char text[TEXT_BYTES];

		if (socket->fd >= floor || !has_inode(before, socket->inode) ||
		    shunt_doctor_stream(patient->stat, socket->local, socket->peer))
			continue;
		patient->connections++;
		if (!is_asked(ward, socket->local, socket->peer))
			continue;
		if (answers)
			snprintf(text, sizeof(text),
				 "it bypasses Shunt (socket %lu): inherited, passed, or made by a "
				 "direct system call",
				 socket->inode);
		else
			snprintf(text, sizeof(text), "%s",
				 patient->loaded ? "its engine does not answer" :
						   "this process runs without Shunt");
		add_connection(
			patient, ward, socket->local, socket->peer, socket->fd, text,
			answers ?
				"nothing is to be done; a program that makes system calls itself stays on TCP" :
				"see the rows above",
			false);
	}
	shunt_sockets_free(&now);
}

/* ---- rows ---- */

static bool is_alike(const json_t *a, const json_t *b)
{
	return !strcmp(text_of(a, "what"), text_of(b, "what")) &&
	       !strcmp(text_of(a, "do"), text_of(b, "do"));
}

/* Connections with one finding are one row. */
static void add_rows(struct shunt_patient *patient, enum shunt_grade grade)
{
	const json_t *one, *other;
	size_t i, k;

	json_array_foreach(patient->on_tcp, i, one)
	{
		size_t more = 0, earlier = 0;

		json_array_foreach(patient->on_tcp, k, other)
		{
			more += k > i && is_alike(one, other);
			earlier += k < i && is_alike(one, other);
		}
		if (earlier)
			continue;
		if (more)
			shunt_findings_add(&patient->findings, grade, "connection",
					   "%s %s and %zu more: %s", text_of(one, "local"),
					   text_of(one, "peer"), more, text_of(one, "what"));
		else
			shunt_findings_add(&patient->findings, grade, "connection", "%s %s: %s",
					   text_of(one, "local"), text_of(one, "peer"),
					   text_of(one, "what"));
		if (*text_of(one, "do"))
			shunt_findings_advise(&patient->findings, "%s", text_of(one, "do"));
	}
}

void shunt_doctor_streams(struct shunt_patient *patient, const struct shunt_ward *ward,
			  const struct shunt_sockets *before)
{
	const json_t *stream;
	size_t i;

	patient->on_tcp = json_array();
	json_array_foreach(
		json_object_get(patient->stat ? patient->stat->process : NULL, "streams"), i,
		stream) look_at_stream(patient, ward, stream);
	look_for_strangers(patient, ward, before);
	shunt_findings_add(&patient->findings, SHUNT_WELL, "connections",
			   "%u, of which %u on a link and %u waiting", patient->connections,
			   patient->linked, patient->waiting);
	add_rows(patient, ward->local ? SHUNT_BAD : SHUNT_WARN);
}
