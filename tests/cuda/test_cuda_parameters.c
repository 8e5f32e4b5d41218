/* Updates and chunks on the CUDA device against update.c and chunks.c. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/cuda/cuda_net.h"

/* Double sums in another order, then float: the last place of a norm. */
#define NORM_TOLERANCE_RATIO 1e-6

static float draw(uint32_t *state)
{
	*state = *state * 1664525u + 1013904223u;
	return (float)(*state >> 8) * 0x1p-23f - 1.0f;
}

static float *make(uint64_t count, uint32_t seed)
{
	float *values = malloc(count * sizeof(*values));
	uint32_t state = seed;

	cr_assert(values);
	for (uint64_t i = 0; i < count; i++)
		values[i] = draw(&state);
	return values;
}

static struct psd_device *open_device(void)
{
	const struct psd_device_options options = {.n_threads = 1, .arithmetic = PSD_LAYERS_FP32};
	struct psd_device *device;
	struct psd_error err = {0};

	cr_assert_eq(psd_device_cuda.open(&device, &options, &err), PSD_OK, "%s", err.text);
	return device;
}

/* The device's array equals the host's: bit for bit, or but for so much of its norm. */
static void check_equal(struct psd_device *device, const float *own, const float *expected, uint64_t count,
			double tolerance_ratio, const char *what)
{
	float *got = malloc(count * sizeof(*got));

	cr_assert(got);
	cuda_net_get(device, got, own, count * sizeof(*got));
	if (tolerance_ratio > 0)
		cr_expect_lt(cuda_net_distance(got, expected, count), tolerance_ratio, "%s", what);
	else
		cr_expect_arr_eq(got, expected, count * sizeof(*got), "%s", what);
	free(got);
}

/* ---- updates ---- */

static void check_update(struct psd_update update, uint64_t count)
{
	struct psd_device *device = open_device();
	float *weight = make(count, 1), *gradient = make(count, 2), *squares = calloc(count, sizeof(*squares));
	const struct psd_moments moments = {make(count, 3), squares};
	float *own_weight = cuda_net_take(device, weight, count);
	const struct psd_moments own_moments = {cuda_net_take(device, moments.history, count),
						cuda_net_take(device, squares, count)};
	const float *own_gradient = cuda_net_take(device, gradient, count);
	const double tolerance_ratio = update.trust_ratio > 0 ? NORM_TOLERANCE_RATIO : 0;
	struct psd_error err = {0};

	for (unsigned step = 0; step < 2; step++) {
		const struct psd_update own = psd_update_by_norms(update, weight, gradient, count);
		const struct psd_apply there = {update, own_weight, own_gradient, own_moments, count, NULL, NULL};

		psd_update_apply(&own, weight, gradient, moments, count);
		cr_assert_eq(psd_device_cuda.kernels->apply(device, &there, &err), PSD_OK, "%s", err.text);
	}
	cuda_net_wait(device, PSD_STREAM_COMPUTE);
	check_equal(device, own_weight, weight, count, tolerance_ratio, "weight");
	check_equal(device, own_moments.history, moments.history, count, tolerance_ratio, "history");
	check_equal(device, own_moments.squares, squares, count, 0, "squares");
	psd_device_cuda.close(device);
	free(weight);
	free(gradient);
	free(moments.history);
	free(squares);
}

Test(cuda_parameters, updates_have_the_bits_of_the_hosts)
{
	check_update((struct psd_update){.rate = 0.1f, .momentum = 0.9f, .weight_decay = 0.0005f}, 5000);
	check_update((struct psd_update){.rate = 0.1f, .momentum = 0.9f, .weight_decay = 0.01f, .is_nesterov = true},
		     777);
	check_update((struct psd_update){.rate = 0.3f}, 1);
	check_update((struct psd_update){.rate = 0.1f,
					 .weight_decay = 0.01f,
					 .adaptive = {.beta1 = 0.9f,
						      .beta2 = 0.999f,
						      .epsilon = 1e-8f,
						      .mean_ratio = 1.5f,
						      .root_ratio = 20}},
		     5001);
}

