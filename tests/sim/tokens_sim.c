/* SPDX-License-Identifier: MIT */
/*
 * Clients, pools and a node's ledger in a random order of steps, by seed. Messages, fetches and reports are under way
 * for any time, and clients are at former periods meanwhile. No client spends tokens that the node has not got. In
 * each period, used tokens and those that may still be used are never more than its capacity. A client that always
 * has something to send gets its reservation in each period.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "core/qos/account.h"
#include "core/qos/ledger.h"
#include "core/qos/pool.h"

#define CLIENTS 10
#define BACKLOGGED 3 /* of them */
#define POOLS 3
#define STEPS 4000
#define PERIOD 1000000ull
#define KEPT 4 /* periods whose tokens are followed */
#define QUEUE 4
#define AHEAD 64 /* part of its reservation by which a paced client is ahead at most, */
#define LEAST 16 /* and tokens */

struct under_way {
	uint16_t number; /* of the period */
	uint32_t tokens;
	uint64_t word; /* an FAA's answer; of a message, the period's length */
};

struct queue {
	uint32_t count;
	struct under_way of[QUEUE];
};

struct client {
	struct shunt_account account;
	struct shunt_ledger_client at_node;
	bool there, backlogged;
	struct queue messages, flights, tickets; /* tickets: tokens that were taken, and not used yet */
	bool reporting;
	uint64_t flying_report, report; /* at the node */
	/* Of its period. Tokens. */
	uint64_t began, length, reservation;
	uint64_t came, taken, of_reservation, returned_before;
};

struct kept {
	uint16_t number;
	uint64_t capacity, used, drawn;
};

static struct client clients[CLIENTS];
static struct shunt_ledger_pool pools[POOLS];
static uint64_t words[POOLS];
static struct shunt_ledger ledger;
static struct kept kept[KEPT];
static uint64_t now, random_state;
static bool convert, pace, pace_pools;
static const char *wrong;
/* That there was something to check. */
static uint64_t all_used, used_late, met, met_paced, returned, converted;

static uint32_t below(uint32_t most)
{
	random_state = random_state * 6364136223846793005ull + 1442695040888963407ull;
	return (uint32_t)(random_state >> 33) % most;
}

static void must(bool right, const char *text)
{
	if (!right && !wrong)
		wrong = text;
}

static struct under_way *push(struct queue *queue)
{
	return &queue->of[queue->count++];
}

static struct under_way pull(struct queue *queue, uint32_t index)
{
	struct under_way one = queue->of[index];

	queue->count--;
	memmove(&queue->of[index], &queue->of[index + 1],
		(queue->count - index) * sizeof(queue->of[0]));
	return one;
}

static uint64_t residual(const struct client *c)
{
	return c->account.purse >> 28 & SHUNT_ACCOUNT_MOST;
}

static uint64_t pooled(const struct client *c)
{
	return c->account.purse & SHUNT_ACCOUNT_MOST;
}

static void use(uint16_t number, uint64_t tokens)
{
	struct kept *period = &kept[number % KEPT];

	all_used += tokens;
	if (number != ledger.number)
		used_late += tokens;
	if (period->number == number)
		period->used += tokens;
}

/* --- what may still be used --- */

static void add(uint64_t sums[KEPT], uint16_t number, uint64_t tokens)
{
	if (kept[number % KEPT].number == number)
		sums[number % KEPT] += tokens;
}

static void add_client(uint64_t sums[KEPT], const struct client *c)
{
	for (uint32_t i = 0; i < c->messages.count; i++)
		add(sums, c->messages.of[i].number, c->messages.of[i].tokens);
	for (uint32_t i = 0; i < c->flights.count; i++)
		add(sums, c->flights.of[i].number, c->flights.of[i].tokens);
	for (uint32_t i = 0; i < c->tickets.count; i++)
		add(sums, c->tickets.of[i].number, c->tickets.of[i].tokens);
	if (!c->account.begun)
		return;
	add(sums, c->account.number, residual(c) + pooled(c));
	add(sums, (uint16_t)(c->account.number + 1), c->account.ahead);
}

static void check_ledger(uint64_t in_pools)
{
	uint64_t all = ledger.capacity + ledger.returned;

	must(ledger.reserved <= all && ledger.drawn <= all && ledger.pooled <= all &&
		     ledger.returned <= ledger.reserved &&
		     ledger.residual <= ledger.reserved && ledger.unheard <= ledger.reserved,
	     "a count of the ledger is negative");
	must(ledger.drawn <= kept[ledger.number % KEPT].drawn, "a draw that was none");
	must(ledger.reserved + ledger.drawn + ledger.pooled <= all, "the ledger spends too much");
	must(ledger.reserved + kept[ledger.number % KEPT].drawn + in_pools <= all,
	     "pools give too much");
}

