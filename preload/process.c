/* SPDX-License-Identifier: MIT */
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>
#include "core/base/conf.h"
#include "core/base/config_review.h"
#include "core/base/keyfile.h"
#include "core/base/log.h"
#include "core/base/program.h"
#include "core/device/fault.h"
#include "core/stream/uring.h"
#include "preload/confine.h"

static struct shunt_files no_files;

struct shunt_process shunt_process = { .files = &no_files };

/* The one writer is who moved the word from NONE to MAKING; everybody else waits for READY. */
enum { NONE, MAKING, READY };

static _Atomic int config_state, engine_state;
static __thread int making __attribute__((tls_model("initial-exec")));
static struct shunt_config config;
static struct shunt_conf conf; /* no page of it is touched where there are no files */
static const uint8_t *key;	/* of SHUNT_KEY; NULL: none */
static bool lacks_key;

/* True for the thread that has to do it; false when it is done, or being done by this very thread. */
static bool first(_Atomic int *state)
{
	int none = NONE;

	if (atomic_load(state) == READY)
		return false;
	if (atomic_compare_exchange_strong(state, &none, MAKING))
		return true;
	while (!making && atomic_load(state) != READY)
		sched_yield();
	return false;
}

/* Others wait for it. */
static void make(_Atomic int *what, void (*maker)(void))
{
	int state;

	if (!first(what))
		return;
	state = shunt_cancel_off();
	making++;
	maker();
	making--;
	atomic_store(what, READY);
	shunt_cancel_restore(state);
}

static const char *environment(const char *name, void *arg)
{
	(void)arg;
	return secure_getenv(name);
}

static void complain(const char *line, void *arg)
{
	(void)arg;
	shunt_log_write(SHUNT_LOG_WARN, "%s", line);
}

/* Names that are no variables, and settings that contradict each other. */
static void review_config(void)
{
	if (!config.enable)
		return;
	if (!getauxval(AT_SECURE))	/* else the environment does not count */
		shunt_config_unknown(environ, complain, NULL);
	shunt_config_contradictions(&config, complain, NULL);
}

/* Before the program changes its user or its root directory. */
static void read_key(void)
{
	char path[SHUNT_CONFIG_PATH_MAX];
	const char *name, *why = "its name is too long";

	lacks_key = config.trust == SHUNT_TRUST_KEY;
	if (!config.enable || !config.key_file[0])
		return;
	name = shunt_config_path_text(config.key_file, path, sizeof(path));
	key = name ? shunt_keyfile_read(name, &why) : NULL;
	lacks_key = !key;
	if (!key)
		shunt_log_write(SHUNT_LOG_WARN,
				"there are no links between hosts: SHUNT_KEY=%s: %s",
				config.key_file, why);
}

/* A filter may forbid to look, and a process that has changed its user in exec(2) takes nothing from outside. */
static void read_files(const struct shunt_conf_asker *asker)
{
	if (!shunt_process_confined() && !getauxval(AT_SECURE))
		shunt_conf_read(&conf, asker);
}

/* SHUNT_LOG asks for messages wherever standard error leads, and SHUNT_LOG_FILE for messages elsewhere. */
static bool wants_messages(const struct shunt_conf_asker *asker)
{
	const char *level = asker->get("SHUNT_LOG", asker->arg);

	return ((level && *level) || shunt_conf_has(&conf, "SHUNT_LOG")) && !config.log_file[0];
}

static void load_config(void)
{
	struct shunt_conf_asker quiet = { .get = environment },
				asker = { .get = environment, .complain = complain };
	struct shunt_log_calls calls;
	int saved = errno;

	if (!shunt_real.write)
		shunt_calls_resolve();
	calls = (struct shunt_log_calls) { .write = shunt_real.write, .poll = shunt_real.poll };
	/* Twice, because the values say where complaints about them go. */
	read_files(&quiet);
	shunt_conf_load(&conf, &config, &quiet, NULL);
	shunt_log_setup((enum shunt_log_level)config.log_level, config.log_file, &calls);
	shunt_log_set_asked(wants_messages(&quiet));
	shunt_log_set_format((enum shunt_log_format)config.log_format);
	shunt_conf_load(&conf, &config, &asker, NULL);
	review_config();
	read_key();
	shunt_config_settle(&config);
	shunt_fault_set_memory(config.fault);
	errno = saved;
}

bool shunt_process_enabled(void)
{
	if (unlikely(atomic_load(&config_state) != READY))
		shunt_inside_do(make(&config_state, load_config));
	return config.enable;
}

const struct shunt_config *shunt_process_config(void)
{
	return shunt_process_enabled() ? &config : NULL;
}

