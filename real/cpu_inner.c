/* Inner product on plain memory: the weight is the caller's (N, M), used and differentiated where it lies. What a sample gives does not
 * depend on the batch it comes in (cpu_product.h), where the processor can do that; oneDNN's sgemm sums over samples, and does everything
 * elsewhere. */
#include <string.h>

#include "real/cpu.h"
#include "real/cpu_product.h"

struct inner_product {
	struct psd_cpu_op bottom_in, dbottom_out;
	void *bottom;		   /* own copy where the input is not plain: it must last, as a factor */
	void *const *bottom_slot;  /* (batch, M) */
	void *const *dbottom_slot; /* where the gradient by it goes, plain */
	void *const *scratch_slot; /* NULL: no products of our own */
	dnnl_dim_t rows, columns;  /* M inputs, N outputs */
};

static enum psd_status prepare_bottom(struct psd_compute *compute, unsigned layer, struct inner_product *inner,
				      struct psd_error *err)
{
	struct psd_cpu_blob *in = psd_cpu_input(compute, layer, 0);
	const dnnl_memory_desc_t plain = psd_cpu_plain(compute, compute->graph->layers[layer].inputs[0]);

	inner->bottom_slot = &in->value;
	if (psd_cpu_is_plain(&in->desc))
		return PSD_OK;
	inner->bottom = psd_cpu_take(compute, dnnl_memory_desc_get_size(&plain));
	if (!inner->bottom)
		return psd_cpu_no_memory(err);
	inner->bottom_slot = &inner->bottom;
	return psd_cpu_op_copy(&inner->bottom_in, compute, layer, (struct psd_cpu_arg){DNNL_ARG_FROM, &in->desc, &in->value},
			       (struct psd_cpu_arg){DNNL_ARG_TO, &plain, &inner->bottom}, err);
}

static enum psd_status prepare(struct psd_compute *compute, unsigned layer, struct psd_error *err)
{
	const struct psd_layer *model = &compute->graph->layers[layer];
	const dnnl_memory_desc_t plain = psd_cpu_plain(compute, model->inputs[0]), top = psd_cpu_plain(compute, layer);
	struct psd_cpu_blob *in = psd_cpu_input(compute, layer, 0);
	struct inner_product *inner;
	enum psd_status status = psd_cpu_take_state(compute, layer, sizeof(*inner), err);

	if (status)
		return status;
	inner = compute->layers[layer].state;
	inner->rows = plain.dims[1] * plain.dims[2] * plain.dims[3];
	inner->columns = model->outputs;
	if (psd_cpu_product_is_possible())
		inner->scratch_slot =
			psd_cpu_scratch_slot(compute, PSD_CPU_SCRATCH_WEIGHT,
					     (uint64_t)compute->options.n_threads * PSD_CPU_PRODUCT_SCRATCH * sizeof(float));
	status = prepare_bottom(compute, layer, inner, err);
	if (!status)
		status = psd_cpu_declare(compute, layer, &top, err);
	if (!status && in->has_diff)
		status = psd_cpu_op_deliver(&inner->dbottom_out, compute, layer,
					    (struct psd_cpu_arg){DNNL_ARG_TO, &in->desc, &in->share}, &plain,
					    PSD_CPU_SCRATCH_SOURCE, &inner->dbottom_slot, err);
	return status;
}

static void fill_rows(float *rows, const float *row, dnnl_dim_t n_rows, dnnl_dim_t columns)
{
	for (dnnl_dim_t r = 0; r < n_rows; r++)
		for (dnnl_dim_t c = 0; c < columns; c++)
			rows[r * columns + c] = row[c];
}

/* sums += the sum over rows of each column; row by row, so that the order does not depend on the compiler. */
static void add_column_sums(float *sums, const float *rows, dnnl_dim_t n_rows, dnnl_dim_t columns)
{
	for (dnnl_dim_t r = 0; r < n_rows; r++)
		for (dnnl_dim_t c = 0; c < columns; c++)
			sums[c] += rows[r * columns + c];
}

static struct psd_cpu_product product_of(const struct psd_compute *compute, unsigned layer)
{
	const struct inner_product *inner = compute->layers[layer].state;

	return (struct psd_cpu_product){
		.weight = compute->parameters[compute->graph->layers[layer].first_tensor],
		.samples = compute->options.batch,
		.rows = (uint32_t)inner->rows,
		.columns = (uint32_t)inner->columns,
		.n_threads = compute->options.n_threads,
	};
}

