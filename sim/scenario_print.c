/* A scenario with all its values, written in the form it is read in. Values are written so that they read back as they are. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "sim/json.h"
#include "sim/output.h"

struct prefix {
	const char *name;
	double factor;
};

static const struct prefix rate_prefixes[] = {{"T", 1e12}, {"G", 1e9}, {"M", 1e6}, {"k", 1e3}, {"", 1.0}};
static const struct prefix time_parts[] = {{"", 1.0}, {"m", 1e3}, {"u", 1e6}, {"n", 1e9}, {"", 1.0}};
enum { N_RATE_PREFIXES = 5, N_TIME_PARTS = 5 };

/* Units as in engine/units.c, which multiplies rates and divides times. */
static const struct prefix byte_prefixes[] = {{"Gi", 0x1p30}, {"Mi", 0x1p20}, {"Ki", 0x1p10}, {"G", 1e9}, {"M", 1e6}, {"k", 1e3}};

static double read_back(const char *text, const struct prefix *prefix, bool is_part)
{
	const double figure = strtod(text, NULL);

	return is_part ? figure / prefix->factor : figure * prefix->factor;
}

/* The shortest figure that reads back as value; false when there is none with this prefix. */
static bool write_exact(FILE *out, double value, const struct prefix *prefix, bool is_part)
{
	const double figure = is_part ? value * prefix->factor : value / prefix->factor;
	char text[40];

	for (int significant = 15; significant <= 17; significant++) {
		snprintf(text, sizeof(text), "%.*g", significant, figure);
		if (read_back(text, prefix, is_part) != value)
			continue;
		fprintf(out, "%s%s", text, prefix->name);
		return true;
	}
	return false;
}

static void write_figure(FILE *out, double value)
{
	write_exact(out, value, &(struct prefix){"", 1.0}, false);
}

static void write_rate(FILE *out, double rate_bps)
{
	unsigned i = 0;

	while (i + 1 < N_RATE_PREFIXES &&
	       (rate_bps < rate_prefixes[i].factor || !write_exact(out, rate_bps, &rate_prefixes[i], false)))
		i++;
	if (i + 1 == N_RATE_PREFIXES)
		write_figure(out, rate_bps);
	fputs("bps", out);
}

static void write_seconds(FILE *out, double sec)
{
	unsigned i = 0;

	while (i + 1 < N_TIME_PARTS &&
	       ((sec > 0.0 && sec * time_parts[i].factor < 0.9999995) || !write_exact(out, sec, &time_parts[i], true)))
		i++;
	if (i + 1 == N_TIME_PARTS)
		write_figure(out, sec);
	fputc('s', out);
}

/* With the first prefix that leaves a whole number. */
static void write_bytes(FILE *out, uint64_t bytes)
{
	for (unsigned i = 0; i < sizeof(byte_prefixes) / sizeof(byte_prefixes[0]); i++) {
		const uint64_t factor = (uint64_t)byte_prefixes[i].factor;

		if (bytes && bytes % factor == 0) {
			fprintf(out, "%" PRIu64 "%sB", bytes / factor, byte_prefixes[i].name);
			return;
		}
	}
	fprintf(out, "%" PRIu64 "B", bytes);
}

static void write_text(FILE *out, const char *key, const char *text)
{
	fprintf(out, "%s: ", key);
	psd_json_write_string(out, text); /* YAML's double-quoted strings take all escapes of JSON */
	fputc('\n', out);
}

static void write_class(FILE *out, const struct psd_collective_class *class)
{
	fputs("{", out);
	if (class->up_to_bytes != UINT64_MAX) {
		fputs("up_to: ", out);
		write_bytes(out, class->up_to_bytes);
		fputs(", ", out);
	}
	fputs("call: ", out);
	write_seconds(out, class->call_sec);
	fputs(", step: ", out);
	write_seconds(out, class->step_sec);
	fputs(", slowdown: ", out);
	write_figure(out, class->slowdown_ratio);
	fputs("}", out);
}