static void check(void)
{
	uint64_t sums[KEPT] = { 0 }, in_pools = 0;

	for (int i = 0; i < CLIENTS; i++)
		add_client(sums, &clients[i]);
	for (int i = 0; i < POOLS; i++) {
		if (shunt_pool_tokens(words[i]) <= 0)
			continue;
		add(sums, shunt_pool_tag(words[i]), (uint64_t)shunt_pool_tokens(words[i]));
		if (shunt_pool_tag(words[i]) == ledger.number)
			in_pools += (uint64_t)shunt_pool_tokens(words[i]);
	}
	for (int i = 0; i < KEPT; i++)
		must(kept[i].used + sums[i] <= kept[i].capacity, "more tokens than there are");
	check_ledger(in_pools);
}

/* --- a client --- */

static void check_pace(const struct client *c, uint64_t at)
{
	uint64_t gone = at > c->began ? at - c->began : 0;

	must(gone < c->length, "a reservation is spent after its period");
	must(!pace || c->of_reservation <= c->reservation * gone / c->length +
						   c->reservation / AHEAD + LEAST + 1,
	     "a paced client is ahead of its schedule");
}

static bool take(struct client *c, uint64_t at, uint32_t tokens)
{
	uint64_t before = residual(c);
	uint8_t tag;
	enum shunt_taken taken = shunt_account_take(&c->account, at, tokens, &tag);

	if (taken == SHUNT_TAKEN_NONE || taken == SHUNT_TAKEN_LAPSED) {
		must(before == residual(c), "a refusal has taken something");
		return false;
	}
	must(tag == (uint8_t)c->account.number, "a tag of another period");
	must((before - residual(c) == tokens) == (taken == SHUNT_TAKEN_RESERVED),
	     "a reservation is taken for pooled tokens");
	c->taken += tokens;
	c->of_reservation += before - residual(c);
	if (before > residual(c))
		check_pace(c, at);
	if (c->tickets.count < QUEUE && below(3) == 0)
		*push(&c->tickets) = (struct under_way) { c->account.number, tokens, 0 };
	else
		use(c->account.number, tokens);
	return true;
}

static void take_all(struct client *c, uint64_t at)
{
	while (take(c, at, 16))
		;
	while (take(c, at, 1))
		;
}

/* Tokens that were taken before are used, however late. */
static void use_late(struct client *c)
{
	struct under_way ticket = pull(&c->tickets, below(c->tickets.count));

	use(ticket.number, ticket.tokens);
}

/* Each token that came was taken, is there, or was returned. */
static void settle(struct client *c)
{
	uint64_t end = c->began + c->length, last = now < end ? now : end - 1,
		 decayed = c->account.returned - c->returned_before;

	must(c->came == c->taken + residual(c) + pooled(c) + decayed,
	     "a client's token is missing");
	if (!c->backlogged)
		return;
	must(!decayed, "what a backlogged client had has decayed");
	if (pace && last - c->began < c->length - c->length / AHEAD)
		return; /* it was told of the next period too early */
	must(c->of_reservation == c->reservation,
	     "a backlogged client has not got its reservation");
	*(pace ? &met_paced : &met) += c->reservation > 0;
}

static void begin(struct client *c)
{
	struct under_way message = pull(&c->messages, 0);

	if (c->account.begun) {
		if (c->backlogged && now < c->began + c->length)
			take_all(c, now);
		settle(c);
	}
	c->account.paced = pace;
	shunt_account_begin(&c->account, message.number, message.tokens, message.word, now);
	must(residual(c) == message.tokens, "another reservation than was granted");
	c->began = now;
	c->length = message.word;
	c->reservation = message.tokens;
	c->came = message.tokens + pooled(c);
	c->taken = c->of_reservation = 0;
	c->returned_before = c->account.returned;
}

static void draw(struct client *c)
{
	uint32_t k = below(POOLS), batch = below(16) + 1, got = shunt_pool_got(words[k], batch);
	uint16_t number = shunt_pool_tag(words[k]);

	if (c->flights.count == QUEUE)
		return;
	*push(&c->flights) = (struct under_way) { number, got, words[k] };
	if (kept[number % KEPT].number == number)
		kept[number % KEPT].drawn += got;
	words[k] -= batch;
}

static void answer(struct client *c)
{
	struct under_way flight = pull(&c->flights, below(c->flights.count));
	uint64_t before = pooled(c);
	enum shunt_fetched what =
		shunt_account_fetched(&c->account, flight.word, flight.tokens ? flight.tokens : 1);

	must((what == SHUNT_FETCHED_SOME) == (pooled(c) > before), "an answer is misunderstood");
	c->came += pooled(c) - before;
}

static void report(struct client *c)
{
	if (c->reporting)
		c->report = c->flying_report;
	else if (c->account.begun)
		c->flying_report =
			shunt_account_report(&c->account, now, c->backlogged || below(8) == 0);
	c->reporting = !c->reporting && c->account.begun;
}

/* --- the node --- */

static void tell(struct client *c, uint64_t length)
{
	uint32_t granted = shunt_ledger_grant(&ledger, &c->at_node, below(4) ? below(200) : 0);

	if (c->messages.count == QUEUE)
		begin(c);
	*push(&c->messages) = (struct under_way) { ledger.number, granted, length };
	c->report = shunt_report_word((uint8_t)(ledger.number - 1), 0, 0);
}

