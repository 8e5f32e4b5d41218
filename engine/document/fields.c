/* The one reader behind every table of keys. Refuses to know what the keys mean. */
#include "engine/document/fields.h"

#include <assert.h>
#include <limits.h>
#include <string.h>

enum { MAX_KEYS = 32 }; /* of one table */

static enum psd_status check_keys(const struct psd_node *mapping, const char *what, const struct psd_field *fields,
				  struct psd_error *err)
{
	const char *known[MAX_KEYS + 1];
	unsigned n_known = 0;

	for (const struct psd_field *field = fields; field->key; field++) {
		assert(n_known < MAX_KEYS);
		known[n_known++] = field->key;
	}
	known[n_known] = NULL;
	return psd_node_check_keys(mapping, what, known, err);
}

static enum psd_status read_count(void *value, const struct psd_node *node, const struct psd_field *field,
				  struct psd_error *err)
{
	uint64_t count;
	enum psd_status status = psd_node_count(node, (uint64_t)field->lowest, (uint64_t)field->highest, &count, err);

	if (status)
		return status;
	if (field->kind == PSD_FIELD_COUNT) {
		memcpy(value, &count, sizeof(count));
	} else {
		const unsigned narrow = (unsigned)count;

		assert(count <= UINT_MAX);
		memcpy(value, &narrow, sizeof(narrow));
	}
	return PSD_OK;
}

static enum psd_status read_value(void *value, const struct psd_node *node, const struct psd_field *field,
				  struct psd_error *err)
{
	switch (field->kind) {
	case PSD_FIELD_SECTION: return PSD_OK;
	case PSD_FIELD_TEXT: return psd_node_text(node, value, err);
	case PSD_FIELD_RATE: return psd_node_rate(node, value, err);
	case PSD_FIELD_BYTES: return psd_node_bytes(node, value, err);
	case PSD_FIELD_SECONDS: return psd_node_seconds(node, value, err);
	case PSD_FIELD_RATIO: return psd_node_ratio(node, field->lowest, field->highest, value, err);
	case PSD_FIELD_NUMBER: return psd_node_number(node, field->lowest, field->highest, value, err);
	case PSD_FIELD_UNSIGNED:
	case PSD_FIELD_COUNT: return read_count(value, node, field, err);
	case PSD_FIELD_CHOICE: return psd_node_choice(node, field->names, value, err);
	}
	return PSD_OK;
}

enum psd_status psd_fields_read(void *base, const struct psd_node *mapping, const char *what,
				const struct psd_field *fields, struct psd_error *err)
{
	enum psd_status status = check_keys(mapping, what, fields, err);

	for (const struct psd_field *field = fields; !status && field->key; field++) {
		const struct psd_node *node = psd_node_child(mapping, field->key);

		if (node)
			status = read_value((char *)base + field->offset, node, field, err);
		else if (field->is_required)
			status = psd_error_set(err, PSD_EINVAL, mapping->at, "'%s' needs '%s'", what, field->key);
	}
	return status;
}

enum psd_status psd_fields_check_list(const struct psd_node *node, const char *what, unsigned highest,
				      struct psd_error *err)
{
	if (node->kind != PSD_NODE_SEQUENCE)
		return psd_error_set(err, PSD_EINVAL, node->at, "'%s' must be a list such as [...]", what);
	if (node->n_children < 1 || node->n_children > highest)
		return psd_error_set(err, PSD_EINVAL, node->at, "'%s' has %u entries, must have 1 to %u", what,
				     node->n_children, highest);
	return PSD_OK;
}
