/* Conversion of an ONNX network to a file that training can start from (train.start): parameters and running statistics
 * under psd's names, in psd's order. */
#ifndef PSD_REAL_START_FILE_H
#define PSD_REAL_START_FILE_H

#include "engine/base/error.h"

struct psd_start_counts {
	unsigned n_found, n_all; /* numbers of parameter tensors and statistics: found in the file; in the network */
};

/* Writes the values of the model at model_path to `path` in the safetensors format; replaces `path` once all is
 * written. PSD_EINVAL: the model is malformed, has no values, or one that is infinite or not a number; PSD_EFILE;
 * PSD_ERUN: path cannot be written to the end; PSD_ENOMEM. */
enum psd_status psd_start_file_write(const char *model_path, const char *path, struct psd_start_counts *counts,
				     struct psd_error *err) PSD_MUST_CHECK;

#endif
