/* SPDX-License-Identifier: MIT */
/*
 * Memory regions. A key is use-count << SEGMENT_MR_BITS | slot. The same slot serves a region in the private table,
 * which local checks read, and in the segment, which the peer reads. Only regions inside the arena appear in the
 * segment, and shared pages, marked. Nothing else can be reached remotely.
 */
#include <errno.h>
#include <stdlib.h>
#include "core/device/soft/device.h"

static void slot_publish(struct segment_mr *slot, uint32_t key, int access, uint64_t address,
			 uint64_t length, uint64_t offset)
{
	/*
	 * Each store releases the zero in `key` before it: who sees a new field sees the key gone. Pairs with
	 * soft_region_find(). Without it a copy could have an old key and new bounds: a WR would reach what it may not.
	 */
	soft_store_release(&slot->access, (uint32_t)access);
	soft_store_release(&slot->address, address);
	soft_store_release(&slot->length, length);
	soft_store_release(&slot->offset, offset);
	soft_store_release(&slot->key, key);
}

/* Acquires field by field, so the second look at the key is not older than any of them (slot_publish). */
bool soft_region_find(struct segment_mr *table, uint32_t key, struct soft_region *region)
{
	struct segment_mr *slot = &table[key & (SEGMENT_MR_SLOTS - 1)];

	region->key = 0;
	if (!key || soft_load_acquire(&slot->key) != key)
		return false;
	region->access = soft_load_acquire(&slot->access);
	region->address = soft_load_acquire(&slot->address);
	region->length = soft_load_acquire(&slot->length);
	region->offset = soft_load_acquire(&slot->offset);
	region->slot = slot;
	if (soft_load(&slot->key) != key)
		return false;
	region->key = key;
	return true;
}

static inline bool region_holds(const struct soft_region *region, uint64_t address, uint64_t bytes)
{
	uint64_t skip = address - region->address;

	return skip <= region->length && bytes <= region->length - skip;
}

/* The cached region if it is the one asked for and still registered, else looked up anew. */
static inline bool region_get(struct soft_region *cache, struct segment_mr *table, uint32_t key)
{
	if (likely(cache->key == key && key && soft_load(&cache->slot->key) == key))
		return true;
	return soft_region_find(table, key, cache);
}

bool soft_local_find(struct soft_qp *qp, const struct ibv_sge *sge, uint32_t access)
{
	return region_get(&qp->local, qp->pd->mrs, sge->lkey) &&
	       (qp->local.access & access) == access &&
	       region_holds(&qp->local, sge->addr, sge->length);
}

/*
 * The peer's own word on where its region lies is bounded by what is mapped of its segment, or by its page. Whole
 * regions are checked, so a WR that the region holds needs no other check.
 */
static bool region_is_mapped(struct soft_region *region, struct soft_peer *peer)
{
	char *page;

	if (likely(region->offset <= peer->bytes &&
		   region->length <= peer->bytes - region->offset)) {
		region->at = peer->base + region->offset;
		return true;
	}
	/* Acquires the mapping, which soft_page_reach() made before it published the page. */
	page = region->offset == SEGMENT_PAGE_OFFSET ? soft_load_acquire(&peer->page) : NULL;
	if (page && region->length <= SEGMENT_PAGE_BYTES) {
		region->at = page;
		return true;
	}
	region->key = 0;
	return false;
}

static inline char *remote_at(struct soft_qp *qp, const struct soft_region *region, uint64_t address,
			      uint64_t bytes, uint32_t access)
{
	access &= ~(region->access & soft_load(&qp->peer_queue->access));
	if (unlikely(access || !region_holds(region, address, bytes)))
		return NULL;
	return region->at + (address - region->address);
}

static __attribute__((noinline)) char *remote_find_anew(struct soft_qp *qp, uint64_t address, uint32_t rkey,
							uint64_t bytes, uint32_t access)
{
	struct soft_region *region = &qp->remote[rkey % SOFT_REMOTES];

	if (!soft_region_find(segment_mrs(qp->peer->base), rkey, region) || !region_is_mapped(region, qp->peer))
		return NULL;
	return remote_at(qp, region, address, bytes, access);
}

char *soft_remote_find(struct soft_qp *qp, uint64_t address, uint32_t rkey, uint64_t bytes,
		       uint32_t access)
{
	struct soft_region *region = &qp->remote[rkey % SOFT_REMOTES];

	if (likely(region->key == rkey && rkey && soft_load(&region->slot->key) == rkey))
		return remote_at(qp, region, address, bytes, access);
	return remote_find_anew(qp, address, rkey, bytes, access);
}

const void *soft_qp_peek(struct ibv_qp *ibqp, uint64_t remote_addr, uint32_t rkey, size_t bytes)
{
	struct soft_qp *qp = container_of(ibqp, struct soft_qp, ibv);
	struct soft_region region;

	if (!qp->peer || !soft_region_find(segment_mrs(qp->peer->base), rkey, &region) ||
	    !region_is_mapped(&region, qp->peer))
		return NULL;
	if (!(region.access & soft_load(&qp->peer_queue->access) & IBV_ACCESS_REMOTE_READ) ||
	    !region_holds(&region, remote_addr, bytes))
		return NULL;
	return region.at + (remote_addr - region.address);
}

/* Where in the segment a posted receive's buffer is; the poster copies SENDs there. */
uint64_t soft_receive_find(struct soft_pd *pd, const struct ibv_sge *sge)
{
	struct soft_region region;

	if (!soft_region_find(pd->mrs, sge->lkey, &region) ||
	    !(region.access & IBV_ACCESS_LOCAL_WRITE) || region.offset == UINT64_MAX ||
	    !region_holds(&region, sge->addr, sge->length))
		return SEGMENT_RQE_BAD;
	return region.offset + (sge->addr - region.address);
}