static void write_optional_rate(FILE *out, const char *key, double rate_bps, const char **separator)
{
	if (rate_bps <= 0.0)
		return; /* costs nothing, which is said by leaving the key out */
	fprintf(out, "%s%s: ", *separator, key);
	write_rate(out, rate_bps);
	*separator = ", ";
}

/* A flow mapping; every key that has an effect. */
static void write_host(FILE *out, const struct psd_host *host)
{
	const char *separator = "";

	fputs("{", out);
	write_optional_rate(out, "copy", host->copy_bps, &separator);
	write_optional_rate(out, "reduce", host->reduce_bps, &separator);
	write_optional_rate(out, "transport", host->transport_bps, &separator);
	fprintf(out, "%sincast: ", separator);
	write_figure(out, host->incast_ratio);
	fputs(", message: ", out);
	write_seconds(out, host->message_sec);
	fputs(", iteration: ", out);
	write_seconds(out, host->iteration_sec);
	for (unsigned i = 0; i < host->n_collective_classes; i++) {
		fputs(i ? ", " : ", collective: [", out);
		write_class(out, &host->collective[i]);
	}
	fputs(host->n_collective_classes ? "]}" : "}", out);
}

static void write_model(FILE *out, const struct psd_scenario *scenario)
{
	fputs("model:\n", out);
	write_text(out, "  graph", scenario->graph_path);
	fprintf(out, "  batch_per_worker: %u\n  precision: %s\n", scenario->batch_per_worker,
		scenario->is_half ? "mixed" : "fp32");
	fputs("compute:\n", out);
	if (scenario->profile_path)
		write_text(out, "  profile", scenario->profile_path);
	else
		fprintf(out, "  device: %s\n", scenario->device_name);
	if (scenario->images_per_sec > 0.0) {
		fputs("  images_per_sec: ", out);
		write_figure(out, scenario->images_per_sec);
		fputc('\n', out);
	}
	fputs("  jitter: ", out);
	write_figure(out, scenario->jitter_ratio);
	fputc('\n', out);
}

static void write_network(FILE *out, const struct psd_network *network)
{
	fputs("  network:\n", out);
	if (network->topology == PSD_TOPOLOGY_PLATFORM)
		write_text(out, "    platform", network->platform_path);
	else
		fprintf(out, "    topology: %s\n", psd_topology_names[network->topology]);
	if (network->bandwidth_bps > 0.0) {
		fputs("    bandwidth: ", out);
		write_rate(out, network->bandwidth_bps);
		fputc('\n', out);
	}
	fputs("    latency: ", out);
	write_seconds(out, network->latency_sec);
	fputc('\n', out);
	if (network->topology == PSD_TOPOLOGY_RACKS || network->topology == PSD_TOPOLOGY_FAT_TREE) {
		fprintf(out, "    nodes_per_rack: %u\n    oversubscription: ", network->nodes_per_rack);
		write_figure(out, network->oversubscription_ratio);
		fputc('\n', out);
	}
	if (network->local_bps > 0.0) {
		fputs("  local:\n    bandwidth: ", out);
		write_rate(out, network->local_bps);
		fputc('\n', out);
	}
}

static void write_slowdown(FILE *out, const struct psd_slowdown *slow)
{
	fprintf(out, "    - {node: %u, compute: ", slow->node);
	write_figure(out, slow->compute_ratio);
	fputs(", link: ", out);
	write_figure(out, slow->link_ratio);
	fputs(", from: ", out);
	write_seconds(out, slow->from_sec);
	if (isfinite(slow->until_sec)) {
		fputs(", until: ", out);
		write_seconds(out, slow->until_sec);
	}
	fputs("}\n", out);
}

static void write_background(FILE *out, const struct psd_background *background)
{
	fprintf(out, "    - {from: %u, to: %u, bytes: ", background->from_node, background->to_node);
	write_bytes(out, background->bytes);
	fputs(", period: ", out);
	write_seconds(out, background->period_sec);
	fputs("}\n", out);
}

