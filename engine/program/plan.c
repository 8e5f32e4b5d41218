/* Makes the plan: chooses each item's method by the system's rule, its slices and its root. */
#include "engine/program/plan.h"

#include <math.h>
#include <stdlib.h>

#include "engine/document/document.h"
#include "engine/encodings/low_rank.h"
#include "engine/program/choice.h"
#include "engine/program/chunks.h"

/* Limits over all tensors: more would be more operations than a run can hold. */
enum { MOST_SLICES = 100000, MOST_CHUNKS = 100000000 };

unsigned psd_plan_tensor(const struct psd_plan *plan, const struct psd_plan_item *item, unsigned i)
{
	return plan->tensors[item->first + i];
}

bool psd_plan_has_layer(const struct psd_plan *plan, const struct psd_plan_item *item, unsigned layer)
{
	for (unsigned i = 0; i < item->n_tensors; i++)
		if (plan->graph->tensors[psd_plan_tensor(plan, item, i)].layer == layer)
			return true;
	return false;
}

/* ---- buckets: tensors that travel together ---- */

/* Adds the next tensor. A run of several layers has no factors of its own. */
static void add_tensor(struct psd_plan *plan, struct psd_plan_item *item)
{
	const struct psd_tensor *tensor = &plan->graph->tensors[psd_plan_tensor(plan, item, item->n_tensors++)];
	const bool is_one_layer = tensor->layer == plan->graph->tensors[psd_plan_tensor(plan, item, 0)].layer;

	item->layer = tensor->layer;
	item->subject.elements += tensor->elements;
	item->travelling = plan->sparse ? psd_chunks_expected(plan->sparse, item->subject.elements,
							      psd_chunks_evenly(plan->sparse))
					: item->subject.elements;
	if (plan->compress)
		item->n_blocks += psd_block_count(&plan->block, tensor->elements);
	if (plan->low_rank) {
		item->left += psd_low_rank_left(tensor, plan->low_rank);
		item->right += psd_low_rank_right(tensor, plan->low_rank);
		item->n_narrow += psd_low_rank_right(tensor, plan->low_rank) > 0;
	}
	if (tensor->rows == 0 && is_one_layer)
		return;
	item->subject.rows = is_one_layer ? tensor->rows : 0;
	item->subject.columns = is_one_layer ? tensor->columns : 0;
}

/* Backward reaches the last layer first; within a layer the weight's gradient is sent before the bias's. Tensors that
 * stay as they start exchange nothing. */
static void list_tensors(struct psd_plan *plan)
{
	for (unsigned l = plan->graph->n_layers; l-- > 0;)
		for (unsigned i = 0; i < plan->graph->layers[l].n_tensors; i++) {
			const unsigned t = plan->graph->layers[l].first_tensor + i;

			if (plan->graph->tensors[t].rate_ratio != 0.0f)
				plan->tensors[plan->n_tensors++] = t;
		}
}

/* The next tensor travels with those of the item. A bias does so whenever its weight can travel as factors, since it
 * goes with the first of them. */
static bool is_open(const struct psd_plan *plan, const struct psd_plan_item *item, const struct psd_tensor *next)
{
	const struct psd_system *system = plan->system;

	if (next->layer == item->layer &&
	    (system->unit == PSD_UNIT_LAYER || (item->subject.rows > 0 && psd_choice_may_take_factors(system))))
		return true;
	if (item->right > 0)
		return item->left * psd_plan_value_bytes(plan, PSD_BUFFER_LEFT) < plan->fuse_bytes;
	return item->travelling * plan->value_bytes < plan->fuse_bytes;
}

/* Fills in tensors and items, but for their methods, slices and roots, by fuse_bytes. */
static void cut_tensors(struct psd_plan *plan, uint32_t batch)
{
	struct psd_plan_item *item = NULL;

	list_tensors(plan);
	for (unsigned t = 0; t < plan->n_tensors; t++) {
		if (!item || !is_open(plan, item, &plan->graph->tensors[plan->tensors[t]])) {
			item = &plan->items[plan->n_items++];
			*item = (struct psd_plan_item){.first = t,
						       .subject = {.batch = batch, .value_bytes = plan->value_bytes}};
		}
		add_tensor(plan, item);
	}
}

