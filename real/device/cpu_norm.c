/* Normalisations: over neighbouring channels (LRN), over the batch, and Caffe's Scale, which is a batch norm whose
 * statistics are fixed at mean 0 and variance 1. */
#include "real/device/cpu.h"

/* Caffe's lrn_param as all its published models set them; the formula divides alpha by the size, as oneDNN's does. */
#define LRN_ALPHA 1e-4f
#define LRN_BETA  0.75f
#define LRN_K	  1.0f

/* Ioffe and Szegedy 2015 leave both open; these are PyTorch's. */
#define BATCH_NORM_EPSILON 1e-5f
#define RUNNING_MOMENTUM   0.1f /* share of the newest batch in the running statistics */

/* ---- across channels ---- */

struct lrn {
	struct psd_cpu_op forward, backward;
	void *workspace;
};

static enum psd_status prepare_lrn_forward(struct psd_compute *compute, unsigned layer, struct psd_error *err)
{
	struct lrn *lrn = compute->layers[layer].state;
	struct psd_cpu_blob *in = psd_cpu_input(compute, layer, 0), *out = compute->layers[layer].blob;
	const dnnl_memory_desc_t *workspace;
	dnnl_lrn_desc_t desc;
	const dnnl_status_t failure =
		dnnl_lrn_forward_desc_init(&desc, dnnl_forward_training, dnnl_lrn_across_channels, &in->desc,
					   compute->graph->layers[layer].settings.lrn.size, LRN_ALPHA, LRN_BETA, LRN_K);
	const enum psd_status status =
		failure ? psd_cpu_fail(compute, layer, "forward", failure, err)
			: psd_cpu_op_describe(&lrn->forward, compute, layer, &desc, NULL, NULL, err);

	if (status)
		return status;
	workspace = psd_cpu_op_query(&lrn->forward, dnnl_query_workspace_md);
	if (workspace && dnnl_memory_desc_get_size(workspace)) {
		lrn->workspace = psd_cpu_take(compute, dnnl_memory_desc_get_size(workspace));
		if (!lrn->workspace)
			return psd_cpu_no_memory(err);
	}
	return psd_cpu_op_build(&lrn->forward, compute, layer,
				(const struct psd_cpu_arg[]){
					{DNNL_ARG_SRC, &in->desc, &in->value},
					{DNNL_ARG_DST, &out->desc, &out->value},
					{DNNL_ARG_WORKSPACE, workspace, lrn->workspace ? &lrn->workspace : NULL},
				},
				3, err);
}

static enum psd_status prepare_lrn_backward(struct psd_compute *compute, unsigned layer, struct psd_error *err)
{
	struct lrn *lrn = compute->layers[layer].state;
	struct psd_cpu_blob *in = psd_cpu_input(compute, layer, 0), *out = compute->layers[layer].blob;
	dnnl_lrn_desc_t desc;
	const dnnl_status_t failure = dnnl_lrn_backward_desc_init(
		&desc, dnnl_lrn_across_channels, &out->desc, &in->desc, compute->graph->layers[layer].settings.lrn.size,
		LRN_ALPHA, LRN_BETA, LRN_K);
	const enum psd_status status =
		failure ? psd_cpu_fail(compute, layer, "data gradient", failure, err)
			: psd_cpu_op_describe(&lrn->backward, compute, layer, &desc, &lrn->forward, NULL, err);

	if (status)
		return status;
	return psd_cpu_op_build(&lrn->backward, compute, layer,
				(const struct psd_cpu_arg[]){
					{DNNL_ARG_SRC, &in->desc, &in->value},
					{DNNL_ARG_DIFF_DST, &out->desc, &out->diff},
					{DNNL_ARG_DIFF_SRC, &in->desc, &in->share},
					{DNNL_ARG_WORKSPACE, psd_cpu_op_query(&lrn->backward, dnnl_query_workspace_md),
					 lrn->workspace ? &lrn->workspace : NULL},
				},
				4, err);
}

static enum psd_status prepare_lrn(struct psd_compute *compute, unsigned layer, struct psd_error *err)
{
	struct psd_cpu_blob *in = psd_cpu_input(compute, layer, 0);
	enum psd_status status = psd_cpu_take_state(compute, layer, sizeof(struct lrn), err);

	if (!status)
		status = psd_cpu_declare(compute, layer, &in->desc, err);
	if (!status)
		status = prepare_lrn_forward(compute, layer, err);
	if (!status && in->has_diff)
		status = prepare_lrn_backward(compute, layer, err);
	return status;
}

static enum psd_status forward_lrn(struct psd_compute *compute, unsigned layer, struct psd_error *err)
{
	struct lrn *lrn = compute->layers[layer].state;

	return psd_cpu_op_run(&lrn->forward, compute, layer, err);
}

static enum psd_status backward_lrn(struct psd_compute *compute, unsigned layer, struct psd_error *err)
{
	struct lrn *lrn = compute->layers[layer].state;
	struct psd_cpu_blob *in = psd_cpu_input(compute, layer, 0);
	enum psd_status status;