/* 3,000,000 elements have as many parts as there may be, 7 a single one. */
Test(cuda_parameters, rates_by_norms_are_the_hosts)
{
	const struct psd_update update = {.rate = 0.1f, .momentum = 0.9f, .weight_decay = 0.0005f, .trust_ratio = 0.02};

	check_update(update, 3000000);
	check_update(update, 1000);
	check_update(update, 7);
}

/* ---- norms of all gradients ---- */

enum { GRADIENTS = 3 };

/* The last gradient is left out: it counts as empty, whatever was there before. */
static void check_clip(const uint64_t counts[GRADIENTS], double most_norm)
{
	struct psd_device *device = open_device();
	static const float before[2 * GRADIENTS] = {9, 9, 9, 9, 9, 9}; /* room for as many doubles */
	double here[GRADIENTS], *there = (double *)(void *)cuda_net_take(device, before, 2 * GRADIENTS);
	float ratio, *own_ratio = cuda_net_take(device, &(float){0}, 1);
	const struct psd_clip clip = {here, GRADIENTS, most_norm, &ratio},
			      own = {there, GRADIENTS, most_norm, own_ratio};
	float *gradients[GRADIENTS], *owns[GRADIENTS];
	struct psd_error err = {0};

	for (unsigned g = 0; g < GRADIENTS; g++) {
		const uint64_t measured = g + 1 < GRADIENTS ? counts[g] : 0;

		gradients[g] = make(counts[g], g + 1);
		owns[g] = cuda_net_take(device, gradients[g], counts[g]);
		here[g] = psd_clip_measure(gradients[g], measured);
		cr_assert_eq(psd_device_cuda.kernels->measure(
				     device, &(struct psd_measure){owns[g], measured, &there[g]}, &err),
			     PSD_OK, "%s", err.text);
	}
	psd_clip_find(&clip);
	cr_assert_eq(psd_device_cuda.kernels->find_clip(device, &own, &err), PSD_OK, "%s", err.text);
	for (unsigned g = 0; g < GRADIENTS; g++) {
		psd_clip_shrink(gradients[g], counts[g], ratio);
		cr_assert_eq(psd_device_cuda.kernels->shrink(device,
							     &(struct psd_shrink){owns[g], counts[g], own_ratio}, &err),
			     PSD_OK, "%s", err.text);
	}
	cuda_net_wait(device, PSD_STREAM_COMPUTE);
	for (unsigned g = 0; g < GRADIENTS; g++) {
		check_equal(device, owns[g], gradients[g], counts[g], ratio < 1 ? NORM_TOLERANCE_RATIO : 0, "gradient");
		free(gradients[g]);
	}
	psd_device_cuda.close(device);
}

/* Values are within -1 and 1, so that n of them have a norm of about sqrt(n / 3). */
Test(cuda_parameters, gradients_are_clipped_as_on_the_host)
{
	check_clip((const uint64_t[]){3000000, 1000, 500}, 3);
	check_clip((const uint64_t[]){7, 1, 5000}, 0.01);
	check_clip((const uint64_t[]){3000, 1000, 500}, 1000);
}

/* ---- drifts ---- */

static void check_drift(enum psd_drift_step step, uint64_t count)
{
	struct psd_device *device = open_device();
	float *values[] = {make(count, 1), make(count, 2), make(count, 3)};
	float *own[3];
	struct psd_drift here = {.step = step, .elements = count, .ratio = 1.0f / 3.0f}, there = here;
	struct psd_error err = {0};

	for (unsigned v = 0; v < 3; v++)
		own[v] = cuda_net_take(device, values[v], count);
	here.weight = values[0], here.start = values[1], here.gradient = values[2];
	there.weight = own[0], there.start = own[1], there.gradient = own[2];
	psd_drift_take_step(&here);
	cr_assert_eq(psd_device_cuda.kernels->drift(device, &there, &err), PSD_OK, "%s", err.text);
	cuda_net_wait(device, PSD_STREAM_COMPUTE);
	for (unsigned v = 0; v < 3; v++) {
		check_equal(device, own[v], values[v], count, 0, "weight, start, gradient");
		free(values[v]);
	}
	psd_device_cuda.close(device);
}