static void begin_period(uint16_t number)
{
	uint64_t capacity = 500 + below(1000);

	returned += ledger.returned;
	converted += ledger.reserved + ledger.drawn > ledger.capacity;
	shunt_ledger_begin(&ledger, number, capacity, PERIOD, now);
	ledger.paced = pace_pools;
	kept[number % KEPT] = (struct kept) { .number = number, .capacity = capacity };
	for (int i = 0; i < CLIENTS; i++)
		if (clients[i].there)
			tell(&clients[i], PERIOD);
}

static void arrive(struct client *c)
{
	uint64_t gone = now - ledger.began;

	c->there = true;
	tell(c, gone < PERIOD ? PERIOD - gone : 1);
}

/* Its tokens may have been used. */
static void leave(struct client *c)
{
	uint64_t sums[KEPT] = { 0 };
	bool backlogged = c->backlogged;

	add_client(sums, c);
	for (int i = 0; i < KEPT; i++)
		kept[i].used += sums[i];
	shunt_ledger_gone(&ledger, &c->at_node);
	memset(c, 0, sizeof(*c));
	c->backlogged = backlogged;
}

static void fill(struct client *c)
{
	uint32_t k = below(POOLS);
	uint64_t seen, most;

	do {
		seen = words[k];
		must(shunt_ledger_read(&ledger, &pools[k], seen), "the pool is another's");
		most = shunt_ledger_most(&ledger, &pools[k], now, convert);
		if (c->there && below(4) == 0)
			draw(c);
	} while (words[k] != seen);
	if (below(3) == 0)
		most = below((uint32_t)most + 1);
	words[k] = shunt_pool_word(ledger.number, (int64_t)most);
	shunt_ledger_written(&ledger, &pools[k], most);
	must(convert || !most || ledger.reserved + ledger.drawn + ledger.pooled <= ledger.capacity,
	     "what was returned is given away");
}

/* --- a run --- */

static void pass_time(void)
{
	now += below(5000);
	/* The last moment of a period is one of demand, too. */
	for (int i = 0; i < CLIENTS; i++)
		if (clients[i].backlogged && clients[i].length &&
		    clients[i].began + clients[i].length <= now && residual(&clients[i]))
			take_all(&clients[i], clients[i].began + clients[i].length - 1);
}

static void act(struct client *c, uint32_t what)
{
	if (what < 15 && c->messages.count)
		begin(c);
	else if (what < 40 && c->account.begun)
		take(c, now, below(16) + 1);
	else if (what < 50 && c->tickets.count)
		use_late(c);
	else if (what < 63)
		draw(c);
	else if (what < 73 && c->flights.count)
		answer(c);
	else if (what < 84)
		report(c);
	else if (what < 90)
		shunt_ledger_heard(&ledger, &c->at_node, c->report);
}

static void step(void)
{
	struct client *c = &clients[below(CLIENTS)];
	uint32_t what = below(100);

	pass_time();
	if (now - ledger.began > PERIOD)
		begin_period((uint16_t)(ledger.number + 1));
	else if (what >= 90 && what < 99)
		fill(c);
	else if (!c->there && below(4) == 0)
		arrive(c);
	else if (c->there && what == 99 && below(4) == 0)
		leave(c);
	else if (c->there)
		act(c, what);
	check();
}

static bool run(uint64_t seed)
{
	uint16_t number = (uint16_t)(seed * 251);
	int i;

	random_state = seed;
	convert = seed & 1;
	pace = seed & 2;
	pace_pools = seed & 4;
	wrong = NULL;
	now = 0;
	memset(clients, 0, sizeof(clients));
	for (i = 0; i < KEPT; i++)
		kept[i] = (struct kept) { .number = (uint16_t)(i + 1) };
	for (i = 0; i < POOLS; i++) {
		pools[i] = (struct shunt_ledger_pool) { .number = number };
		words[i] = shunt_pool_word(number, 0);
	}
	for (i = 0; i < CLIENTS; i++) {
		clients[i].there = i % 4;
		clients[i].backlogged = i < BACKLOGGED;
	}
	begin_period((uint16_t)(number + 1));
	for (i = 0; i < STEPS && !wrong; i++)
		step();
	if (wrong)
		printf("not ok 1 - seed %lu, step %d: %s\n", (unsigned long)seed, i, wrong);
	return !wrong;
}

int main(int argc, char **argv)
{
	bool told = argc > 2 && !strcmp(argv[1], "--seeds");
	uint64_t seeds = told ? strtoull(argv[2], NULL, 10) : 2000;

	for (uint64_t seed = 1; seed <= seeds; seed++)
		if (!run(seed))
			return 1;
	if (seeds >= 100 && !(all_used && used_late && met && met_paced && returned && converted)) {
		printf("not ok 1 - something never happens\n");
		return 1;
	}
	printf("# %lu tokens, %lu late; %lu reservations met, %lu paced; %lu returned\n",
	       (unsigned long)all_used, (unsigned long)used_late, (unsigned long)met,
	       (unsigned long)met_paced, (unsigned long)returned);
	printf("ok 1 - %lu seeds\n1..1\n", (unsigned long)seeds);
	return 0;
}
