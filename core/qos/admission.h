/* SPDX-License-Identifier: MIT */
/* Whether a reservation can be kept (HA-13). Tokens; all rates are tokens a period. */
#ifndef SHUNT_CORE_QOS_ADMISSION_H
#define SHUNT_CORE_QOS_ADMISSION_H

#include <stdbool.h>
#include <stdint.h>

/* Aggregate: all reservations of a period, this one included, fit the node's capacity. */
static inline bool shunt_admission_aggregate(uint64_t reserved, uint64_t reservation,
					     uint64_t capacity)
{
	return reserved <= capacity && reservation <= capacity - reserved;
}

/*
 * Local: what is left of the reservation after `used` tokens fits what one client gets in the rest of the period.
 * `gone` of `period_ns` has passed; `local` is the most that one client gets in a whole period.
 */
static inline bool shunt_admission_local(uint64_t reservation, uint64_t used, uint64_t local,
					 uint64_t gone, uint64_t period_ns)
{
	uint64_t needed = reservation > used ? reservation - used : 0,
		 left = gone < period_ns ? period_ns - gone : 0;

	return (unsigned __int128)needed * period_ns <= (unsigned __int128)local * left;
}

#endif
