/* SPDX-License-Identifier: MIT */
/*
 * Calls that confine their thread or change who it is: user, groups, capabilities, filters, namespaces. All of that
 * belongs to a thread. A service thread that stays outside would be a way out, and unshare(CLONE_NEWUSER) fails in a
 * process of two threads. So that thread ends before (core/leave.h).
 *
 * A new thread inherits users, capabilities and no_new_privs: after those the engine begins anew when it is needed. A
 * filter may forbid what the engine calls, and namespaces part it from its peers: after those the process stays on
 * TCP.
 *
 * Calls for the whole process are not here (PR_SET_DUMPABLE, PR_SET_MDWE, chroot). Calls that confine nothing are not
 * (PR_SET_NAME, PR_SET_KEEPCAPS), and calls that can be undone are not (seteuid, setgroups). A child that clone()
 * makes in namespaces of its own has none of our threads (fork.c, syscall.c). A security label that is set by writing
 * to /proc is not seen.
 */
#include <linux/keyctl.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "preload/confine.h"

/* Newer than some headers. */
#define LABEL_NOW 100	/* LSM_ATTR_CURRENT of linux/lsm.h; the others are for what the thread makes */
#ifndef PR_SCHED_CORE
#define PR_SCHED_CORE 62
#define PR_SCHED_CORE_GET 0
#endif

/* FOLLOWED: threads of ours make the call, too, and stay. */
enum kind { HARMLESS, FOLLOWED, CHANGES, CONFINES };

static struct shunt_engine *engine_leave(enum kind kind)
{
	struct shunt_engine *engine = __atomic_load_n(&shunt_process.engine, __ATOMIC_SEQ_CST);

	if (likely(!engine) || kind == HARMLESS || shunt_process_foreign())
		return NULL;
	if (kind == FOLLOWED && shunt_engine_no_new_privs(engine))
		return NULL;
	shunt_engine_leave(engine, kind == CONFINES);
	return engine;
}

/* A filter counts from here on: no system call where it has been set. errno is kept. */
static void left(enum kind kind, struct shunt_engine *engine, bool done)
{
	int saved = errno;

	if (kind == CONFINES && done && !shunt_process_foreign()) {
		atomic_store(&shunt_process.confined, true);
		engine = __atomic_load_n(&shunt_process.engine, __ATOMIC_SEQ_CST);
		if (engine)
			shunt_engine_stay(engine);
	} else if (engine && shunt_engine_left(engine)) {
		__atomic_store_n(&shunt_process.anew, true, __ATOMIC_SEQ_CST);
	}
	errno = saved;
}

/* A handler that leaves by a jump must not part its two halves. */
#define AROUND(what, call) shunt_inside(CHANGE(what, call))
#define CHANGE(what, call)                                                                         \
	({                                                                                         \
		enum kind kind_ = (what);                                                          \
		struct shunt_engine *engine_ = engine_leave(kind_);                                \
		__typeof__(call) result_ = (call);                                                 \
                                                                                                   \
		left(kind_, engine_, result_ != -1);                                               \
		result_;                                                                           \
	})

void shunt_process_begin_anew(void)
{
	int saved = errno;

	if (!shunt_process_foreign() && __atomic_exchange_n(&shunt_process.anew, false, __ATOMIC_SEQ_CST))
		shunt_inside_do(shunt_engine_begin_anew(shunt_process.engine));
	errno = saved;
}

/* --- what changes what a thread's children inherit --- */

#define CHANGING(name, parameters, ...)					\
	int name parameters						\
	{								\
		return AROUND(CHANGES, real(name)(__VA_ARGS__));	\
	}

CHANGING(setuid, (uid_t uid), uid)
CHANGING(setgid, (gid_t gid), gid)
CHANGING(capset, (void *header, const void *data), header, data)

/* Of a thread: users or groups. UNCHANGED: a call leaves it, setreuid(2). */
struct ids { unsigned int real, effective, saved; };
#define UNCHANGED ((unsigned int)-1)

/* A filter may forbid to ask; then there is no thread of ours either. */
static bool may_ask(void)
{
	return __atomic_load_n(&shunt_process.engine, __ATOMIC_SEQ_CST) &&
	       !shunt_process_confined();
}

static struct ids users(void)
{
	struct ids ids = { 0 };

	if (may_ask())
		(void)getresuid(&ids.real, &ids.effective, &ids.saved);
	return ids;
}

static struct ids groups(void)
{
	struct ids ids = { 0 };

	if (may_ask())
		(void)getresgid(&ids.real, &ids.effective, &ids.saved);
	return ids;
}

static unsigned int changed(unsigned int before, unsigned int to)
{
	return to == UNCHANGED ? before : to;
}

static bool keeps(struct ids ids, unsigned int id)
{
	return ids.real == id || ids.effective == id || ids.saved == id;
}

/*
 * A thread that keeps the ids by which it comes back gives nothing up: seteuid(), setfsuid(),
 * setgroups() and their like are no boundary. A file server makes them for each request. An
 * effective id beside the others is one that was taken on for a while, unless it is root's.
 */