	psd_cpu_share_begin(compute, in);
	status = psd_cpu_op_run(&lrn->backward, compute, layer, err);
	return status ? status : psd_cpu_share_end(compute, layer, in, err);
}

static void release_lrn(void *state)
{
	struct lrn *lrn = state;

	psd_cpu_op_release(&lrn->forward);
	psd_cpu_op_release(&lrn->backward);
}

const struct psd_cpu_kind psd_cpu_lrn = {
	.prepare = prepare_lrn, .forward = forward_lrn, .backward = backward_lrn, .release = release_lrn};

/* ---- over the batch ---- */

struct batch_norm {
	struct psd_cpu_op training, inference, backward;
	bool is_scale;	       /* statistics are fixed; training and inference are the same */
	void *mean, *variance; /* of this batch; of a scale: 0 and 1 */
	void *running_mean, *running_variance;
	void *unused_diff; /* where oneDNN puts the gradient by the data where nobody wants it */
	void *const *gamma, *const *beta, *const *dgamma, *const *dbeta; /* slots, NULL where there is none */
};

static float *take_filled(struct psd_compute *compute, uint32_t count, float value)
{
	float *values = psd_cpu_take(compute, count * sizeof(*values));

	for (uint32_t i = 0; values && i < count; i++)
		values[i] = value;
	return values;
}

static enum psd_status take_statistics(struct psd_compute *compute, const struct psd_layer *model,
				       struct batch_norm *norm, struct psd_error *err)
{
	const uint32_t channels = model->shape.channels;

	norm->mean = take_filled(compute, channels, 0.0f);
	norm->variance = take_filled(compute, channels, 1.0f);
	norm->running_mean = norm->is_scale ? norm->mean : take_filled(compute, channels, 0.0f);
	norm->running_variance = norm->is_scale ? norm->variance : take_filled(compute, channels, 1.0f);
	return norm->mean && norm->variance && norm->running_mean && norm->running_variance ? PSD_OK
											    : psd_cpu_no_memory(err);
}

static void find_tensors(struct psd_compute *compute, const struct psd_layer *model, struct batch_norm *norm)
{
	const unsigned gamma = model->first_tensor, beta = gamma + (model->settings.affine.has_scale ? 1 : 0);

	if (model->settings.affine.has_scale) {
		norm->gamma = &compute->parameters[gamma];
		norm->dgamma = &compute->gradients[gamma];
	}
	if (model->settings.affine.has_shift) {
		norm->beta = &compute->parameters[beta];
		norm->dbeta = &compute->gradients[beta];
	}
}

static unsigned flags_of(const struct batch_norm *norm, bool is_fixed)
{
	return (is_fixed ? dnnl_use_global_stats : 0u) | (norm->gamma ? dnnl_use_scale : 0u) |
	       (norm->beta ? dnnl_use_shift : 0u);
}

static float epsilon_of(const struct batch_norm *norm)
{
	return norm->is_scale ? 0.0f : BATCH_NORM_EPSILON;
}

static enum psd_status prepare_norm_forward(struct psd_compute *compute, unsigned layer, bool is_inference,
					    struct psd_error *err)
{
	struct batch_norm *norm = compute->layers[layer].state;
	struct psd_cpu_op *op = is_inference ? &norm->inference : &norm->training;
	struct psd_cpu_blob *in = psd_cpu_input(compute, layer, 0), *out = compute->layers[layer].blob;
	const dnnl_dims_t channels = {in->desc.dims[1]};
	dnnl_memory_desc_t vector;
	dnnl_batch_normalization_desc_t desc;
	const dnnl_status_t failure = dnnl_batch_normalization_forward_desc_init(
		&desc, is_inference ? dnnl_forward_inference : dnnl_forward_training, &in->desc, epsilon_of(norm),
		flags_of(norm, is_inference || norm->is_scale));
	const enum psd_status status = failure ? psd_cpu_fail(compute, layer, "forward", failure, err)
					       : psd_cpu_op_describe(op, compute, layer, &desc, NULL, NULL, err);

	if (status)
		return status;
	dnnl_memory_desc_init_by_tag(&vector, 1, channels, dnnl_f32, dnnl_x);
	return psd_cpu_op_build(
		op, compute, layer,
		(const struct psd_cpu_arg[]){
			{DNNL_ARG_SRC, &in->desc, &in->value},
			{DNNL_ARG_DST, &out->desc, &out->value},
			{DNNL_ARG_MEAN, &vector, is_inference ? &norm->running_mean : &norm->mean},
			{DNNL_ARG_VARIANCE, &vector, is_inference ? &norm->running_variance : &norm->variance},
			{DNNL_ARG_SCALE, &vector, norm->gamma},
			{DNNL_ARG_SHIFT, &vector, norm->beta},
		},
		6, err);
}

