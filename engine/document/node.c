/* Nodes of a document: finds children, checks keys, reads typed values. Knows nothing of YAML, so that
 * other file forms that build the same tree share its messages. */
#include "engine/document/document.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/spelling.h"
#include "engine/base/units.h"

static const char *name_of(const struct psd_node *node)
{
	return node->key ? node->key : "entry";
}

static const char *kind_of(const struct psd_node *node)
{
	if (node->kind == PSD_NODE_MAPPING)
		return "a mapping";
	if (node->kind == PSD_NODE_SEQUENCE)
		return "a list";
	return *node->text ? "plain text" : "empty";
}

enum psd_status psd_node_refuse(const struct psd_node *node, const char *accepted, struct psd_error *err)
{
	if (node->kind != PSD_NODE_SCALAR || !*node->text)
		return psd_error_set(err, PSD_EINVAL, node->at, "'%.80s' is %s, must be %s", name_of(node),
				     kind_of(node), accepted);
	return psd_error_set(err, PSD_EINVAL, node->at, "'%.80s' is '%.80s', must be %s", name_of(node), node->text,
			     accepted);
}

/* The bound that a number of the right spelling breaks. */
static const char *bound_of(const char *text, enum psd_units_kind quantity)
{
	char *end;
	const double value = strtod(text, &end);

	if (end == text || value > 0.0)
		return "";
	if (quantity == PSD_UNITS_SECONDS)
		return value < 0.0 ? ", 0s or more" : "";
	return quantity == PSD_UNITS_PLAIN ? "" : ", more than 0";
}

/* Refuses a quantity, and offers the spelling that was probably meant. */
static enum psd_status refuse_quantity(const struct psd_node *node, struct psd_error *err, const char *accepted,
				       enum psd_units_kind quantity)
{
	struct psd_text near = {.bytes = NULL};
	const bool is_scalar = node->kind == PSD_NODE_SCALAR;
	char both[240];

	if (is_scalar)
		psd_units_suggest(&near, quantity, node->text);
	snprintf(both, sizeof(both), "%s%s%s%.80s%s", accepted, is_scalar ? bound_of(node->text, quantity) : "",
		 near.length ? "; did you mean " : "", near.length ? near.bytes : "", near.length ? "?" : "");
	psd_text_release(&near);
	return psd_node_refuse(node, both, err);
}

const struct psd_node *psd_node_child(const struct psd_node *node, const char *key)
{
	if (!node || node->kind != PSD_NODE_MAPPING)
		return NULL;
	for (const struct psd_node *child = node->first; child; child = child->next)
		if (!strcmp(child->key, key))
			return child;
	return NULL;
}

void psd_node_hang(struct psd_node *parent, struct psd_node **last, struct psd_node *child)
{
	if (*last)
		(*last)->next = child;
	else
		parent->first = child;
	*last = child;
	parent->n_children++;
}

static void join(const char *const words[], char *text, size_t room)
{
	size_t length = 0;

	text[0] = '\0';
	for (size_t i = 0; words[i] && length < room; i++)
		length += (size_t)snprintf(text + length, room - length, "%s%s", i ? ", " : "", words[i]);
}

bool psd_node_is_set(const struct psd_node *node)
{
	return node->at.path && !strncmp(node->at.path, "--set ", strlen("--set "));
}

bool psd_node_is_option(const struct psd_node *node)
{
	return node->at.line == 0 && node->at.path && !strncmp(node->at.path, "--", 2);
}

struct psd_place psd_node_option_at(const struct psd_node *mapping, const char *name, struct psd_place otherwise)
{
	const struct psd_node *child = psd_node_child(mapping, name);

	return child && psd_node_is_option(child) ? child->at : otherwise;
}

enum psd_status psd_node_check_keys(const struct psd_node *mapping, const char *name, const char *const known[],
				    struct psd_error *err)
{
	char all[512];

	if (mapping->kind != PSD_NODE_MAPPING) {
		join(known, all, sizeof(all));
		if (psd_node_is_set(mapping))
			return psd_error_set(
				err, PSD_EINVAL, mapping->at,
				"'%s' is a mapping, --set must name one of its keys, as in %s.%s=VALUE: %s", name,
				mapping->at.path + strlen("--set "), known[0], all);
		return psd_error_set(err, PSD_EINVAL, mapping->at, "'%s' is %s, must be a mapping of keys: %s", name,
				     kind_of(mapping), all);
	}
	for (const struct psd_node *child = mapping->first; child; child = child->next) {
		const char *nearest;

		if (psd_spelling_is_one_of(child->key, known))
			continue;
		if (isdigit((unsigned char)*child->key))
			return psd_error_set(err, PSD_EINVAL, child->key_at,
					     "'%s' has no key '%.80s': several values need brackets, as in [1, 2]",
					     name, child->key);
		nearest = psd_spelling_nearest(child->key, known);
		if (nearest)
			return psd_error_set(err, PSD_EINVAL, child->key_at,
					     "unknown key '%.80s' in '%s', did you mean '%s'?", child->key, name,
					     nearest);
		join(known, all, sizeof(all));
		return psd_error_set(err, PSD_EINVAL, child->key_at, "unknown key '%.80s' in '%s', known are %s",
				     child->key, name, all);
	}
	return PSD_OK;
}

