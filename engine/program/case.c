/* From scenario to program. */
#include "engine/program/case.h"

#include "engine/program/outcome.h"

enum psd_status psd_subject_matter_load(struct psd_subject_matter *matter, const struct psd_scenario *scenario,
					struct psd_error *err)
{
	struct psd_subject_matter loaded = {.scenario = scenario};
	enum psd_status status = psd_graph_load(&loaded.graph, scenario->graph_path, err);
	if (status != PSD_OK)
		return status;
	if (scenario->profile_path != NULL)
		status = psd_costs_from_profile(&loaded.costs, &loaded.graph, scenario->profile_path,
						scenario->batch_per_worker, scenario->images_per_sec, err);
	else
		status = psd_costs_from_device(&loaded.costs, &loaded.graph, psd_device_find(scenario->device_name),
					       scenario->batch_per_worker, scenario->is_half, scenario->images_per_sec,
					       err);
	if (status != PSD_OK) {
		psd_graph_release(&loaded.graph);
		return status;
	}
	*matter = loaded;
	return PSD_OK;
}

void psd_subject_matter_release(struct psd_subject_matter *matter)
{
	psd_costs_release(&matter->costs);
	psd_graph_release(&matter->graph);
	*matter = (struct psd_subject_matter){0};
}

/* Without a link rate there is nothing to weigh seconds by. */
static enum psd_status check_rule(const struct psd_system *system, struct psd_point point, struct psd_error *err)
{
	if (system->rule != PSD_RULE_SECONDS || point.bandwidth_bps > 0)
		return PSD_OK;
	return psd_error_set(err, PSD_EINVAL, system->at,
			     "system '%s' chooses by seconds, which needs 'bandwidth' in 'network' beside 'platform'",
			     system->name);
}

static enum psd_status check_hosts(const struct psd_layout *layout, const struct psd_system *system,
				   struct psd_error *err)
{
	if (psd_layout_hosts(layout) <= PSD_MAX_HOSTS)
		return PSD_OK;
	return psd_error_set(err, PSD_EINVAL, system->at, "system '%s' has %u hosts, at most %u are possible",
			     system->name, psd_layout_hosts(layout), (unsigned)PSD_MAX_HOSTS);
}

/* Where no formula says what an all-reduce's steps add up to, all of them are gone through for each tensor. */
static enum psd_status check_steps(const struct psd_subject_matter *matter, const struct psd_system *system,
				   const struct psd_layout *layout, struct psd_error *err)
{
	const struct psd_members members = {layout->workers, layout->workers_per_node};
	const double most = (double)matter->scenario->most_events / matter->graph.n_tensors / members.n;

	for (unsigned p = 0; p < PSD_N_ALL_REDUCES; p++)
		if ((system->sync == PSD_SYNC_ALL_REDUCE + p || system->sync == PSD_SYNC_AUTO) &&
		    !psd_all_reduces[p]->node_elements &&
		    psd_all_reduces[p]->steps(matter->graph.parameters, members) > most)
			return psd_refuse_length(system, layout->workers, matter->scenario->most_events, err);
	return PSD_OK;
}

enum psd_status psd_case_make(struct psd_case *made, const struct psd_subject_matter *matter,
			      const struct psd_system *system, struct psd_point point, struct psd_error *err)
{
	const struct psd_scenario *scenario = matter->scenario;
	const struct psd_plan_input input = {
		.graph = &matter->graph,
		.costs = &matter->costs,
		.system = system,
		.network = &scenario->network,
		.layout = psd_layout_make(point.workers, point.workers_per_node, system->servers),
		.link_bps = point.bandwidth_bps > 0 ? point.bandwidth_bps : PSD_UNLIMITED_BPS,
		.batch = scenario->batch_per_worker,
		.is_half = scenario->is_half,
		.machine = scenario->machine,
	};
	*made = (struct psd_case){.matter = matter, .system = system, .point = point};
	enum psd_status status = check_rule(system, point, err);
	if (status == PSD_OK)
		status = check_steps(matter, system, &input.layout, err);
	if (status == PSD_OK)
		status = psd_plan_make(&made->plan, &input, err);
	if (status != PSD_OK)
		return status;
	status = check_hosts(&made->plan.layout, system, err);
	if (status == PSD_OK)
		status = psd_program_make(&made->program, &made->plan, err);
	if (status != PSD_OK)
		psd_plan_release(&made->plan);
	return status;
}

void psd_case_release(struct psd_case *made)
{
	psd_program_release(&made->program);
	psd_plan_release(&made->plan);
	*made = (struct psd_case){0};
}
