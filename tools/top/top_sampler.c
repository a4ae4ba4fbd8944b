/* SPDX-License-Identifier: MIT */
/* A thread that looks when it is asked. It lasts as long as the command. */
#include "tools/top/top.h"

#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <sys/eventfd.h>
#include <unistd.h>

static struct {
	int asked, done; /* eventfds */
	const struct shunt_top_options *options;
	pthread_mutex_t lock;
	struct shunt_look look; /* under the lock, until it is taken */
	bool there; /* under the lock */
} sampler = { .asked = -1, .done = -1, .lock = PTHREAD_MUTEX_INITIALIZER };

static void count_up(int fd)
{
	uint64_t one = 1;

	while (write(fd, &one, sizeof(one)) < 0 && errno == EINTR)
		;
}

static bool count_down(int fd)
{
	uint64_t count;
	ssize_t got;

	while ((got = read(fd, &count, sizeof(count))) < 0 && errno == EINTR)
		;
	return got == sizeof(count);
}

static void *sample(void *unused)
{
	(void)unused;
	while (count_down(sampler.asked)) {
		struct shunt_look look = { 0 };
		bool there = !shunt_look_ask(&look, sampler.options->wanted,
					     sampler.options->count);

		pthread_mutex_lock(&sampler.lock);
		shunt_look_free(&sampler.look);
		sampler.look = look;
		sampler.there = there;
		pthread_mutex_unlock(&sampler.lock);
		count_up(sampler.done);
	}
	return NULL;
}

int shunt_top_sampler_begin(const struct shunt_top_options *options)
{
	pthread_t thread;
	int rc;

	sampler.options = options;
	sampler.asked = eventfd(0, EFD_CLOEXEC);
	sampler.done = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (sampler.asked < 0 || sampler.done < 0)
		return -errno;
	rc = pthread_create(&thread, NULL, sample, NULL);
	if (rc)
		return -rc;
	pthread_detach(thread);
	return sampler.done;
}

void shunt_top_sampler_ask(void)
{
	count_up(sampler.asked);
}

int shunt_top_sampler_take(struct shunt_look *look)
{
	int rc = -1;

	if (!count_down(sampler.done))
		return -1;
	pthread_mutex_lock(&sampler.lock);
	if (sampler.there) {
		*look = sampler.look;
		sampler.look = (struct shunt_look) { 0 };
		sampler.there = false;
		rc = 0;
	}
	pthread_mutex_unlock(&sampler.lock);
	return rc;
}
