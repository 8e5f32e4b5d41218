/* Ten thousand estimates of a sweep stay cheap: their events and allocations are counted, which are equal on all
 * machines. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>

#include "sim/sweep/sweep.h"
#include "tests/loaded_helper.h"

enum { N_EACH = 100, N_ROWS = N_EACH * N_EACH };

/* Sanitisers have allocators of their own, which are not counted. */
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) && defined(__GLIBC__)
enum { COUNTS = 1 };
#else
enum { COUNTS = 0 };
#endif

static uint64_t n_allocations;

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) && defined(__GLIBC__)
/* The C library's functions under their second names. */
extern void *__libc_malloc(size_t bytes);
extern void *__libc_calloc(size_t n, size_t bytes);
extern void *__libc_realloc(void *memory, size_t bytes);

/* The test's own functions take the place of the library's in the whole program. */
void *malloc(size_t bytes)
{
	__atomic_add_fetch(&n_allocations, 1, __ATOMIC_RELAXED);
	return __libc_malloc(bytes);
}

void *calloc(size_t n, size_t bytes)
{
	__atomic_add_fetch(&n_allocations, 1, __ATOMIC_RELAXED);
	return __libc_calloc(n, bytes);
}

void *realloc(void *memory, size_t bytes)
{
	__atomic_add_fetch(&n_allocations, 1, __ATOMIC_RELAXED);
	return __libc_realloc(memory, bytes);
}
#endif

/* Writes the numbers `first`, first + step, and so on. */
static void write_numbers(char *text, size_t room, unsigned first, unsigned step, const char *unit)
{
	size_t n = 0;

	for (unsigned i = 0; i < N_EACH && n < room; i++)
		n += (size_t)snprintf(text + n, room - n, "%s%u%s", i > 0 ? ", " : "", first + i * step, unit);
	cr_assert_lt(n, room);
}

/* Estimates a system at 100 numbers of nodes, from 2 to 299, and 100 bandwidths. */
static void check(const char *system, uint64_t most_events, uint64_t most_allocations)
{
	char nodes[1024], bandwidths[2048];
	struct loaded loaded;
	struct psd_report report;
	struct psd_error err = {.text = ""};
	uint64_t n_events = 0;
	int signal_number = 0;

	write_numbers(nodes, sizeof(nodes), 2, 3, "");
	write_numbers(bandwidths, sizeof(bandwidths), 1000, 400, "Mbps");
	loaded_print(&loaded,
		     "title: t\nmodel: {graph: scenarios/models/resnet50.yaml, batch_per_worker: 32}\n"
		     "compute: {device: v100}\ncluster: {stack: none, network: {bandwidth: 25Gbps, latency: 10us}}\n"
		     "systems: [{name: s, sync: %s}]\nsweep: {nodes: [%s], bandwidth: [%s]}\n",
		     system, nodes, bandwidths);
	const struct psd_sweep sweep = {.costed = &loaded.costed, .is_estimate = true, .n_at_once = 1};
	const uint64_t before = __atomic_load_n(&n_allocations, __ATOMIC_RELAXED);

	cr_assert_eq(psd_sweep_run(&sweep, &report, &signal_number, &err), PSD_OK, "%s", err.text);
	const uint64_t n_made = __atomic_load_n(&n_allocations, __ATOMIC_RELAXED) - before;

	cr_assert_eq(report.n_systems * report.n_points, N_ROWS);
	for (unsigned i = 0; i < N_ROWS; i++)
		n_events += report.results[i].outcome.n_events;
	cr_expect_leq(n_events, most_events, "%s: %lu events", system, n_events);
	cr_expect(!COUNTS || (n_made > 0 && n_made <= most_allocations), "%s: %lu allocations", system, n_made);
	psd_report_release(&report);
	loaded_close(&loaded);
}

Test(counted, ten_thousand_estimates_take_few_events_and_allocations)
{
	check("ring", 5200000, 185000);
	check("hybrid", 6300000, 175000);
}
