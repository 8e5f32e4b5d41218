#define _GNU_SOURCE
#include "real/base/affinity.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>

/* The kernel refuses a set that is smaller than its own; no machine has as many processors as this. */
enum { MOST_NUMBERS = 1 << 20 };

/* The caller frees it by CPU_FREE(). NULL: no memory, or the kernel does not tell. */
static cpu_set_t *read_allowed(unsigned *n_numbers)
{
	for (unsigned n = CPU_SETSIZE; n <= MOST_NUMBERS; n *= 2) {
		cpu_set_t *const allowed = CPU_ALLOC(n);
		const int error = !allowed ? ENOMEM : sched_getaffinity(0, CPU_ALLOC_SIZE(n), allowed) < 0 ? errno : 0;

		*n_numbers = n;
		if (!error)
			return allowed;
		if (allowed)
			CPU_FREE(allowed);
		if (error != EINVAL)
			return NULL;
	}
	return NULL;
}

bool *psd_affinity_allowed(unsigned *n_numbers)
{
	cpu_set_t *const allowed = read_allowed(n_numbers);
	bool *const is_allowed = allowed ? calloc(*n_numbers, sizeof(*is_allowed)) : NULL;

	for (unsigned cpu = 0; is_allowed && cpu < *n_numbers; cpu++)
		is_allowed[cpu] = CPU_ISSET_S(cpu, CPU_ALLOC_SIZE(*n_numbers), allowed);
	if (allowed)
		CPU_FREE(allowed);
	return is_allowed;
}

unsigned psd_affinity_count(void)
{
	unsigned n_numbers, count;
	cpu_set_t *const allowed = read_allowed(&n_numbers);

	if (!allowed)
		return 1;
	count = (unsigned)CPU_COUNT_S(CPU_ALLOC_SIZE(n_numbers), allowed);
	CPU_FREE(allowed);
	return count;
}

/* Keeps the processors `first` to `end` - 1 of those in the set, counted from 0. */
static void keep_range(cpu_set_t *cpus, unsigned n_numbers, unsigned first, unsigned end)
{
	const size_t bytes = CPU_ALLOC_SIZE(n_numbers);
	unsigned nth = 0;

	for (size_t cpu = 0; cpu < n_numbers; cpu++) {
		if (!CPU_ISSET_S(cpu, bytes, cpus))
			continue;
		if (nth < first || nth >= end)
			CPU_CLR_S(cpu, bytes, cpus);
		nth++;
	}
}

bool psd_affinity_pin(unsigned host, unsigned n_hosts)
{
	unsigned n_numbers, n_allowed;
	cpu_set_t *const cpus = read_allowed(&n_numbers);
	bool is_pinned = false;

	if (!cpus)
		return false;
	n_allowed = (unsigned)CPU_COUNT_S(CPU_ALLOC_SIZE(n_numbers), cpus);
	if (n_hosts <= n_allowed) {
		keep_range(cpus, n_numbers, host * n_allowed / n_hosts, (host + 1) * n_allowed / n_hosts);
		is_pinned = sched_setaffinity(0, CPU_ALLOC_SIZE(n_numbers), cpus) == 0;
	}
	CPU_FREE(cpus);
	return is_pinned;
}

bool psd_affinity_pin_to(unsigned number, unsigned n_threads)
{
	const unsigned n_allowed = psd_affinity_count();

	return n_threads < n_allowed && psd_affinity_pin(number % n_allowed, n_allowed);
}
