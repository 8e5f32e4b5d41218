/* What training takes of processors beside its operations: not what they take, but the reading of samples. Processor time, never wall time. */
#include <criterion/criterion.h>

#include "real/machine.h"
#include "tests/real/training.h"

#define BUSY_SEC 0.005 /* of each layer */

static struct psd_worker_result run(const struct psd_compute_backend *backend, uint32_t batch)
{
	struct training *training = training_make("cifar10-quick.yaml", "sync: ps", 1, batch, 1,
						  "iterations: 12, learning_rate: {policy: fixed, base: 0.001}");
	struct psd_worker_result result;

	training->options.backend = backend;
	training_run(training);
	cr_assert_eq(training->status, PSD_OK, "%s", training->err.text);
	result = training->result;
	training_free(training);
	return result;
}

static enum psd_status be_busy(struct psd_compute *compute, unsigned layer, struct psd_error *err)
{
	const double until_sec = psd_machine_own_sec() + BUSY_SEC;

	(void)compute, (void)layer, (void)err;
	while (psd_machine_own_sec() < until_sec)
		;
	return PSD_OK;
}

Test(load, what_layers_take_is_no_load_beside_them)
{
	struct psd_compute_backend backend = psd_compute_idle;
	struct psd_worker_result result;

	backend.forward = be_busy;
	result = run(&backend, 1);
	cr_expect_geq(result.compute_sec, 10 * BUSY_SEC, "%g s of more than ten layers", result.compute_sec);
	cr_expect_gt(result.beside_cpu_sec, 0.0);
	cr_expect_lt(result.beside_cpu_sec, result.compute_sec / 2, "%g of %g s", result.beside_cpu_sec, result.compute_sec);
}

Test(load, reading_samples_is_a_load_beside_layers)
{
	const double few_sec = run(&psd_compute_idle, 1).beside_cpu_sec, many_sec = run(&psd_compute_idle, 1000).beside_cpu_sec;

	cr_expect_gt(few_sec, 0.0);
	cr_expect_gt(many_sec, 3 * few_sec, "%g s with 1 sample, %g with 1000", few_sec, many_sec);
}
