/* Choice of methods: for each kind of system the methods among which its items choose. */
#include "engine/program/choice.h"

struct choice {
	const struct psd_method *dense;	  /* method for items without factors */
	const struct psd_method *matrix;  /* method for items with factors if the rule does not select factors */
	const struct psd_method *factors; /* method for items with factors if the rule selects factors */
	bool (*takes_factors)(const struct psd_subject *subject, unsigned workers,
			      /* the published rule by bytes; NULL: there is none, so `matrix` is used */
			      unsigned shards);
	bool takes_any; /* the choice by seconds may select any candidate */
};

static bool sacp_takes_sfb(const struct psd_subject *subject, unsigned workers, unsigned shards)
{
	(void)shards;
	return psd_cost_sacp_takes_sfb(subject, workers);
}

static const struct choice choices[] = {
	[PSD_SYNC_PS] = {.dense = &psd_method_ps, .matrix = &psd_method_ps},
	[PSD_SYNC_TWO_LEVEL_PS] = {.dense = &psd_method_two_level_ps, .matrix = &psd_method_two_level_ps},
	[PSD_SYNC_SFB] = {.dense = &psd_method_ps, .matrix = &psd_method_sfb},
	[PSD_SYNC_TWO_LEVEL_SFB] = {.dense = &psd_method_ps, .matrix = &psd_method_two_level_sfb},
	[PSD_SYNC_ADAM] = {.dense = &psd_method_ps, .matrix = &psd_method_adam},
	[PSD_SYNC_HYBRID] = {.dense = &psd_method_ps,
			     .matrix = &psd_method_ps,
			     .factors = &psd_method_sfb,
			     .takes_factors = psd_cost_hybrid_takes_sfb,
			     .takes_any = true},
	[PSD_SYNC_SACP] = {.dense = &psd_method_ps,
			   .matrix = &psd_method_adam,
			   .factors = &psd_method_sfb,
			   .takes_factors = sacp_takes_sfb},
};

/* Returns the index of the all-reduce that the system names; 0 if it names none. */
static unsigned all_reduce_of(const struct psd_system *system)
{
	const bool is_named = system->sync >= PSD_SYNC_ALL_REDUCE && system->sync < PSD_SYNC_AUTO;

	return is_named ? system->sync - PSD_SYNC_ALL_REDUCE : 0;
}

static const struct psd_method *all_reduces_of(const struct psd_sparse *sparse)
{
	return sparse ? psd_method_sparse : psd_method_all_reduces;
}

#define ADDRESSES_OF_SHARDED(identifier, name) {&psd_method_##identifier, &psd_method_##identifier##_in_nodes},
static const struct psd_method *const sharded[][2] = {PSD_SHARDED(ADDRESSES_OF_SHARDED)};

static const struct psd_method *named_by(const struct psd_system *system, const struct psd_sparse *sparse)
{
	if (system->sync >= PSD_SYNC_LIBRARY)
		return &psd_method_libraries[system->sync - PSD_SYNC_LIBRARY];
	if (system->sync >= PSD_SYNC_SHARDED)
		return sharded[system->sync - PSD_SYNC_SHARDED][system->shard_over == PSD_SHARD_OVER_NODE];
	return all_reduces_of(sparse) + all_reduce_of(system);
}

/* Choice for compressed gradients: all items, or items with factors. */
static struct choice packed_by(const struct psd_compress *compress)
{
	const struct psd_method *packed = &psd_method_packed[compress->by];
	const bool is_of_all = compress->tensors == PSD_COMPRESSED_ALL;

	return (struct choice){.dense = is_of_all ? packed : &psd_method_ps, .matrix = packed};
}

/* Choice for low-rank gradients: items that have narrow matrices. */
static struct choice narrowed_by(const struct psd_system *system)
{
	return (struct choice){.dense = named_by(system, NULL), .matrix = &psd_method_low_rank[all_reduce_of(system)]};
}

/* Choice of a system whose factors go to some workers. */
static struct choice partial_of(struct choice choice)
{
	*(choice.factors ? &choice.factors : &choice.matrix) = &psd_method_partial_sfb;
	return choice;
}

/* Returns the choice of a system. plan: plan of this system; NULL: there is none yet. */
static struct choice choice_of(const struct psd_system *system, const struct psd_plan *plan)
{
	if (plan && plan->compress)
		return packed_by(plan->compress);
	if (plan && plan->low_rank)
		return narrowed_by(system);
	if (plan && plan->async)
		return (struct choice){.dense = &psd_method_async, .matrix = &psd_method_async};
	if (system->placement == PSD_PLACEMENT_TENSORS)
		return (struct choice){.dense = &psd_method_ps_by_tensors, .matrix = &psd_method_ps_by_tensors};
	if (plan && plan->peers > 0)
		return partial_of(choices[system->sync]);
	if (system->sync < PSD_SYNC_ALL_REDUCE)
		return choices[system->sync];
	const struct psd_method *named = named_by(system, plan ? plan->sparse : NULL);
	return (struct choice){.dense = named, .matrix = named, .takes_any = system->sync == PSD_SYNC_AUTO};
}

/* True if the item has factors; with low-rank compression, if some of its tensors have low-rank factors. */
static bool is_matrix(const struct psd_plan *plan, const struct psd_plan_item *item)
{
	return plan->low_rank ? item->right > 0 : item->subject.rows > 0;
}

/* A method that joins nodes needs nodes of several workers, unless the system asks for it. Factors belong to one
 * iteration. A root sends parameters that it has updated. */
