/* Groups of nodes of a run: refusals, and the measurement of their speeds before training. */
#include <stdlib.h>

#include "engine/base/text.h"
#include "engine/base/units.h"
#include "engine/document/document.h"
#include "real/base/console.h"
#include "real/run_parts.h"

/* Iterations that measure speeds; their training is thrown away. The first ones warm up. */
enum { MEASURED_ITERATIONS = 4 };

/* ---- refusals ---- */

static enum psd_status check_speed(const struct psd_run *run, const struct psd_node_group *group,
				   const struct psd_node *entry, struct psd_error *err)
{
	const struct psd_node *speed = psd_node_child(entry, "speed");

	if (run->hosts.n_hosts > 0 || group->speed_ratio == 1.0 || !run->device)
		return PSD_OK;
	if (group->speed_ratio > 1.0)
		return psd_error_set(err, PSD_EINVAL, speed ? speed->at : PSD_NOWHERE,
				     "'speed' is '%.40s', must be at most 1 in psd-run, which emulates slower devices",
				     speed ? speed->text : "");
	if (run->device->is_asynchronous)
		return psd_error_set(err, PSD_EINVAL, speed ? speed->at : PSD_NOWHERE,
				     "'speed' is '%.40s', must be 1 where workers compute on '%s': psd-run emulates "
				     "slower devices on the processor alone",
				     speed ? speed->text : "", run->device->name);
	return PSD_OK;
}

static enum psd_status check_link(const struct psd_node_group *group, const struct psd_node *entry,
				  struct psd_error *err)
{
	const struct psd_node *bandwidth = psd_node_child(psd_node_child(entry, "network"), "bandwidth");

	if (!bandwidth || (group->bandwidth_bps >= PSD_RUN_MIN_BPS && group->bandwidth_bps <= PSD_RUN_MAX_BPS))
		return PSD_OK;
	return psd_error_set(err, PSD_EINVAL, bandwidth->at,
			     "'bandwidth' is '%.40s', must be 100kbps to 400Gbps for psd-run", bandwidth->text);
}

/* The speeds and links of a prediction may be those of the hosts. */
static void say_real_speeds(const struct psd_run *run)
{
	bool has_speed = false, has_link = false;

	for (unsigned g = 0; g < run->scenario->n_groups; g++) {
		const struct psd_node_group *group = &run->scenario->groups[g];

		has_speed = has_speed || group->speed_ratio != 1.0;
		has_link = has_link || group->bandwidth_bps > 0.0 || group->latency_sec > 0.0;
	}
	if ((has_speed || has_link) && run->self == 0 && !run->options->is_quiet)
		psd_console_say("psd-run: %s in 'cluster.groups' %s no effect on hosts, which are as fast as they are",
				!has_link    ? "'speed'"
				: !has_speed ? "'network'"
					     : "'speed' and 'network'",
				has_link && has_speed ? "have" : "has");
}

enum psd_status psd_run_check_groups(const struct psd_run *run, struct psd_error *err)
{
	const struct psd_scenario *scenario = run->scenario;
	const struct psd_node *groups = psd_node_child(psd_node_child(scenario->root, "cluster"), "groups");
	const struct psd_node *entry = groups ? groups->first : NULL;

	if (scenario->n_groups == 0)
		return PSD_OK;
	const unsigned n_workers = psd_scenario_workers(scenario, scenario->nodes);

	if (run->point.nodes != scenario->nodes || run->point.workers != n_workers)
		return psd_error_set(
			err, PSD_EINVAL, groups ? groups->at : PSD_NOWHERE,
			"'groups' have %u node%s with %u worker%s, the run has %u node%s with %u worker%s%s",
			scenario->nodes, psd_text_plural(scenario->nodes), n_workers, psd_text_plural(n_workers),
			run->point.nodes, psd_text_plural(run->point.nodes), run->point.workers,
			psd_text_plural(run->point.workers),
			run->hosts.n_hosts > 0 ? ": '--hosts' needs a line for each worker" : "");
	if (run->hosts.n_hosts > 0)
		say_real_speeds(run);
	for (unsigned g = 0; g < scenario->n_groups && !scenario->has_replay; g++, entry = entry ? entry->next : NULL) {
		PSD_TRY(check_speed(run, &scenario->groups[g], entry, err));
		PSD_TRY(check_link(&scenario->groups[g], entry, err));
	}
	return PSD_OK;
}

