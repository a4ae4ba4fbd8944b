/* SPDX-License-Identifier: MIT */
/* The doctor's round: the machine, this shell's settings, then each process. */
#include "tools/doctor/doctor.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/api.h"
#include "tools/common/output.h"
#include "tools/shunt.h"

struct round {
	const struct shunt_doctor_wish *wish;
	struct shunt_ward ward;
	struct shunt_findings machine, settings;
	struct shunt_patient *patients;
	size_t count;
};

/* ---- the processes ---- */

static void add_patient(struct round *round, pid_t pid)
{
	for (size_t i = 0; i < round->count; i++)
		if (round->patients[i].pid == pid)
			return;
	round->patients = reallocarray(round->patients, round->count + 1, sizeof(*round->patients));
	if (!round->patients)
		abort();
	round->patients[round->count++] = (struct shunt_patient) { .pid = pid };
}

/* The sockets of those that are named, before they are asked. The caller frees each, and the array. */
static struct shunt_sockets *read_sockets(const struct round *round)
{
	struct shunt_sockets *before = calloc(round->count + 1, sizeof(*before));

	if (!before)
		abort();
	for (size_t i = 0; i < round->count; i++)
		shunt_sockets_of(round->patients[i].pid, &before[i]);
	return before;
}

static void examine(struct round *round, struct shunt_patient *patient,
		    const struct shunt_sockets *before)
{
	patient->stat = shunt_ward_stat(&round->ward, patient->pid);
	shunt_doctor_process(patient);
	if (patient->readable)
		shunt_doctor_streams(patient, &round->ward, before);
}

/* A second look: whose processes are known only now must be asked after their sockets were read. */
static int look_again(struct round *round)
{
	struct shunt_look look;

	if (shunt_look_ask(&look, NULL, 0))
		return -1;
	shunt_look_free(&round->ward.look);
	round->ward.look = look;
	return 0;
}

static int examine_all(struct round *round)
{
	const struct shunt_doctor_wish *wish = round->wish;
	struct shunt_sockets *before;
	int rc = 0;

	for (size_t i = 0; i < wish->count; i++)
		add_patient(round, wish->pids[i]);
	if (wish->local && !wish->count) {
		pid_t pid = shunt_ward_holder(&round->ward, wish->local, wish->peer);

		if (pid)
			add_patient(round, pid);
	}
	for (size_t i = 0; wish->all && i < round->ward.look.count; i++)
		if (round->ward.look.processes[i].process && round->ward.look.processes[i].door.pid)
			add_patient(round, round->ward.look.processes[i].door.pid);
	before = read_sockets(round);
	if (round->count)
		rc = look_again(round);
	for (size_t i = 0; i < round->count && !rc; i++)
		examine(round, &round->patients[i], &before[i]);
	for (size_t i = 0; i < round->count; i++)
		shunt_sockets_free(&before[i]);
	free(before);
	return rc;
}

/* ---- what is said ---- */

static json_t *patient_json(const struct shunt_patient *patient)
{
	const json_t *process = patient->stat ? patient->stat->process : NULL;
	const char *version = json_string_value(json_object_get(process, "version"));
	char shown[64];

	return json_pack("{s:i, s:s, s:b, s:s, s:i, s:i, s:i, s:O?, s:o}", "pid", (int)patient->pid,
			 "program", patient->program, "shunt", patient->loaded, "version",
			 shunt_escape(version ? version : "", shown, sizeof(shown)), "connections",
			 (int)patient->connections, "linked", (int)patient->linked, "waiting",
			 (int)patient->waiting, "on_tcp", patient->on_tcp, "rows",
			 shunt_findings_json(&patient->findings));
}

static enum shunt_grade worst_of(const struct round *round)
{
	enum shunt_grade worst = shunt_findings_worst(&round->machine),
			 other = shunt_findings_worst(&round->settings);

	worst = other > worst ? other : worst;
	for (size_t i = 0; i < round->count; i++) {
		other = shunt_findings_worst(&round->patients[i].findings);
		worst = other > worst ? other : worst;
	}
	return worst;
}

static json_t *round_json(const struct round *round)
{
	json_t *processes = json_array();

	for (size_t i = 0; i < round->count; i++)
		json_array_append_new(processes, patient_json(&round->patients[i]));
	return json_pack("{s:i, s:s, s:s, s:o, s:o, s:o}", "schema", SHUNT_JSON_SCHEMA, "version",
			 PACKAGE_VERSION, "worst", shunt_grade_word(worst_of(round)), "machine",
			 shunt_findings_json(&round->machine), "settings",
			 shunt_findings_json(&round->settings), "processes", processes);
}

static void show(const struct round *round)
{
	puts("this machine:");
	shunt_findings_show(&round->machine);
	if (round->settings.count) {
		puts("the environment of this shell:");
		shunt_findings_show(&round->settings);
	}
	for (size_t i = 0; i < round->count; i++) {
		const struct shunt_patient *patient = &round->patients[i];

		printf("process %d%s%s:\n", (int)patient->pid, *patient->program ? ", " : "",
		       patient->program);
		shunt_findings_show(&patient->findings);
	}
}

/* ---- the round ---- */

static void finish(struct round *round)
{
	for (size_t i = 0; i < round->count; i++) {
		struct shunt_patient *patient = &round->patients[i];

		shunt_findings_free(&patient->findings);
		shunt_environment_free(&patient->environment);
		json_decref(patient->on_tcp);
		json_decref(patient->known);
	}
	free(round->patients);
	shunt_findings_free(&round->machine);
	shunt_findings_free(&round->settings);
	shunt_ward_end(&round->ward);
}

static void check_shell(struct round *round)
{
	struct shunt_environment environment = { 0 };

	shunt_environment_read(getpid(), &environment);
	shunt_doctor_settings(&round->settings, &environment, "");
	shunt_environment_free(&environment);
}

int shunt_doctor_run(const struct shunt_doctor_wish *wish, json_t **json)
{
	struct round round = { .wish = wish, .ward = { .local = wish->local, .peer = wish->peer } };
	enum shunt_grade worst;

	if (shunt_ward_begin(&round.ward))
		return EXIT_FAILED;
	shunt_doctor_machine(&round.machine, wish->root);
	if (!*wish->root)
		check_shell(&round);
	if (wish->local && !wish->count &&
	    !shunt_ward_holder(&round.ward, wish->local, wish->peer)) {
		shunt_findings_add(&round.machine, SHUNT_BAD, "connection",
				   "no process that this user may examine has a connection %s %s",
				   wish->local, wish->peer);
		shunt_findings_advise(
			&round.machine,
			"give its addresses as `shunt stat` and ss show them, own end first");
	}
	if (examine_all(&round)) {
		finish(&round);
		return EXIT_FAILED;
	}
	if (json)
		*json = round_json(&round);
	else
		show(&round);
	worst = worst_of(&round);
	finish(&round);
	return worst == SHUNT_BAD || (worst == SHUNT_WARN && wish->strict) ? EXIT_FAILED : 0;
}