static bool may_be_weighed(const struct psd_plan *plan, const struct psd_method *method)
{
	if (plan->local && method->keeps[PSD_BUFFER_FACTORS])
		return false;
	if (plan->workers_update && method->has_root)
		return false;
	return !method->joins_nodes || plan->layout.workers_per_node > 1 ||
	       choice_of(plan->system, plan).dense == method;
}

#define ADDRESS(identifier) &psd_method_##identifier,
void psd_choice_candidates(struct psd_plan *plan)
{
	static const struct psd_method *const rows[] = {PSD_METHODS(ADDRESS)};
	const bool is_auto = plan->system->sync == PSD_SYNC_AUTO;

	for (unsigned m = 0; !is_auto && m < sizeof(rows) / sizeof(*rows); m++)
		if (may_be_weighed(plan, rows[m]))
			plan->candidates[plan->n_candidates++] = rows[m];
	if (plan->system->sync == PSD_SYNC_TWO_LEVEL_SFB)
		plan->candidates[plan->n_candidates++] = &psd_method_two_level_sfb;
	if (plan->peers > 0)
		plan->candidates[plan->n_candidates++] = &psd_method_partial_sfb;
	if (plan->compress)
		plan->candidates[plan->n_candidates++] = &psd_method_packed[plan->compress->by];
	if (plan->async)
		plan->candidates[plan->n_candidates++] = &psd_method_async;
	if (plan->low_rank)
		plan->candidates[plan->n_candidates++] = &psd_method_low_rank[all_reduce_of(plan->system)];
	for (unsigned m = 0; is_auto && m < PSD_N_ALL_REDUCES; m++)
		plan->candidates[plan->n_candidates++] = all_reduces_of(plan->sparse) + m;
	if (!is_auto)
		plan->candidates[plan->n_candidates++] = named_by(plan->system, plan->sparse);
}

bool psd_choice_is_open(const struct psd_system *system)
{
	return choice_of(system, NULL).takes_factors || system->sync == PSD_SYNC_AUTO;
}

bool psd_choice_may_take_factors(const struct psd_system *system)
{
	const struct choice choice = choice_of(system, NULL);

	return choice.takes_factors || choice.matrix->keeps[PSD_BUFFER_FACTORS];
}

bool psd_choice_may_take_steps(const struct psd_system *system)
{
	const struct choice choice = choice_of(system, NULL);

	return choice.dense->collective->steps || (choice.takes_any && system->rule == PSD_RULE_SECONDS);
}

bool psd_choice_takes_wire(const struct psd_plan *plan, const struct psd_method *method)
{
	bool takes = !plan->wire->is_lossy;

	for (unsigned b = 0; b < PSD_BUFFERS; b++)
		takes = takes || (psd_buffers[b].is_encoded && method->keeps[b]);
	return takes;
}

const struct psd_method *psd_choice_by_bytes(const struct psd_plan *plan, const struct psd_plan_item *item)
{
	const struct choice choice = choice_of(plan->system, plan);

	if (!is_matrix(plan, item))
		return choice.dense;
	return choice.takes_factors && choice.takes_factors(&item->subject, plan->layout.workers, plan->layout.shards)
		       ? choice.factors
		       : choice.matrix;
}

static bool may_take(const struct choice *choice, bool is_matrix, const struct psd_method *method)
{
	if (choice->takes_any)
		return true;
	return is_matrix ? method == choice->matrix || method == choice->factors : method == choice->dense;
}

unsigned psd_choice_by_seconds(const struct psd_alternative alternatives[PSD_CANDIDATES], const struct psd_plan *plan,
			       const struct psd_plan_item *item)
{
	const struct choice choice = choice_of(plan->system, plan);
	unsigned best = PSD_CANDIDATES;

	for (unsigned m = 0; m < plan->n_candidates; m++)
		if (alternatives[m].is_possible && may_take(&choice, is_matrix(plan, item), plan->candidates[m]) &&
		    (best == PSD_CANDIDATES || alternatives[m].isolated_sec < alternatives[best].isolated_sec))
			best = m;
	return best;
}

enum psd_status psd_choice_make(const struct psd_method **method, const struct psd_plan *plan,
				const struct psd_plan_item *item, struct psd_error *err)
{
	struct psd_alternative alternatives[PSD_CANDIDATES];

	*method = psd_choice_by_bytes(plan, item);
	if (plan->system->rule != PSD_RULE_SECONDS || !psd_choice_is_open(plan->system))
		return PSD_OK;
	const enum psd_status status = psd_choice_weigh_seconds(alternatives, plan, item, err);
	if (status == PSD_OK)
		*method = plan->candidates[psd_choice_by_seconds(alternatives, plan, item)];
	return status;
}

enum psd_status psd_choice_make_norms(const struct psd_method **method, const struct psd_plan *plan,
				      const struct psd_plan_item *norms, struct psd_error *err)
{
	struct psd_alternative alternatives[PSD_CANDIDATES];
	enum psd_status status = PSD_OK;

	*method = &psd_method_norms[all_reduce_of(plan->system)];
	if (plan->system->sync != PSD_SYNC_AUTO)
		return PSD_OK;
	status = psd_choice_weigh_seconds(alternatives, plan, norms, err);
	if (status == PSD_OK) /* the candidates are all all-reduces, in their order */
		*method = &psd_method_norms[psd_choice_by_seconds(alternatives, plan, norms)];
	return status;
}
