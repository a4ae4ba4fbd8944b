/* SPDX-License-Identifier: MIT */
/*
 * Why it is right without a lock.
 *
 * Takers change the purse by compare-and-swap, and the tag is a part of it. So a take that read the period's other
 * words fails if a period has begun since. Period n + 2 overwrites the words of period n only after the purse has tag
 * n + 1. Its stores release and the takers' loads acquire, so a taker that sees one of them fails at the purse. Two
 * periods in a row never share a parity: begin puts an empty one between, if it must.
 *
 * A report must not say that more has decayed than has. It reads the purse, then `spent`. A take raises `spent`
 * before it lowers the purse, so each take that the purse shows is in `spent`. A take that fails lowers `spent`
 * again. Therefore R - residual - spent is at most what has decayed. Releases at each change and acquires at each
 * read keep that order.
 */
#include "core/qos/account.h"
#include "core/qos/pool.h"

#define COUNT ((1ull << 56) - 1)
/* A paced client is ahead of its schedule by this part of its reservation, and so many tokens. */
#define PACE_AHEAD 64
#define PACE_LEAST 16

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

static void word_set(_Atomic uint64_t *word, uint64_t value)
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
static bool word_count(_Atomic uint64_t *word, uint8_t tag, uint64_t more)
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

/* Of the reservation may have been spent by now. */
static uint64_t schedule(const struct shunt_account_period *period, uint64_t now)
{
	uint64_t reservation = get(&period->reservation);

	if (!atomic_load_explicit(&period->paced, memory_order_acquire))
		return reservation;
	return reservation - undecayed(period, now) + reservation / PACE_AHEAD + PACE_LEAST;
}

/* Of the purse's reservation may be spent now. */
static uint64_t spendable(const struct shunt_account *account, uint64_t purse, uint64_t now)
{
	const struct shunt_account_period *period = period_of(account, tag_of(purse));
	uint64_t began = get(&period->began), spent = get(&period->spent) & COUNT,
		 most = schedule(period, now);

	if (now > began && now - began >= get(&period->period_ns))
		return 0;
	most = most > spent ? most - spent : 0;
	return reservation_of(purse) < most ? reservation_of(purse) : most;
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

	word_set(&period->began, now);
	word_set(&period->period_ns, period_ns);
	word_set(&period->reservation, reservation);
	word_set(&period->spent, (uint64_t)tag << 56);
	atomic_store_explicit(&period->paced, account->paced, memory_order_release);
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

/* One try with this purse. It was another by then: *purse is what it is. */
static bool take_of(struct shunt_account *account, uint64_t *purse, uint64_t of_it, uint64_t pooled)
{
	uint8_t tag = tag_of(*purse);
	struct shunt_account_period *period = period_of(account, tag);
	uint64_t rest = purse_of(tag, reservation_of(*purse) - of_it, pooled_of(*purse) - pooled);

	if (!of_it)
		return swap(&account->purse, purse, rest);
	if (word_count(&period->spent, tag, of_it)) {
		if (swap(&account->purse, purse, rest))
			return true;
		word_count(&period->spent, tag, -of_it);
	}
	*purse = get(&account->purse);
	return false;
}

enum shunt_taken shunt_account_take(struct shunt_account *account, uint64_t now, uint32_t tokens,
				    uint8_t *tag)
{
	uint64_t purse = get(&account->purse);

	for (;;) {
		uint64_t of_it = spendable(account, purse, now);

		if (of_it > tokens)
			of_it = tokens;
		*tag = tag_of(purse);
		if (tokens - of_it > pooled_of(purse)) {
			if (shunt_account_lapsed(account, now))
				return SHUNT_TAKEN_LAPSED;
			if (get(&account->purse) == purse)
				return SHUNT_TAKEN_NONE;
			purse = get(&account->purse);
		} else if (take_of(account, &purse, of_it, tokens - of_it)) {
			return of_it < tokens ? SHUNT_TAKEN_POOLED : SHUNT_TAKEN_RESERVED;
		}
	}
}

uint32_t shunt_account_pooled(const struct shunt_account *account)
{
	return (uint32_t)pooled_of(get(&account->purse));
}

/* With this purse. Its period's words may be another's already: the caller looks at the tag again. */
static uint64_t due_with(const struct shunt_account *account, uint64_t purse, uint64_t now,
			 uint32_t tokens)
{
	const struct shunt_account_period *period = period_of(account, tag_of(purse));
	uint64_t ready = spendable(account, purse, now) + pooled_of(purse), due,
		 length = get(&period->period_ns), end = get(&period->began) + length,
		 reservation = get(&period->reservation);

	if (ready >= tokens || !length || (now >= end && now - end >= length))
		return now;
	if (now >= end)
		return end + length;
	if (reservation_of(purse) + pooled_of(purse) < tokens || !reservation)
		return end;
	/* The schedule falls behind what was spent; the time that it takes to make up for that. */
	due = now + (uint64_t)((unsigned __int128)(tokens - ready) * length / reservation) + 1;
	return due < end ? due : end;
}

uint64_t shunt_account_due(const struct shunt_account *account, uint64_t now, uint32_t tokens)
{
	uint64_t purse, due;

	do {
		purse = get(&account->purse);
		due = due_with(account, purse, now, tokens);
	} while (tag_of(get(&account->purse)) != tag_of(purse));
	return due;
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
static uint64_t decay(struct shunt_account *account, uint64_t now, bool backlogged)
{
	uint64_t purse = get(&account->purse), left, most;

	for (;;) {
		most = undecayed(period_of(account, tag_of(purse)), now);
		left = reservation_of(purse) < most || backlogged ? reservation_of(purse) : most;
		if (left == reservation_of(purse))
			return purse;
		if (swap(&account->purse, &purse,
			 purse_of(tag_of(purse), left, pooled_of(purse))))
			break;
	}
	total(&account->returned, reservation_of(purse) - left);
	return purse_of(tag_of(purse), left, pooled_of(purse));
}

uint64_t shunt_account_report(struct shunt_account *account, uint64_t now, bool backlogged)
{
	for (;;) {
		uint64_t purse = decay(account, now, backlogged);
		uint8_t tag = tag_of(purse);
		uint64_t spent = get(&period_of(account, tag)->spent);

		if (tag_of(spent) == tag)
			return shunt_report_word(tag, (uint32_t)reservation_of(purse),
						 (uint32_t)at_most(spent & COUNT));
	}
}
