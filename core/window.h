/*
 * Admission: how much of a lane, and of the device, may be in flight at a time (RB-12…15, XR-13, XR-23).
 *
 * The window stands between the merge queue and the QP: it holds back what is posted, never what is
 * accepted. So what waits for it is merged, and a program sees no more of it than of a slow network. In
 * flight is what was posted and is not known to be complete; only signaled WRs tell, so a WR behind which
 * the window closes is always signaled.
 *
 * A policy is one row of the table in window.c.
 */
#ifndef SHUNT_CORE_WINDOW_H
#define SHUNT_CORE_WINDOW_H

#include <stdbool.h>
#include <stdatomic.h>
#include <stdint.h>

struct shunt_config;
struct shunt_window;

enum shunt_limit {	/* what keeps a lane from posting */
	SHUNT_LIMIT_NONE,
	SHUNT_LIMIT_RING,	/* room in the peer's ring (credit) */
	SHUNT_LIMIT_RECEIVES,	/* receives that the peer has posted */
	SHUNT_LIMIT_SQ,		/* slots of the send queue */
	SHUNT_LIMIT_BYTES,	/* SHUNT_WINDOW */
	SHUNT_LIMIT_WRS,	/* SHUNT_WINDOW_WR */
	SHUNT_LIMIT_DEVICE,	/* SHUNT_WINDOW_DEVICE */
	SHUNT_LIMIT_POLICY,	/* the policy's own word */
	SHUNT_LIMITS
};

extern const char *const shunt_limit_names[SHUNT_LIMITS];

struct shunt_admission {
	const char *name;	/* value of SHUNT_ADMIT */
	void (*start)(struct shunt_window *window, const struct shunt_config *config);
	/* May so many more bytes be posted, within the limits? NULL: always. */
	bool (*admit)(struct shunt_window *window, uint32_t bytes);
	/* So many bytes have completed, ns after the last of them was posted. NULL: nothing is timed. */
	void (*completed)(struct shunt_window *window, uint64_t bytes, uint64_t ns);
};

struct shunt_mark {		/* of one signaled WR */
	uint64_t posted;	/* data bytes up to and with it */
	uint64_t time;		/* when it was posted, if the policy wants to know */
};

struct shunt_window {		/* lane.lock, except P: group.lock */
	const struct shunt_admission *policy;
	_Atomic uint64_t bytes;	/* limits; UINT64_MAX: none. P */
	uint64_t wrs;
	uint64_t device_bytes;
	_Atomic uint64_t *device;	/* in flight in all lanes; NULL: not counted */
	_Atomic uint64_t posted;	/* data bytes given to the QP */
	uint64_t marked;	/* of these, up to the last signaled WR */
	_Atomic uint64_t done;	/* P: known to be complete */
	uint64_t most_bytes, most_wrs;	/* in flight, ever */
	struct shunt_mark *marks;	/* by WR number, modulo the SQ's depth */
	uint32_t mask;
	/* of the policy; P */
	uint64_t fastest_ns;	/* least completion time seen */
	uint64_t cut_at;	/* `done` up to which the last reduction speaks */
	uint64_t step, most;	/* by how much the window grows, and how far */
	uint64_t cuts;		/* reductions */
};

/* 0 or -ENOMEM. `device`: the counter of the device. */
int shunt_window_init(struct shunt_window *window, const struct shunt_config *config, _Atomic uint64_t *device);
/* What is in flight will never complete; the device's count forgets it. */
void shunt_window_fini(struct shunt_window *window);

/*
 * May a data WR of `bytes` be posted behind `ahead_wrs` WRs with `ahead` data bytes that are about to be,
 * while `inflight_wrs` are in flight? What is alone always may (PF-23). A yes counts for the device
 * at once.
 */
enum shunt_limit shunt_window_admit(struct shunt_window *window, uint64_t inflight_wrs, uint32_t ahead_wrs,
				    uint64_t ahead, uint32_t bytes);
/* An admitted WR was not posted after all. */
void shunt_window_return(struct shunt_window *window, uint32_t bytes);
/* Must a WR (`bytes` 0: without data) be signaled, so that the window opens again? `ahead` as above. */
bool shunt_window_signals(const struct shunt_window *window, uint64_t inflight_wrs, uint64_t ahead,
			  uint32_t bytes, uint32_t fragment);
/* WR number `number`, signaled, ends at `posted` data bytes in all; written before it is posted. */
void shunt_window_mark(struct shunt_window *window, uint64_t number, uint64_t posted, uint64_t now);
/* WR number `number` has completed. group.lock held. True: the device's window has opened. */
bool shunt_window_completed(struct shunt_window *window, uint64_t number, uint64_t now);

static inline uint64_t shunt_window_inflight(const struct shunt_window *window)
{
	return atomic_load_explicit(&window->posted, memory_order_relaxed) - atomic_load_explicit(&window->done, memory_order_acquire);
}

#endif
