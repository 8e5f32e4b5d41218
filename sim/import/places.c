#include "sim/import/places.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

const char *const psd_role_names[PSD_ROLES] = {
	[PSD_ROLE_NONE] = "not placed",	       [PSD_ROLE_FORWARD] = "forward",
	[PSD_ROLE_BACKWARD] = "backward",      [PSD_ROLE_OPTIMIZER] = "optimizer",
	[PSD_ROLE_COLLECTIVE] = "collectives", [PSD_ROLE_BUCKETS] = "gradient buckets",
	[PSD_ROLE_DATA] = "input data",
};

static const char engine_prefix[] = "autograd::engine::evaluate_function: ";

static bool begins(const char *text, const char *prefix)
{
	return !strncmp(text, prefix, strlen(prefix));
}

/* ---- roles ---- */

/* Beginnings of names that tell the role of a span and of all spans in it. */
static const struct {
	const char *prefix;
	enum psd_role role;
} told[] = {
	{"Optimizer.", PSD_ROLE_OPTIMIZER},
	{"## optimizer", PSD_ROLE_OPTIMIZER},
	{"aten::_fused_adam", PSD_ROLE_OPTIMIZER},
	{"aten::_fused_sgd", PSD_ROLE_OPTIMIZER},
	{"enumerate(DataLoader)", PSD_ROLE_DATA},
	{"## data_load", PSD_ROLE_DATA},
	{"nccl:", PSD_ROLE_COLLECTIVE},
	{"gloo:", PSD_ROLE_COLLECTIVE},
	{"mpi:", PSD_ROLE_COLLECTIVE},
	{"c10d::", PSD_ROLE_COLLECTIVE},
	{"record_param_comms", PSD_ROLE_COLLECTIVE},
	{"torch.distributed.ddp.reducer::", PSD_ROLE_BUCKETS},
	{"torch::distributed::reducer::", PSD_ROLE_BUCKETS},
};

static enum psd_role told_role(const char *name)
{
	for (size_t i = 0; i < sizeof(told) / sizeof(told[0]); i++)
		if (begins(name, told[i].prefix))
			return told[i].role;
	return PSD_ROLE_NONE;
}

bool psd_places_begins_role(const char *name)
{
	return told_role(name) || begins(name, engine_prefix);
}

/* A method of TorchScript is around operators, as a range is. */
static bool is_around(const struct psd_trace_op *op, const char *name)
{
	return op->is_range || !strcmp(name, "forward");
}

static enum psd_role role_in(enum psd_role outer, const struct psd_trace_op *op, const char *name)
{
	const enum psd_role own = told_role(name);

	if (own)
		return own;
	if (outer == PSD_ROLE_OPTIMIZER || outer == PSD_ROLE_DATA || outer == PSD_ROLE_COLLECTIVE)
		return outer;
	if (begins(name, engine_prefix))
		return PSD_ROLE_BACKWARD;
	if (outer)
		return outer;
	return is_around(op, name) ? PSD_ROLE_NONE : PSD_ROLE_FORWARD;
}

/* Ranges of the profiler and of PyTorch's own wrappers name no module. */
static bool is_module(const struct psd_trace_op *op, const char *name)
{
	static const char *const others[] = {
		"ProfilerStep#", "## ", "DistributedDataParallel.", "FullyShardedDataParallel.", "<class", NULL};

	if (!op->is_range || told_role(name))
		return false;
	for (const char *const *other = others; *other; other++)
		if (begins(name, *other))
			return false;
	return true;
}

/* ---- steps ---- */

static int compare_steps(const void *left, const void *right)
{
	const struct psd_trace_step *one = left, *other = right;

	return (one->start_us > other->start_us) - (one->start_us < other->start_us);
}

/* A user's own mark: "step 3", "iteration_3", "Iter#3". */
static bool is_numbered(const char *name)
{
	static const char *const words[] = {"iteration", "iter", "step", NULL};

	for (const char *const *word = words; *word; word++) {
		const size_t length = strlen(*word);
		size_t i = 0;

		while (i < length && tolower((unsigned char)name[i]) == (*word)[i])
			i++;
		if (i < length)
			continue;
		i += strspn(name + i, " _#:-");
		if (name[i] && name[i + strspn(name + i, "0123456789")] == '\0')
			return true;
	}
	return false;
}

/* The profiler's marks; without them the user's. */
static bool is_step(const struct psd_trace *trace, const struct psd_trace_op *op, bool is_users)
{
	const char *name = psd_trace_string(trace, op->name);

	return op->is_range && (is_users ? is_numbered(name) : begins(name, "ProfilerStep#"));
}