/* top (batch, N) = bottom (batch, M) weight^T + bias */
static dnnl_status_t multiply(const struct psd_compute *compute, unsigned layer, const float *bias, float *top)
{
	const struct inner_product *inner = compute->layers[layer].state;
	const struct psd_cpu_product product = product_of(compute, layer);

	if (inner->scratch_slot) {
		psd_cpu_product_forward(&product, *inner->bottom_slot, bias, top);
		return dnnl_success;
	}
	if (bias)
		fill_rows(top, bias, product.samples, inner->columns);
	return dnnl_sgemm('N', 'T', product.samples, inner->columns, inner->rows, 1.0f, *inner->bottom_slot, inner->rows,
			  product.weight, inner->rows, bias ? 1.0f : 0.0f, top, inner->columns);
}

static enum psd_status forward(struct psd_compute *compute, unsigned layer, struct psd_error *err)
{
	const struct psd_layer *model = &compute->graph->layers[layer];
	struct inner_product *inner = compute->layers[layer].state;
	const float *bias = model->has_bias ? compute->parameters[model->first_tensor + 1] : NULL;
	dnnl_status_t failure;
	enum psd_status status = psd_cpu_op_run(&inner->bottom_in, compute, layer, err);

	if (status)
		return status;
	failure = multiply(compute, layer, bias, compute->layers[layer].blob->value);
	return failure ? psd_cpu_fail(compute, layer, "product", failure, err) : PSD_OK;
}

/* dweight (N, M) = dtop^T bottom, dbias (N) = column sums of dtop; either may be NULL. */
static dnnl_status_t differentiate_parameters(const struct psd_factors *factors, dnnl_dim_t samples, dnnl_dim_t rows,
					      dnnl_dim_t columns, float *dweight, float *dbias)
{
	if (dbias) {
		memset(dbias, 0, (size_t)columns * sizeof(*dbias));
		add_column_sums(dbias, factors->top_diff, samples, columns);
	}
	if (!dweight)
		return dnnl_success;
	return dnnl_sgemm('T', 'N', columns, rows, samples, 1.0f, factors->top_diff, columns, factors->bottom, rows, 0.0f,
			  dweight, rows);
}

/* dbottom (batch, M) = dtop (batch, N) weight (N, M) */
static enum psd_status differentiate_bottom(struct psd_compute *compute, unsigned layer, const float *dtop, struct psd_error *err)
{
	struct inner_product *inner = compute->layers[layer].state;
	const struct psd_cpu_product product = product_of(compute, layer);
	struct psd_cpu_blob *in = psd_cpu_input(compute, layer, 0);
	dnnl_status_t failure = dnnl_success;
	enum psd_status status;

	psd_cpu_share_begin(compute, in);
	if (inner->scratch_slot)
		psd_cpu_product_backward(&product, dtop, *inner->scratch_slot, *inner->dbottom_slot);
	else
		failure = dnnl_sgemm('N', 'N', product.samples, inner->rows, inner->columns, 1.0f, dtop, inner->columns,
				     product.weight, inner->rows, 0.0f, *inner->dbottom_slot, inner->rows);
	if (failure)
		return psd_cpu_fail(compute, layer, "data gradient", failure, err);
	status = psd_cpu_op_run(&inner->dbottom_out, compute, layer, err);
	return status ? status : psd_cpu_share_end(compute, layer, in, err);
}

static enum psd_status backward(struct psd_compute *compute, unsigned layer, struct psd_error *err)
{
	const struct psd_layer *model = &compute->graph->layers[layer];
	const struct inner_product *inner = compute->layers[layer].state;
	const struct psd_factors factors = psd_cpu_factors(compute, layer);
	const dnnl_status_t failure = differentiate_parameters(
		&factors, compute->options.batch, inner->rows, inner->columns, compute->gradients[model->first_tensor],
		model->has_bias ? compute->gradients[model->first_tensor + 1] : NULL);

	if (failure)
		return psd_cpu_fail(compute, layer, "weight gradient", failure, err);
	return psd_cpu_input(compute, layer, 0)->has_diff ? differentiate_bottom(compute, layer, factors.top_diff, err) : PSD_OK;
}

struct psd_factors psd_cpu_factors(const struct psd_compute *compute, unsigned layer)
{
	const struct inner_product *inner = compute->layers[layer].state;

	return (struct psd_factors){.top_diff = compute->layers[layer].blob->diff, .bottom = *inner->bottom_slot};
}

void psd_cpu_rebuild(struct psd_compute *compute, const struct psd_factors *factors, uint32_t samples, uint32_t rows,
		     uint32_t columns, float *gradient, float *bias_gradient)
{
	omp_set_num_threads((int)compute->options.n_threads); /* the calling thread's, which need not be the one that computes */
	/* the arguments are those of the backward that made the factors: it cannot be refused */
	(void)differentiate_parameters(factors, samples, rows, columns, gradient, bias_gradient);
}

static void release(void *state)
{
	struct inner_product *inner = state;

	psd_cpu_op_release(&inner->bottom_in);
	psd_cpu_op_release(&inner->dbottom_out);
}

const struct psd_cpu_kind psd_cpu_inner_product = {prepare, forward, backward, release};
