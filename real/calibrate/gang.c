/* Each process is pinned to its core, so that the kernel leaves one on each. */
#define _GNU_SOURCE
#include "real/calibrate/gang.h"

#include <oneapi/dnnl/dnnl.h>
#include <stdlib.h>
#include <sys/resource.h>

#include "real/base/affinity.h"
#include "real/calibrate/layer_times.h"
#include "real/device/cpu/cpu.h"

enum { SIDE = 384, AREA = SIDE * SIDE }; /* of matrices that a core's caches hold: their product takes 0.5 to 2 ms */

static double own_kernel_sec(void)
{
	struct rusage usage = {.ru_maxrss = 0};

	(void)getrusage(RUSAGE_SELF, &usage); /* fails for other first arguments only */
	return (double)usage.ru_stime.tv_sec + 1e-6 * (double)usage.ru_stime.tv_usec;
}

/* Until it is stopped. */
static enum psd_status multiply(void *context, unsigned member, struct psd_error *err)
{
	const struct psd_gang *gang = context;
	float *matrices = psd_layer_times_values(3 * AREA, 1.0f); /* two, and their product */
	enum psd_status status = PSD_OK;

	(void)psd_affinity_pin(gang->first_core + member, gang->n_cores);
	omp_set_num_threads(1);
	if (!matrices)
		status = psd_error_set(err, PSD_ENOMEM, PSD_NOWHERE, "out of memory for a product of matrices");
	while (!status) {
		if (dnnl_sgemm('N', 'N', SIDE, SIDE, SIDE, 1.0f, matrices, SIDE, matrices + AREA, SIDE, 0.0f,
			       matrices + 2 * AREA, SIDE))
			status = psd_error_set(err, PSD_ERUN, PSD_NOWHERE, "a product of matrices failed");
		atomic_store(&gang->kernel_sec[member], own_kernel_sec());
	}
	free(matrices);
	return status;
}

enum psd_status psd_gang_start(struct psd_gang *gang, unsigned first_core, unsigned n_cores, struct psd_error *err)
{
	enum psd_status status;

	*gang = (struct psd_gang){.first_core = first_core, .n_cores = n_cores, .n_members = n_cores - first_core};
	if (!gang->n_members)
		return PSD_OK;
	gang->kernel_sec = psd_crew_share(gang->n_members * sizeof(_Atomic double));
	if (!gang->kernel_sec)
		return psd_error_set(err, PSD_ENOMEM, PSD_NOWHERE, "out of memory for a measurement of processors");
	status = psd_crew_start(&gang->crew, gang->n_members, multiply, gang, err);
	if (status)
		psd_crew_unshare(gang->kernel_sec, gang->n_members * sizeof(_Atomic double));
	return status;
}

enum psd_status psd_gang_check(struct psd_gang *gang, struct psd_error *err)
{
	return gang->n_members ? psd_crew_check(&gang->crew, err) : PSD_OK;
}

double psd_gang_kernel_sec(const struct psd_gang *gang)
{
	double sec = 0.0;

	for (unsigned m = 0; m < gang->n_members; m++)
		sec += atomic_load(&gang->kernel_sec[m]);
	return sec;
}

void psd_gang_stop(struct psd_gang *gang)
{
	if (!gang->n_members)
		return;
	psd_crew_stop(&gang->crew);
	psd_crew_unshare(gang->kernel_sec, gang->n_members * sizeof(_Atomic double));
}
