/* Types of values in safetensors. */
#include <stddef.h>

#include "engine/model/graph.h"
#include "real/data/tensor_file_parts.h"

const char *const psd_tensor_type_names[PSD_TENSOR_TYPES + 1] = {
	[PSD_TENSOR_F32] = "F32",   [PSD_TENSOR_F64] = "F64",	      [PSD_TENSOR_F16] = "F16",
	[PSD_TENSOR_BF16] = "BF16", [PSD_TENSOR_F8_E4M3] = "F8_E4M3", [PSD_TENSOR_F8_E5M2] = "F8_E5M2",
	[PSD_TENSOR_I8] = "I8",	    [PSD_TENSOR_I16] = "I16",	      [PSD_TENSOR_I32] = "I32",
	[PSD_TENSOR_I64] = "I64",   [PSD_TENSOR_U8] = "U8",	      [PSD_TENSOR_U16] = "U16",
	[PSD_TENSOR_U32] = "U32",   [PSD_TENSOR_U64] = "U64",	      [PSD_TENSOR_BOOL] = "BOOL",
	[PSD_TENSOR_TYPES] = NULL,
};

static const unsigned char type_bytes[PSD_TENSOR_TYPES] = {
	[PSD_TENSOR_F32] = 4,	  [PSD_TENSOR_F64] = 8,	    [PSD_TENSOR_F16] = 2,  [PSD_TENSOR_BF16] = 2,
	[PSD_TENSOR_F8_E4M3] = 1, [PSD_TENSOR_F8_E5M2] = 1, [PSD_TENSOR_I8] = 1,   [PSD_TENSOR_I16] = 2,
	[PSD_TENSOR_I32] = 4,	  [PSD_TENSOR_I64] = 8,	    [PSD_TENSOR_U8] = 1,   [PSD_TENSOR_U16] = 2,
	[PSD_TENSOR_U32] = 4,	  [PSD_TENSOR_U64] = 8,	    [PSD_TENSOR_BOOL] = 1,
};

const char *psd_tensor_type_name(enum psd_tensor_type type)
{
	return psd_tensor_type_names[type];
}

unsigned psd_tensor_type_bytes(enum psd_tensor_type type)
{
	return type_bytes[type];
}

struct psd_file_tensor psd_file_tensor_of(const struct psd_tensor *tensor)
{
	struct psd_file_tensor made = {.name = tensor->name, .type = PSD_TENSOR_F32, .n_dims = tensor->n_dims};

	for (unsigned d = 0; d < tensor->n_dims; d++)
		made.dims[d] = tensor->dims[d];
	return made;
}

/* Returns false also if the product of some dimensions overflows and another dimension is 0, so that a caller may
 * multiply any of them. */
bool psd_file_tensor_bytes(const struct psd_file_tensor *tensor, uint64_t *n_bytes)
{
	uint64_t product = type_bytes[tensor->type];
	bool is_empty = false;

	for (unsigned d = 0; d < tensor->n_dims; d++) {
		const uint64_t dim = tensor->dims[d] ? tensor->dims[d] : 1;

		is_empty = is_empty || tensor->dims[d] == 0;
		if (product > UINT64_MAX / dim)
			return false;
		product *= dim;
	}
	*n_bytes = is_empty ? 0 : product;
	return true;
}
