/* SPDX-License-Identifier: MIT */
/* A process: does Shunt act in it, which Shunt, with which settings, and what confines it. */
#include "tools/doctor/doctor.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/common/output.h"
#include "tools/shunt.h"

#define TEXT_BYTES 256

/* ---- the library ---- */

/* Why LD_PRELOAD has done nothing, where the process was started with it. */
static void find_preload_fault(struct shunt_patient *patient)
{
	const char *preload = shunt_environment_get("LD_PRELOAD", &patient->environment);
	char path[PATH_MAX];
	size_t length;
	const char *at;
	int error;

	at = preload ? strstr(preload, "/libshunt.so") : NULL;
	if (!at) {
		shunt_findings_add(
			&patient->findings, SHUNT_BAD, "library",
			"the process runs without Shunt: it was started without the library");
		shunt_findings_advise(
			&patient->findings,
			"start it with `shunt run`, or by Environment=LD_PRELOAD= of its unit (docs/SERVICES.md)");
		return;
	}
	while (at > preload && at[-1] != ':' && at[-1] != ' ')
		at--;
	length = strcspn(at, ": ");
	snprintf(path, sizeof(path), "/proc/%d/root%.*s", (int)patient->pid, (int)length, at);
	error = -shunt_library_loads(path);
	shunt_findings_add(
		&patient->findings, SHUNT_BAD, "library",
		"the process was started with LD_PRELOAD, and runs without Shunt: %.*s %s%s",
		(int)length, at, error ? "cannot be loaded: " : "was not loaded",
		error ? strerror(error) : "");
	if (error == EPERM)
		shunt_findings_advise(
			&patient->findings,
			"its file system is mounted noexec: install Shunt elsewhere, or "
			"ExecPaths= of the unit");
	else
		shunt_findings_advise(
			&patient->findings,
			"install the library where the process can read it, and start it anew");
}

static void check_program(struct shunt_patient *patient)
{
	const char *go, *why = shunt_doctor_program(patient->pid, &go);

	if (!why) {
		if (go && patient->loaded)
			shunt_findings_add(&patient->findings, SHUNT_WELL, "program", "%s", go);
		if (!patient->loaded)
			find_preload_fault(patient);
		return;
	}
	shunt_findings_add(&patient->findings, patient->loaded ? SHUNT_WARN : SHUNT_BAD, "program",
			   "the library cannot act in this program: %s", why);
	shunt_findings_advise(
		&patient->findings,
		"link it dynamically and take its privileges away, or leave it on TCP");
}

static void check_version(struct shunt_patient *patient)
{
	const json_t *process = patient->stat ? patient->stat->process : NULL;
	const char *version = json_string_value(json_object_get(process, "version"));

	if (!process)
		return;
	if (version && !strcmp(version, PACKAGE_VERSION)) {
		shunt_findings_add(&patient->findings, SHUNT_WELL, "version",
				   "version %s, as this command", version);
		return;
	}
	shunt_findings_add(&patient->findings, SHUNT_WARN, "version",
			   "the process runs version %s, and this command is %s",
			   version ? version : "unknown (older)", PACKAGE_VERSION);
	shunt_findings_advise(
		&patient->findings,
		"start the process anew, and use the command that was installed with its library");
}

static void check_library(struct shunt_patient *patient)
{
	char path[PATH_MAX];
	bool deleted;
	int loaded = shunt_doctor_library(patient->pid, path, sizeof(path), &deleted);

	patient->loaded = loaded > 0;
	patient->readable = loaded >= 0;
	if (loaded <= 0)
		return;
	if (deleted) {
		shunt_findings_add(
			&patient->findings, SHUNT_WARN, "library",
			"%s was replaced or removed since the process started: it runs the old one",
			path);
		shunt_findings_advise(&patient->findings, "start the process anew");
	} else {
		shunt_findings_add(&patient->findings, SHUNT_WELL, "library", "%s", path);
	}
}

/* ---- the engine ---- */

static void check_uring(struct shunt_patient *patient, const char *uring)
{
	if (!strcmp(uring, "watched")) {
		shunt_findings_add(
			&patient->findings, SHUNT_WELL, "io_uring",
			"the program has rings of io_uring, and streams that they use stay on TCP");
	} else if (!strcmp(uring, "refused")) {
		shunt_findings_add(
			&patient->findings, SHUNT_WELL, "io_uring",
			"the program asked for io_uring and was refused (SHUNT_URING=deny)");
	} else if (!strcmp(uring, "allowed")) {
		shunt_findings_add(
			&patient->findings, SHUNT_BAD, "io_uring",
			"the program may have rings of io_uring, which see nothing of what is on a link");
		shunt_findings_advise(
			&patient->findings,
			"SHUNT_URING=watch, or SHUNT_URING=deny if it can do without rings");
	} else if (!strcmp(uring, "tcp")) {
		shunt_findings_add(
			&patient->findings, SHUNT_WARN, "io_uring",
			"the program has a ring of io_uring that is not watched, so all its streams stay on TCP");
		shunt_findings_advise(&patient->findings,
				      "tell the program to use epoll, or SHUNT_URING=deny");
	}
}

