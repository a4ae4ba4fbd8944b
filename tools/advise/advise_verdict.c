/* SPDX-License-Identifier: MIT */
/*
 * The rule of the verdict. It goes by signs and ranks, because the spread of runs on a busy machine has no shape that could
 * be counted on.
 *
 * After `rounds` pairs a verdict is clear if all pairs agree and each of them is 10 % off at least. Anything else takes as
 * many pairs again. Then the signed ranks of the pairs have to differ (Wilcoxon, 1 %), and the median has to be 2 % off.
 * With ten pairs the ranks of those that disagree may add up to 2 of 55. As soon as they add up to more there is no
 * difference, because further pairs cannot make that sum smaller.
 */
#include "tools/advise/advise.h"

#include <math.h>
#include <string.h>

#define CLEAR 1.10
#define LEAST 1.02
#define QUANTILE 2.576 /* of the normal distribution, for 1 % on both sides together */

const char *const advise_verdict_words[] = {
	[ADVISE_MORE] = "unclear",
	[ADVISE_FASTER] = "faster",
	[ADVISE_SLOWER] = "slower",
	[ADVISE_SAME] = "no difference",
};

static bool is_off(double ratio, double by)
{
	return ratio >= by || ratio <= 1 / by;
}

/* The rank of a pair's distance from 1 among all; the mean where several are as far. */
static double rank_of(const double *ratios, int count, int which)
{
	double distance = fabs(log(ratios[which])), rank = 0.5;

	for (int i = 0; i < count; i++) {
		double other = fabs(log(ratios[i]));

		rank += other < distance ? 1 : other > distance ? 0 : 0.5;
	}
	return rank;
}

/* The most that ranks on the weaker side may add up to. */
static double most_against(int count)
{
	double n = count, most = n * (n + 1) / 4 - QUANTILE * sqrt(n * (n + 1) * (2 * n + 1) / 24);

	return most > 0 ? floor(most) : 0;
}

enum advise_verdict advise_judge(const double *ratios, int count, int rounds)
{
	double sorted[ADVISE_PAIRS_MAX], up = 0, down = 0;
	enum advise_verdict verdict;
	struct shunt_spread spread;

	if (count < rounds)
		return ADVISE_MORE;
	for (int i = 0; i < count; i++) {
		double rank = rank_of(ratios, count, i);

		/* A pair without a difference is against both. */
		up += ratios[i] < 1 ? 0 : rank;
		down += ratios[i] > 1 ? 0 : rank;
	}
	memcpy(sorted, ratios, (size_t)count * sizeof(sorted[0]));
	spread = shunt_spread_of(sorted, (size_t)count);
	verdict = up > down ? ADVISE_FASTER : ADVISE_SLOWER;
	if (fmin(up, down) > most_against(2 * rounds))
		return ADVISE_SAME;
	if (spread.min >= CLEAR || spread.max <= 1 / CLEAR)
		return verdict;
	if (count < 2 * rounds)
		return ADVISE_MORE;
	return is_off(spread.median, LEAST) ? verdict : ADVISE_SAME;
}
