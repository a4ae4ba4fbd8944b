/* SPDX-License-Identifier: MIT */
#include "core/peer/proofs.h"
#include <stdlib.h>
#include <sys/random.h>
#include "core/service.h"

static struct shunt_possession **bucket(struct shunt_proofs *proofs, uint32_t number)
{
	return &proofs->by_number[number % SHUNT_PROOF_BUCKETS];
}

static void enlist(struct shunt_proofs *proofs, struct shunt_possession *proof)
{
	struct shunt_possession **first = bucket(proofs, proof->number);

	proof->prev = proofs->last;
	*(proofs->last ? &proofs->last->next : &proofs->first) = proof;
	proofs->last = proof;
	proof->next_same = *first;
	*first = proof;
}

void shunt_proofs_remove(struct shunt_possession *proof)
{
	struct shunt_proofs *proofs = &proof->link->engine->service->proofs;
	struct shunt_possession **p = bucket(proofs, proof->number);

	*(proof->prev ? &proof->prev->next : &proofs->first) = proof->next;
	*(proof->next ? &proof->next->prev : &proofs->last) = proof->prev;
	while (*p != proof)
		p = &(*p)->next_same;
	*p = proof->next_same;
}

struct shunt_possession *shunt_proofs_find(const struct shunt_link *link, uint32_t number)
{
	struct shunt_possession *proof = *bucket(&link->engine->service->proofs, number);

	while (proof && (proof->link != link || proof->number != number))
		proof = proof->next_same;
	return proof;
}

/* One that is under way is known to its stream; only where others wait, the list is searched. */
struct shunt_possession *shunt_proofs_of(const struct shunt_link *link,
					 const struct shunt_stream *stream)
{
	struct shunt_possession *proof = stream->possession;

	if (proof && proof->link == link)
		return proof;
	if (!proof && link->proving < SHUNT_PROOFS_PER_LINK)
		return NULL;
	proof = link->engine->service->proofs.first;
	while (proof && (proof->link != link || proof->stream != stream))
		proof = proof->next;
	return proof;
}

struct shunt_possession *shunt_proofs_make(struct shunt_link *link, struct shunt_stream *stream,
					   enum shunt_possession_state state)
{
	struct shunt_proofs *proofs = &link->engine->service->proofs;
	struct shunt_possession *proof = calloc(1, sizeof(*proof));

	if (!proof)
		return NULL;
	if (link->engine->sys->getrandom(proof->half, sizeof(proof->half), GRND_NONBLOCK) !=
	    sizeof(proof->half)) {
		free(proof);
		return NULL;
	}
	proof->link = link;
	proof->stream = stream;
	proof->state = state;
	proof->number = ++proofs->number | SHUNT_PROOF_BIT;
	proof->until = SHUNT_NEVER;
	shunt_streams_hold(stream);
	enlist(proofs, proof);
	return proof;
}
