/* SPDX-License-Identifier: MIT */
/*
 * Why it is right without a lock.
 *
 * Takers change the purse by compare-and-swap, and the tag is a part of it: a take that read the period's other words
 * fails if a period has begun since. Period n + 2 overwrites the words of period n only after the purse has tag n + 1.
 * Its stores release and the takers' loads acquire, so a taker that sees one of them fails at the purse. Two periods
 * in a row never share a parity: begin puts an empty one between, if it must.
 *
 * A report must not say that more has decayed than has. Let it read `given`, the purse, then `taken`. take raises
 * `taken` before it lowers the purse, so each take that the purse shows is in `taken`; a take that fails lowers `taken`
 * by what it raised. give raises the purse before `given`, so each give in `given` shows in the purse. So R - residual
 * - (taken - given) is at most what has decayed. Releases at each change and acquires at each read keep that order.
 * `completed` as one word that gives lower would not do: give and report might overtake each other.
 */
#include "core/qos/account.h"
#include "core/qos/pool.h"

#define COUNT ((1ull << 56) - 1)

static uint64_t purse_of(uint8_t tag, uint64_t reservation, uint64_t pooled)
{
	return (uint64_t)tag << 56 | reservation << 28 | pooled;
}

static uint8_t tag_of(uint64_t word)
{
	return (uint8_t)(word >> 56);
}

static uint64_t reservation_of(uint64_t purse)
{
	return purse >> 28 & SHUNT_ACCOUNT_MOST;
}

static uint64_t pooled_of(uint64_t purse)
{
	return purse & SHUNT_ACCOUNT_MOST;
}

static uint64_t at_most(uint64_t tokens)
{
	return tokens < SHUNT_ACCOUNT_MOST ? tokens : SHUNT_ACCOUNT_MOST;
}

static uint64_t get(const _Atomic uint64_t *word)
{
	return atomic_load_explicit(word, memory_order_acquire);
}

static void set(_Atomic uint64_t *word, uint64_t value)
{
	atomic_store_explicit(word, value, memory_order_release);
}

static void total(_Atomic uint64_t *counter, uint64_t more)
{
	if (more)
		atomic_fetch_add_explicit(counter, more, memory_order_relaxed);
}

static bool swap(_Atomic uint64_t *word, uint64_t *old, uint64_t value)
{
	return atomic_compare_exchange_weak_explicit(word, old, value, memory_order_acq_rel,
						     memory_order_acquire);
}

/* False: the count is of another period by now, and has not changed. */
static bool count(_Atomic uint64_t *word, uint8_t tag, uint64_t more)
{
	uint64_t old = get(word);

	do {
		if (tag_of(old) != tag)
			return false;
	} while (!swap(word, &old, (uint64_t)tag << 56 | ((old + more) & COUNT)));
	return true;
}

static struct shunt_account_period *period_of(const struct shunt_account *account, uint8_t tag)
{
	return (struct shunt_account_period *)&account->periods[tag & 1];
}

/* X, rounded down. Threads read their clocks at different moments: `now` may lie before the period's start. */
static uint64_t undecayed(const struct shunt_account_period *period, uint64_t now)
{
	uint64_t began = get(&period->began), length = get(&period->period_ns),
		 gone = now > began ? now - began : 0;

	if (gone >= length)
		return 0;
	return (uint64_t)((unsigned __int128)get(&period->reservation) * (length - gone) / length);
}

/* What the purse's reservation is worth now. */
static uint64_t worth(const struct shunt_account *account, uint64_t purse, uint64_t now)
{
	uint64_t most = undecayed(period_of(account, tag_of(purse)), now),
		 reservation = reservation_of(purse);

	return reservation < most ? reservation : most;
}

bool shunt_account_lapsed(const struct shunt_account *account, uint64_t now)
{
	uint8_t tag;
	uint64_t began, length;

	do {
		const struct shunt_account_period *period;

		tag = tag_of(get(&account->purse));
		period = period_of(account, tag);
		began = get(&period->began);
		length = get(&period->period_ns);
	} while (tag_of(get(&account->purse)) != tag);
	return !length || (now > began && (now - began) / 2 >= length);
}

static void open_period(struct shunt_account *account, uint16_t number, uint64_t reservation,
			uint64_t pooled, uint64_t period_ns, uint64_t now)
{
	uint8_t tag = (uint8_t)number;
	struct shunt_account_period *period = period_of(account, tag);
	uint64_t old;

	set(&period->began, now);
	set(&period->period_ns, period_ns);
	set(&period->reservation, reservation);
	set(&period->taken, (uint64_t)tag << 56);
	set(&period->given, (uint64_t)tag << 56);
	old = atomic_exchange_explicit(&account->purse, purse_of(tag, reservation, pooled),
				       memory_order_acq_rel);
	total(&account->returned, reservation_of(old));
	total(&account->granted, reservation);
}