/* ---- slices ---- */

static bool has_tensor(const struct psd_plan *plan, const struct psd_plan_item *item, unsigned tensor)
{
	bool has = false;

	for (unsigned n = 0; n < item->n_tensors && !has; n++)
		has = psd_plan_tensor(plan, item, n) == tensor;
	return has;
}

unsigned psd_plan_buckets(const struct psd_plan *plan)
{
	return plan->n_items > 0 && plan->items[plan->n_items - 1].n_tensors == 0 ? plan->n_items - 1 : plan->n_items;
}

bool psd_plan_is_shared(const struct psd_plan *plan, const struct psd_plan_item *item)
{
	bool is_shared = false;

	for (const struct psd_layer *l = plan->graph->layers; l < plan->graph->layers + plan->graph->n_layers; l++)
		for (unsigned i = 0; i < l->n_shared; i++)
			is_shared = is_shared || has_tensor(plan, item, l->first_tensor + i);
	return is_shared;
}

static bool may_take_turns(const struct psd_plan *plan, const struct psd_plan_item *item)
{
	return plan->layout.workers > 1 && item->n_tensors > 0 && !psd_plan_is_shared(plan, item);
}

bool psd_plan_shares_gradients(const struct psd_plan *plan, const struct psd_plan_item *item)
{
	return item->method->gradient_slots > 0 && may_take_turns(plan, item);
}

bool psd_plan_shares_parameters(const struct psd_plan *plan, const struct psd_plan_item *item)
{
	return item->method->gathers && may_take_turns(plan, item);
}

static uint64_t divided(uint64_t bytes, uint64_t most_bytes)
{
	return bytes == 0 || most_bytes == 0 ? 1 : (bytes - 1) / most_bytes + 1;
}

/* A slice has at least pair_bytes for each shard. All slices of an item are of equal size but for rounding. */
unsigned psd_plan_slices(const struct psd_plan *plan, const struct psd_plan_item *item)
{
	const uint64_t row_bytes = plan->system->pair_bytes * plan->layout.shards;
	const uint64_t slice_bytes = plan->system->slice_bytes > row_bytes ? plan->system->slice_bytes : row_bytes;
	const uint64_t bytes = item->subject.elements * item->subject.value_bytes;
	uint64_t n_slices = 1;

	switch (item->method->slicing) {
	case PSD_SLICED_NEVER: break;
	case PSD_SLICED_ON_DEMAND: n_slices = divided(bytes, plan->system->pipeline_bytes); break;
	case PSD_SLICED: n_slices = divided(bytes, slice_bytes); break;
	}
	return n_slices > MOST_SLICES ? MOST_SLICES + 1 : (unsigned)n_slices;
}

static unsigned fan_in_of(const struct psd_layout *layout, const struct psd_method *method)
{
	return psd_payload_fan_in(
		&(struct psd_payload){.collective = method->collective, .elements = 1, .value_bytes = 1}, layout);
}

static struct psd_rates rates_of(const struct psd_plan_input *input, unsigned fan_in)
{
	const struct psd_system *system = input->system;
	const double budget_bps = psd_cost_budget_bps(system);
	struct psd_rates rates = psd_rates_make(&system->host, input->network, input->link_bps, fan_in,
						input->costs->gemm_flops_per_sec);

	rates.send_bps = fmin(rates.send_bps, budget_bps);
	rates.receive_bps = fmin(rates.receive_bps, budget_bps);
	rates.agree_sec = system->schedule != PSD_SCHEDULE_SEQUENTIAL ? system->host.agree_sec : 0.0;
	return rates;
}

/* Returns the encoding of values that travel; on a single host nothing travels, so it is fp32. */
static const struct psd_encoding *wire_of(const struct psd_plan_input *input)
{
	return psd_layout_hosts(&input->layout) > 1 ? psd_encodings[input->system->wire] : &psd_encoding_fp32;
}

