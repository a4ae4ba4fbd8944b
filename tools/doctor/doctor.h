/* SPDX-License-Identifier: MIT */
/*
 * shunt doctor: the machine (doctor_machine.c), the settings of this shell (doctor_settings.c), a
 * process (doctor_process.c), its connections (doctor_streams.c) and their peers (doctor_peer.c).
 */
#ifndef SHUNT_TOOLS_DOCTOR_H
#define SHUNT_TOOLS_DOCTOR_H

#include <jansson.h>
#include <stdbool.h>
#include <sys/types.h>

#include "tools/doctor/findings.h"
#include "tools/common/proc.h"
#include "tools/common/sockets.h"
#include "tools/stat/stat.h"

struct shunt_config;

/* ---- the machine ---- */

/* `root`: as of shunt_devices_list(). */
void shunt_doctor_machine(struct shunt_findings *findings, const char *root);
void shunt_doctor_devices(struct shunt_findings *findings, const char *root);

/*
 * Settings of an environment: values, names, contradictions, and the files and directories that
 * they name. `inside` is put before their paths: "", or /proc/PID/root.
 */
void shunt_doctor_settings(struct shunt_findings *findings,
			   const struct shunt_environment *environment, const char *inside);

/* doctor_kernel.c: does sock_diag know sockets of this family? 0 or -errno. */
int shunt_doctor_sock_diag(int family);

/* ---- a process ---- */

/* Everything about one process that the doctor has looked at. */
struct shunt_patient {
	pid_t pid;
	char program[32]; /* escaped */
	bool readable; /* this user may look at it */
	bool loaded; /* it maps the library */
	struct shunt_environment environment;
	const struct shunt_stat *stat; /* its answer; ->process may be NULL; NULL: none */
	struct shunt_findings findings;
	json_t *known;		/* "LOCAL PEER" of its streams */
	json_t *on_tcp; /* its connections on TCP, with peer and remedy */
	unsigned int connections, linked, waiting;
	unsigned int unexamined;	/* on TCP, beyond those whose peers were looked for */
};

/* A network namespace: one of its processes, and its sockets. */
struct shunt_network {
	char name[64];
	pid_t pid;
	struct shunt_sockets sockets;
};

/* One look at all processes and sockets, by which peers are found. */
struct shunt_ward {
	struct shunt_look look; /* of all processes that may be asked */
	struct shunt_holders holders; /* of all sockets that this user may see */
	struct shunt_network *networks; /* that this user may see */
	size_t network_count;
	const char *local, *peer; /* the connection that is asked about; NULL: all */
};

/* doctor_ward.c. 0, or -1 after saying why there is no look. */
int shunt_ward_begin(struct shunt_ward *ward);
void shunt_ward_end(struct shunt_ward *ward);
/* The statistics of a process, or NULL. */
const struct shunt_stat *shunt_ward_stat(const struct shunt_ward *ward, pid_t pid);
/* The network namespace of a process, or NULL. */
const struct shunt_network *shunt_ward_network(const struct shunt_ward *ward, pid_t pid);
/* A process that holds a connection with these addresses and that this user may see; 0: none. */
pid_t shunt_ward_holder(const struct shunt_ward *ward, const char *local, const char *peer);

void shunt_doctor_process(struct shunt_patient *patient);
/* `before`: its sockets before the look at the ward. */
void shunt_doctor_streams(struct shunt_patient *patient, const struct shunt_ward *ward,
			  const struct shunt_sockets *before);
/* The stream of an answer with these addresses, or NULL. */
const json_t *shunt_doctor_stream(const struct shunt_stat *stat, const char *local,
				  const char *peer);
/*
 * The other end of a connection of the process, on this host. The object has "found" and, as far as
 * known, "pid", "program", "user", "shunt", "version", "reason". The members "what" and "do" are
 * there if the peer alone is why there is no link.
 */
json_t *shunt_doctor_peer(const struct shunt_ward *ward, pid_t pid, const char *local,
			  const char *peer);

/*
 * program kinds: doctor_program.c. Why no library can act in this program; NULL: nothing is known. `go`: that its system calls
 * are carried, of a Go program; else NULL. Both are valid up to the next call.
 */
const char *shunt_doctor_program(pid_t pid, const char **go);
/* Does the process map the library? Its path is in `path`. -1: this user may not know. */
int shunt_doctor_library(pid_t pid, char *path, size_t room, bool *deleted);

/* ---- all of it ---- */

/* The whole as JSON; `pids` of count 0 with `all`: all shunted processes that may be asked. */
struct shunt_doctor_wish {
	const char *root, *local, *peer;
	const pid_t *pids;
	size_t count;
	bool all, strict;
};
/* Shows it, or with `json` gives it in *json. The exit status. */
int shunt_doctor_run(const struct shunt_doctor_wish *wish, json_t **json);

#endif
