/* Constants of the file. Numbers are doubles, which represent all sizes and indices exactly. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/file.h"
#include "engine/base/inputs.h"
#include "engine/base/saturate.h"
#include "engine/model/onnx/parts.h"

uint64_t psd_onnx_elements(const struct psd_onnx_value *constant)
{
	uint64_t elements = 1;

	for (unsigned d = 0; d < constant->n_dims; d++)
		elements = psd_saturated_mul(elements, constant->dims[d]);
	return elements;
}

bool psd_onnx_is_parameter(const struct psd_onnx_value *value)
{
	return value->kind == PSD_ONNX_CONSTANT && value->origin && value->is_real && !value->is_fixed &&
	       !value->is_table;
}

bool psd_onnx_is_learned(const struct psd_onnx_value *value)
{
	return psd_onnx_is_parameter(value) && psd_onnx_elements(value) > 1;
}

enum psd_status psd_onnx_alloc_numbers(struct psd_onnx *onnx, struct psd_onnx_value *constant, double **numbers)
{
	const uint64_t elements = psd_onnx_elements(constant);

	if (elements > PSD_ONNX_NUMBERS_MAX)
		return psd_onnx_refuse(onnx, "needs more than %llu numbers of a constant",
				       (unsigned long long)PSD_ONNX_NUMBERS_MAX);
	if (onnx->n_numbers + elements > onnx->most_numbers)
		return psd_onnx_refuse(onnx,
				       "needs more constant numbers than the %llu allowed for a file of this length",
				       (unsigned long long)onnx->most_numbers);
	*numbers = psd_arena_take(&onnx->arena, (elements + 1) * sizeof(**numbers));
	onnx->n_numbers += elements;
	constant->numbers = *numbers;
	onnx->is_out_of_memory |= !*numbers;
	return *numbers ? PSD_OK : psd_onnx_no_memory(onnx);
}

/* ---- reading ---- */

static double half(uint16_t bits)
{
	const int exponent = bits >> 10 & 31, fraction = bits & 1023;
	const double size = exponent == 31 ? (fraction ? NAN : INFINITY)
			    : exponent	   ? ldexp(1024 + fraction, exponent - 25)
					   : ldexp(fraction, -24);

	return bits & 0x8000 ? -size : size;
}

static double brain_float(uint16_t bits)
{
	const uint32_t wide = (uint32_t)bits << 16;
	float number;

	memcpy(&number, &wide, sizeof(number));
	return (double)number;
}

/* Bytes of an element in raw data; 0: the type has no numbers. */
static size_t bytes_of(int32_t type)
{
	static const unsigned char bytes[] = {
		[PSD_ONNX_FLOAT] = 4,	[PSD_ONNX_UINT8] = 1,  [PSD_ONNX_INT8] = 1,   [PSD_ONNX_UINT16] = 2,
		[PSD_ONNX_INT16] = 2,	[PSD_ONNX_INT32] = 4,  [PSD_ONNX_INT64] = 8,  [PSD_ONNX_BOOL] = 1,
		[PSD_ONNX_FLOAT16] = 2, [PSD_ONNX_DOUBLE] = 8, [PSD_ONNX_UINT32] = 4, [PSD_ONNX_UINT64] = 8,
		[PSD_ONNX_BFLOAT16] = 2};

	return type > 0 && type <= PSD_ONNX_BFLOAT16 ? bytes[type] : 0;
}

bool psd_onnx_is_real(int32_t type)
{
	return type == PSD_ONNX_FLOAT || type == PSD_ONNX_FLOAT16 || type == PSD_ONNX_DOUBLE ||
	       type == PSD_ONNX_BFLOAT16;
}

#define READ(type)                                                                                                     \
	{                                                                                                              \
		type number;                                                                                           \
		memcpy(&number, raw, sizeof(number));                                                                  \
		return (double)number;                                                                                 \
	}