static void make_engine(void)
{
	struct shunt_engine *engine;

	shunt_process_fill_sys();
	engine = shunt_engine_create(&config, &shunt_process_sys);
	if (!engine)
		return;
	shunt_engine_key(engine, key, lacks_key);
	shunt_signal_watch_faults();
	__atomic_store_n(&shunt_process.engine, engine, __ATOMIC_SEQ_CST);
	__atomic_store_n(&shunt_process.files, shunt_engine_files(engine), __ATOMIC_RELEASE);
	/* In one order with uring_note(): it sees the engine, or this sees its answer. */
	shunt_uring_set(engine, (enum shunt_uring)atomic_load(&shunt_process.uring));
	shunt_confine_made(engine);
}

bool shunt_process_engine(void)
{
	int saved = errno;

	if (unlikely(atomic_load(&engine_state) != READY)) {
		if (!shunt_process_enabled() || shunt_process_confined() || shunt_process_foreign())
			return false;
		shunt_inside_do(make(&engine_state, make_engine));
		errno = saved;
	}
	return shunt_process_has_engine();
}

bool shunt_process_has_engine(void)
{
	return __atomic_load_n(&shunt_process.files, __ATOMIC_ACQUIRE) != &no_files;
}

/* The linker says where this library's code begins and ends. */
extern const char __ehdr_start[] __attribute__((visibility("hidden")));
extern const char etext[] __attribute__((visibility("hidden")));

static bool is_helper(const char *address)
{
	struct shunt_files *files = __atomic_load_n(&shunt_process.files, __ATOMIC_ACQUIRE);
	unsigned int count = atomic_load(&files->helper_count);

	while (count--)
		if (address >= files->helpers[count].from && address < files->helpers[count].to)
			return true;
	return false;
}

bool shunt_process_is_code(const void *address)
{
	return ((const char *)address >= __ehdr_start && (const char *)address < etext) || is_helper(address);
}

void shunt_process_drop(int fd)
{
	int saved = errno;

	shunt_inside_do(shunt_file_closing(shunt_process.engine, fd));
	errno = saved;
}

int shunt_process_lowest(int fd, int least, unsigned int before)
{
	return shunt_process_foreign() ? fd :
		shunt_inside(shunt_numbers_lowest(shunt_process.engine, fd, least, before));
}

/* The table is not that of a child of vfork(). */
struct shunt_file *shunt_process_look(int fd)
{
	struct shunt_file *file = shunt_files_get(shunt_process.files, fd);

	if (file && file->kind == SHUNT_FILE_YOUNG)
		return shunt_inside(shunt_young_grown(shunt_process.engine, fd));
	return shunt_process_foreign() ? NULL : shunt_inside(shunt_numbers_look(shunt_process.engine, fd));
}

bool shunt_process_gone(int fd)
{
	return !shunt_process_foreign() && shunt_numbers_gone(shunt_process.engine, fd);
}

void shunt_process_closed(int fd)
{
	int saved = errno;

	if (!shunt_process_foreign())
		shunt_numbers_closed(shunt_process.engine, fd);
	errno = saved;
}

void shunt_process_fresh(int fd)
{
	struct shunt_file *file = shunt_files_get(shunt_process.files, fd);

	if (unlikely(file && file->kind != SHUNT_FILE_PRIVATE))
		shunt_process_drop(fd);
}

void shunt_process_forget(bool again)
{
	if (making)
		return;	/* a signal handler forked: the making goes on in the child */
	if (shunt_process_has_engine())
		shunt_own_fds_abandon(shunt_process.engine);
	__atomic_store_n(&shunt_process.files, &no_files, __ATOMIC_RELEASE);
	shunt_process.engine = NULL;
	if (atomic_load(&config_state) == MAKING)
		atomic_store(&config_state, NONE);
	atomic_store(&engine_state, again ? NONE : READY);
}

void shunt_process_finish(void)
{
	if (shunt_process_has_engine() && !shunt_process_foreign())
		shunt_inside_do(shunt_engine_finish(shunt_process.engine));
}

static void end(int status, void *unused)
{
	(void)status;
	(void)unused;
	shunt_process_finish();
}

/*
 * Nothing happens here but the look-ups: most programs never open a TCP socket, and for them Shunt
 * shall cost nothing to speak of.
 *
 * Destructors of libraries and handlers of the program may use connections, so the engine ends after them. exit() calls
 * handlers in reverse order. The dynamic linker's, which runs all destructors, is registered after constructors like
 * this one have run. A destructor of ours, or atexit(), would run before other libraries' destructors.
 * If a registration fails, peers learn of the end from the kernel.
 */
__attribute__((constructor)) static void begin(void)
{
	shunt_calls_resolve();
	shunt_calls_find_clock();
	shunt_memory_resolve();
	shunt_program_note(program_invocation_short_name);
	shunt_process_begin();
	shunt_process_atfork();
	(void)on_exit(end, NULL);
	(void)at_quick_exit(shunt_process_finish);
}
