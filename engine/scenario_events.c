/* `slow` and `background` of a cluster: what disturbs a run. Refuses nodes that some point of the sweep does not have. */
#include <math.h>
#include <stddef.h>

#include "engine/fields.h"
#include "engine/scenario_parts.h"

#define SLOW(name, type, member) .key = (name), .kind = PSD_FIELD_##type, .offset = offsetof(struct psd_slowdown, member)

static const struct psd_field slow_fields[] = {
	{SLOW("node", UNSIGNED, node), .is_required = true, .highest = PSD_MAX_NODES - 1},
	{SLOW("compute", RATIO, compute_ratio), .lowest = 0.001, .highest = 100},
	{SLOW("link", RATIO, link_ratio), .lowest = 0.001, .highest = 100},
	{SLOW("from", SECONDS, from_sec)},
	{SLOW("until", SECONDS, until_sec)},
	{.key = NULL},
};

#define BACKGROUND(name, type, member) .key = (name), .kind = PSD_FIELD_##type, .offset = offsetof(struct psd_background, member)

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

static enum psd_status check_node(const struct psd_scenario_reader *reader, const struct psd_node *entry, const char *key,
				  unsigned node)
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
				     "'until' is '%.80s', must be later than 'from'", psd_node_child(entry, "until")->text);
	return check_node(reader, entry, "node", slow->node);
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
		status = check_node(reader, entry, "from", background->from_node);
	return status ? status : check_node(reader, entry, "to", background->to_node);
}

typedef enum psd_status (*read_entry_fn)(const struct psd_scenario_reader *reader, const struct psd_node *entry);

static enum psd_status read_list(const struct psd_scenario_reader *reader, const struct psd_node *list, read_entry_fn read_entry)
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