static double raw_number(const uint8_t *raw, int32_t type)
{
	switch (type) {
	case PSD_ONNX_FLOAT: READ(float)
	case PSD_ONNX_UINT8:
	case PSD_ONNX_BOOL: return *raw;
	case PSD_ONNX_INT8: READ(int8_t)
	case PSD_ONNX_UINT16: READ(uint16_t)
	case PSD_ONNX_INT16: READ(int16_t)
	case PSD_ONNX_INT32: READ(int32_t)
	case PSD_ONNX_INT64: READ(int64_t)
	case PSD_ONNX_DOUBLE: READ(double)
	case PSD_ONNX_UINT32: READ(uint32_t)
	case PSD_ONNX_UINT64: READ(uint64_t)
	default: break;
	}
	uint16_t bits;

	memcpy(&bits, raw, sizeof(bits));
	return type == PSD_ONNX_FLOAT16 ? half(bits) : brain_float(bits);
}

static double number_of_int32(int32_t number, int32_t type)
{
	return type == PSD_ONNX_FLOAT16	   ? half((uint16_t)number)
	       : type == PSD_ONNX_BFLOAT16 ? brain_float((uint16_t)number)
					   : number;
}

/* Typed fields of a tensor. The one with the right number of values counts; FIELDS: there is none. */
enum { FLOATS, INT32S, INT64S, DOUBLES, UINT64S, FIELDS };

static unsigned field_of(const Onnx__Tensor *tensor, uint64_t elements)
{
	const size_t n[FIELDS] = {tensor->n_float_data, tensor->n_int32_data, tensor->n_int64_data,
				  tensor->n_double_data, tensor->n_uint64_data};
	unsigned field = 0;

	while (field < FIELDS && n[field] != elements)
		field++;
	return field;
}

static double typed_number(const Onnx__Tensor *tensor, unsigned field, uint64_t offset)
{
	switch (field) {
	case FLOATS: return (double)tensor->float_data[offset];
	case INT32S: return number_of_int32(tensor->int32_data[offset], tensor->data_type);
	case INT64S: return (double)tensor->int64_data[offset];
	case DOUBLES: return tensor->double_data[offset];
	default: return (double)tensor->uint64_data[offset];
	}
}

static const char *entry(const Onnx__Tensor *tensor, const char *key)
{
	for (size_t i = 0; i < tensor->n_external_data; i++)
		if (tensor->external_data[i]->key && !strcmp(tensor->external_data[i]->key, key))
			return tensor->external_data[i]->value;
	return NULL;
}

enum { PATH_BYTES = 4096 };

/* External data must be in the model's folder. */
static enum psd_status external_path(const struct psd_onnx *onnx, const Onnx__Tensor *tensor, char path[PATH_BYTES])
{
	const char *location = entry(tensor, "location");
	const char *slash = strrchr(onnx->path, '/');
	const int folder = slash ? (int)(slash - onnx->path) + 1 : 0;

	if (!location || !*location || *location == '/' || strstr(location, ".."))
		return psd_error_set(onnx->err, PSD_EINVAL, (struct psd_place){.path = onnx->path},
				     "tensor '%.100s' lies in '%.100s', must lie in a file beside the model",
				     tensor->name ? tensor->name : "", location ? location : "");
	if (snprintf(path, PATH_BYTES, "%.*s%s", folder, onnx->path, location) >= PATH_BYTES)
		return psd_error_set(onnx->err, PSD_EINVAL, (struct psd_place){.path = onnx->path},
				     "the path of '%.100s' is too long", location);
	return PSD_OK;
}

static enum psd_status read_external(const struct psd_onnx *onnx, const Onnx__Tensor *tensor, uint8_t *raw,
				     size_t bytes)
{
	const char *offset = entry(tensor, "offset");
	char path[PATH_BYTES];

	PSD_TRY(external_path(onnx, tensor, path));
	return psd_file_read_part(raw, bytes, offset ? strtoull(offset, NULL, 10) : 0, path, onnx->err);
}

enum psd_status psd_onnx_note_input(const struct psd_onnx *onnx, const Onnx__Tensor *tensor)
{
	char path[PATH_BYTES];

	if (tensor->data_location != 1)
		return PSD_OK;
	PSD_TRY(external_path(onnx, tensor, path));
	psd_inputs_note(path);
	return PSD_OK;
}