static void check_engine(struct shunt_patient *patient)
{
	const json_t *process = patient->stat ? patient->stat->process : NULL;
	const char *device = json_string_value(json_object_get(process, "device"));
	const char *reason = json_string_value(json_object_get(process, "reason"));
	const char *uring = json_string_value(json_object_get(process, "uring"));
	const char *why;

	if (!process) {
		why = patient->stat && *patient->stat->why ?
			      patient->stat->why :
			      shunt_process_absence(patient->pid, false);
		shunt_findings_add(&patient->findings, SHUNT_WARN, "engine", "%s", why);
		shunt_findings_advise(
			&patient->findings,
			"a look at its log may help: SHUNT_LOG=info, SHUNT_LOG_FILE=");
		return;
	}
	if (reason && *reason) {
		shunt_findings_add(&patient->findings, SHUNT_BAD, "engine", "not accelerated: %s",
				   reason);
		shunt_findings_advise(&patient->findings,
				      "see the rows of the machine, and `shunt doctor devices`");
	} else {
		shunt_findings_add(&patient->findings, SHUNT_WELL, "engine",
				   "it answers; device %s", device ? device : "?");
	}
	if (uring)
		check_uring(patient, uring);
}

/* ---- what strangers have of it ---- */

static json_int_t count_of(const json_t *strangers, const char *name, const char *behind)
{
	char key[64];

	snprintf(key, sizeof(key), "%s%s", name, behind);
	return json_integer_value(json_object_get(strangers, key));
}

/* The sums of SECURITY.md, "What strangers cost", that the process counts. */
static void check_strangers(struct shunt_patient *patient)
{
	static const struct {
		const char *name, *shown;
		int shift; /* of the number that is shown */
	} sums[] = { { "links", "links", 0 },
		     { "unproven", "of them unproven", 0 },
		     { "co_listeners", "co-listeners", 0 },
		     { "address_space", "GiB of addresses", 30 } };
	const json_t *strangers =
		json_object_get(patient->stat ? patient->stat->process : NULL, "strangers");
	json_int_t refused = count_of(strangers, "refused", "");
	char text[TEXT_BYTES];
	size_t length = 0;

	for (size_t i = 0; i < sizeof(sums) / sizeof(sums[0]); i++)
		if (count_of(strangers, sums[i].name, "_most") > 0)
			length += (size_t)snprintf(
				text + length, sizeof(text) - length, "%s%lld of %lld %s",
				length ? ", " : "",
				count_of(strangers, sums[i].name, "") >> sums[i].shift,
				count_of(strangers, sums[i].name, "_most") >> sums[i].shift,
				sums[i].shown);
	if (!length)
		return;
	shunt_findings_add(&patient->findings, refused > 0 ? SHUNT_WARN : SHUNT_WELL, "strangers",
			   "other users have %s; %lld were refused", text, refused);
	if (refused > 0)
		shunt_findings_advise(
			&patient->findings,
			"its log names the first that was refused; SECURITY.md has the limits");
}

/* ---- what confines it ---- */

static void check_seccomp(struct shunt_patient *patient)
{
	long long filter = shunt_proc_status(patient->pid, "Seccomp", 10);

	if (filter > 0)
		shunt_findings_add(
			&patient->findings, SHUNT_WELL, "seccomp",
			"the process has a filter of system calls (mode %lld, NoNewPrivs %lld)",
			filter, shunt_proc_status(patient->pid, "NoNewPrivs", 10));
}

/* "unconfined", or "PROFILE (enforce)"; SELinux has a context. */
static void check_profile(struct shunt_patient *patient)
{
	char path[32], profile[TEXT_BYTES];

	snprintf(path, sizeof(path), "/proc/%d", (int)patient->pid);
	if (shunt_tree_read(path, profile, sizeof(profile), "/attr/current") <= 0 ||
	    !strcmp(profile, "unconfined") || strstr(profile, ":unconfined_t:") ||
	    !strcmp(profile, "kernel"))
		return;
	shunt_findings_add(&patient->findings, SHUNT_WELL, "profile",
			   "a security module confines it: %s", profile);
}

