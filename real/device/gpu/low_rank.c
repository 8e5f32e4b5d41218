/* Low-rank compression on the GPU, as real/device/low_rank.c on the processor. A launch handles several tensors. cuBLAS
 * computes the large products, one by one. */
#include "real/device/gpu/gpu.h"

/* ---- tensors in order ---- */

/* Addresses of the values of the current tensor. */
struct cursor {
	const struct psd_low_rank_tensor *tensor;
	float *residual, *left, *right;
};

static struct cursor first_tensor(const struct psd_low_rank_work *work)
{
	return (struct cursor){work->tensors, work->residual, work->left, work->right};
}

static bool is_there(const struct psd_low_rank_work *work, const struct cursor *at)
{
	return at->tensor < work->tensors + work->n_tensors;
}

static bool is_matrix(const struct cursor *at)
{
	return at->tensor->shape.rows > 0;
}

static void move_on(struct cursor *at, uint32_t rank)
{
	const struct psd_low_rank_tensor *tensor = at->tensor++;

	at->residual += tensor->elements;
	at->left += psd_low_rank_left_values(tensor->shape, tensor->elements, rank);
	at->right += (uint64_t)tensor->shape.columns * rank;
}

/* ---- copies and sums of tensors, those of a launch at a time ---- */

struct moves {
	struct psd_gpu_low_rank_move run;
	unsigned n;
};

static enum psd_status begin_moves(struct psd_device *device, struct moves *moves, struct psd_error *err)
{
	const uint64_t n_units = moves->n ? moves->run.spans[moves->n - 1].end : 0;

	moves->n = 0;
	return psd_gpu_run_low_rank_move(device, &moves->run, n_units * PSD_GPU_PARTS, err);
}

static enum psd_status add_move(struct psd_device *device, struct moves *moves, struct psd_gpu_move_span span,
				struct psd_error *err)
{
	const uint64_t n_units = (span.elements + PSD_GPU_MOVE_UNIT - 1) / PSD_GPU_MOVE_UNIT;

	span.end = (uint32_t)n_units + (moves->n ? moves->run.spans[moves->n - 1].end : 0);
	moves->run.spans[moves->n++] = span;
	return moves->n == PSD_GPU_MOVE_SPANS ? begin_moves(device, moves, err) : PSD_OK;
}

/* Begins to add the gradients to the residual; gradients of uncompressed tensors are copied to `left`. */
static enum psd_status gather(struct psd_device *device, const struct psd_low_rank_work *work, struct psd_error *err)
{
	struct moves moves = {.n = 0};

	for (struct cursor at = first_tensor(work); is_there(work, &at); move_on(&at, work->rank))
		PSD_TRY(add_move(device, &moves,
				 (struct psd_gpu_move_span){.to = is_matrix(&at) ? at.residual : at.left,
							    .from = at.tensor->gradient,
							    .elements = at.tensor->elements,
							    .adds = is_matrix(&at)},
				 err));
	return begin_moves(device, &moves, err);
}

/* Begins to copy the sums of uncompressed tensors from `left` to their gradients. */
static enum psd_status arrive(struct psd_device *device, const struct psd_low_rank_work *work, struct psd_error *err)
{
	struct moves moves = {.n = 0};

	for (struct cursor at = first_tensor(work); is_there(work, &at); move_on(&at, work->rank))
		if (!is_matrix(&at))
			PSD_TRY(add_move(device, &moves,
					 (struct psd_gpu_move_span){.to = at.tensor->gradient,
								    .from = at.left,
								    .elements = at.tensor->elements},
					 err));
	return begin_moves(device, &moves, err);
}

/* ---- kernels for several matrices in a launch ---- */

typedef enum psd_status launch_fn(struct psd_device *device, const struct psd_gpu_matrices *of, struct psd_error *err);

static uint32_t most_matrices(uint32_t rank)
{
	return (uint32_t)psd_least(PSD_GPU_MATRICES, PSD_GPU_SQUARES / (rank * rank));
}