static enum psd_status check_wire(const struct psd_plan *plan, bool is_half, struct psd_error *err)
{
	if (!plan->wire->is_lossy || !is_half)
		return PSD_OK;
	return psd_error_set(err, PSD_EINVAL, psd_system_key_at(plan->system, "wire"),
			     "'wire' of system '%s' is '%s', must be 'fp32' where 'precision' is 'mixed' or 'bf16'",
			     plan->system->name, plan->wire->name);
}

static enum psd_status check_method(const struct psd_plan *plan, const struct psd_method *method, struct psd_error *err)
{
	if (psd_choice_takes_wire(plan, method))
		return PSD_OK;
	return psd_error_set(err, PSD_EINVAL, psd_system_key_at(plan->system, "wire"),
			     plan->async
				     ? "'wire' of system '%s' is '%s', must be 'fp32' in an 'asynchronous' system"
				     : "'wire' of system '%s' is '%s', must be 'fp32' where tensors go by method '%s'",
			     plan->system->name, plan->wire->name, method->name);
}

/* Refuses plans in which workers have no whole sum of gradients before they update. */
static enum psd_status check_clip(const struct psd_plan *plan, const struct psd_plan_input *input,
				  struct psd_error *err)
{
	const bool is_before = plan->compress && plan->compress->momentum == PSD_MOMENTUM_BEFORE;
	const char *what = plan->managed  ? "is 'managed'"
			   : plan->sparse ? "is 'sparse'"
			   : is_before	  ? "has 'momentum: before'"
			   : plan->local  ? "has 'local_sgd'"
					  : NULL;

	for (unsigned i = 0; i < plan->n_items && !what; i++)
		what = plan->items[i].method->has_root ? "updates matrices at servers" : NULL;
	if (!plan->clips || !what)
		return PSD_OK;
	return psd_error_set(err, PSD_EINVAL, psd_node_option_at(input->optimiser, "clip", plan->system->at),
			     "system '%s' %s, 'clip' of the optimiser needs whole gradients at workers",
			     plan->system->name, what);
}

/* An update by one worker's gradient has no norm of those of others. */
static enum psd_status check_reads(const struct psd_plan *plan, const struct psd_plan_input *input,
				   struct psd_error *err)
{
	const char *what = input->is_adaptive	? "optimiser is 'adamw'"
			   : input->is_by_norms ? "optimiser is 'lars'"
			   : plan->clips	? "optimiser has 'clip'"
						: NULL;

	if ((!plan->reads_stale && !plan->async) || !what)
		return PSD_OK;
	const struct psd_place at = psd_system_key_at(plan->system, plan->async ? "asynchronous" : "reads");
	const char *key = input->is_adaptive || input->is_by_norms ? "kind" : "clip";
	return psd_error_set(err, PSD_EINVAL, psd_node_option_at(input->optimiser, key, at),
			     "system '%s' %s, and its %s: the optimiser must be 'sgd' without 'clip'",
			     plan->system->name, plan->async ? "is 'asynchronous'" : "has 'reads: stale'", what);
}

/* Nodes that work together need as many workers each. Returns the key of a system with such a method, and its value;
 * NULL: none. */
static const char *needs_even_nodes(const struct psd_plan *plan, const char **value)
{
	const struct psd_method *method = plan->n_items > 0 ? plan->items[0].method : NULL;

	*value = "node";
	if (method && method->updates == PSD_OWNER_MEMBERS)
		return "shard_over";
	*value = "nccl-two-level";
	return method && method->collective == &psd_nccl_two_level ? "sync" : NULL;
}

static enum psd_status check_even(const struct psd_plan *plan, struct psd_error *err)
{
	const struct psd_layout *layout = &plan->layout;
	const char *value, *key = layout->is_uneven ? needs_even_nodes(plan, &value) : NULL;
	unsigned k = 1;

	if (!key)
		return PSD_OK;
	while (layout->kinds[k].workers == layout->kinds[0].workers)
		k++;
	return psd_error_set(err, PSD_EINVAL, psd_system_key_at(plan->system, key),
			     "system '%s' has '%s: %s', which needs as many workers on each node: entry %u of "
			     "'cluster.groups' has %u on a node, entry %u has %u",
			     plan->system->name, key, value, layout->kinds[0].group, layout->kinds[0].workers,
			     layout->kinds[k].group, layout->kinds[k].workers);
}

