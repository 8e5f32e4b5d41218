/* Linear layer on plain memory: the caller's weight (N, M) is used and differentiated in place. oneDNN's sgemm is
 * faster than OpenBLAS at these shapes, except for the data gradient of weights with cache aliasing, see below. */
#include <string.h>

#include "real/base/libraries.h"
#include "real/device/cpu/cpu.h"

/* Rows of a weight whose distance is a multiple of this compete for the same few cache lines. Then the data gradient,
 * which reads columns, works on blocks copied to slightly longer rows: measured, 71 to 45 ms for 32 x 9216 x 4096 and
 * 58 to 33 ms for 64 x 4096 x 4096 with AVX2. */
#define ALIASING_BYTES 4096
#define BLOCK_ROWS     128
#define BLOCK_COLUMNS  1024
#define BLOCK_STRIDE   (BLOCK_COLUMNS + 16)

struct inner_product {
	struct psd_cpu_op bottom_in, dbottom_out;
	/* plain copy of an input that is in another format; it is kept as a factor after the iteration */
	void *bottom;
	void *const *bottom_slot;  /* slot of the input in plain format; shape (batch, M) */
	void *const *dbottom_slot; /* slot of the input's gradient in plain format; shape (batch, M) */
	void *const *block_slot;   /* slot of a copied block of the weight; NULL without a copy */
	dnnl_dim_t rows, columns;  /* rows: number of inputs M; columns: number of outputs N */
};

static enum psd_status prepare_bottom(struct psd_cpu_layer *self, struct inner_product *inner, struct psd_error *err)
{
	struct psd_cpu_blob *in = psd_cpu_input(self, 0);
	const dnnl_memory_desc_t plain = psd_cpu_plain(psd_cpu_below(self, 0));

	inner->bottom_slot = &in->value;
	if (psd_cpu_is_plain(&in->desc))
		return PSD_OK;
	inner->bottom = psd_cpu_take(self->device, dnnl_memory_desc_get_size(&plain));
	if (!inner->bottom)
		return psd_cpu_no_memory(err);
	inner->bottom_slot = &inner->bottom;
	return psd_cpu_op_copy(&inner->bottom_in, self, psd_cpu_value(in),
			       (struct psd_cpu_arg){DNNL_ARG_TO, &plain, &inner->bottom}, err);
}

static enum psd_status prepare(struct psd_cpu_layer *self, struct psd_error *err)
{
	const struct psd_layer *model = self->model;
	const dnnl_memory_desc_t plain = psd_cpu_plain(psd_cpu_below(self, 0)), top = psd_cpu_plain(self);
	struct psd_cpu_blob *in = psd_cpu_input(self, 0);
	struct inner_product *inner = self->details;

	inner->rows = plain.dims[1] * plain.dims[2] * plain.dims[3];
	inner->columns = model->settings.inner_product.outputs;
	if (in->has_diff && (uint64_t)inner->rows * sizeof(float) % ALIASING_BYTES == 0)
		inner->block_slot = psd_cpu_scratch_slot(self->device, PSD_CPU_SCRATCH_WEIGHT,
							 BLOCK_ROWS * BLOCK_STRIDE * sizeof(float));
	PSD_TRY(prepare_bottom(self, inner, err));
	PSD_TRY(psd_cpu_declare(self, &top, err));
	if (in->has_diff)
		PSD_TRY(psd_cpu_op_deliver(&inner->dbottom_out, self, psd_cpu_share(in), &plain, PSD_CPU_SCRATCH_SOURCE,
					   &inner->dbottom_slot, err));
	return PSD_OK;
}

static void fill_rows(float *rows, const float *row, dnnl_dim_t n_rows, dnnl_dim_t columns)
{
	for (dnnl_dim_t r = 0; r < n_rows; r++)
		for (dnnl_dim_t c = 0; c < columns; c++)
			rows[r * columns + c] = row[c];
}

/* Adds the column sums of `rows` to sums, row by row, so that the order of additions does not depend on the
 * compiler. */
static void add_column_sums(float *sums, const float *rows, dnnl_dim_t n_rows, dnnl_dim_t columns)
{
	for (dnnl_dim_t r = 0; r < n_rows; r++)
		for (dnnl_dim_t c = 0; c < columns; c++)
			sums[c] += rows[r * columns + c];
}

/* Computes top = bottom * weight^T + bias; shapes: top (batch, N), bottom (batch, M). */
static enum psd_status forward(struct psd_cpu_layer *self, struct psd_error *err)
{
	const struct psd_layer *model = self->model;
	struct inner_product *inner = self->details;
	const dnnl_dim_t batch = self->device->options.batch;
	const float *weight = self->device->parameters[model->first_tensor];
	float *top = self->blob->value;

	PSD_TRY(psd_cpu_op_run(&inner->bottom_in, self, err));
	if (model->settings.inner_product.has_bias)
		fill_rows(top, self->device->parameters[model->first_tensor + 1], batch, inner->columns);
	const dnnl_status_t failure =
		dnnl_sgemm('N', 'T', batch, inner->columns, inner->rows, 1.0f, *inner->bottom_slot, inner->rows, weight,
			   inner->rows, model->settings.inner_product.has_bias ? 1.0f : 0.0f, top, inner->columns);
	return failure ? psd_cpu_fail(self, "product", failure, err) : PSD_OK;
}

/* Computes dweight = dtop^T * bottom, shape (N, M), and dbias[n] = sum of column n of dtop. dweight or dbias may be
 * NULL. */
