/* SPDX-License-Identifier: MIT */
/* Shared by the files of the shunt command. */
#ifndef SHUNT_TOOLS_SHUNT_H
#define SHUNT_TOOLS_SHUNT_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* Exit statuses. 126 and 127 are those of env(1). */
enum {
	EXIT_FAILED = 1,
	EXIT_USAGE = 2,
	EXIT_NOT_EXECUTABLE = 126,
	EXIT_NOT_FOUND = 127,
};

/* The subcommands; argv[0] is the subcommand's name. They return the exit status. */
int shunt_run(int argc, char **argv);
int shunt_service(int argc, char **argv);
int shunt_stat(int argc, char **argv);
int shunt_trace(int argc, char **argv);
int shunt_dump(int argc, char **argv);
int shunt_top(int argc, char **argv);
int shunt_adm(int argc, char **argv);
int shunt_log_show(int argc, char **argv);
int shunt_monitor(int argc, char **argv);
int shunt_config(int argc, char **argv);
int shunt_doctor(int argc, char **argv);
int shunt_devices(int argc, char **argv);
int shunt_report(int argc, char **argv);
int shunt_compare(int argc, char **argv);
int shunt_advise(int argc, char **argv);
int shunt_perf(int argc, char **argv);
int shunt_perf_end(int argc, char **argv);

/* view.c: the same of the program that shows what runs. */
int shunt_view_top(int argc, char **argv);
int shunt_view_monitor(int argc, char **argv);
int shunt_ping(int argc, char **argv);
int shunt_ping_end(int argc, char **argv);
int shunt_complete(int argc, char **argv);

struct shunt_subcommand {
	const char *name;
	int (*run)(int argc, char **argv);
	const char *help;	/* NULL: not for people */
};

/* shunt.c: the rows of the table; NULL behind the last. */
const struct shunt_subcommand *shunt_subcommand_at(size_t i);

/* seconds.c: the monotonic clock. */
double shunt_seconds(void);
/* absence.c: why a process has no door. `shut`: some doors let nobody in; one may be its own. */
const char *shunt_process_absence(pid_t pid, bool shut);

/* program.c: finding a program, and what its file says about preloading into it. */
int shunt_program_find(const char *name, char path[PATH_MAX]);

enum shunt_program_kind {
	SHUNT_PROGRAM_OK,
	SHUNT_PROGRAM_PRIVILEGED,	/* the dynamic linker ignores LD_PRELOAD */
	SHUNT_PROGRAM_STATIC,		/* there is no dynamic linker */
	SHUNT_PROGRAM_FOREIGN,		/* another architecture or C library */
};

/* `why`, when not OK, is a phrase such as "it is setuid". */
enum shunt_program_kind shunt_program_inspect(const char *path, const char **why);

enum { SHUNT_PROGRAM_WORDS = 400 };

enum shunt_program_go {
	SHUNT_PROGRAM_NOT_GO,
	SHUNT_PROGRAM_GO_CARRIED,
	SHUNT_PROGRAM_GO_LEFT,	/* on TCP */
};

/* program_go.c: in `words`, of a Go program: what becomes of it, and why. */
enum shunt_program_go shunt_program_go(const char *path, char *words, size_t room);

/*
 * variables.c: our own SHUNT_* and the files beneath them. Loading complains on standard error in the name of `who`,
 * also of names that are no variables and of settings that contradict each other. `origins` (core/base/conf.h) and
 * `files` may be NULL. Checking is -1 if nothing should be started.
 */
struct shunt_conf;
struct shunt_conf_wrong;
struct shunt_conf_origin;
struct shunt_config;
struct shunt_conf_wrong shunt_variables_load(const char *who, struct shunt_config *config,
					     struct shunt_conf_origin *origins,
					     const struct shunt_conf **files);
int shunt_variables_check(const char *who);

/* library.c: libshunt.so, and the environment that loads it. */
int shunt_library_find(char path[PATH_MAX]);
/* shunt_library_find() without a word where there is none. */
int shunt_library_locate(char path[PATH_MAX]);
/* Can the dynamic linker map its code? 0 or -errno: -EPERM where the file system is mounted noexec, or for this unit is. */
int shunt_library_loads(const char *path);
/* Puts the library last in LD_PRELOAD, and lets AddressSanitizer be content with it; or takes it out. 0, or -1 after saying
 * why not. */
int shunt_library_preload(const char *path);
void shunt_library_unload(void);

#endif