static enum psd_status prepare_norm_backward(struct psd_compute *compute, unsigned layer, struct psd_error *err)
{
	struct batch_norm *norm = compute->layers[layer].state;
	struct psd_cpu_blob *in = psd_cpu_input(compute, layer, 0), *out = compute->layers[layer].blob;
	const dnnl_dims_t channels = {in->desc.dims[1]};
	dnnl_memory_desc_t vector;
	dnnl_batch_normalization_desc_t desc;
	const dnnl_status_t failure = dnnl_batch_normalization_backward_desc_init(
		&desc, norm->gamma || norm->beta ? dnnl_backward : dnnl_backward_data, &out->desc, &in->desc,
		epsilon_of(norm), flags_of(norm, norm->is_scale));
	enum psd_status status =
		failure ? psd_cpu_fail(compute, layer, "gradient", failure, err)
			: psd_cpu_op_describe(&norm->backward, compute, layer, &desc, &norm->training, NULL, err);

	if (status)
		return status;
	if (!in->has_diff) {
		norm->unused_diff = psd_cpu_take(compute, in->bytes);
		if (!norm->unused_diff)
			return psd_cpu_no_memory(err);
	}
	dnnl_memory_desc_init_by_tag(&vector, 1, channels, dnnl_f32, dnnl_x);
	return psd_cpu_op_build(&norm->backward, compute, layer,
				(const struct psd_cpu_arg[]){
					{DNNL_ARG_SRC, &in->desc, &in->value},
					{DNNL_ARG_MEAN, &vector, &norm->mean},
					{DNNL_ARG_VARIANCE, &vector, &norm->variance},
					{DNNL_ARG_SCALE, &vector, norm->gamma},
					{DNNL_ARG_SHIFT, &vector, norm->beta}, /* unused, but counted */
					{DNNL_ARG_DIFF_DST, &out->desc, &out->diff},
					{DNNL_ARG_DIFF_SRC, &in->desc, in->has_diff ? &in->share : &norm->unused_diff},
					{DNNL_ARG_DIFF_SCALE, &vector, norm->dgamma},
					{DNNL_ARG_DIFF_SHIFT, &vector, norm->dbeta},
				},
				9, err);
}

static enum psd_status prepare_norm(struct psd_compute *compute, unsigned layer, struct psd_error *err)
{
	const struct psd_layer *model = &compute->graph->layers[layer];
	struct batch_norm *norm;
	enum psd_status status = psd_cpu_take_state(compute, layer, sizeof(*norm), err);

	if (status)
		return status;
	norm = compute->layers[layer].state;
	norm->is_scale = model->kind == &psd_layer_scale;
	find_tensors(compute, model, norm);
	status = take_statistics(compute, model, norm, err);
	if (!status)
		status = psd_cpu_declare(compute, layer, &psd_cpu_input(compute, layer, 0)->desc, err);
	if (!status)
		status = prepare_norm_forward(compute, layer, false, err);
	if (!status && !norm->is_scale)
		status = prepare_norm_forward(compute, layer, true, err);
	if (!status && model->is_trained)
		status = prepare_norm_backward(compute, layer, err);
	return status;
}

/* The running variance is of the population that the batch is a sample of. */
static void update_running(const struct psd_compute *compute, unsigned layer, struct batch_norm *norm)
{
	const struct psd_shape shape = compute->graph->layers[layer].shape;
	const double samples = (double)compute->options.batch * shape.height * shape.width;
	const float unbiased = samples > 1 ? (float)(samples / (samples - 1)) : 1.0f;
	const float *mean = norm->mean, *variance = norm->variance;
	float *running_mean = norm->running_mean, *running_variance = norm->running_variance;

	for (uint32_t c = 0; c < shape.channels; c++) {
		running_mean[c] += RUNNING_MOMENTUM * (mean[c] - running_mean[c]);
		running_variance[c] += RUNNING_MOMENTUM * (variance[c] * unbiased - running_variance[c]);
	}
}

static enum psd_status forward_norm(struct psd_compute *compute, unsigned layer, struct psd_error *err)
{
	struct batch_norm *norm = compute->layers[layer].state;
	enum psd_status status;

	if (norm->is_scale)
		return psd_cpu_op_run(&norm->training, compute, layer, err);
	if (!compute->batch.is_training)
		return psd_cpu_op_run(&norm->inference, compute, layer, err);
	status = psd_cpu_op_run(&norm->training, compute, layer, err);
	if (!status)
		update_running(compute, layer, norm);
	return status;
}

static enum psd_status backward_norm(struct psd_compute *compute, unsigned layer, struct psd_error *err)
{
	struct batch_norm *norm = compute->layers[layer].state;
	struct psd_cpu_blob *in = psd_cpu_input(compute, layer, 0);
	enum psd_status status;

	if (!in->has_diff)
		return psd_cpu_op_run(&norm->backward, compute, layer, err);
	psd_cpu_share_begin(compute, in);
	status = psd_cpu_op_run(&norm->backward, compute, layer, err);
	return status ? status : psd_cpu_share_end(compute, layer, in, err);
}

static void release_norm(void *state)
{
	struct batch_norm *norm = state;

	psd_cpu_op_release(&norm->training);
	psd_cpu_op_release(&norm->inference);
	psd_cpu_op_release(&norm->backward);
}

const struct psd_cpu_kind psd_cpu_batch_norm = {
	.prepare = prepare_norm, .forward = forward_norm, .backward = backward_norm, .release = release_norm};
