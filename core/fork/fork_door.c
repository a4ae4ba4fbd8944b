/* SPDX-License-Identifier: MIT */
#include "core/fork/fork_door.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include "core/base/identity.h"
#include "core/base/sha256.h"
#include "core/base/sys.h"
#include "core/fork/fork_slots.h"

bool shunt_fork_door_begin(const struct shunt_sys *sys, struct shunt_fork_family *family)
{
	return sys->getrandom(family->key, sizeof(family->key), GRND_NONBLOCK) ==
	       sizeof(family->key);
}

void shunt_fork_door_name(struct shunt_forks *forks, pid_t owner, uint32_t number,
			  char name[SHUNT_ENDPOINT_NAME])
{
	const struct shunt_fork_family *family = shunt_fork_slots_family(forks);
	uint8_t digest[SHUNT_SHA256_BYTES];
	struct shunt_identity identity;
	char text[SHUNT_IDENTITY_TEXT];
	struct shunt_sha256 sum;

	shunt_sha256_begin(&sum);
	shunt_sha256_add(&sum, family->key, sizeof(family->key));
	shunt_sha256_add(&sum, &owner, sizeof(owner));
	shunt_sha256_add(&sum, &number, sizeof(number));
	shunt_sha256_end(&sum, digest);
	memcpy(identity.bytes, digest, sizeof(identity.bytes));
	shunt_identity_text(&identity, text);
	snprintf(name, SHUNT_ENDPOINT_NAME, "shunt/rights/%s", text);
}

uint32_t shunt_fork_door_count(struct shunt_forks *forks)
{
	uint32_t doors = atomic_load(&shunt_fork_slots_family(forks)->doors);

	return doors < SHUNT_FORK_DOORS ? doors : SHUNT_FORK_DOORS;
}

static void count_doors(struct shunt_fork_family *family, uint32_t doors)
{
	uint32_t before = atomic_load(&family->doors);

	while (before < doors && !atomic_compare_exchange_strong(&family->doors, &before, doors))
		;
}

/*
 * A name may be another's only if an earlier process with this id had shown it: a stranger has kept
 * it since.
 */
int shunt_fork_door_open(struct shunt_forks *forks, struct shunt_porter *porter)
{
	char name[SHUNT_ENDPOINT_NAME];
	int fd = -EADDRINUSE;

	while (fd == -EADDRINUSE && forks->doors < SHUNT_FORK_DOORS) {
		shunt_fork_door_name(forks, forks->pid, forks->doors++, name);
		fd = shunt_endpoint_listen(porter, name, SOCK_SEQPACKET, 128);
	}
	count_doors(shunt_fork_slots_family(forks), forks->doors);
	return fd;
}
