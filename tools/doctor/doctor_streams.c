/* SPDX-License-Identifier: MIT */
/* Connections of a process: why those on TCP are there, and sockets that Shunt does not know. */
#include "tools/doctor/doctor.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/common/advice.h"
#include "tools/common/output.h"

/* Descriptors of Shunt's own begin here, or at half of the limit (core/fd/own_fds.c). */
#define OWN_FLOOR 16384
#define TEXT_BYTES 1024
#define EXAMINED_MAX 256 /* connections on TCP of a process whose peers are looked for */

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

struct trouble {
	const char *local, *peer, *reason, *todo; /* todo: NULL for none */
	int fd;
	unsigned long inode; /* of a socket that bypasses Shunt; 0: it does not */
	bool waits; /* it may get to a link */
};

/* The verdict in words: the peer's fault comes first. */
static json_t *connection_json(const struct trouble *trouble, json_t *about)
{
	const char *reason = trouble->reason, *todo = trouble->todo ? trouble->todo : "";
	const char *theirs = text_of(about, "reason");
	char what[TEXT_BYTES], shown[TEXT_BYTES], name[256];

	if (*text_of(about, "what")) {
		reason = text_of(about, "what");
		todo = text_of(about, "do");
	}
	if (!strcmp(theirs, reason))
		theirs = "";
	name_peer(about, name, sizeof(name));
	snprintf(what, sizeof(what), "%s%s%s%s", shunt_escape(reason, shown, sizeof(shown)), name,
		 *theirs ? "; the peer says: " : "", theirs);
	return json_pack("{s:s, s:s, s:i, s:I, s:s, s:s, s:o}", "local", trouble->local, "peer",
			 trouble->peer, "fd", trouble->fd, "inode", (json_int_t)trouble->inode,
			 "what", what, "do", todo, "peer_process", about);
}

/* A connection that waits, and of which nobody asks, is a row only where its peer will never answer. */
static void add_connection(struct shunt_patient *patient, const struct shunt_ward *ward,
			   const struct trouble *trouble)
{
	json_t *about;

	if (json_array_size(patient->on_tcp) == EXAMINED_MAX) {
		patient->unexamined += !trouble->waits;
		return;
	}
	about = shunt_doctor_peer(ward, patient->pid, trouble->local, trouble->peer);
	if (trouble->waits && !ward->local && !*text_of(about, "what"))
		json_decref(about);
	else
		json_array_append_new(patient->on_tcp, connection_json(trouble, about));
}

/* ---- streams ---- */

/* Its addresses are known from here on. */
static void note_stream(struct shunt_patient *patient, const char *local, const char *peer)
{
	char key[2 * SHUNT_SOCKET_ADDRESS + 2];

	snprintf(key, sizeof(key), "%s %s", local, peer);
	json_object_set_new(patient->known, key, json_true());
}

static bool is_known(const struct shunt_patient *patient, const struct shunt_socket *socket)
{
	char key[2 * SHUNT_SOCKET_ADDRESS + 2];

	snprintf(key, sizeof(key), "%s %s", socket->local, socket->peer);
	return json_object_get(patient->known, key) != NULL;
}

/* Of a stream that is not on its link. */
static void explain(struct shunt_patient *patient, const struct shunt_ward *ward,
		    const json_t *stream)
{
	const char *held = text_of(stream, "held"), *reason = text_of(stream, "reason");
	struct trouble trouble = { .local = text_of(stream, "local"),
				   .peer = text_of(stream, "peer"),
				   .fd = (int)json_integer_value(json_object_get(stream, "fd")) };
	char text[TEXT_BYTES];

	trouble.reason = text;
	if (*held) {
		snprintf(text, sizeof(text), "it is on TCP because of: %s", held);
		trouble.todo =
			strstr(held, "operator") ?
				"shunt adm PROCESS mock auto, at the end that says so" :
				"completions are slow: look at the network and at the peer's load";
	} else if (!strcmp(text_of(stream, "state"), "candidate")) {
		snprintf(text, sizeof(text), "it waits for %s", text_of(stream, "waits_for"));
		trouble.todo = "wait until it has been used";
		trouble.waits = true;
	} else {
		shunt_reason_said(stream, text, sizeof(text));
		if (!*reason)
			snprintf(text, sizeof(text), "it is on TCP, and no reason is known");
		trouble.todo = shunt_advice_for(reason);
	}
	add_connection(patient, ward, &trouble);
}