static uint32_t count_steps(const struct psd_trace *trace, bool is_users)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < trace->n_ops; i++)
		n += is_step(trace, &trace->ops[i], is_users);
	return n;
}

/* Without marks, one step from the first operator to the last. */
static void add_whole(struct psd_places *places)
{
	const struct psd_trace *trace = places->trace;
	struct psd_trace_step *step = &places->steps[0];
	double end_us = 0;

	step->start_us = trace->ops[0].start_us;
	for (uint32_t i = 0; i < trace->n_ops; i++) {
		const struct psd_trace_op *op = &trace->ops[i];

		step->start_us = op->start_us < step->start_us ? op->start_us : step->start_us;
		end_us = op->start_us + op->dur_us > end_us ? op->start_us + op->dur_us : end_us;
	}
	step->dur_us = end_us - step->start_us;
	places->n_steps = 1;
}

static bool find_steps(struct psd_places *places)
{
	const struct psd_trace *trace = places->trace;
	uint32_t n = count_steps(trace, false);
	const bool is_users = !n;

	n = n ? n : count_steps(trace, true);
	places->steps = calloc(n + (size_t)1, sizeof(*places->steps));
	if (!places->steps)
		return false;
	for (uint32_t i = 0; i < trace->n_ops; i++)
		if (is_step(trace, &trace->ops[i], is_users))
			places->steps[places->n_steps++] = (struct psd_trace_step){.start_us = trace->ops[i].start_us,
										   .dur_us = trace->ops[i].dur_us};
	qsort(places->steps, places->n_steps, sizeof(*places->steps), compare_steps);
	places->has_marks = n > 0;
	if (!n)
		add_whole(places);
	return true;
}

uint32_t psd_places_step(const struct psd_places *places, double us)
{
	uint32_t low = 0, high = places->n_steps;

	while (low < high) {
		const uint32_t middle = low + (high - low) / 2;

		if (places->steps[middle].start_us <= us)
			low = middle + 1;
		else
			high = middle;
	}
	return low && us <= places->steps[low - 1].start_us + places->steps[low - 1].dur_us ? low - 1 : PSD_TRACE_NONE;
}

/* ---- units ---- */

static bool begins_unit(const struct psd_places *places, uint32_t op)
{
	const struct psd_trace *trace = places->trace;
	const uint32_t parent = trace->ops[op].parent;
	const enum psd_role role = places->role_of[op];

	if (!role)
		return false;
	if (role == PSD_ROLE_BACKWARD && begins(psd_trace_string(trace, trace->ops[op].name), engine_prefix))
		return true;
	return parent == PSD_TRACE_NONE || places->role_of[parent] != role || places->unit_of[parent] == PSD_TRACE_NONE;
}

static uint32_t module_of(const struct psd_trace *trace, uint32_t op)
{
	while (op != PSD_TRACE_NONE && !is_module(&trace->ops[op], psd_trace_string(trace, trace->ops[op].name)))
		op = trace->ops[op].parent;
	return op;
}

/* Operators are sorted by thread, and outer ones come first: parents are done before. */
static void find_units(struct psd_places *places)
{
	const struct psd_trace *trace = places->trace;

	for (uint32_t i = 0; i < trace->n_ops; i++) {
		const struct psd_trace_op *op = &trace->ops[i];
		const enum psd_role outer = op->parent == PSD_TRACE_NONE ? PSD_ROLE_NONE : places->role_of[op->parent];

		places->role_of[i] = (uint8_t)role_in(outer, op, psd_trace_string(trace, op->name));
		places->unit_of[i] = PSD_TRACE_NONE;
		if (!begins_unit(places, i)) {
			if (op->parent != PSD_TRACE_NONE && places->role_of[i])
				places->unit_of[i] = places->unit_of[op->parent];
			continue;
		}
		places->unit_of[i] = places->n_units;
		places->units[places->n_units++] = (struct psd_trace_unit){
			.op = i,
			.step = psd_places_step(places, op->start_us),
			.module = module_of(trace, i),
			.forward = PSD_TRACE_NONE,
			.before = PSD_TRACE_NONE,
			.role = places->role_of[i],
		};
	}
}

/* Sorts units by their start, and renumbers those of operators. False: out of memory. */
static const struct psd_places *sorted; /* argument of compare_units() */

static int compare_units(const void *left, const void *right)
{
	const struct psd_trace_unit *one = left, *other = right;
	const double first = sorted->trace->ops[one->op].start_us, second = sorted->trace->ops[other->op].start_us;

	if (first != second)
		return first < second ? -1 : 1;
	return (one->op > other->op) - (one->op < other->op);
}

