/* Inputs, outputs and attributes of a node. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "engine/model/onnx/parts.h"

enum psd_status psd_onnx_refuse(const struct psd_onnx *onnx, const char *format, ...)
{
	const char *name = onnx->node->name ? onnx->node->name : "";
	char what[512];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(what, sizeof(what), format, arguments);
	va_end(arguments);
	return psd_error_set(onnx->err, PSD_EINVAL, (struct psd_place){.path = onnx->path}, "node '%.100s' (%.40s) %s",
			     name, onnx->node->op_type, what);
}

char *psd_onnx_write_shape(char text[PSD_ONNX_SHAPE_TEXT_MAX], const uint64_t dims[], unsigned n_dims)
{
	size_t length = 1;

	text[0] = '[';
	for (unsigned d = 0; d < n_dims; d++)
		length += (size_t)snprintf(text + length, PSD_ONNX_SHAPE_TEXT_MAX - length, d ? ",%llu" : "%llu",
					   (unsigned long long)dims[d]);
	snprintf(text + length, PSD_ONNX_SHAPE_TEXT_MAX - length, "]");
	return text;
}

static char *write_shape_of(char text[PSD_ONNX_SHAPE_TEXT_MAX], const struct psd_onnx_value *value)
{
	uint64_t dims[PSD_ONNX_AXES_MAX];

	if (value->kind != PSD_ONNX_DATA)
		return psd_onnx_write_shape(text, value->dims, value->n_dims);
	for (unsigned a = 0; a < value->view.n_axes; a++)
		dims[a] = psd_onnx_view_dim(&value->view, a);
	return psd_onnx_write_shape(text, dims, value->view.n_axes);
}

enum psd_status psd_onnx_refuse_shapes(const struct psd_onnx *onnx, const char *rule)
{
	char shapes[300] = "", shape[PSD_ONNX_SHAPE_TEXT_MAX];
	size_t length = 0;

	for (unsigned i = 0; i < onnx->node->n_input && length < sizeof(shapes); i++)
		length += (size_t)snprintf(shapes + length, sizeof(shapes) - length, "%s%s",
					   i == 0			 ? ""
					   : i + 1 < onnx->node->n_input ? ", "
									 : " and ",
					   write_shape_of(shape, psd_onnx_input(onnx, i)));
	return psd_onnx_refuse(onnx, "has inputs of shapes %s, %s", shapes, rule);
}

enum psd_status psd_onnx_no_memory(const struct psd_onnx *onnx)
{
	return psd_error_set(onnx->err, PSD_ENOMEM, (struct psd_place){.path = onnx->path}, "out of memory");
}

bool psd_onnx_is_foreign(const Onnx__Node *node)
{
	return node->domain && *node->domain && strcmp(node->domain, "ai.onnx") != 0;
}

unsigned psd_onnx_number_of(const struct psd_onnx *onnx, const char *name)
{
	unsigned number = 0;

	if (*name)
		psd_names_find(&onnx->names, name, &number);
	return number;
}

struct psd_onnx_value *psd_onnx_named(const struct psd_onnx *onnx, const char *name)
{
	return &onnx->values[psd_onnx_number_of(onnx, name)];
}

static struct psd_onnx_value *find(const struct psd_onnx *onnx, char *const names[], size_t n_names, unsigned i)
{
	return psd_onnx_named(onnx, i < n_names ? names[i] : "");
}

struct psd_onnx_value *psd_onnx_input(const struct psd_onnx *onnx, unsigned i)
{
	return find(onnx, onnx->node->input, onnx->node->n_input, i);
}

struct psd_onnx_value *psd_onnx_output(const struct psd_onnx *onnx, unsigned i)
{
	return find(onnx, onnx->node->output, onnx->node->n_output, i);
}

const Onnx__Attribute *psd_onnx_attribute(const Onnx__Node *node, const char *name)
{
	for (size_t i = 0; i < node->n_attribute; i++)
		if (node->attribute[i]->name && !strcmp(node->attribute[i]->name, name))
			return node->attribute[i];
	return NULL;
}

int64_t psd_onnx_integer(const struct psd_onnx *onnx, const char *name, int64_t otherwise)
{
	const Onnx__Attribute *attribute = psd_onnx_attribute(onnx->node, name);

	return attribute && attribute->has_i ? attribute->i : otherwise;
}

double psd_onnx_number(const struct psd_onnx *onnx, const char *name, double otherwise)
{
	const Onnx__Attribute *attribute = psd_onnx_attribute(onnx->node, name);

	return attribute && attribute->has_f ? (double)attribute->f : otherwise;
}

bool psd_onnx_text_is(const struct psd_onnx *onnx, const char *name, const char *text)
{
	const Onnx__Attribute *attribute = psd_onnx_attribute(onnx->node, name);

	return attribute && attribute->has_s && attribute->s.len == strlen(text) &&
	       !memcmp(attribute->s.data, text, attribute->s.len);
}

/* Converts a double, limited to the range of int64_t; NaN becomes the lowest number. */
static int64_t to_integer(double number)
{
	return number >= 9.2e18 ? INT64_MAX : number > -9.2e18 ? (int64_t)number : INT64_MIN;
}

