/* SPDX-License-Identifier: MIT */
/*
 * Which locks a function wants, for clang's -Wthread-safety (tools/check static). Other compilers see nothing.
 *
 * The attributes stand on prototypes, and name locks by the parameters: SHUNT_REQUIRES(stream->tx.lock). Members of a
 * structure cannot say which lock guards them: in C clang does not find their siblings.
 *
 * clang compares expressions as they are written. After `tx = &stream->tx` it takes tx->lock and stream->tx.lock for
 * two locks, so a caller names the lock as the prototype does.
 */
#ifndef SHUNT_CORE_BASE_CAPABILITY_H
#define SHUNT_CORE_BASE_CAPABILITY_H

#if defined(__clang__)
#define SHUNT_ATTRIBUTE(...) __attribute__((__VA_ARGS__))
#else
#define SHUNT_ATTRIBUTE(...)
#endif

/* Of a type: it is a lock. */
#define SHUNT_CAPABILITY(name) SHUNT_ATTRIBUTE(capability(name))
#define SHUNT_REQUIRES(...) SHUNT_ATTRIBUTE(requires_capability(__VA_ARGS__))
/* Takes it itself. */
#define SHUNT_EXCLUDES(...) SHUNT_ATTRIBUTE(locks_excluded(__VA_ARGS__))
#define SHUNT_ACQUIRE(...) SHUNT_ATTRIBUTE(acquire_capability(__VA_ARGS__))
/* (result, lock): it has taken the lock if it returns that. */
#define SHUNT_TRY_ACQUIRE(...) SHUNT_ATTRIBUTE(try_acquire_capability(__VA_ARGS__))
#define SHUNT_RELEASE(...) SHUNT_ATTRIBUTE(release_capability(__VA_ARGS__))
/* The callee makes sure that it is held. */
#define SHUNT_ASSERTS(...) SHUNT_ATTRIBUTE(assert_capability(__VA_ARGS__))
/* The analysis cannot follow the function; the reason stands beside it. */
#define SHUNT_NO_LOCK_ANALYSIS SHUNT_ATTRIBUTE(no_thread_safety_analysis)

#endif
