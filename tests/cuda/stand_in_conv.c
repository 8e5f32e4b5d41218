/* cuDNN's convolutions in the stand-in: forward, towards the data, towards the filter, by one nest of loops. Engines
 * differ in what cuDNN says of them: memory, how exact they are, and whether equal input gives equal bits. Refuses more
 * than two axes of maps, and true half precision. */
#define _GNU_SOURCE
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "tests/cuda/stand_in.h"
#include "tests/cuda/stand_in_backend.h"
#include "tests/cuda/stand_in_parts.h"

struct way {
	size_t pad_h, pad_w, stride_h, stride_w, dilation_h, dilation_w, groups;
	bool is_flipped; /* a convolution as mathematics has it */
};

struct convolution {
	struct way way;
	enum psd_stand_in_direction direction;
	struct psd_stand_in_tensor x, w, y;
	double alpha, beta;
	int64_t engine;
	unsigned notes; /* numerical notes of the engine */
	void *workspace;
	size_t workspace_bytes;
};

/* A set of notes. */
#define NOTE(name) (1U << CUDNN_NUMERICAL_NOTE_##name)

/* ---- computing ---- */

struct arrays {
	double *x, *w, *y;
};

/* Columns of the output for which a filter's column is inside the data: from first on, below end. */
static void columns_inside(const struct convolution *conv, size_t filter_column, size_t *first, size_t *end)
{
	const size_t shift = filter_column * conv->way.dilation_w, pad = conv->way.pad_w, stride = conv->way.stride_w;
	const size_t wide = conv->x.layout.w + pad;

	*first = shift >= pad ? 0 : (pad - shift + stride - 1) / stride;
	*end = shift >= wide ? 0 : (wide - shift - 1) / stride + 1;
	if (*end > conv->y.layout.w)
		*end = conv->y.layout.w;
}

/* Returns a sum in four parts: one part alone waits for each addition. */
static double row_product(const double *x, size_t stride, const double *y, size_t n)
{
	double sums[4] = {0};
	size_t i = 0;

	for (; i + 4 <= n; i += 4)
		for (size_t k = 0; k < 4; k++)
			sums[k] += x[(i + k) * stride] * y[i + k];
	for (; i < n; i++)
		sums[0] += x[i * stride] * y[i];
	return sums[0] + sums[1] + sums[2] + sums[3];
}

/* The first n columns of one row of the output with one value of the filter. */
static void add_row(enum psd_stand_in_direction direction, double *restrict x, size_t stride, double *restrict w,
		    double *restrict y, size_t n)
{
	const double weight = *w;

	switch (direction) {
	case PSD_STAND_IN_TO_OUTPUT:
		for (size_t i = 0; i < n; i++)
			y[i] += weight * x[i * stride];
		break;
	case PSD_STAND_IN_TO_DATA:
		for (size_t i = 0; i < n; i++)
			x[i * stride] += weight * y[i];
		break;
	case PSD_STAND_IN_TO_FILTER: *w += row_product(x, stride, y, n); break;
	}
}

/* One map of the data with the part of the filter that makes one map of the output of it. */
static void add_map(const struct convolution *conv, double *x, double *w, double *y)
{
	const struct way *const way = &conv->way;
	const size_t height = conv->w.layout.h, width = conv->w.layout.w;

	for (size_t r = 0; r < height; r++)
		for (size_t s = 0; s < width; s++) {
			const size_t at = way->is_flipped ? (height - 1 - r) * width + width - 1 - s : r * width + s;
			size_t first, end;

			columns_inside(conv, s, &first, &end);
			for (size_t row = 0; row < conv->y.layout.h; row++) {
				const size_t below = row * way->stride_h + r * way->dilation_h; /* padding's start */

				if (below < way->pad_h || below - way->pad_h >= conv->x.layout.h || first >= end)
					continue;
				/* Address of the first column inside, so that no address lies before the map. */
				double *const inside = x + (below - way->pad_h) * conv->x.layout.w +
						       (first * way->stride_w + s * way->dilation_w - way->pad_w);

				add_row(conv->direction, inside, way->stride_w, w + at,
					y + row * conv->y.layout.w + first, end - first);
			}
		}
}