enum psd_status psd_onnx_integers(struct psd_onnx *onnx, const char *name, unsigned i, int64_t integers[],
				  unsigned most, unsigned *n)
{
	const Onnx__Attribute *attribute = psd_onnx_attribute(onnx->node, name);
	struct psd_onnx_value *value = psd_onnx_input(onnx, i);

	*n = 0;
	if (attribute && attribute->n_ints > most)
		return psd_onnx_refuse(onnx, "has %zu '%s', must have up to %u", attribute->n_ints, name, most);
	for (size_t e = 0; attribute && e < attribute->n_ints; e++)
		integers[(*n)++] = attribute->ints[e];
	if (attribute || i == 0 || value->kind == PSD_ONNX_ABSENT)
		return PSD_OK;
	if (value->kind != PSD_ONNX_CONSTANT)
		return psd_onnx_refuse(onnx, "computes '%s' from the samples, must have a constant", name);
	if (psd_onnx_elements(value) > most)
		return psd_onnx_refuse(onnx, "has %llu '%s', must have up to %u",
				       (unsigned long long)psd_onnx_elements(value), name, most);
	PSD_TRY(psd_onnx_read_numbers(onnx, value));
	for (uint64_t e = 0; e < psd_onnx_elements(value); e++)
		integers[(*n)++] = to_integer(value->numbers[e]);
	return PSD_OK;
}

enum psd_status psd_onnx_axis(const struct psd_onnx *onnx, int64_t number, unsigned n_axes, unsigned *axis)
{
	if (number < -(int64_t)n_axes || number >= (int64_t)n_axes)
		return psd_onnx_refuse(onnx, "has axis %lld, must be from -%u to before %u", (long long)number, n_axes,
				       n_axes);
	*axis = (unsigned)(number < 0 ? number + n_axes : number);
	return PSD_OK;
}

enum psd_status psd_onnx_mark_axes(struct psd_onnx *onnx, unsigned n_axes, bool are_added,
				   bool is_marked[PSD_ONNX_AXES_MAX], unsigned *n)
{
	int64_t numbers[PSD_ONNX_AXES_MAX];

	PSD_TRY(psd_onnx_integers(onnx, "axes", 1, numbers, PSD_ONNX_AXES_MAX, n));
	memset(is_marked, 0, PSD_ONNX_AXES_MAX * sizeof(*is_marked));
	if (are_added && n_axes + *n > PSD_ONNX_AXES_MAX)
		return psd_onnx_refuse(onnx, "makes more than %u axes", PSD_ONNX_AXES_MAX);
	for (unsigned i = 0; i < *n; i++) {
		unsigned axis = 0;

		PSD_TRY(psd_onnx_axis(onnx, numbers[i], are_added ? n_axes + *n : n_axes, &axis));
		is_marked[axis] = true;
	}
	return PSD_OK;
}
