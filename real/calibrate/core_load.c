#define _GNU_SOURCE
#include "real/calibrate/core_load.h"

#include <oneapi/dnnl/dnnl.h>
#include <stdlib.h>
#include <sys/resource.h>

#include "real/base/affinity.h"
#include "real/calibrate/layer_times.h"
#include "real/device/cpu/cpu.h"

enum { SIDE = 384, AREA = SIDE * SIDE }; /* a core's caches hold the matrices; their product takes 0.5 to 2 ms */

static double own_kernel_sec(void)
{
	struct rusage usage = {.ru_maxrss = 0};

	(void)getrusage(RUSAGE_SELF, &usage); /* fails for other first arguments only */
	return (double)usage.ru_stime.tv_sec + 1e-6 * (double)usage.ru_stime.tv_usec;
}

/* Multiplies until the process is killed. */
static enum psd_status multiply(void *context, unsigned member, struct psd_error *err)
{
	const struct psd_core_load *load = context;
	float *matrices = psd_layer_times_values(3 * AREA, 1.0f); /* two, and their product */
	enum psd_status status = PSD_OK;

	(void)psd_affinity_pin(load->first_core + member, load->n_cores);
	omp_set_num_threads(1);
	if (!matrices)
		status = psd_error_set(err, PSD_ENOMEM, PSD_NOWHERE, "out of memory for a product of matrices");
	while (!status) {
		if (dnnl_sgemm('N', 'N', SIDE, SIDE, SIDE, 1.0f, matrices, SIDE, matrices + AREA, SIDE, 0.0f,
			       matrices + 2 * AREA, SIDE))
			status = psd_error_set(err, PSD_ERUN, PSD_NOWHERE, "a product of matrices failed");
		atomic_store(&load->kernel_sec[member], own_kernel_sec());
	}
	free(matrices);
	return status;
}

enum psd_status psd_core_load_start(struct psd_core_load *load, unsigned first_core, unsigned n_cores,
				    struct psd_error *err)
{
	*load = (struct psd_core_load){.first_core = first_core, .n_cores = n_cores, .n_members = n_cores - first_core};
	if (!load->n_members)
		return PSD_OK;
	load->kernel_sec = psd_process_group_share(load->n_members * sizeof(_Atomic double));
	if (!load->kernel_sec)
		return psd_error_set(err, PSD_ENOMEM, PSD_NOWHERE, "out of memory for a measurement of processors");
	const enum psd_status status = psd_process_group_start(&load->group, load->n_members, multiply, load, err);
	if (status)
		psd_process_group_unshare(load->kernel_sec, load->n_members * sizeof(_Atomic double));
	return status;
}

enum psd_status psd_core_load_check(struct psd_core_load *load, struct psd_error *err)
{
	return load->n_members ? psd_process_group_check(&load->group, err) : PSD_OK;
}

double psd_core_load_kernel_sec(const struct psd_core_load *load)
{
	double sec = 0.0;

	for (unsigned m = 0; m < load->n_members; m++)
		sec += atomic_load(&load->kernel_sec[m]);
	return sec;
}

void psd_core_load_stop(struct psd_core_load *load)
{
	if (!load->n_members)
		return;
	psd_process_group_stop(&load->group);
	psd_process_group_unshare(load->kernel_sec, load->n_members * sizeof(_Atomic double));
}
