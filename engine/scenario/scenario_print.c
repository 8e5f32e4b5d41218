/* A scenario with all its values, written in the form it is read in. Values are written so that they read back as they
 * are. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "engine/scenario/scenario_print.h"

struct prefix {
	const char *name;
	double factor;
};

static const struct prefix rate_prefixes[] = {{"T", 1e12}, {"G", 1e9}, {"M", 1e6}, {"k", 1e3}, {"", 1.0}};
static const struct prefix time_parts[] = {{"", 1.0}, {"m", 1e3}, {"u", 1e6}, {"n", 1e9}, {"", 1.0}};
enum { N_RATE_PREFIXES = 5, N_TIME_PARTS = 5 };

/* Units as in engine/base/units.c, which multiplies rates and divides times. */
static const struct prefix byte_prefixes[] = {{"Gi", 0x1p30}, {"Mi", 0x1p20}, {"Ki", 0x1p10},
					      {"G", 1e9},     {"M", 1e6},     {"k", 1e3}};

static double read_back(const char *figures, const struct prefix *prefix, bool is_part)
{
	const double figure = strtod(figures, NULL);

	return is_part ? figure / prefix->factor : figure * prefix->factor;
}

/* The shortest figure that reads back as value; false when there is none with this prefix. */
static bool add_exact(struct psd_text *text, double value, const struct prefix *prefix, bool is_part)
{
	const double figure = is_part ? value * prefix->factor : value / prefix->factor;
	char figures[40];

	for (int significant = 15; significant <= 17; significant++) {
		snprintf(figures, sizeof(figures), "%.*g", significant, figure);
		if (read_back(figures, prefix, is_part) != value)
			continue;
		psd_text_add(text, "%s%s", figures, prefix->name);
		return true;
	}
	return false;
}

static void add_figure(struct psd_text *text, double value)
{
	add_exact(text, value, &(struct prefix){"", 1.0}, false);
}

static void add_rate(struct psd_text *text, double rate_bps)
{
	unsigned i = 0;

	while (i + 1 < N_RATE_PREFIXES &&
	       (rate_bps < rate_prefixes[i].factor || !add_exact(text, rate_bps, &rate_prefixes[i], false)))
		i++;
	if (i + 1 == N_RATE_PREFIXES)
		add_figure(text, rate_bps);
	psd_text_add(text, "bps");
}

static void add_seconds(struct psd_text *text, double sec)
{
	unsigned i = 0;

	while (i + 1 < N_TIME_PARTS &&
	       ((sec > 0.0 && sec * time_parts[i].factor < 0.9999995) || !add_exact(text, sec, &time_parts[i], true)))
		i++;
	if (i + 1 == N_TIME_PARTS)
		add_figure(text, sec);
	psd_text_add(text, "s");
}

/* With the first prefix that leaves a whole number. */
static void add_bytes(struct psd_text *text, uint64_t bytes)
{
	for (unsigned i = 0; i < sizeof(byte_prefixes) / sizeof(byte_prefixes[0]); i++) {
		const uint64_t factor = (uint64_t)byte_prefixes[i].factor;

		if (bytes && bytes % factor == 0) {
			psd_text_add(text, "%" PRIu64 "%sB", bytes / factor, byte_prefixes[i].name);
			return;
		}
	}
	psd_text_add(text, "%" PRIu64 "B", bytes);
}

static void add_text(struct psd_text *text, const char *key, const char *value)
{
	psd_text_add(text, "%s: ", key);
	psd_text_add_json(text, value); /* YAML's double-quoted strings take all escapes of JSON */
	psd_text_add(text, "\n");
}

static void add_class(struct psd_text *text, const struct psd_collective_class *class)
{
	psd_text_add(text, "{");
	if (class->up_to_bytes != UINT64_MAX) {
		psd_text_add(text, "up_to: ");
		add_bytes(text, class->up_to_bytes);
		psd_text_add(text, ", ");
	}
	psd_text_add(text, "call: ");
	add_seconds(text, class->call_sec);
	psd_text_add(text, ", step: ");
	add_seconds(text, class->step_sec);
	psd_text_add(text, ", slowdown: ");
	add_figure(text, class->slowdown_ratio);
	psd_text_add(text, "}");
}

static void add_optional_rate(struct psd_text *text, const char *key, double rate_bps, const char **separator)
{
	if (rate_bps <= 0.0)
		return; /* costs nothing, which is said by leaving the key out */
	psd_text_add(text, "%s%s: ", *separator, key);
	add_rate(text, rate_bps);
	*separator = ", ";
}

