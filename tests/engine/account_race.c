/* SPDX-License-Identifier: MIT */
/*
 * Real threads on one account, for TSan. Four take, give and report. The client's service thread begins periods,
 * draws on the pool, and says what is left. The node's thread hears that, and fills the pool by compare-and-swap with
 * what its ledger allows. Most periods begin while all of them are at work. At the end of each fourth all stop, and
 * each token of the period must be where it belongs.
 */
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include "core/qos/account.h"
#include "core/qos/ledger.h"
#include "core/qos/pool.h"

#define PERIODS 240 /* fewer than there are tags */
#define STORM 200000 /* periods of no length, in the end */
#define PERIOD 400000ull /* ns of the test's clock */
#define STEP 2000 /* ns; the node's thread advances the clock after a round of each of the others */
#define CAPACITY 50000
#define RESERVATION 20000
#define BATCH 64
#define TAKERS 4

static struct shunt_account account;
static _Atomic uint64_t moment, pool, report, started; /* `started`: number:16 | reservation:32 */
static _Atomic uint32_t turns, rounds; /* of takers, and of the service thread, since the clock was advanced */
static _Atomic bool stop, storm, end;
static pthread_barrier_t barrier;
/* Tokens by the period's number. */
static _Atomic uint64_t used[256], reserved[256], fetched[256], drawn[256];
static _Atomic uint64_t decayed[256]; /* the most that a report has said */

static void must(bool right, const char *text)
{
	if (right)
		return;
	printf("not ok 1 - %s\n", text);
	exit(1);
}

/* Periods of no reservation are among them. */
static uint32_t reservation_of(uint32_t number)
{
	return number % 5 ? RESERVATION : 0;
}

/* Any thread's report is true. */
static uint64_t say(uint64_t now, bool backlogged)
{
	uint64_t word = shunt_account_report(&account, now, backlogged), before,
		 told = shunt_report_residual(word) + shunt_report_spent(word),
		 of_it = reservation_of(shunt_report_tag(word));

	of_it = of_it > told ? of_it - told : 0;
	before = atomic_load(&decayed[shunt_report_tag(word)]);
	while (before < of_it &&
	       !atomic_compare_exchange_weak(&decayed[shunt_report_tag(word)], &before, of_it))
		;
	return word;
}

/* A turn is over. With fewer processors than threads, others have theirs. */
static void rest(_Atomic uint32_t *count)
{
	if (atomic_fetch_add(count, 1) % 16 == 15)
		sched_yield();
}

/* All stop here, and go on together. */
static void pause_if_told(void)
{
	if (!atomic_load(&stop))
		return;
	pthread_barrier_wait(&barrier);
	pthread_barrier_wait(&barrier);
}

static void take(uint64_t now, uint32_t tokens)
{
	uint8_t tag;
	enum shunt_taken taken = shunt_account_take(&account, now, tokens, &tag);

	if (taken == SHUNT_TAKEN_NONE || taken == SHUNT_TAKEN_LAPSED)
		return;
	if (taken == SHUNT_TAKEN_RESERVED)
		atomic_fetch_add(&reserved[tag], tokens);
	atomic_fetch_add(&used[tag], tokens);
}

static void *taker(void *seed)
{
	uint64_t random = (uint64_t)seed;

	while (!atomic_load(&end)) {
		uint64_t now = atomic_load(&moment);

		pause_if_told();
		random = random * 6364136223846793005ull + 1442695040888963407ull;
		take(now, (uint32_t)(random >> 60) + 1);
		for (int i = atomic_load(&storm) ? 100 : 1; i > 0; i--)
			must(shunt_account_due(&account, now, (uint32_t)(random >> 50) & 63) >= now,
			     "what is due was due before");
		if (!(random >> 40 & 7))
			say(now, random >> 39 & 1);
		rest(&turns);
	}
	return NULL;
}

static void begin_if_told(void)
{
	uint64_t told = atomic_load(&started);

	if ((uint16_t)told == account.number)
		return;
	account.paced = told >> 3 & 1;
	shunt_account_begin(&account, (uint16_t)told, (uint32_t)(told >> 16), PERIOD,
			    atomic_load(&moment));
}

static void draw(void)
{
	uint64_t old = atomic_fetch_sub(&pool, BATCH);
	uint32_t got = shunt_pool_got(old, BATCH);
	uint16_t tag = shunt_pool_tag(old);
	enum shunt_fetched what;

	atomic_fetch_add(&drawn[tag], got);
	begin_if_told(); /* while the answer is under way */
	what = shunt_account_fetched(&account, old, BATCH);
	if (what == SHUNT_FETCHED_SOME || what == SHUNT_FETCHED_AHEAD)
		atomic_fetch_add(&fetched[tag], got);
}

/* One period after the other: takers meet words of a later one. */
static void begin_many(void)
{
	for (uint32_t i = 0; i < STORM; i++) {
		account.paced = true;
		shunt_account_begin(&account, (uint16_t)(account.number + 1 + i % 7 / 6),
				    i / 2 & 1 ? RESERVATION : 0, PERIOD,
				    atomic_fetch_add(&moment, 1));
	}
}

