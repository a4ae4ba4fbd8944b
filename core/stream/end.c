/* SPDX-License-Identifier: MIT */
#include "core/stream/end.h"
#include <errno.h>
#include "core/base/machine.h"

#define ERROR_MASK (0xffffull << 16)
#define KEPT_MASK (0xffffull << 32)
#define LINKS_FACTS (SHUNT_END_SUSPECT | SHUNT_END_EARLY | SHUNT_END_REFUSED)

static uint64_t with_error(uint64_t word, int error)
{
	return (word & ~ERROR_MASK) | (uint64_t)(uint16_t)error << 16;
}

static uint64_t with_kept(uint64_t word, int error)
{
	return (word & ~KEPT_MASK) | (uint64_t)(uint16_t)error << 32;
}

uint64_t shunt_end_after(uint64_t word, enum shunt_end_event event, int error)
{
	const uint64_t gone = SHUNT_END_RESET | SHUNT_END_BROKEN;

	switch (event) {
	case SHUNT_LEARN_EOF:
		return (word | SHUNT_END_TCP_OVER) & ~(uint64_t)SHUNT_END_OWES_RESET;
	case SHUNT_LEARN_RESET:
		return (word & SHUNT_END_RESET ? word : with_error(word, error)) | gone;
	case SHUNT_LEARN_LOSS:
		return with_error(word, error) | gone;
	case SHUNT_LEARN_SUSPICION:
		return word | SHUNT_END_SUSPECT;
	case SHUNT_LEARN_EARLY_FIN:
		return word | SHUNT_END_EARLY;
	case SHUNT_LEARN_PROOF:
		return word & ~(uint64_t)SHUNT_END_EARLY;
	case SHUNT_LEARN_LINK_LEFT:
		return word & ~(uint64_t)LINKS_FACTS;
	case SHUNT_LEARN_SHUT_READ:
		return word | SHUNT_END_SHUT_READ;
	case SHUNT_LEARN_SHUT_WRITE:
		return word | SHUNT_END_SHUT_WRITE;
	case SHUNT_LEARN_OWN_RESET:
		return word | SHUNT_END_BROKEN;
	case SHUNT_LEARN_REFUSAL:
		return word | SHUNT_END_REFUSED | SHUNT_END_BROKEN;
	case SHUNT_LEARN_RESET_OWED:
		return word | SHUNT_END_OWES_RESET;
	case SHUNT_LEARN_RESET_PAID:
		return word & ~(uint64_t)SHUNT_END_OWES_RESET;
	case SHUNT_LEARN_ERROR_TOLD:
		return word & ERROR_MASK ? with_error(word, 0) | SHUNT_END_TOLD : word;
	case SHUNT_LEARN_KERNEL_TOLD:
		/* The link may tell of a reset later. Where the kernel has given up (ETIMEDOUT), the peer need not know. */
		if (error != ECONNRESET && error != EPIPE)
			word |= SHUNT_END_RESET;
		return word | SHUNT_END_TOLD | SHUNT_END_BROKEN;
	case SHUNT_LEARN_CANDIDATE_TOLD:
		return word | SHUNT_END_TOLD;
	case SHUNT_LEARN_KERNEL_RESET:
		if (word & SHUNT_END_TOLD)
			word |= SHUNT_END_TCP_OVER;
		return with_error(word, 0) | SHUNT_END_TOLD;
	case SHUNT_LEARN_SUSPICION_TOLD:
		word &= ~(uint64_t)SHUNT_END_SUSPECT;
		return word & (SHUNT_END_SHUT_READ | SHUNT_END_RESET | SHUNT_END_TOLD) ?
			       word :
			       word | SHUNT_END_TOLD | gone;
	case SHUNT_LEARN_UNTOLD:
		word &= ~(uint64_t)SHUNT_END_TOLD;
		return error ? with_error(word, error) : word;
	case SHUNT_LEARN_KEPT:
		return with_kept(word, error);
	case SHUNT_LEARN_KEPT_TOLD:
		return with_kept(word, 0);
	case SHUNT_END_EVENTS:
		break;
	}
	return word;
}

static const char *const events[SHUNT_END_EVENTS] = {
	"EOF", "RESET", "LOSS", "SUSPICION", "EARLY_FIN", "PROOF", "LINK_LEFT", "SHUT_READ",
	"SHUT_WRITE", "OWN_RESET", "REFUSAL", "RESET_OWED", "RESET_PAID", "ERROR_TOLD",
	"KERNEL_TOLD", "CANDIDATE_TOLD", "KERNEL_RESET", "SUSPICION_TOLD", "UNTOLD", "KEPT",
	"KEPT_TOLD",
};
static const char *const facts[] = {
	"tcp over", "reset", "broken", "suspect", "early", "shut read",
	"shut write", "refused", "owes reset", "told", NULL,
};

/* As shunt_machine_say(): errors are in the upper half of the word. */
static __attribute__((cold)) void say(const struct shunt_end *end, enum shunt_end_event event,
				      int error, uint64_t before, uint64_t after)
{
	char from[SHUNT_MACHINE_TEXT], to[SHUNT_MACHINE_TEXT];

	shunt_log_write(SHUNT_LOG_DEBUG, "end %p: %s (error %d): %s -> %s", (const void *)end,
			events[event], error, shunt_machine_text(facts, before, from),
			shunt_machine_text(facts, after, to));
}

uint64_t shunt_end_learn(struct shunt_end *end, enum shunt_end_event event, int error)
{
	uint64_t word = atomic_load(&end->word), after;

	do
		after = shunt_end_after(word, event, error);
	while (!atomic_compare_exchange_weak(&end->word, &word, after));
	if (__builtin_expect(shunt_log_wants(SHUNT_LOG_DEBUG), 0) && after != word)
		say(end, event, error, word, after);
	return word;
}

void shunt_end_leave_link(struct shunt_end *end)
{
	shunt_end_learn(end, SHUNT_LEARN_LINK_LEFT, 0);
	atomic_store_explicit(&end->fin, SHUNT_NEVER, memory_order_release);
}

void shunt_end_begin(struct shunt_end *end)
{
	atomic_store_explicit(&end->word, 0, memory_order_relaxed);
	atomic_store_explicit(&end->fin, SHUNT_NEVER, memory_order_relaxed);
	end->owed = 0;
}