static void add_optional_seconds(struct psd_text *text, const char *key, double sec, const char **separator)
{
	if (sec <= 0.0)
		return;
	psd_text_add(text, "%s%s: ", *separator, key);
	add_seconds(text, sec);
	*separator = ", ";
}

/* A flow mapping; every key that has an effect. */
static void add_host(struct psd_text *text, const struct psd_host *host)
{
	const char *separator = "";

	psd_text_add(text, "{");
	add_optional_rate(text, "copy", host->copy_bps, &separator);
	add_optional_rate(text, "reduce", host->reduce_bps, &separator);
	add_optional_rate(text, "update", host->update_bps, &separator);
	add_optional_rate(text, "transport", host->transport_bps, &separator);
	psd_text_add(text, "%sincast: ", separator);
	add_figure(text, host->incast_ratio);
	psd_text_add(text, ", latency: ");
	add_seconds(text, host->latency_sec);
	psd_text_add(text, ", iteration: ");
	add_seconds(text, host->iteration_sec);
	for (unsigned i = 0; i < host->n_collective_classes; i++) {
		psd_text_add(text, "%s", i ? ", " : ", collective: [");
		add_class(text, &host->collective[i]);
	}
	psd_text_add(text, "%s", host->n_collective_classes ? "]}" : "}");
}

static void add_model(struct psd_text *text, const struct psd_scenario *scenario)
{
	psd_text_add(text, "model:\n");
	add_text(text, "  graph", scenario->graph_path);
	psd_text_add(text, "  batch_per_worker: %u\n  precision: %s\n", scenario->batch_per_worker,
		     scenario->is_half ? "mixed" : "fp32");
	psd_text_add(text, "compute:\n");
	if (scenario->profile_path)
		add_text(text, "  profile", scenario->profile_path);
	else
		psd_text_add(text, "  device: %s\n", scenario->device_name);
	if (scenario->images_per_sec > 0.0) {
		psd_text_add(text, "  images_per_sec: ");
		add_figure(text, scenario->images_per_sec);
		psd_text_add(text, "\n");
	}
	psd_text_add(text, "  jitter: ");
	add_figure(text, scenario->jitter_ratio);
	psd_text_add(text, "\n%s", scenario->has_replay ? "  replay: true\n" : "");
}

static void add_network(struct psd_text *text, const struct psd_network *network)
{
	psd_text_add(text, "  network:\n");
	if (network->topology == PSD_TOPOLOGY_PLATFORM)
		add_text(text, "    platform", network->platform_path);
	else
		psd_text_add(text, "    topology: %s\n", psd_topology_names[network->topology]);
	if (network->bandwidth_bps > 0.0) {
		psd_text_add(text, "    bandwidth: ");
		add_rate(text, network->bandwidth_bps);
		psd_text_add(text, "\n");
	}
	if (network->payload_ratio < 1.0) {
		psd_text_add(text, "    payload: ");
		add_figure(text, network->payload_ratio);
		psd_text_add(text, "\n");
	}
	psd_text_add(text, "    latency: ");
	add_seconds(text, network->latency_sec);
	psd_text_add(text, "\n");
	if (network->topology == PSD_TOPOLOGY_RACKS || network->topology == PSD_TOPOLOGY_FAT_TREE) {
		psd_text_add(text, "    nodes_per_rack: %u\n    oversubscription: ", network->nodes_per_rack);
		add_figure(text, network->oversubscription_ratio);
		psd_text_add(text, "\n");
	}
	if (network->local_bps > 0.0) {
		psd_text_add(text, "  local:\n    bandwidth: ");
		add_rate(text, network->local_bps);
		psd_text_add(text, "\n");
	}
}

static void add_slowdown(struct psd_text *text, const struct psd_slowdown *slow)
{
	psd_text_add(text, "    - {node: %u, compute: ", slow->node);
	add_figure(text, slow->compute_ratio);
	psd_text_add(text, ", link: ");
	add_figure(text, slow->link_ratio);
	psd_text_add(text, ", from: ");
	add_seconds(text, slow->from_sec);
	if (isfinite(slow->until_sec)) {
		psd_text_add(text, ", until: ");
		add_seconds(text, slow->until_sec);
	}
	psd_text_add(text, "}\n");
}

static void add_background(struct psd_text *text, const struct psd_background *background)
{
	psd_text_add(text, "    - {from: %u, to: %u, bytes: ", background->from_node, background->to_node);
	add_bytes(text, background->bytes);
	psd_text_add(text, ", period: ");
	add_seconds(text, background->period_sec);
	psd_text_add(text, "}\n");
}