static enum kind ids_kind(struct ids before, struct ids to)
{
	struct ids after = { changed(before.real, to.real), changed(before.effective, to.effective),
			     changed(before.saved, to.saved) };
	bool comes_back = keeps(after, before.real) && keeps(after, before.saved) &&
			  (before.effective || keeps(after, 0));

	return comes_back ? HARMLESS : CHANGES;
}

/* setreuid(2), setregid(2): when the saved id becomes the new effective one. */
static enum kind pair_kind(struct ids before, unsigned int real_id, unsigned int effective)
{
	struct ids to = { real_id, effective, UNCHANGED };

	if (real_id != UNCHANGED || (effective != UNCHANGED && effective != before.real))
		to.saved = changed(before.effective, effective);
	return ids_kind(before, to);
}

int setreuid(uid_t real_uid, uid_t effective)
{
	return AROUND(pair_kind(users(), real_uid, effective), real(setreuid)(real_uid, effective));
}

int setregid(gid_t real_gid, gid_t effective)
{
	return AROUND(pair_kind(groups(), real_gid, effective),
		      real(setregid)(real_gid, effective));
}

int setresuid(uid_t real_uid, uid_t effective, uid_t saved)
{
	return AROUND(ids_kind(users(), (struct ids) { real_uid, effective, saved }),
		      real(setresuid)(real_uid, effective, saved));
}

int setresgid(gid_t real_gid, gid_t effective, gid_t saved)
{
	return AROUND(ids_kind(groups(), (struct ids) { real_gid, effective, saved }),
		      real(setresgid)(real_gid, effective, saved));
}

/* --- what confines --- */

/* Programs try whether there are filters by giving none. */
static enum kind filter_kind(bool strict, bool filter, const void *program)
{
	return strict || (filter && !shunt_bad_pointer(program)) ? CONFINES : HARMLESS;
}

static enum kind prctl_kind(long option, unsigned long a, unsigned long b)
{
	switch (option) {
	case PR_SET_SECCOMP:
		return filter_kind(a == SECCOMP_MODE_STRICT, a == SECCOMP_MODE_FILTER, (const void *)b);
	case PR_SET_NO_NEW_PRIVS:	/* with other words the kernel refuses it */
		return a == 1 && !b ? FOLLOWED : HARMLESS;
	case PR_CAPBSET_DROP: case PR_SET_SECUREBITS:
	case PR_SET_SPECULATION_CTRL:
		return CHANGES;
	case PR_SCHED_CORE:
		return a == PR_SCHED_CORE_GET ? HARMLESS : CHANGES;
	case PR_CAP_AMBIENT:
		return a == PR_CAP_AMBIENT_IS_SET ? HARMLESS : CHANGES;
	default:
		return HARMLESS;
	}
}

/* Words that the option does not have are passed on as they are, as libc does. */
int prctl(int option, ...)
{
	unsigned long a, b, c, d;
	va_list rest;

	va_start(rest, option);
	a = va_arg(rest, unsigned long);
	b = va_arg(rest, unsigned long);
	c = va_arg(rest, unsigned long);
	d = va_arg(rest, unsigned long);
	va_end(rest);
	return AROUND(prctl_kind(option, a, b), real(prctl)(option, a, b, c, d));
}

/* A thread that is made later has its maker's folder, root and undone semaphores, and is on this side of them. */
static enum kind unshare_kind(unsigned long flags)
{
	if (flags & ~(unsigned long)(CLONE_FS | CLONE_SYSVSEM))
		return CONFINES;
	return flags ? CHANGES : HARMLESS;
}

int unshare(int flags)
{
	return AROUND(unshare_kind((unsigned int)flags), real(unshare)(flags));
}

int setns(int fd, int type)
{
	if (shunt_is_own_fd(shunt_lookup(fd)))
		fd = -1;
	return AROUND(CONFINES, real(setns)(fd, type));
}

/* --- by number --- */

static enum kind kind_of(long number, long a, long b, long c)
{
	switch (number) {
	case SYS_prctl:
		return prctl_kind(a, (unsigned long)b, (unsigned long)c);
	case SYS_setreuid: case SYS_setregid:
		return pair_kind(number == SYS_setreuid ? users() : groups(), (unsigned int)a,
				 (unsigned int)b);
	case SYS_setresuid: case SYS_setresgid:
		return ids_kind(number == SYS_setresuid ? users() : groups(),
				(struct ids) { (unsigned int)a, (unsigned int)b, (unsigned int)c });
	case SYS_seccomp:
		return filter_kind(a == SECCOMP_SET_MODE_STRICT, a == SECCOMP_SET_MODE_FILTER, (const void *)c);
	case SYS_unshare:
		return unshare_kind((unsigned long)a);
	case SYS_keyctl:
		return a == KEYCTL_JOIN_SESSION_KEYRING ? CHANGES : HARMLESS;
	case SHUNT_SYS_LSM_SET_SELF_ATTR:
		return a == LABEL_NOW ? CONFINES : HARMLESS;
	case SYS_setns:
#ifdef SYS_landlock_restrict_self
	case SYS_landlock_restrict_self:
#endif
		return CONFINES;
	default:
		return CHANGES;
	}
}

long shunt_confine_call(long number, long a, long b, long c, long d, long e, long f)
{
	return AROUND(kind_of(number, a, b, c), real(syscall)(number, a, b, c, d, e, f));
}
