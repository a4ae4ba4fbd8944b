/* SPDX-License-Identifier: MIT */
#include "core/device/page.h"
#include <errno.h>
#include "core/device/device.h"

/* The responder's side of an atomic takes resources that some devices do not have. */
unsigned int shunt_page_access(const struct ibv_device_attr *limits)
{
	return limits->atomic_cap == IBV_ATOMIC_NONE || limits->max_qp_rd_atom < 1 ?
		       0 :
		       IBV_ACCESS_REMOTE_ATOMIC;
}

int shunt_page_make(struct shunt_device *device, struct shunt_page *page)
{
	int result;

	*page = (struct shunt_page) { .device = device, .fd = -1 };
	result = shunt_page_access(&device->limits) ? device->kind->make_page(device, page) :
						      -EOPNOTSUPP;
	if (result)
		page->device = NULL;
	return result;
}

void shunt_page_free(struct shunt_page *page)
{
	if (page->device)
		page->device->kind->free_page(page);
	*page = (struct shunt_page){ .fd = -1 };
}

int shunt_page_lend(struct shunt_page *page, struct ibv_pd *pd, struct shunt_page_loan *loan)
{
	struct shunt_page_loan fresh = { .mr = NULL };

	fresh.mr = page->device->kind->lend_page(page, pd, &fresh.address);
	if (!fresh.mr)
		return errno ? -errno : -ENOMEM;
	fresh.rkey = fresh.mr->rkey;
	*loan = fresh;
	return 0;
}

void shunt_page_take_back(struct shunt_page *page, struct shunt_page_loan *loan)
{
	if (loan->mr)
		page->device->verbs->deregister_mr(loan->mr);
	loan->mr = NULL;
}

int shunt_page_reach(struct shunt_device *device, struct ibv_qp *qp, const int *fds, int count)
{
	return device->kind->reach_page(qp, fds, count);
}

int shunt_page_cas(struct shunt_page *page, uint32_t word, uint64_t *expected, uint64_t desired)
{
	if (page->cas)
		return page->cas(page, word, expected, desired);
	atomic_compare_exchange_strong(&page->words[word], expected, desired);
	return 0;
}