Test(cuda_parameters, drifts_have_the_bits_of_the_hosts)
{
	check_drift(PSD_DRIFT_BEGINS, 5000);
	check_drift(PSD_DRIFT_ENDS, 777);
	check_drift(PSD_DRIFT_JOINS, 3001);
	check_drift(PSD_DRIFT_JOINS, 1);
	check_drift(PSD_DRIFT_RETURNS, 901);
	check_drift(PSD_DRIFT_PARTS, 902);
}

/* ---- sums ---- */

static void check_sum(uint64_t count)
{
	struct psd_device *device = open_device();
	float *to = make(count, 1), *from = make(count, 2);
	const struct psd_add there = {cuda_net_take(device, to, count), cuda_net_take(device, from, count), count};
	struct psd_error err = {0};

	cr_assert_eq(psd_run_add(&psd_kernels_here, NULL, &(struct psd_add){to, from, count}, &err), PSD_OK);
	cr_assert_eq(psd_device_cuda.kernels->add(device, &there, &err), PSD_OK, "%s", err.text);
	cuda_net_wait(device, PSD_STREAM_COMPUTE);
	check_equal(device, there.to, to, count, 0, "sum");
	free(to);
	free(from);
	psd_device_cuda.close(device);
}

Test(cuda_parameters, sums_have_the_bits_of_the_hosts)
{
	check_sum(5000);
	check_sum(1);
}

/* ---- chunks ---- */

enum { MOST_TENSORS = 200 };

struct exchange {
	struct psd_device *device;
	struct psd_chunk_tensor here[MOST_TENSORS], there[MOST_TENSORS];
	struct psd_chunks host, own; /* the same, in the host's memory and the device's */
	bool *is_chosen;
};

static struct exchange *open_exchange(const uint64_t sizes[], unsigned n_tensors, uint64_t chunk_elements)
{
	struct exchange *exchange = calloc(1, sizeof(*exchange));
	struct psd_chunks *host;

	cr_assert(exchange);
	exchange->device = open_device();
	host = &exchange->host;
	*host = (struct psd_chunks){.tensors = exchange->here,
				    .n_tensors = n_tensors,
				    .chunk_elements = chunk_elements,
				    .kept_ratio = 0.9f,
				    .workers = 3};
	for (unsigned t = 0; t < n_tensors; t++) {
		const struct psd_update update = {
			.rate = 0.1f * (float)(t + 1), .momentum = 0.9f, .weight_decay = 0.01f, .is_nesterov = t % 2};
		float *weight = make(sizes[t] + 1, 10 + t), *gradient = make(sizes[t] + 1, 500 + t);

		exchange->here[t] = (struct psd_chunk_tensor){weight, gradient, sizes[t], update};
		exchange->there[t] = (struct psd_chunk_tensor){cuda_net_take(exchange->device, weight, sizes[t] + 1),
							       cuda_net_take(exchange->device, gradient, sizes[t] + 1),
							       sizes[t], update};
		host->elements += sizes[t];
	}
	host->n_chunks = (uint32_t)((host->elements + chunk_elements - 1) / chunk_elements);
	exchange->is_chosen = calloc(host->n_chunks, sizeof(bool));
	cr_assert(exchange->is_chosen);
	for (uint32_t c = 0; c < host->n_chunks; c++)
		exchange->is_chosen[c] = c % 3 != 1;
	host->is_chosen = exchange->is_chosen;
	host->residual = make(host->elements, 7);
	host->history = make(host->elements, 8);
	host->chosen = make(host->elements, 9);
	host->norms = make(host->n_chunks, 11);
	exchange->own = *host;
	exchange->own.tensors = exchange->there;
	exchange->own.residual = cuda_net_take(exchange->device, host->residual, host->elements);
	exchange->own.history = cuda_net_take(exchange->device, host->history, host->elements);
	exchange->own.chosen = cuda_net_take(exchange->device, host->chosen, host->elements);
	exchange->own.norms = cuda_net_take(exchange->device, host->norms, host->n_chunks);
	return exchange;
}