static struct psd_gpu_matrices no_matrices(const struct psd_device *device, uint32_t rank)
{
	return (struct psd_gpu_matrices){.rank = rank,
					 .n_pairs = rank * (rank + 1) / 2,
					 .found = device->scratch->matrices.found,
					 .parts = device->scratch->matrices.parts,
					 .products = device->scratch->matrices.products,
					 .factor = device->scratch->matrices.factor,
					 .inverse = device->scratch->matrices.inverse};
}

/* Returns the number of lanes of a matrix: about one for each 16 rows, but no more than fit into a launch. */
static uint32_t count_lanes(const struct psd_gpu_matrices *of, uint32_t rows)
{
	const uint32_t room = PSD_GPU_PRODUCT_PARTS / most_matrices(of->rank) / of->n_pairs;

	return (uint32_t)psd_least(psd_least(PSD_GPU_PRODUCT_LANES, room), rows / 16 + 1);
}

static void add_matrix(struct psd_gpu_matrices *of, const struct cursor *at)
{
	const struct psd_low_rank_shape shape = at->tensor->shape;
	const struct psd_gpu_matrix *last = of->n ? &of->matrices[of->n - 1] : NULL;
	const uint32_t n_lanes = count_lanes(of, shape.rows);

	of->matrices[of->n++] = (struct psd_gpu_matrix){
		.left = at->left,
		.right = at->right,
		.rows = shape.rows,
		.columns = shape.columns,
		.number = at->tensor->number,
		.n_lanes = n_lanes,
		.parts_end = (last ? last->parts_end : 0) + (uint64_t)n_lanes * of->n_pairs,
		.rows_end = (last ? last->rows_end : 0) + shape.rows,
	};
}

/* Calls a function for successive launches, each with as many matrices as fit. */
static enum psd_status for_launches(struct psd_device *device, const struct psd_low_rank_work *work, launch_fn *launch,
				    struct psd_error *err)
{
	struct psd_gpu_matrices of = no_matrices(device, work->rank);

	for (struct cursor at = first_tensor(work); is_there(work, &at); move_on(&at, work->rank)) {
		if (is_matrix(&at))
			add_matrix(&of, &at);
		if (of.n == most_matrices(work->rank)) {
			PSD_TRY(launch(device, &of, err));
			of.n = 0;
		}
	}
	return of.n == 0 ? PSD_OK : launch(device, &of, err);
}

/* Begins to overwrite rows of right matrices that are all zero by starting values. */
static enum psd_status start_rows(struct psd_device *device, const struct psd_gpu_matrices *of, struct psd_error *err)
{
	const uint64_t n_indices = (uint64_t)of->n * of->rank * PSD_GPU_PARTS;

	PSD_TRY(psd_gpu_run_low_rank_look(device, of, n_indices, err));
	return psd_gpu_run_low_rank_start(device, of, n_indices, err);
}

static enum psd_status find_products(struct psd_device *device, const struct psd_gpu_matrices *of,
				     struct psd_error *err)
{
	PSD_TRY(psd_gpu_run_low_rank_products(device, of, of->matrices[of->n - 1].parts_end, err));
	return psd_gpu_run_low_rank_reduce(device, of, (uint64_t)of->n * of->n_pairs, err);
}

/* Begins to compute the Cholesky factors, with a launch for each row, since a row needs the rows above it. */
static enum psd_status find_factors(struct psd_device *device, const struct psd_gpu_matrices *of, struct psd_error *err)
{
	for (uint32_t row = 0; row < of->rank; row++)
		PSD_TRY(psd_gpu_run_low_rank_factor(device, &(struct psd_gpu_low_rank_factor){*of, row},
						    (uint64_t)of->n * (of->rank - row), err));
	return PSD_OK;
}

