/* SPDX-License-Identifier: MIT */
#include "core/lane/zero_copy.h"
#include <string.h>
#include <sys/mman.h>
#include "core/base/copy.h"
#include "core/engine.h"
#include "core/lane/roster.h"

#define SMALLEST (64 << 10)	/* of the sizes that are measured */
#define LARGEST (4 << 20)
#define ROUNDS 3

void shunt_zero_copy_posted(struct shunt_seat *seat, uint64_t number, uint64_t offset,
			    const struct ibv_sge *sge, bool is_inline)
{
	struct shunt_seat_out *out = &seat->out;
	struct shunt_zero_copy *pin = out->pin;

	if (pin->from == pin->to) {
		pin->from = offset;
		pin->first = (const char *)(uintptr_t)sge->addr;
	}
	pin->to = offset + sge->length;
	if (!is_inline || seat->lane->retains)
		atomic_store(&out->pinned_wr, number);
}

size_t shunt_zero_copy_copy(const struct shunt_seat *seat, uint8_t *out, uint64_t from, uint64_t to)
{
	const struct shunt_zero_copy *pin = seat->out.pin;

	if (!pin || from < pin->from || from >= pin->to)
		return 0;
	if (to > pin->to)
		to = pin->to;
	return shunt_copy_plain(out, pin->first + (from - pin->from), to - from) ? to - from : 0;
}

/* --- from which size on --- */

/* The shortest of a few times; `to` NULL: of registering [from, +bytes). */
static uint64_t cost(const struct shunt_verbs *verbs, struct ibv_pd *pd, uint64_t (*now)(void), void *to,
		     void *from, size_t bytes)
{
	uint64_t least = UINT64_MAX;

	for (int i = 0; i < ROUNDS; i++) {
		uint64_t start = now(), took;
		struct ibv_mr *mr;

		if (to) {
			memcpy(to, from, bytes);
		} else {
			mr = verbs->register_mr(pd, from, bytes, 0);
			if (!mr)
				return UINT64_MAX;
			verbs->deregister_mr(mr);
		}
		took = now() - start;
		if (took < least)
			least = took;
	}
	return least;
}

uint64_t shunt_zero_copy_measure(const struct shunt_verbs *verbs, struct ibv_pd *pd, uint64_t (*now)(void))
{
	char *memory = mmap(NULL, 2 * LARGEST, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint64_t from = UINT64_MAX;

	if (memory == MAP_FAILED)
		return UINT64_MAX;
	for (size_t bytes = SMALLEST; bytes <= LARGEST && from == UINT64_MAX; bytes *= 2) {
		memset(memory, 1, bytes);
		if (cost(verbs, pd, now, NULL, memory, bytes) < cost(verbs, pd, now, memory + LARGEST, memory, bytes))
			from = bytes;
	}
	munmap(memory, 2 * LARGEST);
	return from;
}