static void close_exchange(struct exchange *exchange)
{
	psd_device_cuda.close(exchange->device);
	for (unsigned t = 0; t < exchange->host.n_tensors; t++) {
		free(exchange->here[t].weight);
		free((void *)(uintptr_t)exchange->here[t].gradient);
	}
	free(exchange->host.residual);
	free(exchange->host.history);
	free(exchange->host.chosen);
	free(exchange->host.norms);
	free(exchange->is_chosen);
	free(exchange);
}

static void check_exchange(struct exchange *exchange, const char *what)
{
	const struct psd_chunks *host = &exchange->host, *own = &exchange->own;

	cuda_net_wait(exchange->device, PSD_STREAM_COMPUTE);
	check_equal(exchange->device, own->residual, host->residual, host->elements, 0, what);
	check_equal(exchange->device, own->history, host->history, host->elements, 0, what);
	check_equal(exchange->device, own->chosen, host->chosen, host->elements, 0, what);
	check_equal(exchange->device, own->norms, host->norms, host->n_chunks, NORM_TOLERANCE_RATIO, what);
	for (unsigned t = 0; t < host->n_tensors; t++)
		check_equal(exchange->device, own->tensors[t].weight, host->tensors[t].weight,
			    host->tensors[t].elements + 1, 0, what);
}

static void check_chunks_by(bool is_relative, const uint64_t sizes[], unsigned n_tensors, uint64_t chunk_elements)
{
	struct exchange *exchange = open_exchange(sizes, n_tensors, chunk_elements);
	struct psd_error err = {0};

	exchange->host.is_relative = exchange->own.is_relative = is_relative;
	psd_chunks_gather(&exchange->host);
	cr_assert_eq(psd_device_cuda.kernels->gather(exchange->device, &exchange->own, &err), PSD_OK, "%s", err.text);
	check_exchange(exchange, "gathered");
	psd_chunks_apply(&exchange->host);
	cr_assert_eq(psd_device_cuda.kernels->apply_chunks(exchange->device, &exchange->own, &err), PSD_OK, "%s",
		     err.text);
	check_exchange(exchange, "applied");
	exchange->host.is_skipped = exchange->own.is_skipped = true;
	exchange->host.chosen[0] = INFINITY;
	cuda_net_put(exchange->device, exchange->own.chosen, exchange->host.chosen, sizeof(float));
	psd_chunks_apply(&exchange->host);
	cr_assert_eq(psd_device_cuda.kernels->apply_chunks(exchange->device, &exchange->own, &err), PSD_OK, "%s",
		     err.text);
	cuda_net_wait(exchange->device, PSD_STREAM_COMPUTE);
	check_equal(exchange->device, exchange->own.history, exchange->host.history, exchange->host.elements, 0,
		    "skipped");
	close_exchange(exchange);
}

static void check_chunks(const uint64_t sizes[], unsigned n_tensors, uint64_t chunk_elements)
{
	check_chunks_by(false, sizes, n_tensors, chunk_elements);
	check_chunks_by(true, sizes, n_tensors, chunk_elements);
}

/* Tensors that end within chunks, chunks that end within tensors, a short last one. */
Test(cuda_parameters, chunks_are_the_hosts)
{
	check_chunks((const uint64_t[]){1000, 1, 2600, 399, 37}, 5, 500);
	check_chunks((const uint64_t[]){64, 64}, 2, 64);
	check_chunks((const uint64_t[]){10}, 1, 64);
}

/* More chunks than one launch takes, more tensors in one chunk than that, and both at once. */
Test(cuda_parameters, chunks_of_several_launches_are_the_hosts)
{
	uint64_t sizes[MOST_TENSORS];

	for (unsigned t = 0; t < MOST_TENSORS; t++)
		sizes[t] = t % 7 == 3 ? 0 : 5 + t % 11;
	check_chunks((const uint64_t[]){9000, 7001}, 2, 100);
	check_chunks(sizes, MOST_TENSORS, 100000);
	check_chunks(sizes, MOST_TENSORS, 700);
	check_chunks(sizes, MOST_TENSORS, 3);
}
