/* Readers of the fields of a Caffe message. A second value, which Caffe would merge or let win, is refused. */
#include "engine/model/prototxt_parts.h"

#include <math.h>
#include <string.h>

#include "engine/model/layer.h"

enum psd_status psd_caffe_single(const struct psd_node *message, const char *key, const struct psd_node **field,
				 struct psd_error *err)
{
	*field = NULL;
	if (!message || message->kind != PSD_NODE_MAPPING)
		return PSD_OK;
	for (const struct psd_node *child = message->first; child; child = child->next) {
		if (strcmp(child->key, key) != 0)
			continue;
		if (*field)
			return psd_error_set(err, PSD_EINVAL, child->key_at, "'%s' is already in line %u", key,
					     (*field)->key_at.line);
		*field = child;
	}
	return PSD_OK;
}

unsigned psd_caffe_count_fields(const struct psd_node *message, const char *key)
{
	unsigned n = 0;

	for (const struct psd_node *child = message ? message->first : NULL; child; child = child->next)
		n += !strcmp(child->key, key);
	return n;
}

enum psd_status psd_caffe_read_count(const struct psd_node *message, const char *key, uint32_t lowest, uint32_t highest,
				     uint32_t *count, struct psd_error *err)
{
	const struct psd_node *field;
	uint64_t value;

	PSD_TRY(psd_caffe_single(message, key, &field, err));
	if (!field)
		return PSD_OK;
	PSD_TRY(psd_node_count(field, lowest, highest, &value, err));
	*count = (uint32_t)value;
	return PSD_OK;
}

enum psd_status psd_caffe_read_flag(const struct psd_node *message, const char *key, bool *flag, struct psd_error *err)
{
	const struct psd_node *field;
	enum psd_status status = psd_caffe_single(message, key, &field, err);

	return status || !field ? status : psd_node_bool(field, flag, err);
}

enum psd_status psd_caffe_read_pair(const struct psd_node *message, const char *both_key, const char *height_key,
				    const char *width_key, uint32_t lowest, struct psd_sides *sides,
				    struct psd_error *err)
{
	uint32_t *const side[] = {&sides->height, &sides->width};
	unsigned n_found = 0;

	for (const struct psd_node *child = message->first; child; child = child->next) {
		uint64_t value;

		if (strcmp(child->key, both_key) != 0)
			continue;
		if (n_found == 2)
			return psd_error_set(err, PSD_EINVAL, child->at, "'%s' occurs more than twice", both_key);
		PSD_TRY(psd_node_count(child, lowest, PSD_LAYER_SIDE_MAX, &value, err));
		*side[n_found++] = (uint32_t)value;
	}
	if (n_found == 1)
		sides->width = sides->height;
	PSD_TRY(psd_caffe_read_count(message, height_key, lowest, PSD_LAYER_SIDE_MAX, &sides->height, err));
	return psd_caffe_read_count(message, width_key, lowest, PSD_LAYER_SIDE_MAX, &sides->width, err);
}

enum psd_status psd_caffe_read_numbers(const struct psd_node *message, const char *key, double lowest, double highest,
				       double numbers[], unsigned most, unsigned *n_numbers, bool is_whole,
				       struct psd_error *err)
{
	for (const struct psd_node *child = message ? message->first : NULL; child; child = child->next) {
		if (strcmp(child->key, key) != 0)
			continue;
		if (*n_numbers == most)
			return psd_error_set(err, PSD_EINVAL, child->key_at, "'%s' occurs more than %u times", key,
					     most);
		PSD_TRY(psd_node_number(child, lowest, highest, &numbers[*n_numbers], err));
		if (is_whole && floor(numbers[*n_numbers]) != numbers[*n_numbers])
			return psd_error_set(err, PSD_EINVAL, child->at, "'%s' is '%.80s', must be a whole number", key,
					     child->text);
		++*n_numbers;
	}
	return PSD_OK;
}

enum psd_status psd_caffe_missing(const struct psd_node *node, const struct psd_layer_spec *spec, const char *key,
				  struct psd_error *err)
{
	return psd_error_set(err, PSD_EINVAL, node->at, "layer '%.80s' has no '%s'", spec->name, key);
}