/* No cluster exceeds these bounds; beyond them sums of times would lose their small parts. */
static const double lowest_bps = 1.0, highest_bps = 1e15;
/* Bound of times whose key has no bound of its own: 11 days. */
static const double usual_highest_sec = 1e6;

enum psd_status psd_node_rate(const struct psd_node *node, double *bits_per_sec, struct psd_error *err)
{
	double value;

	if (node->kind != PSD_NODE_SCALAR || !psd_units_read_rate(node->text, &value) || value <= 0.0)
		return refuse_quantity(node, err, psd_units_rate_help, PSD_UNITS_RATE);
	if (value < lowest_bps || value > highest_bps)
		return psd_node_refuse(node, "a rate from 1bps to 1000Tbps", err);
	*bits_per_sec = value;
	return PSD_OK;
}

enum psd_status psd_node_bytes(const struct psd_node *node, uint64_t *bytes, struct psd_error *err)
{
	uint64_t value;

	if (node->kind != PSD_NODE_SCALAR || !psd_units_read_bytes(node->text, &value) || value == 0)
		return refuse_quantity(node, err, psd_units_bytes_help, PSD_UNITS_BYTES);
	*bytes = value;
	return PSD_OK;
}

enum psd_status psd_node_seconds(const struct psd_node *node, double highest, double *sec, struct psd_error *err)
{
	const double highest_sec = highest > 0.0 ? highest : usual_highest_sec;
	char accepted[64];
	double value;

	if (node->kind != PSD_NODE_SCALAR || !psd_units_read_seconds(node->text, &value))
		return refuse_quantity(node, err, psd_units_seconds_help, PSD_UNITS_SECONDS);
	snprintf(accepted, sizeof(accepted), "a time of at most %.0fs", highest_sec);
	if (value > highest_sec)
		return psd_node_refuse(node, accepted, err);
	*sec = value;
	return PSD_OK;
}

/* Reads a real number by the unit's reader, from lowest to highest. */
static enum psd_status read_real(const struct psd_node *node, bool (*read)(const char *text, double *value),
				 const char *kind, double lowest, double highest, double *real, struct psd_error *err)
{
	char accepted[160];
	double value;

	if (node->kind == PSD_NODE_SCALAR && read(node->text, &value) && value >= lowest && value <= highest) {
		*real = value;
		return PSD_OK;
	}
	snprintf(accepted, sizeof(accepted), "%s from %.15g to %.15g", kind, lowest, highest);
	return psd_node_refuse(node, accepted, err);
}

enum psd_status psd_node_ratio(const struct psd_node *node, double lowest, double highest, double *ratio,
			       struct psd_error *err)
{
	return read_real(node, psd_units_read_ratio, psd_units_ratio_help, lowest, highest, ratio, err);
}

enum psd_status psd_node_number(const struct psd_node *node, double lowest, double highest, double *number,
				struct psd_error *err)
{
	return read_real(node, psd_units_read_number, "a number", lowest, highest, number, err);
}

enum psd_status psd_node_count(const struct psd_node *node, uint64_t lowest, uint64_t highest, uint64_t *count,
			       struct psd_error *err)
{
	uint64_t value;
	char accepted[96];

	if (node->kind == PSD_NODE_SCALAR && psd_units_read_count(node->text, &value) && value >= lowest &&
	    value <= highest) {
		*count = value;
		return PSD_OK;
	}
	snprintf(accepted, sizeof(accepted), "a whole number from %" PRIu64 " to %" PRIu64, lowest, highest);
	return refuse_quantity(node, err, accepted, PSD_UNITS_PLAIN);
}

enum psd_status psd_node_bool(const struct psd_node *node, bool *value, struct psd_error *err)
{
	static const char *const names[] = {"false", "true", NULL};
	unsigned index;

	if (node->kind != PSD_NODE_SCALAR || !psd_spelling_find(node->text, names, &index))
		return psd_node_refuse(node, "true or false", err);
	*value = index == 1;
	return PSD_OK;
}

enum psd_status psd_node_choice(const struct psd_node *node, const char *const names[], unsigned *index,
				struct psd_error *err)
{
	const bool is_scalar = node->kind == PSD_NODE_SCALAR;
	char all[512], accepted[600];
	const char *nearest;

	if (is_scalar && psd_spelling_find(node->text, names, index))
		return PSD_OK;
	nearest = is_scalar && names[0] && names[1] ? psd_spelling_nearest(node->text, names) : NULL;
	join(names, all, sizeof(all));
	snprintf(accepted, sizeof(accepted), "one of: %s%s%s%s", all, nearest ? "; did you mean " : "",
		 nearest ? nearest : "", nearest ? "?" : "");
	return psd_node_refuse(node, accepted, err);
}

enum psd_status psd_node_text(const struct psd_node *node, const char **text, struct psd_error *err)
{
	if (node->kind != PSD_NODE_SCALAR || !*node->text)
		return psd_node_refuse(node, "a text", err);
	*text = node->text;
	return PSD_OK;
}