void shunt_account_begin(struct shunt_account *account, uint16_t number, uint32_t reservation,
			 uint64_t period_ns, uint64_t now)
{
	uint64_t ahead = 0;
	uint16_t before = account->begun ? account->number : 0;

	if (account->begun && number == before)
		return;
	if (account->begun && number == (uint16_t)(before + 1))
		ahead = account->ahead;
	if (!((number ^ before) & 1))
		open_period(account, (uint16_t)(number - 1), 0, 0, period_ns, now);
	open_period(account, number, at_most(reservation), ahead, period_ns, now);
	account->ahead = 0;
	account->number = number;
	account->begun = true;
}

/* The purse without `tokens`. False: it has not got so many. */
static bool spend(const struct shunt_account *account, uint64_t purse, uint64_t now, uint64_t tokens,
		  uint64_t *rest)
{
	uint64_t reservation = worth(account, purse, now), pooled = pooled_of(purse),
		 of_it = tokens < reservation ? tokens : reservation;

	if (tokens > reservation + pooled)
		return false;
	*rest = purse_of(tag_of(purse), reservation - of_it, pooled - (tokens - of_it));
	return true;
}

/* `taken` has been raised already, under the tag of `*purse`. */
static bool take_of(struct shunt_account *account, uint64_t *purse, uint64_t now, uint32_t tokens)
{
	uint8_t tag = tag_of(*purse);
	uint64_t rest;

	do {
		if (tag_of(*purse) != tag || !spend(account, *purse, now, tokens, &rest))
			return false;
	} while (!swap(&account->purse, purse, rest));
	total(&account->returned, reservation_of(*purse) - worth(account, *purse, now));
	return true;
}

bool shunt_account_take(struct shunt_account *account, uint64_t now, uint32_t tokens, uint8_t *tag)
{
	uint64_t purse = get(&account->purse), rest;

	for (;;) {
		bool lapsed = shunt_account_lapsed(account, now);
		struct shunt_account_period *period = period_of(account, tag_of(purse));

		*tag = tag_of(purse);
		if (!lapsed && !spend(account, purse, now, tokens, &rest) &&
		    get(&account->purse) == purse)
			return false;
		if (count(&period->taken, *tag, tokens)) {
			if (lapsed || take_of(account, &purse, now, tokens))
				return true;
			count(&period->taken, *tag, -(uint64_t)tokens);
		}
		/* The purse has changed meanwhile: again, with what it is now. */
		purse = get(&account->purse);
	}
}

void shunt_account_give(struct shunt_account *account, uint8_t tag, uint32_t tokens)
{
	uint64_t purse = get(&account->purse), reservation, pooled;

	do {
		if (tag_of(purse) != tag)
			return;
		reservation = reservation_of(purse);
		pooled = pooled_of(purse);
		if (reservation)
			reservation = at_most(reservation + tokens);
		else
			pooled = at_most(pooled + tokens);
	} while (!swap(&account->purse, &purse, purse_of(tag, reservation, pooled)));
	count(&period_of(account, tag)->given, tag, tokens);
}

enum shunt_fetched shunt_account_fetched(struct shunt_account *account, uint64_t old_word,
					 uint32_t batch)
{
	uint32_t got = shunt_pool_got(old_word, batch);
	uint16_t tag = shunt_pool_tag(old_word);
	bool ahead = tag == (uint16_t)(account->number + 1);
	uint64_t purse = get(&account->purse);

	total(&account->faas, 1);
	if (!account->begun || (tag != account->number && !ahead))
		return SHUNT_FETCHED_STALE;
	if (!got)
		return SHUNT_FETCHED_NONE;
	total(&account->from_pool, got);
	if (ahead) {
		account->ahead = (uint32_t)at_most((uint64_t)account->ahead + got);
		return SHUNT_FETCHED_AHEAD;
	}
	while (!swap(&account->purse, &purse,
		     purse_of(tag_of(purse), reservation_of(purse),
			      at_most(pooled_of(purse) + got))))
		;
	return SHUNT_FETCHED_SOME;
}

/* The purse as it is after the decay. */
static uint64_t decay(struct shunt_account *account, uint64_t now)
{
	uint64_t purse = get(&account->purse), left;

	for (;;) {
		left = worth(account, purse, now);
		if (left == reservation_of(purse))
			return purse;
		if (swap(&account->purse, &purse,
			 purse_of(tag_of(purse), left, pooled_of(purse))))
			break;
	}
	total(&account->returned, reservation_of(purse) - left);
	return purse_of(tag_of(purse), left, pooled_of(purse));
}

uint64_t shunt_account_report(struct shunt_account *account, uint64_t now)
{
	for (;;) {
		uint8_t tag = tag_of(get(&account->purse));
		struct shunt_account_period *period = period_of(account, tag);
		uint64_t given = get(&period->given), purse = decay(account, now),
			 taken = get(&period->taken);
		uint64_t completed = (taken & COUNT) - (given & COUNT);

		if (tag_of(given) == tag && tag_of(purse) == tag && tag_of(taken) == tag)
			return shunt_report_word(tag, (uint32_t)reservation_of(purse),
						 (uint32_t)at_most(completed));
	}
}