static enum psd_status check_members(const struct psd_plan *plan, struct psd_error *err)
{
	const struct psd_layout *layout = &plan->layout;
	const bool has_parts = plan->n_items > 0 && plan->items[0].method->updates == PSD_OWNER_MEMBERS;

	if (!has_parts || layout->workers == 1 ||
	    (layout->workers_per_node > 1 && layout->workers % layout->workers_per_node == 0))
		return PSD_OK;
	return psd_error_set(err, PSD_EINVAL, psd_system_key_at(plan->system, "shard_over"),
			     "system '%s' has 'shard_over: node' and %u workers, %u on a node: each node must have the "
			     "same number of workers, at least two; or leave 'shard_over' out",
			     plan->system->name, layout->workers, layout->workers_per_node);
}

/* Bytes are counted in 64 bits, over all nodes and all operations of an iteration. */
static enum psd_status check_size(const struct psd_plan *plan, const struct psd_plan_input *input,
				  struct psd_error *err)
{
	const double hosts = psd_layout_hosts(&plan->layout);
	double values = 0.0;
	for (unsigned t = 0; t < input->graph->n_tensors; t++) {
		const struct psd_tensor *tensor = &input->graph->tensors[t];
		values += (double)tensor->elements +
			  (double)input->batch * plan->micro_batches * ((double)tensor->rows + (double)tensor->columns);
	}
	if (8.0 * values * plan->value_bytes * hosts * plan->layout.workers_per_node < 9e18)
		return PSD_OK;
	return psd_error_set(err, PSD_EINVAL, input->system->at,
			     "system '%s' on %u workers would send more bytes in an iteration than 64 bits can count",
			     input->system->name, plan->layout.workers);
}

static enum psd_status settle_items(struct psd_plan *plan, const struct psd_plan_input *input, struct psd_error *err)
{
	const bool has_incast = input->system->host.incast_ratio > 0.0;
	unsigned next_root = 0, most_senders = 0;
	uint64_t all_slices = 0;

	for (unsigned i = 0; i < plan->n_items; i++) {
		struct psd_plan_item *item = &plan->items[i];
		enum psd_status status = psd_choice_make(&item->method, plan, item, err);
		if (status == PSD_OK)
			status = check_method(plan, item->method, err);
		if (status != PSD_OK)
			return status;
		item->n_slices = psd_plan_slices(plan, item);
		all_slices += item->n_slices;
		if (all_slices > MOST_SLICES)
			return psd_error_set(
				err, PSD_EINVAL, plan->system->at,
				"'%s' of system '%s' cuts its tensors into more than %u parts, must be larger",
				item->method->slicing == PSD_SLICED_ON_DEMAND ? "pipeline" : "slice",
				plan->system->name, (unsigned)MOST_SLICES);
		if (item->method->has_root)
			item->root = psd_layout_shard_host(&plan->layout, next_root++ % plan->layout.shards);
		const unsigned senders = has_incast ? fan_in_of(&plan->layout, item->method) : 0;
		most_senders = senders > most_senders ? senders : most_senders;
	}
	plan->most_senders = most_senders;
	plan->rates = rates_of(input, most_senders);
	plan->rates.machine = plan->machine;
	return PSD_OK;
}

/* Seconds of a worker's passes in an iteration. */
static double passes_sec(const struct psd_plan *plan)
{
	double sec = 0.0;

	for (unsigned l = 0; l < plan->graph->n_layers; l++)
		sec += plan->costs->forward_sec[l] + plan->costs->backward_sec[l] + plan->costs->recompute_sec[l];
	return sec * plan->micro_batches;
}

/* Returns the share of all gradients that an all-reduce sums at the rates of the plan while an iteration computes. */
static double share_of_passes(const struct psd_plan *plan)
{
	const struct psd_method *method = plan->candidates[plan->n_candidates - 1];
	const struct psd_payload payload = {.collective = method->collective,
					    .elements = plan->graph->parameters,
					    .value_bytes =
						    plan->wire->is_lossy ? plan->wire->value_bytes : plan->value_bytes};
	const struct psd_loads loads = psd_cost_loads(&payload, &plan->layout, isfinite(plan->alone_rates.local_bps));

	return passes_sec(plan) / psd_cost_loads_sec(&loads, &plan->layout, &plan->alone_rates);
}

