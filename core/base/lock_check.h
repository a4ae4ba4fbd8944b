/* SPDX-License-Identifier: MIT */
/*
 * Builds with SHUNT_LOCK_CHECKS (configure --enable-lock-checks or --enable-fuzz) know which
 * locks each thread holds. They abort, naming the locks, where a thread
 *
 *   - waits for a lock against the order of lock_rank.h, or for one that it holds already,
 *   - leaves a lock that it does not hold,
 *   - comes to shunt_assert_held() without that lock,
 *   - comes to shunt_assert_service_thread() and is not the service thread of that engine,
 *   - comes to shunt_refuse_turn(): a state machine has got an event that its state does not know.
 *
 * In all other builds nothing of this is there: no word in a lock, no instruction.
 */
#ifndef SHUNT_CORE_BASE_LOCK_CHECK_H
#define SHUNT_CORE_BASE_LOCK_CHECK_H

#include <stdint.h>

struct shunt_engine;
struct shunt_lock;

#ifdef SHUNT_LOCK_CHECKS

void shunt_lock_check_wanted(const struct shunt_lock *lock); /* about to be waited for */
void shunt_lock_check_taken(const struct shunt_lock *lock);
void shunt_lock_check_left(const struct shunt_lock *lock); /* about to be left */

/* Tests in which one thread plays several: until resumed, what it holds is another's. */
unsigned int shunt_lock_check_pause(void);
void shunt_lock_check_resume(unsigned int paused);

/*
 * The caller does the service thread's work for this engine until shunt_service_role_end(): it is that thread, or
 * that thread has ended, or the simulator plays it. Returns the role it had before.
 */
const struct shunt_engine *shunt_service_role_begin(const struct shunt_engine *engine);
void shunt_service_role_end(const struct shunt_engine *before);
void shunt_assert_service_thread(const struct shunt_engine *engine);
/* `where`: the header that has the states. */
void shunt_refuse_turn(const char *where, uint32_t state, uint32_t event);

#else

static inline void shunt_lock_check_wanted(const struct shunt_lock *lock)
{
	(void)lock;
}

static inline void shunt_lock_check_taken(const struct shunt_lock *lock)
{
	(void)lock;
}

static inline void shunt_lock_check_left(const struct shunt_lock *lock)
{
	(void)lock;
}

static inline unsigned int shunt_lock_check_pause(void)
{
	return 0;
}

static inline void shunt_lock_check_resume(unsigned int paused)
{
	(void)paused;
}

static inline const struct shunt_engine *shunt_service_role_begin(const struct shunt_engine *engine)
{
	return engine;
}

static inline void shunt_service_role_end(const struct shunt_engine *before)
{
	(void)before;
}

static inline void shunt_assert_service_thread(const struct shunt_engine *engine)
{
	(void)engine;
}

static inline void shunt_refuse_turn(const char *where, uint32_t state, uint32_t event)
{
	(void)where;
	(void)state;
	(void)event;
}

#endif

#endif
