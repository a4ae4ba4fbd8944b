/* SPDX-License-Identifier: MIT */
/* The messages of shunt advise while it runs and at the end, in words and in a table. */
#include "tools/advise/advise.h"

#include <math.h>
#include <stdarg.h>
#include <string.h>
#include <unistd.h>

#include "tools/common/advice.h"
#include "tools/common/output.h"

/* ---- progress ---- */

void advise_progress(const char *title, const struct advise_pairs *pairs, int rounds)
{
	char figures[2][16];

	if (!isatty(STDERR_FILENO))
		return;
	fprintf(stderr, "\r\033[K");
	if (!title)
		return;
	fprintf(stderr, "%s: pair %d of %d%s", title, pairs->count + 1,
		pairs->count < rounds ? rounds : 2 * rounds,
		pairs->count < rounds ? "" : ", because it is not clear yet");
	if (pairs->count)
		fprintf(stderr, "; the last %s and %s",
			shunt_figure_text(pairs->runs[0][pairs->count - 1].figure, figures[0]),
			shunt_figure_text(pairs->runs[1][pairs->count - 1].figure, figures[1]));
}

/* ---- words ---- */

__attribute__((format(printf, 3, 4))) static void say(advise_say *sink, void *arg,
						      const char *format, ...)
{
	char text[1024];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	sink(arg, text);
}

const char *advise_ratio_text(const struct advise_pairs *pairs, char buf[96])
{
	struct shunt_spread ratio = advise_pairs_ratio(pairs);

	snprintf(buf, 96, "%.2f times (%.2f to %.2f), in %d of %d pairs", ratio.median, ratio.min,
		 ratio.max, advise_pairs_agree(pairs), pairs->count);
	return buf;
}

const char *advise_verdict_text(const struct advise_result *result, char buf[256])
{
	char words[96];

	snprintf(buf, 256, "%s: %s, beside plain TCP", advise_verdict_words[result->pairs.verdict],
		 advise_ratio_text(&result->pairs, words));
	return buf;
}

/* The median of the ratio is of "better". */
static double best_gain(const struct advise_result *result, const struct advise_try **best)
{
	double gain = 1;

	*best = NULL;
	for (size_t i = 0; i < result->try_count; i++) {
		double ratio = advise_pairs_ratio(&result->tries[i].pairs).median;

		if (result->tries[i].pairs.verdict == ADVISE_FASTER && ratio > gain) {
			gain = ratio;
			*best = &result->tries[i];
		}
	}
	return gain;
}

/* Connections on TCP, by reason, and the remedy. */
static void say_reasons(const struct advise_result *result, advise_say *sink, void *arg)
{
	const json_t *reasons = json_object_get(result->pairs.client, "reasons");
	json_int_t streams = json_integer_value(
		json_object_get(json_object_get(result->pairs.client, "totals"), "streams"));
	const char *key;
	json_t *value;

	if (advise_brief(result->pairs.client) * 20 > (double)streams)
		say(sink, arg, "%.0f of %lld connections ended before a link carried them",
		    advise_brief(result->pairs.client), (long long)streams);
	json_object_foreach((json_t *)reasons, key, value)
	{
		json_int_t count = json_integer_value(value);
		const char *advice = shunt_advice_for(key);
		char reason[160];

		if (count * 20 < streams || !strcmp(key, shunt_reason_text(SHUNT_REASON_CLOSED)))
			continue;
		say(sink, arg, "connections that stayed on TCP: %lld, because of: %s%s%s",
		    (long long)count, shunt_escape(key, reason, sizeof(reason)),
		    advice ? ". Remedy: " : "", advice ? advice : "");
	}
}

static void say_tries(const struct advise_result *result, advise_say *sink, void *arg)
{
	const struct advise_try *best;
	double gain = best_gain(result, &best);

	if (best)
		say(sink, arg, "set %s%s: %.2f times the default. Tried because %s",
		    best->cause.settings, result->bench->server.command ? "" : " for the client",
		    gain, best->cause.text);
	else if (result->try_count)
		say(sink, arg, "no setting that was tried helps: keep the defaults");
}

static void say_verdict(const struct advise_result *result, advise_say *sink, void *arg)
{
	struct shunt_spread ratio = advise_pairs_ratio(&result->pairs);
	const struct advise_try *best;
	double gain = best_gain(result, &best);

	switch (result->pairs.verdict) {
	case ADVISE_FASTER:
		say(sink, arg,
		    "run both ends with Shunt: `shunt run PROGRAM`, or LD_PRELOAD in a unit (docs/SERVICES.md)");
		break;
	case ADVISE_SLOWER:
		if (ratio.median * gain > 1.02)
			say(sink, arg, "Shunt pays with that setting only");
		else
			say(sink, arg,
			    "leave this program on TCP: a line `rule program=NAME tcp` in shunt.conf(5), or "
			    "SHUNT_DEVICE=none, or no LD_PRELOAD at all");
		break;
	default:
		if (ratio.max > 1.3 * ratio.min)
			say(sink, arg,
			    "the pairs differ from each other by more than what was looked for: a quieter machine, "
			    "longer runs or more --rounds show smaller differences");
		say(sink, arg, "nothing speaks for Shunt here, and nothing against it");
	}
}

