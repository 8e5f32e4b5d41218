/* `systems` and `baseline` of a scenario file. Refuses keys that a system's way of synchronising would not heed, and
 * names that would break a CSV row. */
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "engine/document/fields.h"
#include "engine/scenario/scenario_parts.h"

enum { NAME_MAX_BYTES = 64 };

static const uint64_t default_pair_bytes = 2 * 1000 * 1000; /* ATC'17 section 4.2 */
static const uint64_t default_slice_bytes = 32 * UINT64_C(1048576);
static const char compute_baseline[] = "compute";

#define SYSTEM(name, type, member)                                                                                     \
	.key = (name), .kind = PSD_FIELD_##type, .offset = offsetof(struct psd_system, member)

static const struct psd_field system_fields[] = {
	{SYSTEM("name", TEXT, name), .is_required = true},
	{SYSTEM("schedule", CHOICE, schedule), .names = psd_schedule_names},
	{SYSTEM("sync", CHOICE, sync), .names = psd_sync_names},
	{SYSTEM("rule", CHOICE, rule), .names = psd_rule_names},
	{SYSTEM("barrier", CHOICE, barrier), .names = psd_barrier_names},
	{SYSTEM("priority", CHOICE, priority), .names = psd_priority_names},
	{SYSTEM("unit", CHOICE, unit), .names = psd_unit_names},
	{SYSTEM("servers", UNSIGNED, servers), .highest = PSD_MAX_NODES},
	{SYSTEM("pair", BYTES, pair_bytes)},
	{SYSTEM("slice", BYTES, slice_bytes)},
	{.key = "host"},
	{.key = NULL},
};

#define BIT(sync) (1u << PSD_SYNC_##sync)

/* Keys that only some ways of synchronising heed. */
static const struct {
	const char *key;
	unsigned syncs;
	const char *heeded_by;
} particular_keys[] = {
	{"rule", BIT(HYBRID) | BIT(SACP), "hybrid and sacp"},
	{"servers", ~BIT(RING), "parameter servers"},
	{"pair", ~BIT(RING), "parameter servers"},
};

static enum psd_status check_particular(const struct psd_system *system, const struct psd_node *entry,
					struct psd_error *err)
{
	for (size_t i = 0; i < sizeof(particular_keys) / sizeof(particular_keys[0]); i++) {
		const struct psd_node *child = psd_node_child(entry, particular_keys[i].key);

		if (child && !(particular_keys[i].syncs & 1u << system->sync))
			return psd_error_set(
				err, PSD_EINVAL, child->key_at, "'%s' has no effect where 'sync' is '%s', only with %s",
				particular_keys[i].key, psd_sync_names[system->sync], particular_keys[i].heeded_by);
	}
	return PSD_OK;
}

static enum psd_status check_name(const struct psd_scenario *scenario, const struct psd_system *system,
				  struct psd_place at, struct psd_error *err)
{
	for (const char *c = system->name; *c; c++)
		if ((unsigned char)*c < 0x20 || *c == 0x7f || strchr(",\"'", *c))
			return psd_error_set(err, PSD_EINVAL, at,
					     "'name' is '%.80s', must not contain commas, quotes or control characters",
					     system->name);
	if (strchr("=+-@", *system->name))
		return psd_error_set(err, PSD_EINVAL, at, "'name' is '%.80s', must not begin with one of = + - @",
				     system->name);
	if (strlen(system->name) > NAME_MAX_BYTES)
		return psd_error_set(err, PSD_EINVAL, at, "'name' is '%.80s', must be at most %d bytes long",
				     system->name, NAME_MAX_BYTES);
	if (!strcmp(system->name, compute_baseline))
		return psd_error_set(err, PSD_EINVAL, at, "'name' is '%s', which 'baseline' means otherwise",
				     compute_baseline);
	for (const struct psd_system *other = scenario->systems; other < system; other++)
		if (!strcmp(other->name, system->name))
			return psd_error_set(err, PSD_EINVAL, at,
					     "'name' is '%s', which the system in line %u has already", system->name,
					     other->at.line);
	return PSD_OK;
}