static uint64_t elements_of(const Onnx__Tensor *tensor)
{
	uint64_t elements = 1;

	for (size_t d = 0; d < tensor->n_dims; d++)
		elements = psd_saturated_mul(elements, tensor->dims[d] > 0 ? (uint64_t)tensor->dims[d] : 0);
	return elements;
}

enum psd_status psd_onnx_source_open(struct psd_onnx_source *source, const struct psd_onnx *onnx,
				     const Onnx__Tensor *tensor)
{
	const struct psd_place at = {.path = onnx->path};
	const char *name = tensor->name ? tensor->name : "";
	const uint64_t elements = elements_of(tensor), bytes = psd_saturated_mul(elements, bytes_of(tensor->data_type));
	enum psd_status status;

	*source = (struct psd_onnx_source){.tensor = tensor};
	if (!bytes_of(tensor->data_type) || bytes >= SIZE_MAX)
		return psd_error_set(onnx->err, PSD_EINVAL, at, "tensor '%.100s' has no numbers", name);
	if (tensor->data_location == 1) {
		source->raw = source->owned = malloc((size_t)bytes + 1);
		if (!source->raw)
			return psd_onnx_no_memory(onnx);
		status = read_external(onnx, tensor, source->owned, (size_t)bytes);
		if (status)
			psd_onnx_source_close(source);
		return status;
	}
	if (tensor->raw_data.data && tensor->raw_data.len == bytes)
		source->raw = tensor->raw_data.data;
	source->field = field_of(tensor, elements);
	if (!source->raw && source->field == FIELDS)
		return psd_error_set(onnx->err, PSD_EINVAL, at, "the file leaves out the numbers of '%.100s'", name);
	return PSD_OK;
}

double psd_onnx_source_number(const struct psd_onnx_source *source, uint64_t offset)
{
	const int32_t type = source->tensor->data_type;

	return source->raw ? raw_number(source->raw + offset * bytes_of(type), type)
			   : typed_number(source->tensor, source->field, offset);
}

void psd_onnx_source_close(struct psd_onnx_source *source)
{
	free(source->owned);
	*source = (struct psd_onnx_source){0};
}

bool psd_onnx_by_rows(const struct psd_onnx_value *constant, struct psd_onnx_view *view)
{
	uint64_t stride = psd_onnx_elements(constant);
	bool fits = true;

	*view = (struct psd_onnx_view){.layer = 0};
	for (unsigned d = 0; d < constant->n_dims && fits; d++) {
		stride /= constant->dims[d] ? constant->dims[d] : 1;
		fits = constant->dims[d] && psd_onnx_view_add_axis(view) &&
		       psd_onnx_view_add_digit(view, constant->dims[d], stride);
	}
	return fits;
}

uint64_t psd_onnx_offset(const struct psd_onnx_view *view, uint64_t e)
{
	uint64_t offset = view->offset;

	for (unsigned d = psd_onnx_view_digits(view); d-- > 0;) {
		offset += e % view->digits[d].size * view->digits[d].stride;
		e /= view->digits[d].size;
	}
	return offset;
}

enum psd_status psd_onnx_read_numbers(struct psd_onnx *onnx, struct psd_onnx_value *constant)
{
	const uint64_t elements = psd_onnx_elements(constant);
	struct psd_onnx_value read = *constant;
	struct psd_onnx_source source = {.tensor = NULL};
	double *numbers;
	enum psd_status status = PSD_OK;

	if (constant->kind != PSD_ONNX_CONSTANT)
		return psd_onnx_refuse(onnx, "lacks an input, must have a constant");
	if (constant->numbers)
		return PSD_OK;
	if (constant->is_gathered)
		return psd_onnx_refuse(onnx, "needs the numbers of gathered parameter rows, which it cannot reorder");
	if (!constant->computed)
		status = psd_onnx_source_open(&source, onnx, constant->origin);
	if (!status)
		status = psd_onnx_alloc_numbers(onnx, &read, &numbers);
	for (uint64_t e = 0; !status && e < elements; e++) {
		const uint64_t offset = psd_onnx_offset(&constant->view, e);

		numbers[e] = constant->computed ? constant->computed[offset] : psd_onnx_source_number(&source, offset);
	}
	psd_onnx_source_close(&source);
	if (!status)
		constant->numbers = numbers;
	return status;
}

