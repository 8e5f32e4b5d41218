#include "sim/import/import.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/sort.h"
#include "engine/base/text.h"
#include "sim/import/shapes.h"

/* A step of this many medians or more is in the tail. */
#define TAIL_FACTOR 1.5
/* Least share of the layers' time by operators of their own. Recorded traces have 97 % and more with their models, and
 * up to 50 % with models of another family. */
#define LEAST_SURE_RATIO 0.5
/* Rate of linear layers where nothing tells of it. */
#define ASSUMED_GEMM_FLOPS 1e12

/* Sorts the values. */
static double median_of(double *values, uint32_t n)
{
	if (!n)
		return 0;
	psd_sort_doubles(values, n);
	return n % 2 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

static double rank_of(const double *sorted, uint32_t n, double ratio)
{
	const uint32_t at = (uint32_t)ceil(ratio * n);

	return n ? sorted[at ? at - 1 : 0] : 0;
}

/* ---- seconds of layers ---- */

/* Seconds of each step, layer and direction. */
struct samples {
	double *sec;   /* [(step * n_layers + layer) * 2 + direction] */
	double *total; /* sum of each step */
	uint32_t n_steps;
	unsigned n_layers;
};

static void add_unit(struct psd_import *import, struct samples *samples, uint32_t u, double *sure_sec, double *near_sec)
{
	const struct psd_trace_unit *unit = &import->places.units[u];
	const uint32_t layer = import->match.layer_of[u];

	if (unit->step == PSD_TRACE_NONE || (unit->role != PSD_ROLE_FORWARD && unit->role != PSD_ROLE_BACKWARD))
		return;
	if (layer == PSD_TRACE_NONE)
		return;
	*(import->match.is_sure[u] ? sure_sec : near_sec) += unit->sec;
	samples->sec[((uint64_t)unit->step * samples->n_layers + layer) * 2 + (unit->role == PSD_ROLE_BACKWARD)] +=
		unit->sec;
	samples->total[unit->step] += unit->sec;
}

static void find_shares(struct psd_import *import, double sure_sec, double near_sec)
{
	double all_sec = 0;

	for (uint32_t s = 0; s < import->places.n_steps; s++) {
		const struct psd_trace_step *step = &import->places.steps[s];

		all_sec += step->kernel_sec;
		for (unsigned role = PSD_ROLE_OPTIMIZER; role < PSD_ROLES; role++)
			sure_sec += step->role_sec[role];
	}
	if (all_sec <= 0)
		return;
	import->sure_ratio = sure_sec / all_sec;
	import->near_ratio = near_sec / all_sec;
	import->loose_ratio = 1 - import->sure_ratio - import->near_ratio;
	import->loose_ratio = import->loose_ratio > 1e-12 ? import->loose_ratio : 0;
}

static void find_spread(struct psd_import_spread *spread, double *totals, uint32_t n)
{
	double sum = 0, squares = 0, slow = 0;
	uint32_t n_usual = 0;

	spread->median = median_of(totals, n);
	spread->p90 = rank_of(totals, n, 0.9);
	spread->p99 = rank_of(totals, n, 0.99);
	spread->most = n ? totals[n - 1] : 0;
	for (uint32_t s = 0; s < n; s++) {
		if (totals[s] >= TAIL_FACTOR * spread->median) {
			slow += totals[s];
			continue;
		}
		sum += totals[s];
		squares += totals[s] * totals[s];
		n_usual++;
	}
	if (n_usual > 1 && sum > 0) {
		const double mean = sum / n_usual, variance = (squares - sum * mean) / (n_usual - 1);

		spread->ratio = variance > 0 ? sqrt(variance) / mean : 0;
	}
	if (n > n_usual && sum > 0) {
		spread->tail_chance_ratio = (double)(n - n_usual) / n;
		spread->tail_factor = slow / (n - n_usual) / (sum / n_usual);
	}
}

/* Medians of each layer, scaled by one factor so that their sum is the median of the steps' sums. */
static void find_layers(struct psd_import *import, const struct samples *samples, double *values)
{
	double sum = 0;

	for (unsigned layer = 0; layer < samples->n_layers; layer++)
		for (unsigned direction = 0; direction < 2; direction++) {
			uint32_t n = 0;

			for (uint32_t s = 0; s < samples->n_steps; s++)
				if (samples->total[s] > 0)
					values[n++] =
						samples->sec[((uint64_t)s * samples->n_layers + layer) * 2 + direction];
			(direction ? import->backward_sec : import->forward_sec)[layer] = median_of(values, n);
			sum += (direction ? import->backward_sec : import->forward_sec)[layer];
		}
	for (unsigned layer = 0; layer < samples->n_layers && sum > 0; layer++) {
		import->forward_sec[layer] *= import->spread.median / sum;
		import->backward_sec[layer] *= import->spread.median / sum;
	}
	import->layers_sec = sum > 0 ? import->spread.median : 0;
}

static void find_medians(struct psd_import *import, double *values)
{
	const struct psd_places *places = &import->places;
	const uint32_t n = places->n_steps;

	for (unsigned role = 0; role < PSD_ROLES; role++) {
		for (uint32_t s = 0; s < n; s++)
			values[s] = places->steps[s].role_sec[role];
		import->role_sec[role] = median_of(values, n);
	}
	for (uint32_t s = 0; s < n; s++)
		values[s] = places->steps[s].kernel_sec;
	import->kernel_sec = median_of(values, n);
	for (uint32_t s = 0; s < n; s++)
		values[s] = places->steps[s].busy_sec;
	import->busy_sec = median_of(values, n);
	for (uint32_t s = 0; s < n; s++)
		values[s] = places->steps[s].dur_us / 1e6;
	import->step_sec = median_of(values, n);
}

static void find_seconds(struct psd_import *import, struct samples *samples, double *values)
{
	double sure_sec = 0, near_sec = 0;
	uint32_t n = 0;

	for (uint32_t u = 0; u < import->places.n_units; u++)
		add_unit(import, samples, u, &sure_sec, &near_sec);
	import->layers_sure_ratio = sure_sec + near_sec > 0 ? sure_sec / (sure_sec + near_sec) : 1;
	find_shares(import, sure_sec, near_sec);
	for (uint32_t s = 0; s < samples->n_steps; s++)
		if (samples->total[s] > 0)
			values[n++] = samples->total[s];
	import->n_steps = n;
	find_spread(&import->spread, values, n);
	find_layers(import, samples, values);
	find_medians(import, values);
}

static enum psd_status sample(struct psd_import *import, struct psd_error *err)
{
	struct samples samples = {.n_steps = import->places.n_steps, .n_layers = import->match.n_layers};
	double *values = calloc(samples.n_steps + (size_t)1, sizeof(*values));
	enum psd_status status = PSD_OK;

	samples.total = calloc(samples.n_steps + (size_t)1, sizeof(*samples.total));
	samples.sec = calloc(((size_t)samples.n_layers * samples.n_steps + 1) * 2, sizeof(*samples.sec));
	import->forward_sec = calloc(samples.n_layers + (size_t)1, sizeof(*import->forward_sec));
	import->backward_sec = calloc(samples.n_layers + (size_t)1, sizeof(*import->backward_sec));
	if (!values || !samples.total || !samples.sec || !import->forward_sec || !import->backward_sec)
		status = psd_out_of_memory(err);
	else
		find_seconds(import, &samples, values);
	free(values);
	free(samples.total);
	free(samples.sec);
	if (!status && !import->n_steps)
		status = psd_error_set(err, PSD_EINVAL, (struct psd_place){.path = import->settings.trace_path},
				       "has no step with seconds of forward or backward, must be a trace of training");
	return status;
}

/* ---- batch and rate ---- */

static const struct psd_trace_op *op_of(const struct psd_import *import, uint32_t unit)
{
	return &import->trace.ops[import->places.units[unit].op];
}

/* First dimension of the input of the first operator with a weight. */
static unsigned find_batch(const struct psd_import *import)
{
	for (uint32_t u = 0; u < import->places.n_units; u++) {
		const struct psd_trace_op *op = op_of(import, u);
		const struct psd_operator_row *row = psd_operator_find(psd_trace_string(&import->trace, op->name));
		const struct psd_shapes shapes = psd_shapes_read(&import->trace, op);
		const unsigned input = row && !strcmp(row->kinds[0], "embedding");

		if (import->places.units[u].role != PSD_ROLE_FORWARD || !psd_operator_has_weight(row) ||
		    shapes.n_inputs <= input || shapes.inputs[input].n_dims < 2)
			continue;
		if (shapes.inputs[input].dims[0] && shapes.inputs[input].dims[0] < (1u << 24))
			return (unsigned)shapes.inputs[input].dims[0];
	}
	return 0;
}

/* Values that a thread of PyTorch's vectorized_elementwise_kernel<4, ...> computes. */
enum { VALUES_OF_THREAD = 4, MOST_VOTES = 64 };

/* Samples by the grid of an elementwise kernel of this layer; 0: it does not tell. */
static unsigned batch_of_kernel(const struct psd_import *import, const struct psd_trace_kernel *kernel)
{
	static const char name[] = "void at::native::vectorized_elementwise_kernel<4,";
	const uint32_t unit = kernel->op == PSD_TRACE_NONE ? PSD_TRACE_NONE : import->places.unit_of[kernel->op];
	uint64_t values, work, batch;

	if (unit == PSD_TRACE_NONE || import->places.units[unit].role != PSD_ROLE_FORWARD ||
	    !import->match.is_sure[unit] || strncmp(psd_trace_string(&import->trace, kernel->name), name, strlen(name)))
		return 0;
	const struct psd_layer *layer = &import->graph.layers[import->match.layer_of[unit]];
	values = (uint64_t)layer->shape.channels * layer->shape.height * layer->shape.width;
	work = kernel->n_threads * VALUES_OF_THREAD;
	if (layer->n_tensors || !values || !work || kernel->n_blocks > UINT32_MAX || work > UINT32_MAX)
		return 0;
	batch = kernel->n_blocks * work / values;
	return batch && batch < (1u << 24) && (batch * values + work - 1) / work == kernel->n_blocks ? (unsigned)batch
												     : 0;
}

/* Without shapes: the number of samples by which most of the model's elementwise layers have their grids. */
static unsigned vote_batch(const struct psd_import *import)
{
	unsigned votes[MOST_VOTES], n = 0, best = 0, n_best = 0;

	for (uint32_t i = 0; i < import->trace.n_kernels && n < MOST_VOTES; i++) {
		const unsigned batch = batch_of_kernel(import, &import->trace.kernels[i]);

		if (batch)
			votes[n++] = batch;
	}
	for (unsigned i = 0; i < n; i++) {
		unsigned n_same = 0;

		for (unsigned j = 0; j < n; j++)
			n_same += votes[j] == votes[i];
		if (n_same > n_best) {
			n_best = n_same;
			best = votes[i];
		}
	}
	return n_best > 1 && 2 * n_best > n ? best : 0;
}

static void choose_batch(struct psd_import *import)
{
	import->batch = import->settings.batch ? import->settings.batch : find_batch(import);
	if (import->batch)
		return;
	import->batch = import->settings.model_path ? vote_batch(import) : 0;
	import->batch_source = import->batch ? PSD_BATCH_GRIDS : PSD_BATCH_UNKNOWN;
	import->batch = import->batch ? import->batch : 1;
}

/* Rate that the model's layers of this arithmetic reach; 0: there are none. */
static double model_rate(const struct psd_import *import, enum psd_arithmetic arithmetic)
{
	double flops = 0, sec = 0;

	for (unsigned i = 0; i < import->graph.n_layers; i++) {
		const struct psd_layer *layer = &import->graph.layers[i];

		if (layer->kind->arithmetic != arithmetic || import->forward_sec[i] <= 0)
			continue;
		flops += (double)layer->forward_flops * import->batch;
		sec += import->forward_sec[i];
	}
	return sec > 0 ? flops / sec : 0;
}

/* Rate of the trace's linear layers, by the shapes of their inputs. */
static double trace_rate(const struct psd_import *import)
{
	double flops = 0, sec = 0;

	for (uint32_t u = 0; u < import->places.n_units; u++) {
		const struct psd_trace_op *op = op_of(import, u);
		const struct psd_shapes shapes = psd_shapes_read(&import->trace, op);

		if (import->places.units[u].role != PSD_ROLE_FORWARD || import->places.units[u].sec <= 0 ||
		    strcmp(psd_trace_string(&import->trace, op->name), "aten::linear") != 0 || shapes.n_inputs < 2)
			continue;
		flops += 2.0 * (double)shapes.inputs[0].elements * (double)shapes.inputs[1].dims[0];
		sec += import->places.units[u].sec;
	}
	return sec > 0 ? flops / sec : 0;
}

static void find_rate(struct psd_import *import)
{
	import->gemm_source = "reached by the linear layers";
	import->gemm_flops_per_sec = import->settings.model_path ? model_rate(import, PSD_ARITHMETIC_GEMM) : 0;
	if (import->gemm_flops_per_sec <= 0)
		import->gemm_flops_per_sec = trace_rate(import);
	if (import->gemm_flops_per_sec <= 0 && import->settings.model_path) {
		import->gemm_source = "reached by the convolutions";
		import->gemm_flops_per_sec = model_rate(import, PSD_ARITHMETIC_CONV);
	}
	if (import->gemm_flops_per_sec <= 0) {
		import->gemm_source = "assumed, the trace does not tell it";
		import->gemm_flops_per_sec = ASSUMED_GEMM_FLOPS;
	}
}

/* ---- buckets ---- */

static bool is_all_reduce(const char *name)
{
	return strstr(name, "allreduce") || strstr(name, "all_reduce");
}

/* Layer of the last gradient that began before, in the same step; PSD_TRACE_NONE: none. */
static uint32_t layer_before(const struct psd_import *import, uint32_t step, double us)
{
	uint32_t layer = PSD_TRACE_NONE;

	for (uint32_t u = 0; u < import->places.n_units; u++) {
		const struct psd_trace_unit *unit = &import->places.units[u];

		if (import->trace.ops[unit->op].start_us > us)
			break;
		if (unit->role == PSD_ROLE_BACKWARD && unit->step == step)
			layer = import->match.layer_of[u];
	}
	return layer;
}

/* Gives the values of the all-reduces of the last step to the layers whose gradients complete them. Others than those
 * of gradients have few values. */
static void find_buckets(struct psd_import *import)
{
	const struct psd_trace *trace = &import->trace;
	const uint32_t last = import->places.n_steps - 1;

	for (uint32_t i = 0; i < trace->n_ops; i++) {
		const struct psd_trace_op *op = &trace->ops[i];
		const struct psd_trace_collective *told;
		uint32_t layer;

		if (op->collective == PSD_TRACE_NONE || op->is_range ||
		    psd_places_step(&import->places, op->start_us) != last)
			continue;
		told = &trace->collectives[op->collective];
		if (told->elements >= UINT64_C(1) << 40 || !is_all_reduce(psd_trace_string(trace, told->name)))
			continue;
		layer = layer_before(import, last, op->start_us);
		if (layer != PSD_TRACE_NONE)
			import->bucket_elements[layer] += told->elements;
	}
}

/* Recurrent operators have their weights in a list. */
static void find_lists(struct psd_import *import)
{
	for (unsigned layer = 0; layer < import->match.n_layers; layer++) {
		const struct psd_trace_op *op = op_of(import, import->match.seen[layer].unit);
		const struct psd_shapes shapes = psd_shapes_read(&import->trace, op);
		const uint64_t elements =
			psd_operator_list_parameters(psd_trace_string(&import->trace, op->name), &shapes);

		import->bucket_elements[layer] = elements < UINT64_C(1) << 40 ? elements : 0;
	}
}

static enum psd_status add_buckets(struct psd_import *import, struct psd_error *err)
{
	import->bucket_elements = calloc(import->match.n_layers + (size_t)1, sizeof(*import->bucket_elements));
	if (!import->bucket_elements)
		return psd_out_of_memory(err);
	if (import->trace.has_dims)
		find_lists(import);
	else
		find_buckets(import);
	return PSD_OK;
}

/* ---- the whole ---- */

/* Refuses a model of other layers than those of the trace: most time would be of neighbours. */
static enum psd_status check_model(const struct psd_import *import, struct psd_error *err)
{
	const struct psd_match *match = &import->match;
	struct psd_text silent = {.bytes = NULL};

	if (!import->settings.model_path || import->layers_sure_ratio >= LEAST_SURE_RATIO)
		return PSD_OK;
	if (match->n_silent > 0)
		psd_text_add(&silent, "; %u of its layers with parameters have no operator, the first is '%s'",
			     match->n_silent, import->graph.layers[match->silent].name);
	psd_error_set(err, PSD_EINVAL, (struct psd_place){.path = import->settings.trace_path},
		      "only %.1f %% of the time is of operators that belong to layers of '%s', must be %.0f %% or more "
		      "for the model of the trace%s",
		      100 * import->layers_sure_ratio, import->settings.model_path, 100 * LEAST_SURE_RATIO,
		      silent.bytes ? silent.bytes : "");
	psd_text_release(&silent);
	return PSD_EINVAL;
}

static enum psd_status make_match(struct psd_import *import, struct psd_error *err)
{
	if (!import->settings.model_path)
		return psd_match_alone(&import->match, &import->places, err);
	PSD_TRY(psd_graph_load(&import->graph, import->settings.model_path, err));
	return psd_match_graph(&import->match, &import->places, &import->graph, import->settings.trace_path, err);
}

enum psd_status psd_import_make(struct psd_import *import, const struct psd_import_settings *settings,
				struct psd_error *err)
{
	*import = (struct psd_import){.settings = *settings};
	PSD_TRY(settings->trace_bytes ? psd_trace_parse(&import->trace, settings->trace_path, settings->trace_bytes,
							settings->trace_length, err)
				      : psd_trace_read(&import->trace, settings->trace_path, err));
	PSD_TRY(psd_places_find(&import->places, &import->trace, err));
	PSD_TRY(make_match(import, err));
	choose_batch(import);
	PSD_TRY(sample(import, err));
	PSD_TRY(check_model(import, err));
	find_rate(import);
	return settings->model_path ? PSD_OK : add_buckets(import, err);
}

void psd_import_release(struct psd_import *import)
{
	free(import->forward_sec);
	free(import->backward_sec);
	free(import->bucket_elements);
	psd_match_release(&import->match);
	psd_graph_release(&import->graph);
	psd_places_release(&import->places);
	psd_trace_release(&import->trace);
	*import = (struct psd_import){.batch = 0};
}