static enum psd_status manage(struct psd_plan *plan, struct psd_error *err)
{
	struct psd_sparse *managed = plan->managed = malloc(sizeof(*managed));

	if (!managed)
		return psd_error_set(err, PSD_ENOMEM, PSD_NOWHERE, "out of memory for a plan");
	*managed = plan->system->managed;
	plan->sparse = managed;
	return PSD_OK;
}

static void settle_early(struct psd_plan *plan)
{
	if (plan->system->finds_early)
		plan->managed->early_ratio = fmin(1.0, share_of_passes(plan));
	plan->managed->sparsity = 1.0 - plan->managed->early_ratio;
}

/* Counts the chunks of a sparse plan, and from them the expected elements of each item. */
static enum psd_status count_chunks(struct psd_plan *plan, struct psd_error *err)
{
	uint64_t n_chunks = 0, n_whole = 0;

	for (unsigned i = 0; i < plan->n_items; i++) {
		struct psd_plan_item *item = &plan->items[i];
		const uint64_t in_item = psd_chunks_in(plan->sparse, item->subject.elements);

		item->first_chunk = (uint32_t)n_chunks;
		item->n_chunks = (uint32_t)in_item;
		n_chunks += in_item;
		n_whole += item->subject.elements / plan->sparse->chunk_elements;
		if (n_chunks > MOST_CHUNKS)
			return psd_error_set(err, PSD_EINVAL, plan->system->at,
					     "'chunk' of system '%s' cuts its tensors into more than %u chunks, must "
					     "be larger",
					     plan->system->name, (unsigned)MOST_CHUNKS);
	}
	const struct psd_chunks_share share = psd_chunks_whole_first(plan->sparse, n_whole, n_chunks - n_whole);

	for (unsigned i = 0; i < plan->n_items; i++)
		plan->items[i].travelling = psd_chunks_expected(plan->sparse, plan->items[i].subject.elements, share);
	plan->n_chunks = (uint32_t)n_chunks;
	return PSD_OK;
}

/* Appends the item whose elements are the norms of all chunks. */
static enum psd_status add_norms(struct psd_plan *plan, struct psd_error *err)
{
	struct psd_plan_item *norms = &plan->items[plan->n_items];

	if (plan->n_chunks == 0)
		return PSD_OK;
	*norms = (struct psd_plan_item){.layer = plan->items[plan->n_items - 1].layer,
					.first = plan->n_tensors,
					.subject = {.elements = plan->n_chunks, .value_bytes = sizeof(float)},
					.n_slices = 1,
					.travelling = plan->n_chunks};
	plan->n_items++;
	return psd_choice_make_norms(&norms->method, plan, norms, err);
}

/* Appends the item whose elements are sums of squares, if workers update parts of tensors by the norms of whole
 * ones. */
static void add_squares(struct psd_plan *plan, const struct psd_plan_input *input)
{
	const bool has_parts = plan->n_items > 0 && plan->items[0].method->updates != PSD_OWNER_ALL;

	if (!has_parts || plan->layout.workers == 1 || (!plan->clips && !input->is_by_norms))
		return;
	plan->sums_per_tensor = input->is_by_norms ? 2 : 1;
	const uint64_t elements = (uint64_t)plan->sums_per_tensor * plan->n_tensors;
	plan->items[plan->n_items] =
		(struct psd_plan_item){.layer = plan->items[plan->n_items - 1].layer,
				       .first = plan->n_tensors,
				       .subject = {.elements = elements, .value_bytes = sizeof(float)},
				       .method = &psd_method_squares,
				       .n_slices = 1,
				       .travelling = elements};
	plan->n_items++;
}

