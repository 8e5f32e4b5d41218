/* Each process is pinned to its core, so that the kernel leaves one on each. */
#define _GNU_SOURCE
#include "real/calibrate/gang.h"

#include <sys/resource.h>

#include "real/base/affinity.h"
#include "real/calibrate/product.h"
#include "real/device/cpu.h"

static double own_kernel_sec(void)
{
	struct rusage usage = {.ru_maxrss = 0};

	(void)getrusage(RUSAGE_SELF, &usage); /* fails for other first arguments only */
	return (double)usage.ru_stime.tv_sec + 1e-6 * (double)usage.ru_stime.tv_usec;
}

/* Until it is stopped. */
static enum psd_status multiply(void *context, unsigned core, struct psd_error *err)
{
	const struct psd_gang *gang = context;
	struct psd_product product;
	enum psd_status status = psd_product_open(&product, err);

	(void)psd_affinity_pin(core, gang->n_cores);
	omp_set_num_threads(1);
	while (!status) {
		status = psd_product_run(&product, err);
		atomic_store(&gang->kernel_sec[core], own_kernel_sec());
	}
	psd_product_release(&product);
	return status;
}

enum psd_status psd_gang_start(struct psd_gang *gang, unsigned n_cores, struct psd_error *err)
{
	enum psd_status status;

	*gang = (struct psd_gang){.n_cores = n_cores};
	if (!n_cores)
		return PSD_OK;
	gang->kernel_sec = psd_crew_share(n_cores * sizeof(_Atomic double));
	if (!gang->kernel_sec)
		return psd_error_set(err, PSD_ENOMEM, PSD_NOWHERE, "out of memory for a measurement of processors");
	status = psd_crew_start(&gang->crew, n_cores, multiply, gang, err);
	if (status)
		psd_crew_unshare(gang->kernel_sec, n_cores * sizeof(_Atomic double));
	return status;
}

enum psd_status psd_gang_check(struct psd_gang *gang, struct psd_error *err)
{
	return gang->n_cores ? psd_crew_check(&gang->crew, err) : PSD_OK;
}

double psd_gang_kernel_sec(const struct psd_gang *gang)
{
	double sec = 0.0;

	for (unsigned c = 0; c < gang->n_cores; c++)
		sec += atomic_load(&gang->kernel_sec[c]);
	return sec;
}

void psd_gang_stop(struct psd_gang *gang)
{
	if (!gang->n_cores)
		return;
	psd_crew_stop(&gang->crew);
	psd_crew_unshare(gang->kernel_sec, gang->n_cores * sizeof(_Atomic double));
}