enum psd_status psd_run_check_slow(const struct psd_run *run, struct psd_error *err)
{
	const struct psd_scenario *scenario = run->scenario;
	const struct psd_node *slow = psd_node_child(psd_node_child(scenario->root, "cluster"), "slow");
	const struct psd_node *entry = slow ? slow->first : NULL;

	for (unsigned i = 0; i < scenario->n_slowdowns; i++, entry = entry ? entry->next : NULL) {
		const struct psd_node *node = psd_node_child(entry, "node");

		if (scenario->slowdowns[i].node >= run->point.nodes)
			return psd_error_set(err, PSD_EINVAL, node ? node->at : PSD_NOWHERE,
					     "'node' is %u, must be from 0 to %u: the run has %u node%s",
					     scenario->slowdowns[i].node, run->point.nodes - 1, run->point.nodes,
					     psd_text_plural(run->point.nodes));
	}
	return PSD_OK;
}

/* ---- measurement ---- */

/* Sets the seconds of a sample on each group: the mean over its workers. */
static void take_speeds(struct psd_run *run, const struct psd_case *even, const double compute_sec[])
{
	const struct psd_layout *layout = &even->plan.layout;

	for (unsigned g = 0; g < run->scenario->n_groups; g++) {
		double sec = 0.0, samples = 0.0;

		for (unsigned w = 0; w < layout->workers; w++) {
			if (psd_scenario_group(run->scenario, psd_layout_node(layout, w)) != g)
				continue;
			sec += compute_sec[w];
			samples += (double)psd_case_batch(even, w) * even->plan.micro_batches;
		}
		run->costed.sample_sec[g] = sec / samples;
	}
	run->costed.is_measured = true;
}

static void add_measured(struct psd_text *text, const char *before, const struct psd_run *run)
{
	const unsigned n_groups = run->scenario->n_groups;

	for (unsigned g = 0; g < n_groups && run->costed.is_measured; g++)
		psd_text_add(text, "%s%.4g%s", g > 0 ? ", " : before, 1.0 / run->costed.sample_sec[g],
			     g + 1 < n_groups ? "" : " samples/s on a worker of each group; ");
}

/* Without emulation links have no rate. Real hosts have their own speed and links. */
void psd_run_add_split(struct psd_text *text, const struct psd_run *run, const struct psd_case *made)
{
	const struct psd_kinds *kinds = &made->kinds;
	const bool has_speeds = run->cluster_kind != PSD_CLUSTER_HOSTS;
	const bool has_links = has_speeds && run->cluster_kind != PSD_CLUSTER_LOOPBACK;
	char rate[PSD_UNITS_TEXT_MAX], sec[PSD_UNITS_TEXT_MAX];

	if (kinds->n == 0)
		return;
	psd_text_add(text, "split %s", psd_split_names[made->system->split]);
	if (run->costed.is_measured) { /* each system has a measurement of its own */
		psd_text_add(text, " for ");
		psd_text_add_plain(text, made->system->name);
	}
	psd_text_add(text, ": ");
	add_measured(text, "", run);
	for (unsigned k = 0, first = 0; k < kinds->n; first = kinds->nodes[k++].end_node) {
		const struct psd_plan_kind *kind = &kinds->plan[k];
		const unsigned n = kinds->nodes[k].end_node - first;

		psd_text_add(text, "%s%u node%s", k > 0 ? "; " : "", n, psd_text_plural(n));
		if (made->plan.layout.is_uneven)
			psd_text_add(text, " of %u worker%s", kinds->nodes[k].workers,
				     psd_text_plural(kinds->nodes[k].workers));
		if (has_speeds && kind->speed_ratio != 1.0)
			psd_text_add(text, " of speed %.4g %%", 100.0 * kind->speed_ratio);
		if (has_links && run->scenario->groups[kinds->nodes[k].group].bandwidth_bps > 0.0)
			psd_text_add(text, " at %s", psd_units_write_rate(kind->bandwidth_bps, rate));
		if (has_links && run->scenario->groups[kinds->nodes[k].group].latency_sec > 0.0)
			psd_text_add(
				text, ", %s one way",
				psd_units_write_seconds(run->scenario->groups[kinds->nodes[k].group].latency_sec, sec));
		psd_text_add(text, ": batch %u", kind->batch);
	}
}