static void write_cluster(FILE *out, const struct psd_scenario *scenario)
{
	fprintf(out, "cluster:\n  nodes: %u\n  workers_per_node: %u\n", scenario->nodes, scenario->workers_per_node);
	write_network(out, &scenario->network);
	fputs("  host: ", out);
	write_host(out, &scenario->host);
	fputc('\n', out);
	if (scenario->n_slowdowns)
		fputs("  slow:\n", out);
	for (unsigned i = 0; i < scenario->n_slowdowns; i++)
		write_slowdown(out, &scenario->slowdowns[i]);
	if (scenario->n_backgrounds)
		fputs("  background:\n", out);
	for (unsigned i = 0; i < scenario->n_backgrounds; i++)
		write_background(out, &scenario->backgrounds[i]);
}

/* Keys that a system's sync does not heed are errors in a file, so they are left out here. */
static void write_system(FILE *out, const struct psd_system *system)
{
	write_text(out, "  - name", system->name);
	fprintf(out, "    schedule: %s\n    sync: %s\n", psd_schedule_names[system->schedule], psd_sync_names[system->sync]);
	if (system->sync == PSD_SYNC_HYBRID || system->sync == PSD_SYNC_SACP)
		fprintf(out, "    rule: %s\n", psd_rule_names[system->rule]);
	fprintf(out, "    barrier: %s\n    priority: %s\n    unit: %s\n", psd_barrier_names[system->barrier],
		psd_priority_names[system->priority], psd_unit_names[system->unit]);
	if (system->sync != PSD_SYNC_RING) {
		fprintf(out, "    servers: %u\n    pair: ", system->servers);
		write_bytes(out, system->pair_bytes);
		fputs("\n    slice: ", out);
		write_bytes(out, system->slice_bytes);
		fputc('\n', out);
	}
	fputs("    host: ", out);
	write_host(out, &system->host);
	fputc('\n', out);
}

static void write_counts(FILE *out, const char *key, const uint64_t *counts, unsigned n_counts)
{
	for (unsigned i = 0; i < n_counts; i++)
		fprintf(out, "%s%" PRIu64, i ? ", " : key, counts[i]);
	if (n_counts)
		fputs("]\n", out);
}

static void write_sweep(FILE *out, const struct psd_scenario *scenario)
{
	if (!scenario->n_sweep_nodes && !scenario->n_sweep_workers && !scenario->n_sweep_bandwidths)
		return;
	fputs("sweep:\n", out);
	write_counts(out, "  nodes: [", scenario->sweep_nodes, scenario->n_sweep_nodes);
	write_counts(out, "  workers: [", scenario->sweep_workers, scenario->n_sweep_workers);
	for (unsigned i = 0; i < scenario->n_sweep_bandwidths; i++) {
		fputs(i ? ", " : "  bandwidth: [", out);
		write_rate(out, scenario->sweep_bandwidth_bps[i]);
	}
	if (scenario->n_sweep_bandwidths)
		fputs("]\n", out);
}

void psd_output_scenario(FILE *out, const struct psd_scenario *scenario)
{
	write_text(out, "title", scenario->title);
	write_model(out, scenario);
	write_cluster(out, scenario);
	fputs("systems:\n", out);
	for (unsigned i = 0; i < scenario->n_systems; i++)
		write_system(out, &scenario->systems[i]);
	write_sweep(out, scenario);
	fprintf(out, "fidelity: %s\n", psd_fidelity_names[scenario->fidelity]);
	if (scenario->iterations)
		fprintf(out, "iterations: %u\n", scenario->iterations);
	fprintf(out, "seed: %" PRIu64 "\n", scenario->seed);
	write_text(out, "baseline",
		   scenario->baseline_system < 0 ? "compute" : scenario->systems[scenario->baseline_system].name);
	if (scenario->published_path)
		write_text(out, "published", scenario->published_path);
}