bool psd_onnx_is_scalar(struct psd_onnx *onnx, struct psd_onnx_value *value, double *number)
{
	if (value->kind != PSD_ONNX_CONSTANT || psd_onnx_elements(value) != 1 || psd_onnx_read_numbers(onnx, value))
		return false;
	*number = value->numbers[0];
	return true;
}

bool psd_onnx_is_filled(struct psd_onnx *onnx, struct psd_onnx_value *value, double number)
{
	if (value->kind != PSD_ONNX_CONSTANT || psd_onnx_read_numbers(onnx, value))
		return false;
	for (uint64_t e = 0; e < psd_onnx_elements(value); e++)
		if (value->numbers[e] != number)
			return false;
	return true;
}

bool psd_onnx_is_made(const struct psd_onnx *onnx, const struct psd_onnx_value *value)
{
	static const char *const ops[] = {
		"BatchNormalization", "Conv", "ConvTranspose", "Gemm", "MatMul", "LSTM", "GRU", "RNN"};
	bool is = false;

	for (unsigned i = 0; i < sizeof(ops) / sizeof(ops[0]); i++)
		is = is || !strcmp(onnx->node->op_type, ops[i]);
	return is && psd_onnx_allows_other(onnx) && value->kind == PSD_ONNX_CONSTANT && value->is_real &&
	       !value->is_fixed && psd_onnx_elements(value) > 1;
}

bool psd_onnx_is_trained(const struct psd_onnx_value *value)
{
	return value->kind == PSD_ONNX_CONSTANT && psd_onnx_elements(value) > 1 &&
	       (psd_onnx_is_learned(value) || value->is_table || value->derived_from);
}

enum psd_status psd_onnx_check_vector(struct psd_onnx *onnx, struct psd_onnx_value *value, uint64_t channels,
				      double neutral, bool *is_learned)
{
	const uint64_t last = value->n_dims ? value->dims[value->n_dims - 1] : 1;

	*is_learned = psd_onnx_is_parameter(value) || psd_onnx_is_made(onnx, value);
	if (*is_learned ? psd_onnx_elements(value) == channels && last == channels
			: value->kind == PSD_ONNX_ABSENT || psd_onnx_is_filled(onnx, value, neutral))
		return PSD_OK;
	return psd_onnx_refuse(onnx, "has a computed scale or shift, must be %llu values of the file",
			       (unsigned long long)channels);
}

/* Notes a file of external data, read or not; where it is read a wrong location is an error. */
static void note_unread(const struct psd_onnx *onnx, const Onnx__Tensor *tensor)
{
	struct psd_onnx quiet = *onnx;
	struct psd_error ignored;

	quiet.err = &ignored;
	if (psd_onnx_note_input(&quiet, tensor))
		return;
}

enum psd_status psd_onnx_constant_of(struct psd_onnx *onnx, const Onnx__Tensor *tensor, struct psd_onnx_value *value)
{
	struct psd_onnx_value constant = {.kind = PSD_ONNX_CONSTANT,
					  .origin = tensor,
					  .n_dims = (unsigned)tensor->n_dims,
					  .is_real = psd_onnx_is_real(tensor->data_type)};

	if (tensor->n_dims > PSD_ONNX_AXES_MAX)
		return psd_error_set(onnx->err, PSD_EINVAL, (struct psd_place){.path = onnx->path},
				     "tensor '%.100s' has %zu axes, must have up to %u",
				     tensor->name ? tensor->name : "", tensor->n_dims, PSD_ONNX_AXES_MAX);
	for (unsigned d = 0; d < constant.n_dims; d++) {
		if (tensor->dims[d] < 0 || tensor->dims[d] > UINT32_MAX)
			return psd_error_set(onnx->err, PSD_EINVAL, (struct psd_place){.path = onnx->path},
					     "tensor '%.100s' has a dimension of %lld, must be 0 to %u",
					     tensor->name ? tensor->name : "", (long long)tensor->dims[d], UINT32_MAX);
		constant.dims[d] = (uint64_t)tensor->dims[d];
	}
	(void)psd_onnx_by_rows(&constant, &constant.view);
	note_unread(onnx, tensor);
	*value = constant;
	return PSD_OK;
}
