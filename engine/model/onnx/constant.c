/* Constants of the file. Numbers are doubles, which hold all whole numbers that sizes and indices may be. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/file.h"
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
	return value->kind == PSD_ONNX_CONSTANT && value->origin && value->is_real;
}

bool psd_onnx_is_learned(const struct psd_onnx_value *value)
{
	return psd_onnx_is_parameter(value) && psd_onnx_elements(value) > 1;
}

enum psd_status psd_onnx_take_numbers(struct psd_onnx *onnx, struct psd_onnx_value *constant, double **numbers)
{
	const uint64_t elements = psd_onnx_elements(constant);

	if (elements > PSD_ONNX_NUMBERS_MAX || onnx->n_numbers + elements > PSD_ONNX_ALL_NUMBERS_MAX)
		return psd_onnx_refuse(
			onnx, "needs more numbers than the %llu that are kept of one constant, or %llu of all",
			(unsigned long long)PSD_ONNX_NUMBERS_MAX, (unsigned long long)PSD_ONNX_ALL_NUMBERS_MAX);
	*numbers = psd_arena_take(&onnx->arena, (elements + 1) * sizeof(**numbers));
	onnx->n_numbers += elements;
	constant->numbers = *numbers;
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

/* Bytes of an element as it lies in raw data; 0: a type without numbers. */
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

/* From the field of typed numbers that has so many. False: none has. */
static bool typed_numbers(const Onnx__Tensor *tensor, double *numbers, uint64_t elements)
{
	const size_t n[] = {tensor->n_float_data, tensor->n_int32_data, tensor->n_int64_data, tensor->n_double_data,
			    tensor->n_uint64_data};
	unsigned field = 0;

	while (field < sizeof(n) / sizeof(n[0]) && n[field] != elements)
		field++;
	for (size_t e = 0; e < elements && field < sizeof(n) / sizeof(n[0]); e++)
		numbers[e] = field == 0	  ? (double)tensor->float_data[e]
			     : field == 1 ? number_of_int32(tensor->int32_data[e], tensor->data_type)
			     : field == 2 ? (double)tensor->int64_data[e]
			     : field == 3 ? tensor->double_data[e]
					  : (double)tensor->uint64_data[e];
	return field < sizeof(n) / sizeof(n[0]);
}

static const char *entry(const Onnx__Tensor *tensor, const char *key)
{
	for (size_t i = 0; i < tensor->n_external_data; i++)
		if (tensor->external_data[i]->key && !strcmp(tensor->external_data[i]->key, key))
			return tensor->external_data[i]->value;
	return NULL;
}

/* Beside the model's file, and nowhere else. */
static enum psd_status read_external(struct psd_onnx *onnx, const Onnx__Tensor *tensor, uint8_t *raw, size_t bytes)
{
	const char *location = entry(tensor, "location"), *offset = entry(tensor, "offset");
	const char *slash = strrchr(onnx->path, '/');
	const int folder = slash ? (int)(slash - onnx->path) + 1 : 0;
	char path[4096];

	if (!location || !*location || *location == '/' || strstr(location, ".."))
		return psd_error_set(onnx->err, PSD_EINVAL, (struct psd_place){.path = onnx->path},
				     "tensor '%.100s' lies in '%.100s', must lie in a file beside the model",
				     tensor->name ? tensor->name : "", location ? location : "");
	if (snprintf(path, sizeof(path), "%.*s%s", folder, onnx->path, location) >= (int)sizeof(path))
		return psd_error_set(onnx->err, PSD_EINVAL, (struct psd_place){.path = onnx->path},
				     "the path of '%.100s' is too long", location);
	return psd_file_read_part(raw, bytes, offset ? strtoull(offset, NULL, 10) : 0, path, onnx->err);
}

enum psd_status psd_onnx_read(struct psd_onnx *onnx, struct psd_onnx_value *constant)
{
	const Onnx__Tensor *tensor = constant->origin;
	const uint64_t elements = psd_onnx_elements(constant);
	const size_t bytes = tensor ? bytes_of(tensor->data_type) : 0;
	const uint8_t *raw = tensor ? tensor->raw_data.data : NULL;
	uint8_t *read = NULL;
	struct psd_onnx_value with_numbers = *constant;
	double *numbers;
	enum psd_status status = PSD_OK;

	if (constant->numbers)
		return PSD_OK;
	if (constant->is_moved || elements > PSD_ONNX_NUMBERS_MAX || !bytes)
		return psd_onnx_refuse(onnx, "needs the numbers of '%.100s', which are too many or of no such type",
				       tensor && tensor->name ? tensor->name : "");
	status = psd_onnx_take_numbers(onnx, &with_numbers, &numbers);
	if (status)
		return status;
	if (tensor->data_location == 1) {
		raw = read = psd_arena_take(&onnx->arena, (elements + 1) * bytes);
		status = read ? read_external(onnx, tensor, read, elements * bytes) : psd_onnx_no_memory(onnx);
		if (status)
			return status;
	} else if (!raw || tensor->raw_data.len != elements * bytes) {
		raw = NULL;
		if (!typed_numbers(tensor, numbers, elements))
			return psd_onnx_refuse(onnx, "needs the numbers of '%.100s', which the file leaves out",
					       tensor->name ? tensor->name : "");
	}
	for (uint64_t e = 0; raw && e < elements; e++)
		numbers[e] = raw_number(raw + e * bytes, tensor->data_type);
	*constant = with_numbers;
	return PSD_OK;
}

bool psd_onnx_is_scalar(struct psd_onnx *onnx, struct psd_onnx_value *value, double *number)
{
	if (value->kind != PSD_ONNX_CONSTANT || psd_onnx_elements(value) != 1 || psd_onnx_read(onnx, value))
		return false;
	*number = value->numbers[0];
	return true;
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
					     "tensor '%.100s' has a side of %lld", tensor->name ? tensor->name : "",
					     (long long)tensor->dims[d]);
		constant.dims[d] = (uint64_t)tensor->dims[d];
	}
	*value = constant;
	return PSD_OK;
}
