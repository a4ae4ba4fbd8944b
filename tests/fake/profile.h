/* SPDX-License-Identifier: MIT */
/*
 * The answers of rdma-core's providers, as data: one row a card (profile.c). The source of each row is the provider's
 * own code, in rdma-core 65 and in the kernel's driver of the same name. No row was seen on hardware.
 */
#ifndef SHUNT_TESTS_FAKE_PROFILE_H
#define SHUNT_TESTS_FAKE_PROFILE_H

#include <stdbool.h>
#include <infiniband/verbs.h>

enum fake_inline {
	FAKE_REFUSED,	/* EINVAL for more than `most` */
	FAKE_CLAMPED,	/* `most` is granted, and told */
	FAKE_LIE,	/* what was asked for is told, and IBV_SEND_INLINE is not looked at when a WR is posted */
};

struct fake_profile {
	const char *name;
	const char *expect;	/* "linked", or the detail of the cause that connections have for TCP */
	struct {
		int max_qp, max_qp_wr, max_sge, max_cqe, max_qp_rd_atom, ports, vectors;
		enum ibv_atomic_cap atomic_cap;
	} told;				/* by ibv_query_device, ibv_context */
	struct {
		uint32_t bytes;		/* of an entry */
		uint32_t spare;		/* entries besides those that were asked for, which count against max_cqe */
		bool power;		/* a power of two is made of them */
	} cqe;
	struct {
		uint32_t most;		/* bytes */
		enum fake_inline more;
		uint32_t extra;		/* bytes told besides those that were asked for */
	} in_line;
	uint32_t sges_told;		/* by ibv_create_qp; 0: as asked */
	/*
	 * A send WR takes base + max(16 x SGEs, header + inline) bytes, rounded up to units. The send queue has no more
	 * units than `most`, and with `power` takes a power of two of them, `spare` included.
	 */
	struct {
		uint32_t base, header, unit, spare, most;
		bool power;
	} send;
	uint32_t receive_bytes;		/* of a receive WR */
	uint32_t receive_again;		/* one ibv_post_recv() of so many takes the first half, and says -EAGAIN; 0: none */
	bool no_rc;			/* an RC queue pair is refused: EOPNOTSUPP */
	bool kernel_rings;		/* the kernel's memory: nothing of them is locked, or lost by a fork */
};

/* Of this name; NULL: there is none. */
const struct fake_profile *fake_profile_find(const char *name, size_t length);
/* All, in order; NULL behind the last. */
const struct fake_profile *fake_profile_at(unsigned int i);

/* Bytes that are locked for so many entries; 0 and errno EINVAL where the provider refuses them. */
uint64_t fake_profile_cq(const struct fake_profile *profile, int entries);
/* Settles `cap` as the provider does. 0 and *locked, or an errno. */
int fake_profile_qp(const struct fake_profile *profile, struct ibv_qp_cap *cap, uint64_t *locked);

#endif
