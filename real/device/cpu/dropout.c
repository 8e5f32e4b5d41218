/* Dropout whose mask is a function of seed, iteration, sample, layer and element: it does not depend on the worker that
 * computes a sample, or on the number of workers. On plain memory an element's number is the same on every machine. */
#include <math.h>

#include "real/device/cpu/cpu.h"

struct dropout {
	struct psd_cpu_op value_in, diff_out;
	void *const *source; /* slot of the input in plain format */
	void *const *share;  /* slot of the input's gradient in plain format */
	bool is_in_place;
	float *factors;	   /* factor on each element; shape (batch, elements) */
	uint32_t elements; /* number of elements in a sample */
};

static uint32_t high_product(uint32_t left, uint32_t right)
{
	return (uint32_t)(((uint64_t)left * right) >> 32);
}

void psd_cpu_philox(const uint32_t counter[4], uint64_t key, uint32_t random[4])
{
	const uint32_t multipliers[2] = {0xD2511F53u, 0xCD9E8D57u}, weyl[2] = {0x9E3779B9u, 0xBB67AE85u};
	uint32_t keys[2] = {(uint32_t)key, (uint32_t)(key >> 32)};

	for (unsigned i = 0; i < 4; i++)
		random[i] = counter[i];
	for (unsigned round = 0; round < 10; round++) {
		const uint32_t high0 = high_product(multipliers[0], random[0]), low0 = multipliers[0] * random[0];
		const uint32_t high1 = high_product(multipliers[1], random[2]), low1 = multipliers[1] * random[2];

		random[0] = high1 ^ random[1] ^ keys[0];
		random[1] = low1;
		random[2] = high0 ^ random[3] ^ keys[1];
		random[3] = low0;
		keys[0] += weyl[0];
		keys[1] += weyl[1];
	}
}

/* The counter has 32 bits each for iteration and sample: a mask repeats after four billion iterations. */
void psd_cpu_drop(const struct psd_cpu_layer *self, uint32_t sample, double ratio, uint64_t elements, const float *from,
		  float *to)
{
	const uint32_t number = (uint32_t)(self->device->batch.first_sample + sample);
	const uint32_t threshold = (uint32_t)fmin(ratio * 0x1p32, 0x1p32 - 1);
	const float scale = (float)(1 / (1 - ratio));
	uint32_t counter[4] = {0, self->number, number, (uint32_t)self->device->batch.iteration}, random[4];

	for (uint64_t e = 0; e < elements; e++) {
		if (e % 4 == 0) {
			counter[0] = (uint32_t)(e / 4);
			psd_cpu_philox(counter, self->device->options.seed, random);
		}
		to[e] = random[e % 4] < threshold ? 0.0f : scale * from[e];
	}
}

static enum psd_status declare(struct psd_cpu_layer *self, struct dropout *dropout, struct psd_error *err)
{
	struct psd_cpu_blob *in = psd_cpu_input(self, 0);
	const dnnl_memory_desc_t plain = psd_cpu_plain(self);

	dropout->is_in_place = psd_cpu_may_work_in_place(self) && psd_cpu_is_plain(&in->desc);
	if (dropout->is_in_place)
		return psd_cpu_declare_in_place(self, err);
	PSD_TRY(psd_cpu_op_convert(&dropout->value_in, self, psd_cpu_value(in), &plain, PSD_CPU_SCRATCH_SOURCE,
				   &dropout->source, err));
	if (in->has_diff)
		PSD_TRY(psd_cpu_op_deliver(&dropout->diff_out, self, psd_cpu_share(in), &plain, PSD_CPU_SCRATCH_SOURCE,
					   &dropout->share, err));
	return psd_cpu_declare(self, &plain, err);
}

static enum psd_status prepare(struct psd_cpu_layer *self, struct psd_error *err)
{
	const struct psd_layer *model = self->model;
	struct dropout *dropout = self->details;

	dropout->elements = model->shape.channels * model->shape.height * model->shape.width;
	dropout->factors =
		psd_cpu_take(self->device, (uint64_t)self->device->options.batch * dropout->elements * sizeof(float));
	return dropout->factors ? declare(self, dropout, err) : psd_cpu_no_memory(err);
}

/* to = from * factors, element by element; `to` may be equal to `from`. */
static void multiply(float *to, const float *from, const float *factors, size_t count)
{
	for (size_t i = 0; i < count; i++)
		to[i] = from[i] * factors[i];
}

static enum psd_status forward(struct psd_cpu_layer *self, struct psd_error *err)
{
	struct dropout *dropout = self->details;
	const struct psd_cpu_blob *out = self->blob;
	const size_t count = (size_t)self->device->options.batch * dropout->elements;

	PSD_TRY(psd_cpu_op_run(&dropout->value_in, self, err));
	for (size_t i = 0; i < count; i++)
		dropout->factors[i] = 1.0f;
	for (uint32_t i = 0; i < self->device->options.batch && self->device->batch.is_training; i++) {
		float *factors = dropout->factors + (size_t)i * dropout->elements;

		psd_cpu_drop(self, i, self->model->settings.dropout.ratio, dropout->elements, factors, factors);
	}
	multiply(out->value, dropout->is_in_place ? out->value : *dropout->source, dropout->factors, count);
	return PSD_OK;
}

static enum psd_status backward(struct psd_cpu_layer *self, struct psd_error *err)
{
	struct dropout *dropout = self->details;
	struct psd_cpu_blob *in = psd_cpu_input(self, 0);
	const struct psd_cpu_blob *out = self->blob;
	const size_t count = (size_t)self->device->options.batch * dropout->elements;

	if (dropout->is_in_place) {
		multiply(out->diff, out->diff, dropout->factors, count);
		return PSD_OK;
	}
	psd_cpu_share_begin(self, in);
	multiply(*dropout->share, out->diff, dropout->factors, count);
	PSD_TRY(psd_cpu_op_run(&dropout->diff_out, self, err));
	return psd_cpu_share_end(self, in, err);
}

const struct psd_cpu_kind psd_cpu_dropout = {prepare, forward, backward, .details_bytes = sizeof(struct dropout),
					     .leaves_signs = true};
