/* Sorting of numbers. */
#ifndef PSD_SORT_H
#define PSD_SORT_H

#include <stddef.h>
#include <stdlib.h>

static inline int psd_compare_doubles(const void *left, const void *right)
{
	const double one = *(const double *)left, other = *(const double *)right;

	return (one > other) - (one < other);
}

/* Sorts values that are no NaN, the least first. */
static inline void psd_sort_doubles(double *values, size_t n)
{
	qsort(values, n, sizeof(*values), psd_compare_doubles);
}

#endif