static void add_machine(struct psd_text *text, const struct psd_machine *machine)
{
	const char *separator = ", ";

	if (!machine->cores)
		return;
	psd_text_add(text, "  machine: {cores: %u", machine->cores);
	if (machine->nodes)
		psd_text_add(text, ", nodes: %u", machine->nodes);
	add_optional_rate(text, "bytes", machine->bytes_bps, &separator);
	add_optional_seconds(text, "message", machine->message_sec, &separator);
	psd_text_add(text, "}\n");
}

static void add_cluster(struct psd_text *text, const struct psd_scenario *scenario)
{
	psd_text_add(text, "cluster:\n  nodes: %u\n  workers_per_node: %u\n", scenario->nodes,
		     scenario->workers_per_node);
	add_network(text, &scenario->network);
	psd_text_add(text, "  host: ");
	add_host(text, &scenario->host);
	psd_text_add(text, "\n");
	add_machine(text, &scenario->machine);
	if (scenario->n_slowdowns)
		psd_text_add(text, "  slow:\n");
	for (unsigned i = 0; i < scenario->n_slowdowns; i++)
		add_slowdown(text, &scenario->slowdowns[i]);
	if (scenario->n_backgrounds)
		psd_text_add(text, "  background:\n");
	for (unsigned i = 0; i < scenario->n_backgrounds; i++)
		add_background(text, &scenario->backgrounds[i]);
}

/* Nothing to say where the job is really computed. */
static void add_emulation(struct psd_text *text, const struct psd_scenario *scenario)
{
	if (!scenario->has_replay)
		return;
	psd_text_add(text, "emulation:\n  dilation: ");
	if (scenario->replay.finds_dilation)
		psd_text_add(text, "auto");
	else
		add_figure(text, scenario->replay.dilation_ratio);
	psd_text_add(text, "\n  payload_scale: ");
	add_figure(text, scenario->replay.payload_ratio);
	psd_text_add(text, "\n");
}

/* Keys that a system's sync does not heed are errors in a file, so they are left out here. */
static void add_system(struct psd_text *text, const struct psd_system *system)
{
	add_text(text, "  - name", system->name);
	psd_text_add(text, "    schedule: %s\n    sync: %s\n", psd_schedule_names[system->schedule],
		     psd_sync_names[system->sync]);
	if (system->sync == PSD_SYNC_HYBRID || system->sync == PSD_SYNC_SACP)
		psd_text_add(text, "    rule: %s\n", psd_rule_names[system->rule]);
	psd_text_add(text, "    barrier: %s\n    priority: %s\n    unit: %s\n", psd_barrier_names[system->barrier],
		     psd_priority_names[system->priority], psd_unit_names[system->unit]);
	if (system->sync != PSD_SYNC_RING) {
		psd_text_add(text, "    servers: %u\n    pair: ", system->servers);
		add_bytes(text, system->pair_bytes);
		psd_text_add(text, "\n    slice: ");
		add_bytes(text, system->slice_bytes);
		psd_text_add(text, "\n");
	}
	psd_text_add(text, "    host: ");
	add_host(text, &system->host);
	psd_text_add(text, "\n");
}

static void add_counts(struct psd_text *text, const char *key, const uint64_t *counts, unsigned n_counts)
{
	for (unsigned i = 0; i < n_counts; i++)
		psd_text_add(text, "%s%" PRIu64, i ? ", " : key, counts[i]);
	if (n_counts)
		psd_text_add(text, "]\n");
}

static void add_sweep(struct psd_text *text, const struct psd_scenario *scenario)
{
	if (!scenario->n_sweep_nodes && !scenario->n_sweep_workers && !scenario->n_sweep_bandwidths)
		return;
	psd_text_add(text, "sweep:\n");
	add_counts(text, "  nodes: [", scenario->sweep_nodes, scenario->n_sweep_nodes);
	add_counts(text, "  workers: [", scenario->sweep_workers, scenario->n_sweep_workers);
	for (unsigned i = 0; i < scenario->n_sweep_bandwidths; i++) {
		psd_text_add(text, "%s", i ? ", " : "  bandwidth: [");
		add_rate(text, scenario->sweep_bandwidth_bps[i]);
	}
	if (scenario->n_sweep_bandwidths)
		psd_text_add(text, "]\n");
}

/* ---- the training job ---- */

static void add_number(struct psd_text *text, const char *key, double value)
{
	psd_text_add(text, ", %s: ", key);
	add_figure(text, value);
}