void advise_words(const struct advise_result *result, advise_say *sink, void *arg)
{
	const char *bound = advise_bound(result->pairs.client, result->pairs.server);
	struct advise_cause causes[ADVISE_CAUSES_MAX];
	size_t count = advise_causes(result->pairs.client, result->pairs.server, causes);

	say_reasons(result, sink, arg);
	if (bound)
		say(sink, arg, "sends waited most often for: %s", bound);
	if (!result->try_wanted)
		for (size_t i = 0; i < count; i++)
			say(sink, arg, "not tried: %s, because %s", causes[i].settings,
			    causes[i].text);
	say_tries(result, sink, arg);
	say_verdict(result, sink, arg);
}

const char *advise_number_text(double number, char buf[16])
{
	if (isnan(number))
		return "?";
	if (number >= 999.5e6)
		snprintf(buf, 16, "%.2fG", number / 1e9);
	else if (number < 10)
		snprintf(buf, 16, "%.3f", number);
	else
		shunt_figure_text(number, buf);
	return buf;
}

/* ---- the table ---- */

static void show_row(const struct advise_result *result, enum advise_column column)
{
	const char *name = advise_column_name(result->bench, column);

	if (!name)
		return;
	printf("%-23s", name);
	for (int way = 0; way < 2; way++) {
		struct shunt_spread spread = advise_pairs_spread(result->bench, &result->pairs, way,
								 column);
		char median[16], min[16], max[16], range[40];

		snprintf(range, sizeof(range), "%s to %s", advise_number_text(spread.min, min),
			 advise_number_text(spread.max, max));
		printf(" %10s  %-*s", advise_number_text(spread.median, median), way ? 0 : 20,
		       isnan(spread.median) ? "" : range);
	}
	putchar('\n');
}

static void show_share(const struct advise_result *result)
{
	char text[24];

	printf("%-23s %10s  %-20s %10s  %s\n", "share on the link", "0%", "",
	       shunt_share_text(&result->share, text),
	       !result->share.known ? "" :
	       result->share.late   ? "after 256 KiB each" :
				      "of all bytes");
	if (!result->share.known)
		printf("? unknown: %s\n", result->share.why);
}

const char *advise_server_text(const struct advise_server *server, char buf[160])
{
	if (server->command)
		snprintf(buf, 160, "server: started anew for each run");
	else if (server->count)
		snprintf(buf, 160, "server: %s, process %d%s, which runs with Shunt throughout",
			 server->name, (int)server->pids[0],
			 server->count > 1 ? " and others" : "");
	else
		snprintf(buf, 160, "server: %s",
			 server->missed ?
				 "not visible from here (another host, namespace or user)" :
				 "not found; --port says where it listens");
	return buf;
}

static void show_tries(const struct advise_result *result)
{
	char words[96];

	for (size_t i = 0; i < result->try_count; i++) {
		const struct advise_try *try = &result->tries[i];

		printf("%s%-38s ", i ? "" : "\nSETTINGS TRIED, against the shunted default\n",
		       try->cause.settings);
		if (try->failed)
			printf("failed: %s\n", try->why);
		else
			printf("%s: %s\n", advise_verdict_words[try->pairs.verdict],
			       advise_ratio_text(&try->pairs, words));
	}
}

static void print_item(void *arg, const char *text)
{
	(void)arg;
	printf("- ");
	shunt_print_wrapped(2, 2, text);
}

void advise_show(const struct advise_result *result)
{
	const struct advise_bench *bench = result->bench;
	char text[256];

	printf("command: ");
	shunt_print_wrapped(9, 9, result->command);
	puts(advise_server_text(&bench->server, text));
	printf("compared: %s, %s is better; %d pairs after one for warming up\n\n",
	       bench->metric_count ? advise_unit(bench) : "the time of a run",
	       advise_is_lower(bench) ? "less" : "more", result->pairs.count);
	printf("%-23s %10s  %-20s %10s  %s\n", "", "TCP", "RANGE", "SHUNT", "RANGE");
	for (int column = 0; column < ADVISE_COLUMNS; column++)
		show_row(result, column);
	show_share(result);
	show_tries(result);
	printf("\n%s\n", advise_verdict_text(result, text));
	advise_words(result, print_item, NULL);
}