static void set_compression(struct psd_plan *plan, const struct psd_compress *compress)
{
	plan->compress = compress;
	plan->compression = psd_compressions[compress->by];
	plan->block.elements = (uint32_t)compress->block_elements;
	plan->block.kept = (uint32_t)ceil((double)compress->block_elements * compress->kept_ratio);
}

/* Gives each item the fragment in which its middle lies, if all elements are divided evenly. */
static void divide_items(struct psd_plan *plan)
{
	uint64_t all = 0, before = 0;

	for (unsigned i = 0; i < plan->n_items; i++)
		all += plan->items[i].subject.elements;
	for (unsigned i = 0; i < plan->n_items; i++) {
		const double middle = (double)before + 0.5 * (double)plan->items[i].subject.elements;

		plan->items[i].fragment = (uint32_t)(middle / (double)all * psd_plan_fragments(plan));
		before += plan->items[i].subject.elements;
	}
}

enum psd_status psd_plan_make(struct psd_plan *plan, const struct psd_plan_input *input, struct psd_error *err)
{
	struct psd_plan made = {
		.graph = input->graph,
		.costs = input->costs,
		.system = input->system,
		.layout = input->layout,
		.kinds = input->kinds,
		.batch = input->batch,
		.job_iterations = input->job_iterations,
		.fuse_bytes = input->fuse_bytes,
		.value_bytes = input->is_half ? 2 : 4,
		.wire = wire_of(input),
		.sparse = input->system->is_sparse && input->layout.workers > 1 ? &input->system->sparse : NULL,
		.local = input->system->is_local && input->layout.workers > 1 ? &input->system->local_sgd : NULL,
		.low_rank = input->system->is_low_rank && input->layout.workers > 1 ? input->system->low_rank.rank : 0,
		.async = input->system->is_async && input->layout.workers > 1 ? &input->system->async : NULL,
		.staleness = input->layout.workers > 1 ? input->system->staleness : 0,
		.micro_batches = psd_system_micro_batches(input->system),
		.clips = input->clips,
		.is_adaptive = input->is_adaptive,
		.machine = input->machine,
		.alone_rates = rates_of(input, fan_in_of(&input->layout, &psd_method_ps)),
	};
	if (made.local)
		made.staleness = made.local->delay;
	made.reads_stale = made.staleness > 0 && input->system->reads == PSD_READS_STALE;
	made.lag = made.reads_stale ? 0 : made.staleness;
	made.workers_update = made.staleness > 0 || made.clips;
	if (input->system->peers + 1 < made.layout.workers)
		made.peers = input->system->peers;
	else if (input->system->peers > 0) /* all have all factors, and the same parameters */
		made.local = NULL;
	made.outer = made.local && made.local->has_outer ? &made.local->outer : NULL;
	if (input->system->is_compressed && input->layout.workers > 1)
		set_compression(&made, &input->system->compress);
	enum psd_status status = input->system->is_managed && input->layout.workers > 1 ? manage(&made, err) : PSD_OK;
	psd_choice_candidates(&made);
	if (made.managed)
		settle_early(&made);
	if (status == PSD_OK)
		status = check_size(&made, input, err);
	if (status == PSD_OK)
		status = check_wire(&made, input->is_half, err);
	if (status != PSD_OK) {
		free(made.managed);
		return status;
	}
	const size_t most_items = input->graph->n_tensors + 1u; /* norms have one, too */
	made.items = calloc(most_items, sizeof(*made.items));
	made.tensors = calloc(most_items, sizeof(*made.tensors));
	made.has_own_prices = !input->prices;
	made.prices = input->prices ? input->prices : calloc(1, sizeof(*made.prices));
	if (made.items == NULL || made.tensors == NULL || made.prices == NULL) {
		psd_plan_release(&made);
		return psd_error_set(err, PSD_ENOMEM, PSD_NOWHERE, "out of memory for a plan of %u tensors",
				     input->graph->n_tensors);
	}
	cut_tensors(&made, input->batch * made.micro_batches);
	divide_items(&made);
	if (made.sparse)
		status = count_chunks(&made, err);
	if (status == PSD_OK)
		status = settle_items(&made, input, err);
	if (status == PSD_OK)
		status = check_reads(&made, input, err);
	if (status == PSD_OK)
		status = check_clip(&made, input, err);
	if (status == PSD_OK)
		status = check_even(&made, err);
	if (status == PSD_OK)
		status = check_members(&made, err);
	if (status == PSD_OK && made.sparse)
		status = add_norms(&made, err);
	if (status != PSD_OK) {
		psd_plan_release(&made);
		return status;
	}
	add_squares(&made, input);
	*plan = made;
	return PSD_OK;
}