static bool sort_units(struct psd_places *places)
{
	uint32_t *moved = malloc(((size_t)places->n_units + 1) * sizeof(*moved));

	if (!moved)
		return false;
	for (uint32_t i = 0; i < places->n_units; i++)
		places->units[i].before = i; /* its old number */
	sorted = places;
	if (places->n_units)
		qsort(places->units, places->n_units, sizeof(*places->units), compare_units);
	for (uint32_t i = 0; i < places->n_units; i++) {
		moved[places->units[i].before] = i;
		places->units[i].before = PSD_TRACE_NONE;
	}
	for (uint32_t i = 0; i < places->trace->n_ops; i++)
		if (places->unit_of[i] != PSD_TRACE_NONE)
			places->unit_of[i] = moved[places->unit_of[i]];
	free(moved);
	return true;
}

/* ---- backward to forward ---- */

struct node {
	int64_t sequence;
	double start_us;
	uint32_t unit;
};

static int compare_nodes(const void *left, const void *right)
{
	const struct node *one = left, *other = right;

	if (one->sequence != other->sequence)
		return one->sequence < other->sequence ? -1 : 1;
	if (one->start_us != other->start_us)
		return one->start_us < other->start_us ? -1 : 1;
	return (one->unit > other->unit) - (one->unit < other->unit);
}

/* Unit of the last operator of forward with this number that began before: it made the node. */
static uint32_t find_node(const struct node *nodes, uint32_t n, int64_t sequence, double us)
{
	uint32_t low = 0, high = n;

	while (low < high) {
		const uint32_t middle = low + (high - low) / 2;

		if (nodes[middle].sequence < sequence ||
		    (nodes[middle].sequence == sequence && nodes[middle].start_us <= us))
			low = middle + 1;
		else
			high = middle;
	}
	return low && nodes[low - 1].sequence == sequence ? nodes[low - 1].unit : PSD_TRACE_NONE;
}

static bool pair_directions(struct psd_places *places)
{
	const struct psd_trace *trace = places->trace;
	struct node *nodes = malloc(((size_t)trace->n_ops + 1) * sizeof(*nodes));
	uint32_t n = 0;

	if (!nodes)
		return false;
	for (uint32_t i = 0; i < trace->n_ops; i++)
		if (places->role_of[i] == PSD_ROLE_FORWARD && places->unit_of[i] != PSD_TRACE_NONE &&
		    trace->ops[i].sequence >= 0 &&
		    !(n && nodes[n - 1].sequence == trace->ops[i].sequence && nodes[n - 1].unit == places->unit_of[i]))
			nodes[n++] = (struct node){trace->ops[i].sequence, trace->ops[i].start_us, places->unit_of[i]};
	qsort(nodes, n, sizeof(*nodes), compare_nodes);
	for (uint32_t u = 0; u < places->n_units; u++) {
		struct psd_trace_unit *unit = &places->units[u];
		const struct psd_trace_op *op = &trace->ops[unit->op];

		if (unit->role == PSD_ROLE_BACKWARD && op->sequence >= 0)
			unit->forward = find_node(nodes, n, op->sequence, op->start_us);
		if (unit->forward != PSD_TRACE_NONE && places->units[unit->forward].step != unit->step)
			unit->forward = PSD_TRACE_NONE;
	}
	free(nodes);
	return true;
}

/* The neighbour of a unit: the one of its role that began before, in the same step. Units are in order of start. */
static void find_neighbours(struct psd_places *places)
{
	uint32_t last[PSD_ROLES];

	memset(last, 0xff, sizeof(last));
	for (uint32_t u = 0; u < places->n_units; u++) {
		struct psd_trace_unit *unit = &places->units[u];
		const uint32_t before = last[unit->role];

		if (before != PSD_TRACE_NONE && places->units[before].step == unit->step)
			unit->before = before;
		last[unit->role] = u;
	}
}

/* ---- seconds ---- */

static bool is_collective_kernel(const char *name)
{
	return begins(name, "nccl") || begins(name, "ncclDevKernel") || begins(name, "ncclKernel") ||
	       begins(name, "rccl") || begins(name, "void nccl");
}

/* Copies between host and device outside of backward are of samples. */
static bool is_input_copy(const struct psd_trace_kernel *kernel, const char *name, enum psd_role role)
{
	return kernel->copy == PSD_TRACE_COPY && strstr(name, "HtoD") && (role == PSD_ROLE_FORWARD || !role);
}

static enum psd_role role_of_kernel(const struct psd_places *places, const struct psd_trace_kernel *kernel)
{
	const char *name = psd_trace_string(places->trace, kernel->name);
	const enum psd_role role = kernel->op == PSD_TRACE_NONE ? PSD_ROLE_NONE : places->role_of[kernel->op];

