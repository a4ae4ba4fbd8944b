/* SPDX-License-Identifier: MIT */
/*
 * Shared pages of RDMA devices (page.h). Few devices say that their atomics are atomic with the CPU's, too
 * (IBV_ATOMIC_GLOB). With the others (IBV_ATOMIC_HCA) the owner changes its own page by RDMA atomics, through a queue
 * pair that is connected to itself.
 */
#ifndef SHUNT_CORE_DEVICE_PAGE_VERBS_H
#define SHUNT_CORE_DEVICE_PAGE_VERBS_H

#include <stdint.h>

struct ibv_mr;
struct ibv_pd;
struct ibv_qp;
struct shunt_device;
struct shunt_page;

int shunt_page_verbs_make(struct shunt_device *device, struct shunt_page *page);
void shunt_page_verbs_free(struct shunt_page *page);
struct ibv_mr *shunt_page_verbs_lend(struct shunt_page *page, struct ibv_pd *pd, uint64_t *address);
int shunt_page_verbs_reach(struct ibv_qp *qp, const int *fds, int count);

#endif