static void *service(void *unused)
{
	(void)unused;
	while (!atomic_load(&storm)) {
		begin_if_told();
		pause_if_told();
		if (shunt_account_pooled(&account) < BATCH)
			draw();
		atomic_store(&report, say(atomic_load(&moment), account.number & 4));
		rest(&rounds);
	}
	begin_many();
	atomic_store(&end, true);
	return NULL;
}

/* --- the node --- */

static struct shunt_ledger ledger;
static struct shunt_ledger_client client;
static struct shunt_ledger_pool of_pool;

static void fill(uint64_t now)
{
	uint64_t word = atomic_load(&pool), most;

	do {
		must(shunt_ledger_read(&ledger, &of_pool, word), "the pool is another's");
		most = shunt_ledger_most(&ledger, &of_pool, now, true);
	} while (!atomic_compare_exchange_weak(&pool, &word,
					       shunt_pool_word(ledger.number, (int64_t)most)));
	shunt_ledger_written(&ledger, &of_pool, most);
}

static void begin_period(uint16_t number)
{
	uint64_t now = atomic_load(&moment);

	shunt_ledger_begin(&ledger, number, CAPACITY, PERIOD, now);
	ledger.paced = number & 1;
	shunt_ledger_grant(&ledger, &client, reservation_of(number));
	atomic_store(&report, shunt_report_word((uint8_t)(number - 1), 0, 0));
	atomic_store(&started, (uint64_t)client.reservation << 16 | number);
	fill(now);
}

static void look(void)
{
	uint32_t before = client.returned;
	uint64_t now = atomic_load(&moment);

	shunt_ledger_heard(&ledger, &client, atomic_load(&report));
	must(client.returned >= before, "what was returned fell");
	fill(now);
	must(ledger.reserved + ledger.drawn + ledger.pooled <= CAPACITY + ledger.returned,
	     "the ledger has more than there is");
}

/* Nobody moves. */
static void check_exactly(uint16_t number)
{
	uint64_t purse = account.purse, residual = purse >> 28 & SHUNT_ACCOUNT_MOST;
	uint64_t word = shunt_account_report(&account, atomic_load(&moment), true);

	must(account.number == number, "the client is at another period");
	must(shunt_report_residual(word) == residual, "a backlogged client has lost tokens");
	shunt_ledger_heard(&ledger, &client, word);
	must(client.reservation == residual + shunt_report_spent(word) + client.returned,
	     "a token of the reservation is missing");
	must(decayed[number] <= client.returned, "a report was not true");
	must(used[number] + (purse & SHUNT_ACCOUNT_MOST) ==
		     shunt_report_spent(word) + fetched[number],
	     "a pooled token is missing");
	must(reserved[number] <= shunt_report_spent(word), "a take was not counted");
	shunt_ledger_read(&ledger, &of_pool, atomic_load(&pool));
	must(ledger.drawn == drawn[number], "a draw was overlooked");
	must(used[number] + (purse & SHUNT_ACCOUNT_MOST) + residual + ledger.pooled +
			     (drawn[number] - fetched[number]) ==
		     client.reservation - client.returned + ledger.drawn + ledger.pooled,
	     "a token is missing");
}

/* Some periods pass while the service thread does nothing. */
static void advance(uint16_t number)
{
	if (atomic_load(&turns) < TAKERS || (number % 8 != 3 && !atomic_load(&rounds))) {
		sched_yield();
		return;
	}
	atomic_store(&turns, 0);
	atomic_store(&rounds, 0);
	atomic_fetch_add(&moment, STEP);
}

static void run_period(uint16_t number)
{
	begin_period(number);
	while (atomic_load(&moment) - ledger.began < PERIOD) {
		advance(number);
		look();
	}
	if (number % 4)
		return;
	atomic_store(&stop, true); /* after `started` */
	pthread_barrier_wait(&barrier);
	check_exactly(number);
	atomic_store(&stop, false);
	pthread_barrier_wait(&barrier);
}

int main(void)
{
	pthread_t threads[TAKERS + 1];
	uint64_t total = 0;

	atomic_store(&pool, shunt_pool_word(0, 0));
	pthread_barrier_init(&barrier, NULL, TAKERS + 2);
	for (uint64_t i = 0; i <= TAKERS; i++)
		pthread_create(&threads[i], NULL, i < TAKERS ? taker : service, (void *)(i + 1));
	for (uint16_t number = 1; number < PERIODS; number++)
		run_period(number);
	for (int i = 1; i < PERIODS; i++) {
		must(used[i] <= CAPACITY && drawn[i] <= CAPACITY && fetched[i] <= drawn[i],
		     "more was used than there was");
		total += used[i];
	}
	atomic_store(&storm, true);
	for (int i = 0; i <= TAKERS; i++)
		pthread_join(threads[i], NULL);
	must((uint8_t)account.number == account.periods[account.number & 1].spent >> 56,
	     "what was spent has another period's tag");
	must(total > 0, "nothing was used");
	printf("ok 1 - %lu tokens, %lu fetches\n1..1\n", (unsigned long)total,
	       (unsigned long)account.faas);
	return 0;
}
