/* SPDX-License-Identifier: MIT */
/*
 * A libibverbs.so.1 with one device, over the soft device, that has the limits and habits of a card (profile.h). It is
 * found by LD_LIBRARY_PATH, so that the code for hardware (core/device/device_verbs.c, verbs/, page_verbs.c)
 * runs without hardware. Processes of one network namespace find each other's queue pairs by number.
 *
 * FAKE_VERBS names the profile, and words behind a comma:
 *   locked     so much may be locked as RLIMIT_MEMLOCK says, whatever the user
 *   old_fork   as on kernels before 5.12: after fork() the parent's rings are lost, unless ibv_fork_init() was called
 *   late_fork  ibv_fork_init() says EINVAL, as where memory has been registered already
 * Without it the library has no device.
 */
#ifndef SHUNT_TESTS_FAKE_FAKE_H
#define SHUNT_TESTS_FAKE_FAKE_H

#include <pthread.h>
#include "core/device/soft/device.h"
#include "tests/fake/profile.h"

struct fake_context {
	struct fake_context *next;
	struct ibv_context *soft;
	const struct shunt_verbs *verbs;
	struct ibv_device device;	/* stands in for the soft device's */
	struct ibv_comp_channel *channel; /* the last that was made */
	bool gone;			/* it was unplugged */
	bool lost;			/* a fork has taken its rings */
	int listener;			/* where peers ask for queue pairs (meeting.c) */
	uint32_t block;			/* of numbers: FAKE_BLOCK x block and up are this context's */
	pthread_t thread;
};

#define FAKE_BLOCK 4096u	/* queue pairs of a context, as long as it lives */

/* Tests handle the device by these calls; found by dlsym() as fake_control. */
struct fake_control {
	void (*choose)(const char *words);	/* instead of FAKE_VERBS, for contexts that are opened from now on */
	const struct fake_profile *(*profile_at)(unsigned int i); /* NULL behind the last */
	void (*unplug)(void);		/* DEVICE_FATAL; all that is asked then is refused (EIO) */
	void (*plug)(void);
	void (*port_event)(enum ibv_event_type type, int port);
	void (*move_gid)(void);		/* the address gets the next index, and the event comes */
	void (*swallow)(bool on);	/* nothing that is posted is carried out, and nothing says so */
	uint64_t (*locked)(void);	/* bytes */
	void (*limit)(uint64_t bytes);	/* that all contexts may lock, from now on */
	int (*vectors)(void);		/* that have had a CQ */
	int (*entries)(void);		/* of the largest CQ that was asked for */
	int (*send_sges)(void);		/* the most that a queue pair was asked for */
	int (*fork_inits)(void);	/* calls of ibv_fork_init() */
};
extern __attribute__((visibility("default"))) const struct fake_control fake_control;

extern const struct fake_profile *fake_profile;	/* NULL: no device */

/* library.c */
struct fake_context *fake_of(const struct ibv_context *context);
/* Of locked memory: 0 or ENOMEM. */
int fake_lock(uint64_t bytes);
void fake_unlock(uint64_t bytes);
/* A descriptor where programs have none. */
int fake_keep(void *arg, int fd);
/* The index by which the device's address is found. */
uint32_t fake_gid_index(void);
void fake_gid(union ibv_gid *gid);

/* meeting.c */
int fake_meeting_begin(struct fake_context *context);
void fake_meeting_end(struct fake_context *context);
/* Fetches the peer's queue pair of this number, wherever it is. 0 or an errno. */
int fake_meet(struct ibv_qp *qp, uint32_t number);
extern pthread_mutex_t fake_lock_qps;	/* nobody destroys a queue pair that a peer asks for */

/* memory.c */
struct ibv_mr *fake_register(struct ibv_pd *pd, void *addr, size_t length, int access);
int fake_deregister(struct ibv_mr *mr);

#endif