void psd_run_say_split(const struct psd_run *run, const struct psd_case *made)
{
	struct psd_text text = {.bytes = NULL};

	if (run->options->is_quiet || made->system->split == PSD_SPLIT_EVEN || run->self != 0)
		return;
	psd_text_add(&text, "psd-run: %s: ", made->system->name);
	add_measured(&text, "measured ", run);
	psd_text_add(&text, "batch");
	for (unsigned k = 0, first = 0; k < made->kinds.n; first = made->kinds.nodes[k++].end_node) {
		const unsigned last = made->kinds.nodes[k].end_node - 1;

		psd_text_add(&text, first == last ? "%s %u on node %u" : "%s %u on nodes %u to %u", k > 0 ? "," : "",
			     made->kinds.plan[k].batch, first, last);
	}
	if (text.bytes)
		psd_console_say("%s", text.bytes);
	psd_text_release(&text);
}

/* compute_sec: shape (number of hosts). */
static enum psd_status launch_even(struct psd_run *run, const struct psd_case *even, double compute_sec[],
				   struct psd_error *err)
{
	struct psd_launch_options launch = psd_run_launch_options(run, even);
	struct psd_worker_result result;

	launch.worker.n_iterations = psd_worker_warmed_up(MEASURED_ITERATIONS);
	if (!run->options->is_quiet && run->self == 0)
		psd_console_say("psd-run: %s: measures the speed of each group, for %u iterations", even->system->name,
				launch.worker.n_iterations);
	launch.worker.compute_sec = compute_sec;
	PSD_TRY(psd_run_launch(run, &launch, &result, err));
	for (unsigned w = 0; w < even->plan.layout.workers; w++)
		if (compute_sec[w] <= 0.0)
			return psd_error_set(err, PSD_ELOST, PSD_NOWHERE, "worker %u was lost before it told its speed",
					     w);
	return PSD_OK;
}

static enum psd_status measure(struct psd_run *run, const struct psd_system *system, struct psd_error *err)
{
	struct psd_system even = *system;
	struct psd_case made;
	double *compute_sec;

	even.split = PSD_SPLIT_EVEN;
	PSD_TRY(psd_case_make(&made, &run->costed, &even, run->point, err));
	compute_sec = calloc(psd_layout_hosts(&made.plan.layout), sizeof(*compute_sec));
	const enum psd_status status = compute_sec ? launch_even(run, &made, compute_sec, err)
						   : psd_error_set(err, PSD_ENOMEM, PSD_NOWHERE, "out of memory");
	if (!status)
		take_speeds(run, &made, compute_sec);
	free(compute_sec);
	psd_case_release(&made);
	return status;
}

enum psd_status psd_run_measure_groups(struct psd_run *run, struct psd_case *made, struct psd_error *err)
{
	const struct psd_system *system = made->system;

	if (system->split != PSD_SPLIT_MEASURED || run->scenario->has_replay || run->costed.is_measured)
		return PSD_OK;
	PSD_TRY(measure(run, system, err));
	run->has_measured = true;
	psd_case_release(made);
	return psd_case_make(made, &run->costed, system, run->point, err);
}
