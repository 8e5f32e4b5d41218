/* The table of encodings, and fp32, which converts nothing. */
#include "engine/encodings/encoding.h"

#include <stddef.h>

const struct psd_encoding psd_encoding_fp32 = {.name = "fp32", .value_bytes = 4};

#define ADDRESS(identifier) &psd_encoding_##identifier,
#define NAME(identifier)    #identifier,
const struct psd_encoding *const psd_encodings[] = {PSD_ENCODINGS(ADDRESS)};
const char *const psd_encoding_names[] = {PSD_ENCODINGS(NAME) NULL};
