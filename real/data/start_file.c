/* Lists the tensors first, then copies their values one by one. */
#include "real/data/start_file.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>

#include "engine/base/output.h"
#include "engine/model/onnx/onnx.h"
#include "real/data/tensor_file.h"

struct start_file {
	struct psd_onnx_file *model;
	const struct psd_tensor **found; /* tensors in the model file */
	struct psd_file_tensor *tensors; /* the same tensors, as they are written to the file */
	unsigned n;
};

static enum psd_status find(struct start_file *file, const struct psd_tensor tensors[], unsigned n_tensors,
			    struct psd_error *err)
{
	for (unsigned t = 0; t < n_tensors; t++) {
		bool is_there;

		PSD_TRY(psd_onnx_values(file->model, &tensors[t], NULL, &is_there, err));
		if (is_there) {
			file->found[file->n] = &tensors[t];
			file->tensors[file->n++] = psd_file_tensor_of(&tensors[t]);
		}
	}
	return PSD_OK;
}

static enum psd_status check_values(const struct psd_tensor *tensor, const float *values, const char *model_path,
				    struct psd_error *err)
{
	uint64_t element;

	if (!psd_find_odd(PSD_TENSOR_F32, values, tensor->elements, &element))
		return PSD_OK;
	return psd_error_set(err, PSD_EINVAL, (struct psd_place){.path = model_path},
			     "%.100s has a value that is not a finite number (element %" PRIu64 ")", tensor->name,
			     element);
}

static enum psd_status write_values(struct start_file *file, struct psd_tensor_writer *writer, const char *model_path,
				    struct psd_error *err)
{
	enum psd_status status = PSD_OK;

	for (unsigned t = 0; t < file->n && !status; t++) {
		const uint64_t n_bytes = file->found[t]->elements * sizeof(float);
		float *values = malloc((size_t)n_bytes);
		bool is_there;

		if (!values)
			return psd_out_of_memory(err);
		status = psd_onnx_values(file->model, file->found[t], values, &is_there, err);
		if (!status)
			status = check_values(file->found[t], values, model_path, err);
		if (!status)
			status = psd_tensor_writer_add(writer, values, n_bytes, err);
		free(values);
	}
	return status;
}

static enum psd_status write_all(struct start_file *file, const char *model_path, const char *path,
				 struct psd_error *err)
{
	const struct psd_file_note notes[] = {{"format", "pt"}}; /* values lie in PyTorch's order */
	struct psd_tensor_writer *writer;

	PSD_TRY(psd_tensor_writer_open(&writer, path, file->tensors, file->n, notes, 1, err));
	enum psd_status status = write_values(file, writer, model_path, err);
	if (!status)
		status = psd_tensor_writer_finish(writer, err);
	psd_tensor_writer_close(writer);
	return status;
}

static enum psd_status use(struct start_file *file, const char *model_path, const char *path,
			   struct psd_start_counts *counts, struct psd_error *err)
{
	const struct psd_graph *graph = psd_onnx_graph(file->model);
	const unsigned n_all = graph->n_tensors + graph->n_states;

	file->found = calloc(n_all + 1, sizeof(*file->found));
	file->tensors = calloc(n_all + 1, sizeof(*file->tensors));
	if (!file->found || !file->tensors)
		return psd_out_of_memory(err);
	PSD_TRY(find(file, graph->tensors, graph->n_tensors, err));
	PSD_TRY(find(file, graph->states, graph->n_states, err));
	if (!file->n)
		return psd_error_set(err, PSD_EINVAL, (struct psd_place){.path = model_path},
				     "the model has no values for its %u parameters and statistics", n_all);
	PSD_TRY(psd_output_claim(path, err));
	PSD_TRY(write_all(file, model_path, path, err));
	*counts = (struct psd_start_counts){file->n, n_all};
	return PSD_OK;
}

enum psd_status psd_start_file_write(const char *model_path, const struct psd_model_choices *choices, const char *path,
				     struct psd_start_counts *counts, struct psd_error *err)
{
	struct start_file file = {.n = 0};

	PSD_TRY(psd_onnx_open(&file.model, model_path, choices, err));
	const enum psd_status status = use(&file, model_path, path, counts, err);
	free(file.tensors);
	free(file.found);
	psd_onnx_close(file.model);
	return status;
}