static void add_data(struct psd_text *text, const struct psd_data_source *data)
{
	psd_text_add(text, "  data: {kind: %s", psd_data_kind_names[data->kind]);
	if (data->path) {
		psd_text_add(text, ", path: ");
		psd_text_add_json(text, data->path);
	}
	if (data->test_path) {
		psd_text_add(text, ", test: ");
		psd_text_add_json(text, data->test_path);
	}
	if (data->kind == PSD_DATA_SYNTHETIC) {
		psd_text_add(text, ", training_samples: %" PRIu64 ", test_samples: %" PRIu64, data->training_samples,
			     data->test_samples);
		add_number(text, "noise", data->noise_ratio);
	}
	if (data->kind == PSD_DATA_PACKED)
		psd_text_add(text, ", mirror: %s", data->is_mirrored ? "true" : "false");
	psd_text_add(text, "}\n");
}

static void add_optimiser(struct psd_text *text, const struct psd_optimiser *optimiser)
{
	psd_text_add(text, "  optimiser: {kind: sgd");
	add_number(text, "momentum", optimiser->momentum);
	if (optimiser->is_nesterov)
		psd_text_add(text, ", nesterov: true");
	add_number(text, "weight_decay", optimiser->weight_decay);
	psd_text_add(text, "}\n");
}

/* Keys that the policy does not heed are errors in a file. */
static void add_learning_rate(struct psd_text *text, const struct psd_learning_rate *rate)
{
	const enum psd_rate_policy policy = rate->policy;

	psd_text_add(text, "  learning_rate: {policy: %s", psd_rate_policy_names[policy]);
	add_number(text, "base", rate->base);
	if (policy != PSD_RATE_FIXED && policy != PSD_RATE_POLY)
		add_number(text, "gamma", rate->gamma);
	if (policy == PSD_RATE_INV || policy == PSD_RATE_POLY)
		add_number(text, "power", rate->power);
	if (policy == PSD_RATE_STEP)
		psd_text_add(text, ", step: %" PRIu64, rate->step_iterations);
	if (policy == PSD_RATE_MULTISTEP)
		for (unsigned i = 0; i < rate->n_steps; i++)
			psd_text_add(text, "%s%" PRIu64 "%s", i ? ", " : ", steps: [", rate->steps_at[i],
				     i + 1 == rate->n_steps ? "]" : "");
	if (policy == PSD_RATE_POLY)
		psd_text_add(text, ", max_iterations: %" PRIu64, rate->max_iterations);
	if (rate->warmup_iterations)
		psd_text_add(text, ", warmup_iterations: %" PRIu64, rate->warmup_iterations);
	psd_text_add(text, "}\n");
}

static void add_train(struct psd_text *text, const struct psd_train *train)
{
	psd_text_add(text, "train:\n");
	add_data(text, &train->data);
	if (train->iterations)
		psd_text_add(text, "  iterations: %" PRIu64 "\n", train->iterations);
	else if (train->epochs)
		psd_text_add(text, "  epochs: %" PRIu64 "\n", train->epochs);
	if (train->solver_path) {
		add_text(text, "  solver", train->solver_path);
	} else {
		add_optimiser(text, &train->optimiser);
		add_learning_rate(text, &train->rate);
	}
	psd_text_add(text, "  test_every: %" PRIu64 "\n  threads: %u\n  streams: %u\n  deterministic: %s\n",
		     train->test_every_epochs, train->threads, train->streams,
		     train->is_deterministic ? "true" : "false");
}

void psd_scenario_add_text(struct psd_text *text, const struct psd_scenario *scenario)
{
	add_text(text, "title", scenario->title);
	add_model(text, scenario);
	add_emulation(text, scenario);
	add_cluster(text, scenario);
	psd_text_add(text, "systems:\n");
	for (unsigned i = 0; i < scenario->n_systems; i++)
		add_system(text, &scenario->systems[i]);
	add_sweep(text, scenario);
	psd_text_add(text, "fidelity: %s\n", psd_fidelity_names[scenario->fidelity]);
	if (scenario->iterations)
		psd_text_add(text, "iterations: %u\n", scenario->iterations);
	psd_text_add(text, "seed: %" PRIu64 "\n", scenario->seed);
	add_text(text, "baseline",
		 scenario->baseline_system < 0 ? "compute" : scenario->systems[scenario->baseline_system].name);
	if (scenario->published_path)
		add_text(text, "published", scenario->published_path);
	if (scenario->calibration.workers) {
		psd_text_add(text, "calibration: {workers: %u, bandwidth: ", scenario->calibration.workers);
		add_rate(text, scenario->calibration.bandwidth_bps);
		psd_text_add(text, "}\n");
	}
	if (scenario->has_train)
		add_train(text, &scenario->train);
}
