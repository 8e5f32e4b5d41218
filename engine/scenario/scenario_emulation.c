/* How psd-run replays a scenario: `replay` below `compute`, and `emulation`. A prediction is of the undilated cluster
 * and merely checks them. Refuses to slow down what is really computed. */
#include <stddef.h>
#include <string.h>

#include "engine/document/fields.h"
#include "engine/scenario/scenario_parts.h"

/* Shares below are of no use, and would make a payload of 2^53 bytes one byte. */
#define LEAST_PAYLOAD_RATIO 1e-9

static const struct psd_field emulation_fields[] = {
	{.key = "dilation"},
	{.key = "payload_scale",
	 .kind = PSD_FIELD_RATIO,
	 .offset = offsetof(struct psd_replay, payload_ratio),
	 .lowest = LEAST_PAYLOAD_RATIO,
	 .highest = 1},
	{.key = NULL},
};

static enum psd_status read_dilation(struct psd_replay *replay, const struct psd_node *node, struct psd_error *err)
{
	if (!node)
		return PSD_OK;
	replay->finds_dilation = node->kind == PSD_NODE_SCALAR && !strcmp(node->text, "auto");
	if (replay->finds_dilation || !psd_node_number(node, 1, PSD_MOST_DILATION, &replay->dilation_ratio, err))
		return PSD_OK;
	if (node->kind != PSD_NODE_SCALAR)
		return PSD_EINVAL;
	return psd_error_set(err, PSD_EINVAL, node->at,
			     "'dilation' is '%.80s', must be 'auto' or a number from 1 to %d", node->text,
			     PSD_MOST_DILATION);
}

enum psd_status psd_scenario_read_emulation(const struct psd_scenario_reader *reader)
{
	struct psd_scenario *scenario = reader->scenario;
	const struct psd_node *flag = psd_node_child(psd_node_child(reader->root, "compute"), "replay");
	const struct psd_node *mapping = psd_node_child(reader->root, "emulation");
	enum psd_status status = flag ? psd_node_bool(flag, &scenario->has_replay, reader->err) : PSD_OK;

	scenario->replay = (struct psd_replay){.dilation_ratio = 1, .payload_ratio = 1};
	if (flag)
		scenario->replay_at = flag->at;
	if (status || !mapping)
		return status;
	status = psd_fields_read(&scenario->replay, mapping, "emulation", emulation_fields, reader->err);
	if (!status)
		status = read_dilation(&scenario->replay, psd_node_child(mapping, "dilation"), reader->err);
	if (!status && !scenario->has_replay) {
		const struct psd_node *refused = mapping->first ? mapping->first : mapping;

		status = psd_error_set(
			reader->err, PSD_EINVAL, refused->key_at,
			"'%s' needs 'replay: true' in 'compute': what is really computed cannot be slowed down",
			refused->key);
	}
	return status;
}
