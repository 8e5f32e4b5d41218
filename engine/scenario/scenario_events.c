/* `slow` and `background` of a cluster: what disturbs a run. Refuses nodes that some point of the sweep does not have.
 */
#include <math.h>
#include <stddef.h>

#include "engine/document/fields.h"
#include "engine/scenario/scenario_parts.h"

#define LEAST_BACKGROUND_BYTES 10000
#define LEAST_PERIOD_SEC       10e-6

#define SLOW(name, type, member)                                                                                       \
	.key = (name), .kind = PSD_FIELD_##type, .offset = offsetof(struct psd_slowdown, member)

static const struct psd_field slow_fields[] = {
	{SLOW("node", UNSIGNED, node), .is_required = true, .highest = PSD_MAX_NODES - 1},
	{SLOW("compute", RATIO, compute_ratio), .lowest = 0.001, .highest = 100},
	{SLOW("link", RATIO, link_ratio), .lowest = 0.001, .highest = 100},
	{SLOW("from", SECONDS, from_sec)},
	{SLOW("until", SECONDS, until_sec)},
	{.key = NULL},
};

#define BACKGROUND(name, type, member)                                                                                 \
	.key = (name), .kind = PSD_FIELD_##type, .offset = offsetof(struct psd_background, member)

static const struct psd_field background_fields[] = {
	{BACKGROUND("from", UNSIGNED, from_node), .is_required = true, .highest = PSD_MAX_NODES - 1},
	{BACKGROUND("to", UNSIGNED, to_node), .is_required = true, .highest = PSD_MAX_NODES - 1},
	{BACKGROUND("bytes", BYTES, bytes), .is_required = true},
	{BACKGROUND("period", SECONDS, period_sec)},
	{.key = NULL},
};

static unsigned fewest_nodes(const struct psd_scenario *scenario)
{
	unsigned fewest = PSD_MAX_NODES;

	for (unsigned i = 0; i < psd_scenario_points(scenario); i++)
		if (psd_scenario_point(scenario, i).nodes < fewest)
			fewest = psd_scenario_point(scenario, i).nodes;
	return fewest;
}

static enum psd_status check_node(const struct psd_scenario_reader *reader, const struct psd_node *entry,
				  const char *key, unsigned node)
{
	const unsigned fewest = fewest_nodes(reader->scenario);
	const bool has_sweep = psd_scenario_points(reader->scenario) > 1;

	if (node < fewest)
		return PSD_OK;
	return psd_error_set(reader->err, PSD_EINVAL, psd_node_child(entry, key)->at,
			     "'%s' is %u, must be from 0 to %u: %s has %u nodes", key, node, fewest - 1,
			     has_sweep ? "the smallest point of the sweep" : "the cluster", fewest);
}

static enum psd_status read_slowdown(const struct psd_scenario_reader *reader, const struct psd_node *entry)
{
	struct psd_slowdown *slow = &reader->scenario->slowdowns[reader->scenario->n_slowdowns++];
	enum psd_status status;

	*slow = (struct psd_slowdown){.compute_ratio = 1, .link_ratio = 1, .until_sec = INFINITY, .at = entry->at};
	status = psd_fields_read(slow, entry, "slow", slow_fields, reader->err);
	if (status)
		return status;
	if (!psd_node_child(entry, "compute") && !psd_node_child(entry, "link"))
		return psd_error_set(reader->err, PSD_EINVAL, entry->at, "'slow' needs 'compute' or 'link'");
	if (slow->until_sec <= slow->from_sec)
		return psd_error_set(reader->err, PSD_EINVAL, psd_node_child(entry, "until")->at,
				     "'until' is '%.80s', must be later than 'from'",
				     psd_node_child(entry, "until")->text);
	return check_node(reader, entry, "node", slow->node);
}

static double slowest_link_bps(const struct psd_scenario *scenario)
{
	double slowest_bps = INFINITY;

	for (unsigned i = 0; i < psd_scenario_points(scenario); i++)
		slowest_bps = fmin(slowest_bps, psd_scenario_point(scenario, i).bandwidth_bps);
	return slowest_bps;
}

/* What a link cannot carry would pile up for as long as the run lasts; very small or frequent transfers would be all
 * that is simulated. */
static enum psd_status check_amount(const struct psd_scenario_reader *reader, const struct psd_node *entry,
				    const struct psd_background *background)
{
	const double link_bps = slowest_link_bps(reader->scenario);
	const struct psd_node *bytes = psd_node_child(entry, "bytes"), *period = psd_node_child(entry, "period");

	if (background->bytes < LEAST_BACKGROUND_BYTES)
		return psd_error_set(reader->err, PSD_EINVAL, bytes->at, "'bytes' is '%.80s', must be 10kB or more",
				     bytes->text);
	if (period && background->period_sec < LEAST_PERIOD_SEC)
		return psd_error_set(
			reader->err, PSD_EINVAL, period->at,
			"'period' is '%.80s', must be 10us or more; without it transfers follow one another",
			period->text);
	if (period && link_bps > 0.0 && 8.0 * (double)background->bytes / background->period_sec >= link_bps)
		return psd_error_set(reader->err, PSD_EINVAL, period->at,
				     "'period' is '%.80s', must be longer: the link cannot carry %.80s in that time",
				     period->text, bytes->text);
	return PSD_OK;
}

static enum psd_status read_background(const struct psd_scenario_reader *reader, const struct psd_node *entry)
{
	struct psd_background *background = &reader->scenario->backgrounds[reader->scenario->n_backgrounds++];
	enum psd_status status;

	*background = (struct psd_background){.at = entry->at};
	status = psd_fields_read(background, entry, "background", background_fields, reader->err);
	if (!status && background->from_node == background->to_node)
		status = psd_error_set(reader->err, PSD_EINVAL, psd_node_child(entry, "to")->at,
				       "'to' is %u, must be another node than 'from'", background->to_node);
	if (!status)
		status = check_amount(reader, entry, background);
	if (!status)
		status = check_node(reader, entry, "from", background->from_node);
	return status ? status : check_node(reader, entry, "to", background->to_node);
}

typedef enum psd_status (*read_entry_fn)(const struct psd_scenario_reader *reader, const struct psd_node *entry);

static enum psd_status read_list(const struct psd_scenario_reader *reader, const struct psd_node *list,
				 read_entry_fn read_entry)
{
	enum psd_status status;

	if (!list)
		return PSD_OK;
	status = psd_fields_check_list(list, list->key, PSD_MAX_EVENTS, reader->err);
	for (const struct psd_node *entry = list->first; !status && entry; entry = entry->next)
		status = read_entry(reader, entry);
	return status;
}

enum psd_status psd_scenario_read_events(const struct psd_scenario_reader *reader, const struct psd_node *cluster)
{
	enum psd_status status = read_list(reader, psd_node_child(cluster, "slow"), read_slowdown);

	return status ? status : read_list(reader, psd_node_child(cluster, "background"), read_background);
}
