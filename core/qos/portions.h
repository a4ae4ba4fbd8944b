/* SPDX-License-Identifier: MIT */
/*
 * A limit that several share: max-min fair portions by what each has used. Pure arithmetic; rates as in tokens.h.
 *
 * A sharer that was short of tokens gets as much as any other. One that was not keeps its use and a quarter. One that
 * sends nothing keeps a sixteenth of an equal portion, with which it begins again.
 *
 * Portions. Clients report the tokens that they have taken, once a period while they send. The node splits a class's
 * limit max-min fairly by what each has used. It does so at most eight times a period, and when an eighth of the
 * class's clients are new. Those who get less are told first. So 1,000 clients that come together cost 8,460
 * messages.
 */
#ifndef SHUNT_CORE_QOS_PORTIONS_H
#define SHUNT_CORE_QOS_PORTIONS_H

#include <stdbool.h>
#include <stdint.h>

#define SHUNT_PORTION_NEW 10000000ull /* ns: the use of one that is new is asked for so soon */
#define SHUNT_PORTION_ALL UINT64_MAX /* a demand: as much as possible */

struct shunt_portion {
	struct shunt_portion *next; /* of those who share */
	uint64_t used; /* the rate between the last two times that it was heard of */
	uint64_t demand; /* a rate; SHUNT_PORTION_ALL */
	uint64_t least; /* a rate that it keeps, if an equal portion is not less; 0: a sixteenth of that */
	uint64_t rate; /* the outcome */
	uint64_t at; /* ns: when it was last heard of */
	uint64_t taken, waits; /* as of then */
	bool known; /* its use is */
	bool settled; /* while portions are computed */
};

/* One more who shares: it wants all that it may have. It has taken and waited so much elsewhere. */
void shunt_portion_begin(struct shunt_portion *portion, uint64_t taken, uint64_t waits,
			 uint64_t now);
/* It has taken so many tokens by now, and waited so often, in all. Counts that go back say nothing. */
void shunt_portion_used(struct shunt_portion *portion, uint64_t taken, uint64_t waits,
			uint64_t now);
/* Its use is to be asked for again, which is done every so many ns. */
static inline bool shunt_portion_is_due(const struct shunt_portion *portion, uint64_t every,
					uint64_t now)
{
	if (!portion->known && every > SHUNT_PORTION_NEW)
		every = SHUNT_PORTION_NEW;
	return now - portion->at >= every;
}
/* Splits `limit`: the sum of all rates is no more, while there are at most limit / SHUNT_RATE_MIN who share. */
void shunt_portion_split(struct shunt_portion *first, uint64_t limit);

#endif