bool psd_plan_depends_on_link(const struct psd_system *system)
{
	return system->finds_fuse || system->finds_early || system->sync == PSD_SYNC_AUTO ||
	       (system->rule == PSD_RULE_SECONDS && psd_choice_is_open(system));
}

void psd_plan_set_link(struct psd_plan *plan, const struct psd_plan_input *input)
{
	plan->alone_rates = rates_of(input, fan_in_of(&plan->layout, &psd_method_ps));
	plan->rates = rates_of(input, plan->most_senders);
	plan->rates.machine = plan->machine;
	psd_prices_forget_sec(plan->prices);
}

/* Momentum of the outer optimiser is where an exchange updates parameters. */
static bool keeps_outer(const struct psd_plan *plan, const struct psd_plan_item *item, bool is_on_device)
{
	const bool is_at_shards = item->method->keeps[PSD_BUFFER_PART_HISTORY] && !plan->workers_update;

	return plan->outer && plan->outer->momentum > 0.0 && is_on_device == !is_at_shards;
}

bool psd_plan_keeps(const struct psd_plan *plan, const struct psd_plan_item *item, enum psd_buffer buffer)
{
	if (buffer == PSD_BUFFER_SQUARES || buffer == PSD_BUFFER_PART_SQUARES)
		return plan->is_adaptive &&
		       psd_plan_keeps(plan, item,
				      buffer == PSD_BUFFER_SQUARES ? PSD_BUFFER_HISTORY : PSD_BUFFER_PART_HISTORY);
	if (buffer == PSD_BUFFER_OUTER || buffer == PSD_BUFFER_PART_OUTER)
		return keeps_outer(plan, item, buffer == PSD_BUFFER_OUTER);
	if (buffer == PSD_BUFFER_SENT)
		return plan->local && plan->staleness > 0;
	if (buffer == PSD_BUFFER_START)
		return psd_plan_is_local(plan, item) || (plan->reads_stale && item->n_tensors > 0);
	if (buffer == PSD_BUFFER_SUM || buffer == PSD_BUFFER_OWN) /* a worker alone has whole gradients, parameters */
		return item->method->keeps[buffer] && plan->layout.workers > 1;
	if (buffer == PSD_BUFFER_OWN_HISTORY)
		return psd_plan_sends_updates(plan) && item->n_tensors > 0;
	if (buffer == PSD_BUFFER_HISTORY && psd_plan_sends_updates(plan))
		return false;
	if (buffer == PSD_BUFFER_VELOCITY)
		return item->method->keeps[buffer] && plan->compress->momentum == PSD_MOMENTUM_BEFORE;
	if (buffer == PSD_BUFFER_KEPT || buffer == PSD_BUFFER_KEPT_HISTORY)
		return plan->reads_stale && item->n_tensors > 0;
	if (plan->workers_update) /* also with an item of sums of squares, which has no tensors */
		return (buffer == PSD_BUFFER_HISTORY && item->n_tensors > 0) ||
		       (item->method->keeps[buffer] && buffer != PSD_BUFFER_PART && buffer != PSD_BUFFER_PART_HISTORY &&
			buffer != PSD_BUFFER_ENCODED_PARAMETER);
	if (!psd_plan_is_local(plan, item))
		return item->method->keeps[buffer];
	return buffer == PSD_BUFFER_HISTORY || (item->method->keeps[buffer] && buffer != PSD_BUFFER_PART_HISTORY);
}

uint32_t psd_plan_batch(const struct psd_plan *plan, unsigned worker)
{
	const unsigned kind = psd_layout_kind(&plan->layout, psd_layout_node(&plan->layout, worker));

	return plan->kinds && kind < plan->layout.n_kinds ? plan->kinds[kind].batch : plan->batch;
}

