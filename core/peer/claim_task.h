/* SPDX-License-Identifier: MIT */
/* The service thread's tasks about claims: what the program has offered, and what nobody has claimed in time. */
#ifndef SHUNT_CORE_PEER_CLAIM_TASK_H
#define SHUNT_CORE_PEER_CLAIM_TASK_H

struct shunt_task;

/* Claims what has been offered (offer.h), or sees whether it has been claimed. */
void shunt_claim_task_offers_run(struct shunt_task *task);
/* Gives to the kernel what nobody has claimed (unclaimed.h). */
void shunt_claim_task_unclaimed_run(struct shunt_task *task);

#endif