static void check_namespaces(struct shunt_patient *patient)
{
	static const struct {
		const char *kind, *means, *todo;
	} kinds[] = {
		{ "net", "another network namespace: it meets processes of that namespace only",
		  "SHUNT_DIR= with a directory that both mount (docs/CONTAINERS.md)" },
		{ "user", "another user namespace: the kernel's witness is needed for each peer",
		  NULL },
		{ "pid", "another PID namespace: peers are proven by the kernel's witness", NULL },
		{ "mnt", "another mount namespace (a container, or a unit with private folders)",
		  NULL },
	};

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		if (!shunt_proc_is_apart(patient->pid, kinds[i].kind))
			continue;
		shunt_findings_add(&patient->findings, kinds[i].todo ? SHUNT_WARN : SHUNT_WELL,
				   "namespace", "the process is in %s", kinds[i].means);
		if (kinds[i].todo)
			shunt_findings_advise(&patient->findings, "%s", kinds[i].todo);
	}
}

/* ---- its limits ---- */

/* A soft limit; ULLONG_MAX for unlimited or unknown. */
static unsigned long long limit_of(pid_t pid, const char *name)
{
	char *line = shunt_proc_line(pid, "limits", name);
	unsigned long long limit = ULLONG_MAX;

	if (line && !strncmp(line, name, strlen(name)) &&
	    strncmp(line + strlen(name) + strspn(line + strlen(name), " "), "unlimited", 9))
		limit = strtoull(line + strlen(name), NULL, 10);
	free(line);
	return limit;
}

static unsigned long long count_descriptors(pid_t pid)
{
	unsigned long long count = 0;
	const struct dirent *entry;
	char path[32];
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
	dir = opendir(path);
	while (dir && (entry = readdir(dir)))
		count += entry->d_name[0] != '.';
	if (dir)
		closedir(dir);
	return count;
}

/* Only RDMA devices need locked memory. */
static bool has_rdma_device(void)
{
	DIR *dir = opendir("/sys/class/infiniband");
	const struct dirent *entry;
	bool found = false;

	while (dir && !found && (entry = readdir(dir)))
		found = entry->d_name[0] != '.';
	if (dir)
		closedir(dir);
	return found;
}

static void check_limits(struct shunt_patient *patient)
{
	unsigned long long files = limit_of(patient->pid, "Max open files");
	unsigned long long locked = limit_of(patient->pid, "Max locked memory");
	unsigned long long space = limit_of(patient->pid, "Max address space");
	unsigned long long open = count_descriptors(patient->pid);

	if (files < 256 || open > files / 10 * 9) {
		shunt_findings_add(&patient->findings, SHUNT_WARN, "nofile",
				   "%llu of %llu descriptors are open", open, files);
		shunt_findings_advise(&patient->findings,
				      "raise ulimit -n, or LimitNOFILE= of its unit");
	}
	if (locked < 64ULL << 20 && has_rdma_device()) {
		shunt_findings_add(
			&patient->findings, SHUNT_WARN, "memlock",
			"the process may lock %llu KiB; over an RDMA device a link needs some tens of MiB",
			locked >> 10);
		shunt_findings_advise(&patient->findings,
				      "raise ulimit -l, or LimitMEMLOCK= of its unit");
	}
	if (space != ULLONG_MAX) {
		shunt_findings_add(
			&patient->findings, SHUNT_WARN, "space",
			"the process may have %llu MiB of addresses: links are small, and RDMA devices are not used",
			space >> 20);
		shunt_findings_advise(&patient->findings,
				      "ulimit -v unlimited, or LimitAS=infinity of its unit");
	}
}

/* ---- all ---- */

void shunt_doctor_process(struct shunt_patient *patient)
{
	char name[32], inside[32];
	bool same_user = shunt_proc_status(patient->pid, "Uid", 10) == (long long)getuid();

	check_library(patient);
	if (!patient->readable) {
		shunt_findings_add(
			&patient->findings, SHUNT_BAD, "access",
			errno == ENOENT || errno == ESRCH ?
				"there is no such process" :
				"the process may not be examined; only its user and root may");
		return;
	}
	shunt_escape(shunt_proc_name(patient->pid, name, sizeof(name)), patient->program,
		     sizeof(patient->program));
	shunt_environment_read(patient->pid, &patient->environment);
	check_program(patient);
	if (patient->loaded) {
		check_version(patient);
		check_engine(patient);
		check_strangers(patient);
		snprintf(inside, sizeof(inside), "/proc/%d/root", (int)patient->pid);
		shunt_doctor_settings(&patient->findings, &patient->environment,
				      same_user ? inside : NULL);
		check_limits(patient);
	}
	check_namespaces(patient);
	check_seccomp(patient);
	check_profile(patient);
}