static enum psd_status make_orthonormal(struct psd_device *device, const struct psd_gpu_matrices *of,
					struct psd_error *err)
{
	PSD_TRY(find_products(device, of, err));
	PSD_TRY(find_factors(device, of, err));
	PSD_TRY(psd_gpu_run_low_rank_inverse(device, of, (uint64_t)of->n * of->rank, err));
	return psd_gpu_run_low_rank_basis(device, of, of->matrices[of->n - 1].rows_end, err);
}

/* ---- products of one matrix ---- */

typedef enum psd_status product_fn(struct psd_device *device, const struct cursor *at, uint32_t rank,
				   struct psd_error *err);

static enum psd_status for_matrices(struct psd_device *device, const struct psd_low_rank_work *work,
				    product_fn *multiply, struct psd_error *err)
{
	for (struct cursor at = first_tensor(work); is_there(work, &at); move_on(&at, work->rank))
		if (is_matrix(&at))
			PSD_TRY(multiply(device, &at, work->rank, err));
	return PSD_OK;
}

/* Returns the product result = left * right for one tensor. */
static struct psd_gpu_product expansion(const struct cursor *at, uint32_t rank, float *result)
{
	return (struct psd_gpu_product){.left = psd_gpu_floats(at->left),
					.right = psd_gpu_floats(at->right),
					.result = psd_gpu_floats(result),
					.rows = at->tensor->shape.rows,
					.columns = at->tensor->shape.columns,
					.depth = rank,
					.is_exact = true,
					.alpha = 1.0f};
}

static enum psd_status project(struct psd_device *device, const struct cursor *at, uint32_t rank, struct psd_error *err)
{
	const struct psd_gpu_product product = {.left = psd_gpu_floats(at->residual),
						.right = psd_gpu_floats(at->right),
						.result = psd_gpu_floats(at->left),
						.rows = at->tensor->shape.rows,
						.columns = rank,
						.depth = at->tensor->shape.columns,
						.is_right_transposed = true,
						.is_exact = true,
						.alpha = 1.0f};

	return psd_gpu_multiply_matrices(device, &product, false, err);
}

static enum psd_status fit(struct psd_device *device, const struct cursor *at, uint32_t rank, struct psd_error *err)
{
	const struct psd_gpu_product product = {.left = psd_gpu_floats(at->left),
						.right = psd_gpu_floats(at->residual),
						.result = psd_gpu_floats(at->right),
						.rows = rank,
						.columns = at->tensor->shape.columns,
						.depth = at->tensor->shape.rows,
						.is_left_transposed = true,
						.is_exact = true,
						.alpha = 1.0f};
	struct psd_gpu_product found = expansion(at, rank, at->residual);

	PSD_TRY(psd_gpu_multiply_matrices(device, &product, false, err));
	found.alpha = -1.0f;
	found.adds = true;
	return psd_gpu_multiply_matrices(device, &found, false, err);
}

static enum psd_status expand(struct psd_device *device, const struct cursor *at, uint32_t rank, struct psd_error *err)
{
	const struct psd_gpu_product product = expansion(at, rank, at->tensor->gradient);

	return psd_gpu_multiply_matrices(device, &product, false, err);
}

/* ---- slots ---- */

enum psd_status psd_gpu_kernel_project(struct psd_device *device, const struct psd_low_rank_work *work,
				       struct psd_error *err)
{
	PSD_TRY(gather(device, work, err));
	PSD_TRY(for_launches(device, work, start_rows, err));
	return for_matrices(device, work, project, err);
}

enum psd_status psd_gpu_kernel_fit(struct psd_device *device, const struct psd_low_rank_work *work,
				   struct psd_error *err)
{
	PSD_TRY(for_launches(device, work, make_orthonormal, err));
	return for_matrices(device, work, fit, err);
}

enum psd_status psd_gpu_kernel_expand(struct psd_device *device, const struct psd_low_rank_work *work,
				      struct psd_error *err)
{
	PSD_TRY(arrive(device, work, err));
	return for_matrices(device, work, expand, err);
}
