/* Softmax with multinomial logistic loss, averaged over a sample's positions, whose channels are adjacent here. Sums
 * are double: they are few, and losses are compared between runs. */
#include <math.h>

#include "real/device/cpu/cpu.h"

struct softmax_loss {
	struct psd_cpu_op scores_in, diff_out;
	void *const *scores; /* slot (struct psd_cpu_op) of the scores; shape (batch, positions, classes) */
	void *const *share;
};

static enum psd_status prepare(struct psd_cpu_layer *self, struct psd_error *err)
{
	const dnnl_memory_desc_t format = psd_cpu_channels_last(self);
	struct psd_cpu_blob *in = psd_cpu_input(self, 0);
	struct softmax_loss *loss = self->details;

	if (psd_cpu_places_of(self) != self->device->graph->labels)
		return psd_error_set(
			err, PSD_EINVAL, PSD_NOWHERE,
			"layer '%.80s' (softmax-loss) has %llu positions, the last loss has labels for %llu",
			self->model->name, (unsigned long long)psd_cpu_places_of(self),
			(unsigned long long)self->device->graph->labels);
	PSD_TRY(psd_cpu_op_convert(&loss->scores_in, self, psd_cpu_value(in), &format, PSD_CPU_SCRATCH_SOURCE,
				   &loss->scores, err));
	if (in->has_diff)
		PSD_TRY(psd_cpu_op_deliver(&loss->diff_out, self, psd_cpu_share(in), &format, PSD_CPU_SCRATCH_SOURCE,
					   &loss->share, err));
	return psd_cpu_declare(self, &format, err);
}

/* Returns the divisor of the sum of the losses of all positions: loss_divisor times positions of a sample. */
static double divisor_of(const struct psd_cpu_layer *self)
{
	return self->device->options.loss_divisor * (double)psd_cpu_places_of(self);
}

static uint32_t find_largest(const float *scores, uint32_t classes)
{
	uint32_t largest = 0; /* among equal scores the lowest class is the likeliest */

	for (uint32_t c = 1; c < classes; c++)
		if (scores[c] > scores[largest])
			largest = c;
	return largest;
}

/* Writes probabilities, from scores minus the largest, which keeps exp() in range. Returns the label's loss. */
static double normalise(float *probabilities, const float *scores, uint32_t classes, uint32_t largest, uint32_t label)
{
	double sum = 0;

	for (uint32_t c = 0; c < classes; c++) {
		probabilities[c] = expf(scores[c] - scores[largest]);
		sum += probabilities[c];
	}
	for (uint32_t c = 0; c < classes; c++)
		probabilities[c] = (float)(probabilities[c] / sum);
	return log(sum) - ((double)scores[label] - scores[largest]);
}

static enum psd_status forward(struct psd_cpu_layer *self, struct psd_error *err)
{
	const struct psd_layer *model = self->model;
	const uint32_t classes = model->shape.channels;
	const uint64_t n_positions = psd_cpu_places_of(self);
	struct softmax_loss *loss = self->details;
	float *probabilities = self->blob->value;
	double sum = 0;

	PSD_TRY(psd_cpu_op_run(&loss->scores_in, self, err));
	self->device->correct = 0; /* with several loss layers the last one's number is reported */
	for (uint64_t i = 0; i < self->device->options.batch * n_positions; i++) {
		const float *scores = (const float *)*loss->scores + i * classes;
		const int32_t label = self->device->batch.labels[i];
		const uint32_t largest = find_largest(scores, classes);

		if (label < 0 || (uint32_t)label >= classes)
			return psd_error_set(err, PSD_EINVAL, PSD_NOWHERE, "sample %llu has label %ld, must be 0 to %u",
					     (unsigned long long)self->device->batch.first_sample + i / n_positions,
					     (long)label, classes - 1);
		sum += normalise(probabilities + i * classes, scores, classes, largest, (uint32_t)label);
		self->device->correct += largest == (uint32_t)label;
	}
	self->device->loss += model->settings.loss.weight * sum / divisor_of(self);
	return PSD_OK;
}

static enum psd_status backward(struct psd_cpu_layer *self, struct psd_error *err)
{
	const uint32_t classes = self->model->shape.channels;
	const float weight = (float)(self->model->settings.loss.weight / divisor_of(self));
	struct softmax_loss *loss = self->details;
	struct psd_cpu_blob *in = psd_cpu_input(self, 0);
	const float *probabilities = self->blob->value;

	psd_cpu_share_begin(self, in);
	float *dscores = *loss->share;
	for (uint64_t i = 0; i < self->device->options.batch * psd_cpu_places_of(self); i++) {
		const size_t first = i * classes;

		for (uint32_t c = 0; c < classes; c++)
			dscores[first + c] = weight * (probabilities[first + c] -
						       (c == (uint32_t)self->device->batch.labels[i] ? 1.0f : 0.0f));
	}
	PSD_TRY(psd_cpu_op_run(&loss->diff_out, self, err));
	return psd_cpu_share_end(self, in, err);
}

const struct psd_cpu_kind psd_cpu_softmax_loss = {prepare, forward, backward,
						  .details_bytes = sizeof(struct softmax_loss), .keeps = PSD_KEEPS_ALL};