static enum psd_status settle_sizes(struct psd_system *system, const struct psd_node *entry, struct psd_error *err)
{
	const struct psd_node *slice = psd_node_child(entry, "slice");

	if (system->slice_bytes >= system->pair_bytes || system->sync == PSD_SYNC_RING)
		return PSD_OK;
	if (slice)
		return psd_error_set(err, PSD_EINVAL, slice->at,
				     "'slice' is '%.80s', must be at least 'pair', %" PRIu64 " bytes", slice->text,
				     system->pair_bytes);
	system->slice_bytes = system->pair_bytes;
	return PSD_OK;
}

static enum psd_status read_system(const struct psd_scenario_reader *reader, const struct psd_node *entry)
{
	struct psd_system *system = &reader->scenario->systems[reader->scenario->n_systems++];
	const struct psd_node *host = psd_node_child(entry, "host");
	enum psd_status status;

	*system = (struct psd_system){
		.schedule = PSD_SCHEDULE_WAIT_FREE,
		.sync = PSD_SYNC_HYBRID,
		.pair_bytes = default_pair_bytes,
		.slice_bytes = default_slice_bytes,
		.host = reader->scenario->host,
		.at = entry->at,
	};
	status = psd_fields_read(system, entry, "systems", system_fields, reader->err);
	if (!status && system->sync == PSD_SYNC_RING && !psd_node_child(entry, "unit"))
		system->unit = PSD_UNIT_TENSOR;
	if (!status)
		status = check_name(reader->scenario, system, psd_node_child(entry, "name")->at, reader->err);
	if (!status)
		status = check_particular(system, entry, reader->err);
	if (!status)
		status = settle_sizes(system, entry, reader->err);
	if (!status && host)
		status = psd_scenario_read_host(&system->host, host, reader->err);
	if (!status && system->host.incast_ratio > 0.0 && system->host.transport_bps == 0.0)
		return psd_error_set(reader->err, PSD_EINVAL, entry->at,
				     "'incast' of system '%s' has no effect without 'transport', which it slows",
				     system->name);
	return status;
}

static enum psd_status read_baseline(const struct psd_scenario_reader *reader, const struct psd_node *node)
{
	const char *name;
	enum psd_status status = psd_node_text(node, &name, reader->err);

	if (status || !strcmp(name, compute_baseline))
		return status;
	for (unsigned i = 0; i < reader->scenario->n_systems; i++)
		if (!strcmp(reader->scenario->systems[i].name, name)) {
			reader->scenario->baseline_system = (int)i;
			return PSD_OK;
		}
	return psd_error_set(reader->err, PSD_EINVAL, node->at,
			     "'baseline' is '%.80s', must be the name of a system or '%s'", name, compute_baseline);
}

enum psd_status psd_scenario_read_systems(const struct psd_scenario_reader *reader)
{
	const struct psd_node *list = psd_node_child(reader->root, "systems");
	const struct psd_node *baseline = psd_node_child(reader->root, "baseline");
	enum psd_status status = psd_fields_check_list(list, "systems", PSD_MAX_SYSTEMS, reader->err);

	for (const struct psd_node *entry = list->first; !status && entry; entry = entry->next)
		status = read_system(reader, entry);
	return !status && baseline ? read_baseline(reader, baseline) : status;
}

enum psd_status psd_scenario_find_system(const struct psd_scenario *scenario, const char *name, unsigned *index,
					 struct psd_error *err)
{
	char names[512] = "";
	size_t length = 0;

	for (unsigned i = 0; i < scenario->n_systems; i++) {
		const char *other = scenario->systems[i].name;

		if (!strcmp(other, name)) {
			*index = i;
			return PSD_OK;
		}
		if (length < sizeof(names))
			length +=
				(size_t)snprintf(names + length, sizeof(names) - length, "%s%s", i ? ", " : "", other);
	}
	return psd_error_set(err, PSD_EINVAL, (struct psd_place){scenario->path, 0, 0},
			     "has no system '%.80s', must be one of %s", name, names);
}
