/* SPDX-License-Identifier: MIT */
#include "core/trace/slow_step.h"
#include "core/trace/probe.h"

void shunt_slow_took(struct shunt_steps *steps, uint64_t now, uint64_t ns,
		     const struct shunt_slow_about *about)
{
	struct shunt_slow_event event = { .at = now, .duration = ns, .extra = about->extra,
					  .step = about->step, .fd = about->fd };
	const char *extra;

	SHUNT_PROBE4(slow, event.fd, shunt_slow_text(event.step, &extra), ns, event.extra);
	if (about->tuple) {
		event.addressed = true;
		event.tuple = *about->tuple;
	}
	shunt_slow_note(&steps->log, &event);
}

void shunt_slow_over(struct shunt_steps *steps, uint64_t begun,
		     const struct shunt_slow_about *about)
{
	uint64_t now = steps->sys->now();
	uint64_t least = shunt_config_live(&steps->config->slow_us) * 1000;

	if (least && now - begun >= least)
		shunt_slow_took(steps, now, now - begun, about);
}