static void look_at_stream(struct shunt_patient *patient, const struct shunt_ward *ward,
			   const json_t *stream)
{
	const char *local = text_of(stream, "local"), *peer = text_of(stream, "peer");
	const char *state = text_of(stream, "state");
	bool linked = !strcmp(state, "linked") && !*text_of(stream, "held");

	note_stream(patient, local, peer);
	patient->connections++;
	patient->linked += linked;
	patient->waiting += !strcmp(state, "candidate");
	if (!is_asked(ward, local, peer))
		return;
	if (!linked)
		explain(patient, ward, stream);
	else if (ward->local)
		shunt_findings_add(&patient->findings, SHUNT_WELL, "connection",
				   "%s %s is on the link", local, peer);
}

/* ---- strangers ---- */

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

static void add_stranger(struct shunt_patient *patient, const struct shunt_ward *ward,
			 const struct shunt_socket *socket)
{
	struct trouble trouble = { .local = socket->local,
				   .peer = socket->peer,
				   .fd = socket->fd,
				   .inode = patient->loaded ? socket->inode : 0,
				   .todo = "see the rows above" };

	patient->connections++;
	if (!is_asked(ward, socket->local, socket->peer))
		return;
	if (patient->stat && patient->stat->process) {
		trouble.reason =
			"it bypasses Shunt: inherited, passed, or made by a direct system call";
		trouble.todo =
			"nothing is to be done: a program that makes system calls itself stays on TCP";
	} else {
		trouble.reason = patient->loaded ? "its engine does not answer" :
						   "this process runs without Shunt";
	}
	add_connection(patient, ward, &trouble);
}

/* Connections that were there before the process was asked, and still are. */
static void look_for_strangers(struct shunt_patient *patient, const struct shunt_ward *ward,
			       const struct shunt_sockets *before)
{
	int floor = patient->loaded ? own_floor(patient->pid) : INT_MAX;
	struct shunt_sockets now;

	shunt_sockets_of(patient->pid, &now);
	for (size_t i = 0; i < now.count; i++)
		if (now.of[i].fd < floor && !is_known(patient, &now.of[i]) &&
		    has_inode(before, now.of[i].inode))
			add_stranger(patient, ward, &now.of[i]);
	shunt_sockets_free(&now);
}

/* ---- rows ---- */

static bool is_alike(const json_t *a, const json_t *b)
{
	return !strcmp(text_of(a, "what"), text_of(b, "what")) &&
	       !strcmp(text_of(a, "do"), text_of(b, "do"));
}

/* "LOCAL PEER", what it is the first of, and what Shunt does not know it by. */
static void add_row(struct shunt_patient *patient, enum shunt_grade grade, const json_t *one,
		    size_t more)
{
	json_int_t inode = json_integer_value(json_object_get(one, "inode"));
	char others[32] = "", socket[48] = "";

	if (more)
		snprintf(others, sizeof(others), " and %zu more", more);
	if (inode)
		snprintf(socket, sizeof(socket), " (socket %lld)", (long long)inode);
	shunt_findings_add(&patient->findings, grade, "connection", "%s %s%s%s: %s",
			   text_of(one, "local"), text_of(one, "peer"), socket, others,
			   text_of(one, "what"));
	if (*text_of(one, "do"))
		shunt_findings_advise(&patient->findings, "%s", text_of(one, "do"));
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
		if (!earlier)
			add_row(patient, grade, one, more);
	}
	if (patient->unexamined)
		shunt_findings_add(
			&patient->findings, grade, "connection",
			"%u more on TCP were not looked at; `shunt stat` has their reasons",
			patient->unexamined);
}

void shunt_doctor_streams(struct shunt_patient *patient, const struct shunt_ward *ward,
			  const struct shunt_sockets *before)
{
	const json_t *process = patient->stat ? patient->stat->process : NULL, *stream;
	size_t i;

	patient->on_tcp = json_array();
	patient->known = json_object();
	json_array_foreach(json_object_get(process, "streams"), i, stream)
	{
		look_at_stream(patient, ward, stream);
	}
	look_for_strangers(patient, ward, before);
	if (process || !patient->loaded)
		shunt_findings_add(&patient->findings, SHUNT_WELL, "connections",
				   "%u, of which %u on a link and %u waiting", patient->connections,
				   patient->linked, patient->waiting);
	else
		shunt_findings_add(&patient->findings, SHUNT_WARN, "connections",
				   "%u; it could not be asked which of them are on a link",
				   patient->connections);
	add_rows(patient, ward->local ? SHUNT_BAD : SHUNT_WARN);
}
