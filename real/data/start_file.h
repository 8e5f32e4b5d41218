/* Converts an ONNX network to a file from which training can start (key `train.start`). The file has parameters and
 * running statistics, with the names and in the order that psd uses. */
#ifndef PSD_REAL_START_FILE_H
#define PSD_REAL_START_FILE_H

#include "engine/base/error.h"
#include "engine/model/graph.h"

struct psd_start_counts {
	/* Number of parameter tensors and running statistics for which the ONNX file has values (n_found), and number
	 * of all that the network has (n_all). */
	unsigned n_found, n_all;
};

/* Writes the values of the ONNX model at model_path, read with the choices (NULL: none), to `path` in the safetensors
 * format. An existing file is replaced
 * only when the new one is complete. PSD_EINVAL: the model is malformed, has no values, or has a value that is infinite
 * or not a number; PSD_EFILE: a file cannot be opened; PSD_ERUN: the file cannot be written to the end; PSD_ENOMEM. */
enum psd_status psd_start_file_write(const char *model_path, const struct psd_model_choices *choices, const char *path,
				     struct psd_start_counts *counts, struct psd_error *err) PSD_MUST_CHECK;

#endif
