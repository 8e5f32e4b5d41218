#include "real/device/clip.h"

#include <math.h>

#ifdef __clang__
#pragma STDC FP_CONTRACT OFF /* as in update.c */
#endif

enum { BLOCK = 16 }; /* a known trip count is what makes -O2 vectorise */

/* In so many sums side by side, whatever the machine: one after the other would wait for each addition. */
double psd_clip_measure(const float *values, uint64_t elements)
{
	double squares[BLOCK] = {0.0}, sum = 0.0;
	uint64_t e = 0;

	for (; e + BLOCK <= elements; e += BLOCK)
		for (unsigned i = 0; i < BLOCK; i++)
			squares[i] += (double)values[e + i] * (double)values[e + i];
	for (unsigned i = 0; e + i < elements; i++)
		squares[i] += (double)values[e + i] * (double)values[e + i];
	for (unsigned i = 0; i < BLOCK; i++)
		sum += squares[i];
	return sum;
}

void psd_clip_find(const struct psd_clip *clip)
{
	double sum = 0.0;

	for (uint32_t i = 0; i < clip->n; i++)
		sum += clip->squares[i];
	const double norm = sqrt(sum);
	*clip->ratio = norm > clip->most_norm ? (float)(clip->most_norm / norm) : 1.0f;
}

void psd_clip_shrink(float *values, uint64_t elements, float ratio)
{
	for (uint64_t e = 0; e < elements && ratio != 1.0f; e++)
		values[e] *= ratio;
}
