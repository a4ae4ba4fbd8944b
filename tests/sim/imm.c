/* SPDX-License-Identifier: MIT */
/*
 * An eighth of the seeds, or all of them with SIM_IMM, have a device without WRITE_WITH_IMM. It is
 * the soft device behind the layer of core/device/imm.h. A SEND lands nowhere but in the arena of
 * the soft device. So the end of each arena is kept for the notes of its lanes.
 */
#include <errno.h>
#include <stdlib.h>
#include "core/device/imm.h"
#include "core/device/soft/soft.h"
#include "core/engine.h"
#include "tests/sim/sim.h"

enum { KEPT = 1 << 20 }; /* bytes of an arena; the first of them say how many are taken */

struct ibv_context *__real_soft_open(const struct soft_attr *attr,
				     const struct shunt_verbs **verbs);
struct ibv_context *__wrap_soft_open(const struct soft_attr *attr,
				     const struct shunt_verbs **verbs);
void *__real_soft_arena(struct ibv_pd *pd, size_t *bytes);
void *__wrap_soft_arena(struct ibv_pd *pd, size_t *bytes);

bool sim_imm_chosen(uint64_t seed)
{
	return (seed >> 3 & 7) == 5 || getenv("SIM_IMM");
}

void *__wrap_soft_arena(struct ibv_pd *pd, size_t *bytes)
{
	void *arena = __real_soft_arena(pd, bytes);

	if (sim_world.imm)
		*bytes -= KEPT;
	return arena;
}

/* Nothing is given back before its domain ends: the lanes of a link are made anew some dozen times at most. */
static void *map_in_arena(struct ibv_pd *pd, size_t bytes)
{
	size_t arena_bytes;
	char *kept = (char *)__wrap_soft_arena(pd, &arena_bytes) + arena_bytes;
	size_t *taken = (size_t *)kept;

	if (bytes > KEPT - sizeof(*taken) - *taken) {
		errno = ENOMEM;
		return NULL;
	}
	*taken += bytes;
	return kept + sizeof(*taken) + *taken - bytes;
}

static void leave_mapped(void *at, size_t bytes)
{
	(void)at, (void)bytes;
}

struct ibv_context *__wrap_soft_open(const struct soft_attr *attr, const struct shunt_verbs **verbs)
{
	static struct shunt_verbs table;
	struct shunt_engine *engine = shunt_engine_of((struct shunt_loop *)attr->keep_arg, loop);
	struct shunt_device *device = &engine->group.devices[SHUNT_SOFT];
	struct ibv_context *context = __real_soft_open(attr, verbs);

	if (!context || !sim_world.imm)
		return context;
	table = **verbs;
	device->context = context;
	if (shunt_imm_attach(device, &table))
		sim_fail("the layer cannot be attached");
	device->imm.map = map_in_arena;
	device->imm.unmap = leave_mapped;
	*verbs = &table;
	return context;
}