static int slot_find(struct soft_pd *pd, uint32_t *index)
{
	for (uint32_t i = 0; i < SEGMENT_MR_SLOTS; i++) {
		uint32_t at = (pd->mr_next + i) & (SEGMENT_MR_SLOTS - 1);

		/* A slot whose keys are used up is retired: no key ever comes back. */
		if (soft_load(&pd->mrs[at].key) || pd->mr_count[at] >> (32 - SEGMENT_MR_BITS))
			continue;
		*index = at;
		pd->mr_next = at + 1;
		return 0;
	}
	return ENOMEM;
}

static uint64_t arena_offset_of(const struct soft_pd *pd, const void *addr, size_t length)
{
	uint64_t offset = (uint64_t)((const char *)addr - pd->segment);

	if (offset < pd->arena_offset || offset > pd->bytes || length > pd->bytes - offset)
		return UINT64_MAX;
	return offset;
}

/* The address by which a peer names the first byte of a region that is `offset` into the segment. */
static uint64_t remote_address(const struct soft_pd *pd, uint64_t address, uint64_t offset)
{
	struct soft_context *context = container_of(pd->ibv.context, struct soft_context, ibv);

	return context->attr.zero_based ? offset - pd->arena_offset : address;
}

/* How the peer finds a region. */
struct reach {
	uint64_t address, offset; /* offset UINT64_MAX: it does not */
};

static struct reach arena_reach(const struct soft_pd *pd, const struct soft_mr *mr)
{
	uint64_t offset = arena_offset_of(pd, mr->ibv.addr, mr->ibv.length);

	return (struct reach) { remote_address(pd, (uint64_t)(uintptr_t)mr->ibv.addr, offset),
				offset };
}

static int slot_take(struct soft_pd *pd, struct soft_mr *mr, int access, struct reach reach)
{
	uint64_t address = (uint64_t)(uintptr_t)mr->ibv.addr;
	uint64_t receives = reach.offset == SEGMENT_PAGE_OFFSET ? UINT64_MAX : reach.offset; /* a page takes no SENDs */
	uint32_t index, key;
	int err;

	soft_lock(&pd->lock);
	err = slot_find(pd, &index);
	if (err)
		goto out_unlock;
	key = pd->mr_count[index]++ << SEGMENT_MR_BITS | index;
	mr->ibv.lkey = key;
	mr->ibv.rkey = key;
	slot_publish(&pd->mrs[index], key, access, address, mr->ibv.length, receives);
	if (reach.offset != UINT64_MAX)
		slot_publish(&segment_mrs(pd->segment)[index], key, access, reach.address,
			     mr->ibv.length, reach.offset);
	pd->mr_used++;
out_unlock:
	soft_unlock(&pd->lock);
	return err;
}

static struct soft_mr *mr_make(struct ibv_pd *ibpd, void *addr, size_t length, int access)
{
	struct soft_context *context = container_of(ibpd->context, struct soft_context, ibv);
	struct soft_mr *mr;

	/* Remote write access needs local write access (ibv_reg_mr(3)). */
	if ((access & (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC)) &&
	    !(access & IBV_ACCESS_LOCAL_WRITE)) {
		errno = EINVAL;
		return NULL;
	}
	mr = calloc(1, sizeof(*mr));
	if (!mr)
		return NULL;
	mr->ibv = (struct ibv_mr){ .context = ibpd->context, .pd = ibpd, .addr = addr,
				   .length = length };
	if (unlikely(context->attr.model.on))
		soft_nic_register(context, addr, length);
	return mr;
}

static struct ibv_mr *mr_enter(struct soft_pd *pd, struct soft_mr *mr, int access,
			       struct reach reach)
{
	errno = slot_take(pd, mr, access, reach);
	if (!errno)
		return &mr->ibv;
	free(mr);
	return NULL;
}

struct ibv_mr *soft_register_mr(struct ibv_pd *ibpd, void *addr, size_t length, int access)
{
	struct soft_pd *pd = container_of(ibpd, struct soft_pd, ibv);
	struct soft_mr *mr = mr_make(ibpd, addr, length, access);

	return mr ? mr_enter(pd, mr, access, arena_reach(pd, mr)) : NULL;
}

struct ibv_mr *soft_register_page(struct ibv_pd *ibpd, void *page, int access)
{
	struct soft_mr *mr = mr_make(ibpd, page, SEGMENT_PAGE_BYTES, access);

	return mr ? mr_enter(container_of(ibpd, struct soft_pd, ibv), mr, access,
			     (struct reach){ 0, SEGMENT_PAGE_OFFSET }) : NULL;
}

/*
 * The peer looks at the key with every WR, so from here on it is refused (REM_ACCESS_ERR). A WR
 * that it is carrying out right now may still write. An RNIC would have us wait for it; here the
 * memory stays mapped. Its next user must know that the peer is through with it.
 */
int soft_deregister_mr(struct ibv_mr *ibmr)
{
	struct soft_pd *pd = container_of(ibmr->pd, struct soft_pd, ibv);
	uint32_t index = ibmr->lkey & (SEGMENT_MR_SLOTS - 1);

	soft_lock(&pd->lock);
	/* Before the fields of whatever takes the slot next: slot_publish() releases it with each of them. */
	soft_store_release(&segment_mrs(pd->segment)[index].key, 0);
	soft_store_release(&pd->mrs[index].key, 0);
	pd->mr_used--;
	soft_unlock(&pd->lock);
	free(container_of(ibmr, struct soft_mr, ibv));
	return 0;
}
