/* SPDX-License-Identifier: MIT */
/*
 * Tokens of a node with a capacity, counted for people: of each class, of the node, and of its last periods. The
 * service thread writes under group.lock. Nothing else decides by these numbers.
 */
#ifndef SHUNT_CORE_QOS_TALLY_H
#define SHUNT_CORE_QOS_TALLY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "core/qos/rules.h"

#define SHUNT_TALLY_PERIODS 64 /* that are kept */
#define SHUNT_TALLY_ROOM 1024 /* of any text of this file */
#define SHUNT_TALLY_ALERT 8 /* periods in a row without the reservation's use */

struct shunt_answer;

struct shunt_qos_tally { /* of a class; tokens since the rules came into force */
	uint64_t granted; /* as reservations */
	uint64_t taken; /* that clients have used, as the node counts them */
	uint64_t pooled; /* of those, from the pool */
	uint64_t converted; /* unused reservation that went to the pool */
	uint64_t returned; /* unused reservation that clients gave back, by decay */
	uint64_t reserved; /* tokens of this period */
	uint64_t achieved; /* a rate: of the last whole period */
	uint32_t periods; /* with a client */
	uint32_t missed; /* of those: demand was there, and less than the reservation was served */
	uint32_t unused_in_a_row; /* periods up to now that did not use their reservation */
	uint32_t refused; /* clients that the admission has made best effort */
};

struct shunt_qos_period { /* one that has ended */
	uint64_t number;
	uint64_t capacity; /* tokens, as they were estimated for it */
	uint64_t reserved[SHUNT_QOS_CLASSES], taken[SHUNT_QOS_CLASSES]; /* tokens */
};

enum shunt_qos_monitor { /* how the monitor reaches a pool that clients take from */
			 SHUNT_QOS_MONITOR_NONE, /* it does not run */
			 SHUNT_QOS_MONITOR_PROCESSOR, /* by the processor's atomics */
			 SHUNT_QOS_MONITOR_DEVICE, /* by atomics of the device, through a queue pair to itself */
};

struct shunt_qos_node {
	enum shunt_qos_monitor monitor;
	uint64_t capacity; /* tokens of this period: the estimate in force; 0: not known yet */
	uint64_t mean, sigma; /* of the profile, in tokens */
	uint64_t pool; /* tokens that are there to be taken, when the monitor last looked */
	uint64_t period; /* the number of this one; 0: none has begun */
	uint64_t ended; /* periods, in all */
	struct shunt_qos_period periods[SHUNT_TALLY_PERIODS]; /* a ring of the last that ended */
};

/* This period ends: its row, to be filled, has its number and capacity. The oldest goes. */
struct shunt_qos_period *shunt_tally_ended(struct shunt_qos_node *node);
/* The n-th of those that are kept, 0 the newest; NULL: there are not so many. */
const struct shunt_qos_period *shunt_tally_period(const struct shunt_qos_node *node, uint32_t n);

/* Members of an object of JSON, without its braces; each ends with a comma. */
void shunt_tally_class_json(const struct shunt_qos_class *class,
			    const struct shunt_qos_tally *tally, char text[SHUNT_TALLY_ROOM]);
void shunt_tally_node_json(const struct shunt_qos_rules *rules, const struct shunt_qos_node *node,
			   char text[SHUNT_TALLY_ROOM]);
/* A whole object. */
void shunt_tally_period_json(const struct shunt_qos_period *period, uint32_t classes,
			     char text[SHUNT_TALLY_ROOM]);

/* For people. Periods that the answer has no room for are the oldest. */
void shunt_tally_class_show(const struct shunt_qos_class *class,
			    const struct shunt_qos_tally *tally, struct shunt_answer *answer);
void shunt_tally_node_show(const struct shunt_qos_rules *rules, const struct shunt_qos_node *node,
			   struct shunt_answer *answer);
void shunt_tally_periods_show(const struct shunt_qos_rules *rules,
			      const struct shunt_qos_node *node, struct shunt_answer *answer);

#endif