	if (is_collective_kernel(name))
		return PSD_ROLE_COLLECTIVE;
	return is_input_copy(kernel, name, role) ? PSD_ROLE_DATA : role;
}

static void add_kernels(struct psd_places *places)
{
	const struct psd_trace *trace = places->trace;

	for (uint32_t i = 0; i < trace->n_kernels; i++) {
		const struct psd_trace_kernel *kernel = &trace->kernels[i];
		const enum psd_role role = role_of_kernel(places, kernel);
		const double sec = kernel->dur_us / 1e6;
		const double at = kernel->op == PSD_TRACE_NONE ? kernel->start_us : trace->ops[kernel->op].start_us;
		const uint32_t step = psd_places_step(places, at);
		const uint32_t unit = kernel->op == PSD_TRACE_NONE ? PSD_TRACE_NONE : places->unit_of[kernel->op];

		if (unit != PSD_TRACE_NONE && places->units[unit].role == role)
			places->units[unit].sec += sec;
		if (step == PSD_TRACE_NONE) {
			places->outside_sec += sec;
			continue;
		}
		places->steps[step].role_sec[role] += sec;
		places->steps[step].kernel_sec += sec;
	}
}

/* Without kernels operators themselves are the work. A unit inside another one has its time to itself. */
static void add_operators(struct psd_places *places)
{
	const struct psd_trace *trace = places->trace;

	for (uint32_t u = 0; u < places->n_units; u++)
		places->units[u].sec = trace->ops[places->units[u].op].dur_us / 1e6;
	for (uint32_t u = 0; u < places->n_units; u++) {
		const uint32_t parent = trace->ops[places->units[u].op].parent;
		const uint32_t outer = parent == PSD_TRACE_NONE ? PSD_TRACE_NONE : places->unit_of[parent];

		if (outer != PSD_TRACE_NONE)
			places->units[outer].sec -= trace->ops[places->units[u].op].dur_us / 1e6;
	}
	for (uint32_t u = 0; u < places->n_units; u++) {
		struct psd_trace_unit *unit = &places->units[u];

		unit->sec = unit->sec > 0 ? unit->sec : 0;
		if (unit->step == PSD_TRACE_NONE) {
			places->outside_sec += unit->sec;
			continue;
		}
		places->steps[unit->step].role_sec[unit->role] += unit->sec;
		places->steps[unit->step].kernel_sec += unit->sec;
	}
}

/* Union of the kernels' spans, over all streams; kernels are in order of start. */
static void find_busy(struct psd_places *places)
{
	const struct psd_trace *trace = places->trace;
	double end_us = 0;

	for (uint32_t i = 0; i < trace->n_kernels; i++) {
		const struct psd_trace_kernel *kernel = &trace->kernels[i];
		const double from = kernel->start_us > end_us ? kernel->start_us : end_us;
		const double to = kernel->start_us + kernel->dur_us;
		const double at = kernel->op == PSD_TRACE_NONE ? kernel->start_us : trace->ops[kernel->op].start_us;
		const uint32_t step = psd_places_step(places, at);

		if (to > from && step != PSD_TRACE_NONE)
			places->steps[step].busy_sec += (to - from) / 1e6;
		end_us = to > end_us ? to : end_us;
	}
	for (uint32_t s = 0; s < places->n_steps && !trace->n_kernels; s++)
		places->steps[s].busy_sec = places->steps[s].kernel_sec;
}

enum psd_status psd_places_find(struct psd_places *places, const struct psd_trace *trace, struct psd_error *err)
{
	struct psd_places fresh = {.trace = trace, .has_kernels = trace->n_kernels > 0};

	fresh.units = malloc(((size_t)trace->n_ops + 1) * sizeof(*fresh.units));
	fresh.unit_of = malloc(((size_t)trace->n_ops + 1) * sizeof(*fresh.unit_of));
	fresh.role_of = calloc((size_t)trace->n_ops + 1, sizeof(*fresh.role_of));
	bool is_done = fresh.units && fresh.unit_of && fresh.role_of && find_steps(&fresh);
	if (is_done) {
		find_units(&fresh);
		is_done = sort_units(&fresh) && pair_directions(&fresh);
	}
	if (!is_done) {
		psd_places_release(&fresh);
		return psd_out_of_memory(err);
	}
	find_neighbours(&fresh);
	if (fresh.has_kernels)
		add_kernels(&fresh);
	else
		add_operators(&fresh);
	find_busy(&fresh);
	*places = fresh;
	return PSD_OK;
}

void psd_places_release(struct psd_places *places)
{
	free(places->units);
	free(places->unit_of);
	free(places->role_of);
	free(places->steps);
	*places = (struct psd_places){.trace = NULL};
}