bool psd_plan_adds_gradients(const struct psd_plan *plan)
{
	return plan->micro_batches > 1 && !(plan->n_items > 0 && psd_plan_keeps(plan, &plan->items[0], PSD_BUFFER_SUM));
}

bool psd_plan_rebuilds(const struct psd_plan *plan, const struct psd_plan_item *item)
{
	return item->method->keeps[PSD_BUFFER_FACTORS] &&
	       (plan->layout.workers > 1 || (item->method->has_root && plan->layout.has_separate_servers));
}

uint32_t psd_plan_fragments(const struct psd_plan *plan)
{
	return plan->local && plan->local->fragments > 1 ? plan->local->fragments : 1;
}

/* Fragments follow the order of items. */
uint32_t psd_plan_parts(const struct psd_plan *plan)
{
	uint32_t n = plan->n_items > 0;

	for (unsigned i = 1; i < plan->n_items; i++)
		n += plan->items[i].fragment != plan->items[i - 1].fragment;
	return n;
}

bool psd_plan_sends_updates(const struct psd_plan *plan)
{
	return plan->managed && plan->reads_stale;
}

struct psd_early_chunks psd_plan_early(const struct psd_plan *plan)
{
	double early = 0.0, all = 0.0;

	for (unsigned i = 0; plan->managed && i < plan->n_items; i++) {
		const struct psd_plan_item *item = &plan->items[i];

		early += item->n_chunks > 0 ? (double)(plan->managed->clock - 1) * (double)item->travelling : 0.0;
		all += item->n_chunks > 0 ? (double)item->subject.elements : 0.0;
	}
	if (!plan->managed || plan->n_chunks == 0)
		return (struct psd_early_chunks){.n = 0};
	return (struct psd_early_chunks){
		.n = plan->n_chunks,
		.n_sent = (uint32_t)psd_chunks_kept(plan->managed, plan->n_chunks, UINT64_MAX),
		.values_ratio = early / (early + all),
	};
}

bool psd_plan_streams(const struct psd_plan *plan)
{
	return plan->local && (psd_plan_fragments(plan) > 1 || plan->staleness > 0);
}

uint32_t psd_plan_steps(const struct psd_plan *plan)
{
	if (plan->managed)
		return (uint32_t)plan->managed->clock;
	return plan->local ? (uint32_t)plan->local->steps : 1;
}

bool psd_plan_is_local(const struct psd_plan *plan, const struct psd_plan_item *item)
{
	return plan->local && (plan->peers == 0 || item->method->keeps[PSD_BUFFER_FACTORS]);
}

uint32_t psd_plan_rotation(const struct psd_plan *plan)
{
	uint32_t others = plan->layout.workers - 1, rest = plan->peers;

	while (rest > 0) { /* Euclid's algorithm */
		const uint32_t next = others % rest;

		others = rest;
		rest = next;
	}
	return plan->peers > 0 ? (plan->layout.workers - 1) / others : 1;
}

unsigned psd_plan_value_bytes(const struct psd_plan *plan, enum psd_buffer buffer)
{
	const struct psd_widths widths = {
		.precision_bytes = plan->value_bytes,
		.wire = plan->wire,
		.block_bytes = plan->compression ? plan->compression->bytes(&plan->block) : 0,
	};

	return psd_buffer_value_bytes(buffer, &widths);
}

struct psd_range psd_plan_slice(const struct psd_plan_item *item, unsigned slice)
{
	const uint64_t whole = item->subject.elements / item->n_slices;
	const uint64_t rest = item->subject.elements % item->n_slices;
	return (struct psd_range){slice * whole + (slice < rest ? slice : rest), whole + (slice < rest ? 1 : 0)};
}

void psd_plan_release(struct psd_plan *plan)
{
	if (plan->has_own_prices && plan->prices)
		psd_prices_release(plan->prices);
	if (plan->has_own_prices)
		free(plan->prices);
	free(plan->managed);
	free(plan->items);
	free(plan->tensors);
	*plan = (struct psd_plan){0};
}