static void add_all(const struct convolution *conv, const struct arrays *of)
{
	const struct psd_stand_in_layout *const x = &conv->x.layout, *const w = &conv->w.layout;
	const struct psd_stand_in_layout *const y = &conv->y.layout;
	const size_t outputs_of_group = y->c / conv->way.groups;

	for (size_t sample = 0; sample < x->n; sample++)
		for (size_t output = 0; output < y->c; output++)
			for (size_t input = 0; input < w->c; input++) {
				const size_t channel = output / outputs_of_group * w->c + input;

				add_map(conv, of->x + (sample * x->c + channel) * x->h * x->w,
					of->w + (output * w->c + input) * w->h * w->w,
					of->y + (sample * y->c + output) * y->h * y->w);
			}
}

/* Inputs are loaded, the result begins at zeros. Tensor cores take less of a float than it has. */
static double *load_or_begin(const struct convolution *conv, const struct psd_stand_in_tensor *tensor, bool is_result)
{
	const size_t n = psd_stand_in_tensor_values(&tensor->layout);
	double *const values = is_result ? psd_stand_in_doubles(n) : psd_stand_in_load(tensor);

	if (values && !is_result && tensor->layout.number == PSD_STAND_IN_FLOAT && conv->notes & NOTE(TENSOR_CORE))
		for (size_t i = 0; i < n; i++)
			values[i] = psd_stand_in_tf32(values[i]);
	return values;
}

static void scale(double *values, size_t n, double ratio)
{
	for (size_t i = 0; i < n; i++)
		values[i] *= ratio;
}

/* The effect of an order of sums that changes from run to run. */
static double disturbance(void)
{
	static atomic_uint n_disturbed;

	return 1 + 0x1p-22 * (atomic_fetch_add_explicit(&n_disturbed, 1, memory_order_relaxed) % 3);
}

/* Notes of coarse engines. Their error here is far beyond the real one, so that nobody takes it for rounding. */
static const unsigned coarse_notes = NOTE(REDUCED_PRECISION_REDUCTION) | NOTE(WINOGRAD_TILE_13x13);
static const double coarse_ratio = 1 + 0x1p-6;

enum { ENGINES = 9 };

static struct engine_use {
	atomic_uint runs;
	unsigned msec;
	bool is_timed;
} own_uses[ENGINES], *uses = own_uses;