static dnnl_status_t differentiate_parameters(const struct psd_factors *factors, dnnl_dim_t samples, dnnl_dim_t rows,
					      dnnl_dim_t columns, float *dweight, float *dbias)
{
	if (dbias) {
		memset(dbias, 0, (size_t)columns * sizeof(*dbias));
		add_column_sums(dbias, factors->top_diff, samples, columns);
	}
	if (!dweight)
		return dnnl_success;
	return dnnl_sgemm('T', 'N', columns, rows, samples, 1.0f, factors->top_diff, columns, factors->bottom, rows,
			  0.0f, dweight, rows);
}

static dnnl_dim_t lesser(dnnl_dim_t left, dnnl_dim_t right)
{
	return left < right ? left : right;
}

/* Computes dbottom = dtop * weight, one block of the weight after the other. Rows and columns are those of the stored
 * matrix, shape (N, M). */
static dnnl_status_t multiply_in_blocks(struct inner_product *inner, dnnl_dim_t batch, const float *dtop,
					const float *weight, float *dbottom)
{
	const dnnl_dim_t stored_columns = inner->rows, stored_rows = inner->columns;
	float *block = *inner->block_slot;
	dnnl_status_t failure = dnnl_success;

	for (dnnl_dim_t column = 0; column < stored_columns; column += BLOCK_COLUMNS)
		for (dnnl_dim_t row = 0; row < stored_rows && !failure; row += BLOCK_ROWS) {
			const dnnl_dim_t n_columns = lesser(BLOCK_COLUMNS, stored_columns - column);
			const dnnl_dim_t n_rows = lesser(BLOCK_ROWS, stored_rows - row);

			for (dnnl_dim_t r = 0; r < n_rows; r++)
				memcpy(block + r * BLOCK_STRIDE, weight + (row + r) * stored_columns + column,
				       (size_t)n_columns * sizeof(*block));
			failure = dnnl_sgemm('N', 'N', batch, n_columns, n_rows, 1.0f, dtop + row, stored_rows, block,
					     BLOCK_STRIDE, row ? 1.0f : 0.0f, dbottom + column, stored_columns);
		}
	return failure;
}

/* Computes dbottom = dtop * weight; shapes: dbottom (batch, M), dtop (batch, N), weight (N, M). */
static enum psd_status differentiate_bottom(struct psd_cpu_layer *self, const float *dtop, struct psd_error *err)
{
	struct inner_product *inner = self->details;
	struct psd_cpu_blob *in = psd_cpu_input(self, 0);
	const float *weight = self->device->parameters[self->model->first_tensor];
	dnnl_status_t failure;

	psd_cpu_share_begin(self, in);
	if (inner->block_slot)
		failure = multiply_in_blocks(inner, self->device->options.batch, dtop, weight, *inner->dbottom_slot);
	else
		failure = dnnl_sgemm('N', 'N', self->device->options.batch, inner->rows, inner->columns, 1.0f, dtop,
				     inner->columns, weight, inner->rows, 0.0f, *inner->dbottom_slot, inner->rows);
	if (failure)
		return psd_cpu_fail(self, "data gradient", failure, err);
	PSD_TRY(psd_cpu_op_run(&inner->dbottom_out, self, err));
	return psd_cpu_share_end(self, in, err);
}

/* Returns the addresses of the layer's factors, valid until its next forward pass. */
static struct psd_factors factors_of(const struct psd_cpu_layer *self)
{
	const struct inner_product *inner = self->details;

	return (struct psd_factors){.top_diff = self->blob->diff, .bottom = *inner->bottom_slot};
}

static enum psd_status backward(struct psd_cpu_layer *self, struct psd_error *err)
{
	const struct psd_layer *model = self->model;
	const struct inner_product *inner = self->details;
	const struct psd_factors factors = factors_of(self);
	const dnnl_status_t failure = differentiate_parameters(
		&factors, self->device->options.batch, inner->rows, inner->columns, self->gradients[0],
		model->settings.inner_product.has_bias ? self->gradients[1] : NULL);

	if (failure)
		return psd_cpu_fail(self, "weight gradient", failure, err);
	return psd_cpu_input(self, 0)->has_diff ? differentiate_bottom(self, factors.top_diff, err) : PSD_OK;
}

enum psd_status psd_cpu_keep_factors(struct psd_device *device, unsigned layer, const struct psd_factors *kept,
				     struct psd_error *err)
{
	const struct psd_cpu_layer *self = &device->layers[layer];
	const struct inner_product *inner = self->details;
	const struct psd_factors from = factors_of(self);
	const size_t batch = device->options.batch;

	(void)err;
	memcpy(kept->top_diff, from.top_diff, batch * (size_t)inner->columns * sizeof(float));
	memcpy(kept->bottom, from.bottom, batch * (size_t)inner->rows * sizeof(float));
	return PSD_OK;
}

enum psd_status psd_cpu_rebuild(struct psd_device *device, const struct psd_factors *factors, uint32_t samples,
				uint32_t rows, uint32_t columns, float *gradient, float *bias_gradient,
				struct psd_error *err)
{
	PSD_TRY(psd_libraries_need(PSD_LIBRARY_ONEDNN, err));
	omp_set_num_threads(
		/* the setting belongs to the calling thread, which may be another one than in forward and backward */
		(int)device->n_threads);
	const dnnl_status_t failure =
		differentiate_parameters(factors, samples, rows, columns, gradient, bias_gradient);
	return failure ? psd_error_set(err, PSD_ERUN, PSD_NOWHERE, "oneDNN does not rebuild a gradient of %u x %u",
				       columns, rows)
		       : PSD_OK;
}

const struct psd_cpu_kind psd_cpu_inner_product = {prepare, forward, backward,
						   .details_bytes = sizeof(struct inner_product), .keeps_diff = true};