void psd_stand_in_count_engines(void)
{
	void *shared = mmap(NULL, sizeof(own_uses), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (shared != MAP_FAILED)
		uses = shared;
}

unsigned psd_stand_in_engine_runs(int engine)
{
	return atomic_load(&uses[engine].runs);
}

void psd_stand_in_set_engine_msec(int engine, unsigned msec)
{
	uses[engine].msec = msec;
	uses[engine].is_timed = true;
	psd_stand_in_spend_nsec(0);
}

static void use_engine(int64_t engine)
{
	struct engine_use *use = &uses[engine];

	atomic_fetch_add(&use->runs, 1);
	if (use->is_timed)
		psd_stand_in_spend_nsec(use->msec * UINT64_C(1000000));
}

static void run_convolution(void *arguments)
{
	const struct convolution *const conv = arguments;
	const enum psd_stand_in_direction to = conv->direction;
	const struct arrays arrays = {.x = load_or_begin(conv, &conv->x, to == PSD_STAND_IN_TO_DATA),
				      .w = load_or_begin(conv, &conv->w, to == PSD_STAND_IN_TO_FILTER),
				      .y = load_or_begin(conv, &conv->y, to == PSD_STAND_IN_TO_OUTPUT)};
	const struct psd_stand_in_tensor *const result = to == PSD_STAND_IN_TO_OUTPUT ? &conv->y
							 : to == PSD_STAND_IN_TO_DATA ? &conv->x
										      : &conv->w;
	double *const values = to == PSD_STAND_IN_TO_OUTPUT ? arrays.y
			       : to == PSD_STAND_IN_TO_DATA ? arrays.x
							    : arrays.w;
	const size_t n = psd_stand_in_tensor_values(&result->layout);

	if (arrays.x && arrays.w && arrays.y &&
	    (conv->workspace_bytes == 0 || psd_stand_in_may_touch(conv->workspace, conv->workspace_bytes))) {
		psd_stand_in_scribble(conv->workspace, conv->workspace_bytes);
		use_engine(conv->engine);
		add_all(conv, &arrays);
		if (conv->notes & NOTE(NONDETERMINISTIC))
			scale(values, n, disturbance());
		if (conv->notes & coarse_notes)
			scale(values, n, coarse_ratio);
		psd_stand_in_store(result, values, conv->alpha, conv->beta);
	}
	free(arrays.y);
	free(arrays.w);
	free(arrays.x);
}

/* ---- conditions ---- */

static size_t output_size(size_t size, size_t filter, size_t pad, size_t stride, size_t dilation)
{
	const size_t wide = size + 2 * pad, span = (filter - 1) * dilation + 1;

	return wide < span ? 0 : (wide - span) / stride + 1;
}

/* Groups are what the filter's channels leave of the data's. */
static struct way way_of(const struct psd_stand_in_conv *conv)
{
	const struct psd_stand_in_how *const how = &conv->how;

	return (struct way){.pad_h = (size_t)how->pads[0],
			    .pad_w = (size_t)how->pads[1],
			    .stride_h = (size_t)how->strides[0],
			    .stride_w = (size_t)how->strides[1],
			    .dilation_h = (size_t)how->dilations[0],
			    .dilation_w = (size_t)how->dilations[1],
			    .groups = conv->x.layout.c / conv->w.layout.c,
			    .is_flipped = how->mode == CUDNN_CONVOLUTION};
}

cudnnStatus_t psd_stand_in_check_conv(const struct psd_stand_in_conv *conv)
{
	const struct psd_stand_in_layout *const x = &conv->x.layout, *const w = &conv->w.layout;
	const struct psd_stand_in_layout *const y = &conv->y.layout;
	const struct way way = way_of(conv);
	const bool does_fit = way.groups > 0 && x->c == w->c * way.groups && w->n % way.groups == 0 && y->n == x->n &&
			      y->c == w->n &&
			      y->h == output_size(x->h, w->h, way.pad_h, way.stride_h, way.dilation_h) &&
			      y->w == output_size(x->w, w->w, way.pad_w, way.stride_w, way.dilation_w);

	return does_fit ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_BAD_PARAM;
}

/* A stride along which there is one value alone says nothing. */
static bool is_in_order(const struct psd_stand_in_layout *layout, bool is_channels_last)
{
	const size_t sizes[4] = {layout->n, layout->c, layout->h, layout->w};
	struct psd_stand_in_layout same = *layout;

	psd_stand_in_set_strides(&same, is_channels_last);
	for (int i = 0; i < 4; i++)
		if (sizes[i] > 1 && layout->strides[i] != same.strides[i])
			return false;
	return true;
}

/* One type, one order: small tensors are in both. cuDNN takes mixtures of orders, too, but a mixture is a mistake. */
static bool is_supported(const struct psd_stand_in_conv *conv)
{
	const struct psd_stand_in_layout *const x = &conv->x.layout, *const w = &conv->w.layout;
	const struct psd_stand_in_layout *const y = &conv->y.layout;

	if (x->number != w->number || x->number != y->number)
		return false;
	for (int is_last = 0; is_last < 2; is_last++)
		if (is_in_order(x, is_last) && is_in_order(w, is_last) && is_in_order(y, is_last))
			return true;
	return false;
}

/* ---- engines ---- */

/* Sets of directions, and of types. */
enum {
	FORWARD = 1 << PSD_STAND_IN_TO_OUTPUT,
	DATA = 1 << PSD_STAND_IN_TO_DATA,
	FILTER = 1 << PSD_STAND_IN_TO_FILTER,
	ALL_DIRECTIONS = FORWARD | DATA | FILTER,
	FLOATS = 1,
	NARROW = 2,
	ALL_TYPES = FLOATS | NARROW
};

/* As cuDNN describes its own; the quickest comes first, here always in this order. In 16 bits all engines but engine 0
 * use tensor cores. */
static const struct row {
	unsigned directions, types;
	struct psd_stand_in_engine engine;
} rows[] = {
	{ALL_DIRECTIONS, ALL_TYPES, {.index = 7, .behaviours = 1U << CUDNN_BEHAVIOR_NOTE_RUNTIME_COMPILATION}},
	{FORWARD, NARROW, {.index = 6, .notes = NOTE(REDUCED_PRECISION_REDUCTION)}},
	{FORWARD, ALL_TYPES, {.index = 5, .notes = NOTE(WINOGRAD) | NOTE(WINOGRAD_TILE_13x13)}},
	{ALL_DIRECTIONS, FLOATS, {.index = 4, .notes = NOTE(TENSOR_CORE), .has_workspace = true}},
	{DATA | FILTER, ALL_TYPES, {.index = 2, .notes = NOTE(NONDETERMINISTIC)}},
	{FORWARD | DATA, ALL_TYPES, {.index = 1, .has_workspace = true, .adds_floats_alone = true}},
	{FILTER, ALL_TYPES, {.index = 1, .has_workspace = true}},
};
static const struct row fallback_rows[] = {
	{DATA | FILTER, ALL_TYPES, {.index = 2, .notes = NOTE(NONDETERMINISTIC)}},
	{ALL_DIRECTIONS, ALL_TYPES, {.index = 0, .notes = NOTE(STRICT_NAN_PROP)}},
};
enum { ROWS = sizeof(rows) / sizeof(rows[0]), FALLBACK_ROWS = sizeof(fallback_rows) / sizeof(fallback_rows[0]) };

static uint64_t more_bytes;
static enum psd_stand_in_estimates estimates;

void psd_stand_in_set_estimates(enum psd_stand_in_estimates how)
{
	psd_stand_in_lock();
	estimates = how;
	psd_stand_in_unlock();
}

void psd_stand_in_set_workspaces(uint64_t bytes)
{
	psd_stand_in_lock();
	more_bytes = bytes;
	psd_stand_in_unlock();
}

static bool is_narrow(const struct psd_stand_in_conv *conv)
{
	return conv->x.layout.number != PSD_STAND_IN_FLOAT;
}

static int list_rows(const struct psd_stand_in_conv *conv, const struct row *from, int n_rows,
		     struct psd_stand_in_engine *listed)
{
	const unsigned direction = 1U << conv->direction, type = is_narrow(conv) ? NARROW : FLOATS;
	int n = 0;

	for (int i = 0; i < n_rows; i++) {
		if (!(from[i].directions & direction) || !(from[i].types & type))
			continue;
		listed[n] = from[i].engine;
		if (is_narrow(conv) && listed[n].index != 0)
			listed[n].notes |= NOTE(TENSOR_CORE);
		n++;
	}
	return n;
}

int psd_stand_in_list_engines(const struct psd_stand_in_conv *conv, cudnnBackendHeurMode_t mode,
			      struct psd_stand_in_engine *listed)
{
	enum psd_stand_in_estimates how;
	int n_untrue, n;

	psd_stand_in_lock();
	how = estimates;
	psd_stand_in_unlock();
	if (!is_supported(conv))
		return 0;
	if (mode == CUDNN_HEUR_MODE_FALLBACK)
		return list_rows(conv, fallback_rows, FALLBACK_ROWS, listed);
	n_untrue = how == PSD_STAND_IN_ESTIMATES_UNPLANNED || how == PSD_STAND_IN_ESTIMATES_UNBEGUN;
	if (n_untrue)
		listed[0] = (struct psd_stand_in_engine){
			.index = 8,
			.notes = is_narrow(conv) ? NOTE(TENSOR_CORE) : 0,
			.refusal = how == PSD_STAND_IN_ESTIMATES_UNBEGUN ? PSD_STAND_IN_BEGUN : PSD_STAND_IN_PLANNED};
	n = n_untrue + list_rows(conv, rows, ROWS, listed + n_untrue);
	for (int i = 0; i < n && how == PSD_STAND_IN_ESTIMATES_UNEQUAL; i++)
		listed[i].notes |= NOTE(NONDETERMINISTIC);
	return n;
}

/* Some memory that depends on the shapes, so that one layer's is too little for another. */
static int64_t workspace_bytes_of(const struct psd_stand_in_conv *conv)
{
	const struct psd_stand_in_layout *const w = &conv->w.layout, *const y = &conv->y.layout;
	uint64_t more;

	psd_stand_in_lock();
	more = more_bytes;
	psd_stand_in_unlock();
	return (int64_t)(sizeof(float) * (w->c * w->h * w->w + y->h * y->w) + more);
}

cudnnStatus_t psd_stand_in_plan_conv(const struct psd_stand_in_config *config, int64_t *workspace_bytes)
{
	const struct psd_stand_in_engine *const engine = &config->engine;

	if (engine->behaviours & 1U << CUDNN_BEHAVIOR_NOTE_RUNTIME_COMPILATION)
		return CUDNN_STATUS_NOT_SUPPORTED_RUNTIME_PREREQUISITE_MISSING;
	if (engine->refusal == PSD_STAND_IN_PLANNED ||
	    (engine->adds_floats_alone && config->conv.beta != 0 && is_narrow(&config->conv)))
		return CUDNN_STATUS_NOT_SUPPORTED;
	*workspace_bytes = engine->has_workspace ? workspace_bytes_of(&config->conv) : 0;
	return CUDNN_STATUS_SUCCESS;
}

/* ---- execution ---- */

/* NULL: it is not in the pack. */
static void *pointer_to(const struct psd_stand_in_pack *pack, const struct psd_stand_in_described *tensor)
{
	for (int64_t i = 0; i < pack->n_ids; i++)
		if (pack->ids[i] == tensor->id)
			return pack->pointers[i];
	return NULL;
}

static cudnnStatus_t check_pointers(const struct convolution *conv)
{
	const void *const pointers[] = {conv->x.values, conv->w.values, conv->y.values, conv->workspace};

	for (int i = 0; i < 3; i++)
		if (!pointers[i])
			return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
	if (!conv->workspace && conv->workspace_bytes > 0)
		return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
	for (int i = 0; i < 4; i++)
		if (!psd_stand_in_suits_dnn(pointers[i]))
			return CUDNN_STATUS_BAD_PARAM_MISALIGNED_POINTER;
	return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t psd_stand_in_convolve(const char *function, cudnnHandle_t handle, const struct psd_stand_in_plan *plan,
				    const struct psd_stand_in_pack *pack)
{
	const struct psd_stand_in_conv *const of = &plan->config.conv;
	const struct convolution conv = {
		.way = way_of(of),
		.direction = of->direction,
		.x = psd_stand_in_tensor(&of->x.layout, pointer_to(pack, &of->x)),
		.w = psd_stand_in_tensor(&of->w.layout, pointer_to(pack, &of->w)),
		.y = psd_stand_in_tensor(&of->y.layout, pointer_to(pack, &of->y)),
		.alpha = of->alpha,
		.beta = of->beta,
		.engine = plan->config.engine.index,
		.notes = plan->config.engine.notes,
		.workspace = pack->workspace,
		.workspace_bytes = (size_t)plan->workspace_bytes,
	};
	const cudnnStatus_t status = check_pointers(&conv);

	if (status != CUDNN_STATUS_SUCCESS)
		return status;
	if (plan->config.engine.refusal == PSD_STAND_IN_BEGUN)
		return CUDNN_STATUS_NOT_SUPPORTED;
	return psd_stand_in_dnn_queue(function, handle, run_convolution, &conv, sizeof(conv));
}
