/* `psd-run weights` writes the values of an ONNX file under psd's names, and never overwrites a file that it reads. */
#define _GNU_SOURCE
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/model/onnx/onnx.h"
#include "real/data/start_file.h"
#include "real/data/tensor_file.h"
#include "tests/scratch_folder.h"

#define NETWORK "tests/onnx/maps-torchscript.onnx"

static struct psd_tensor_file *write_and_open(const struct scratch_folder *folder, struct psd_start_counts *counts)
{
	const struct scratch_path path = scratch_folder_path(folder, "w.safetensors");
	struct psd_tensor_file *file;
	struct psd_error err = {.text = ""};

	cr_assert_eq(psd_start_file_write(NETWORK, NULL, path.text, counts, &err), PSD_OK, "%s", err.text);
	cr_assert_eq(psd_tensor_file_open(&file, path.text, &err), PSD_OK, "%s", err.text);
	return file;
}

static void expect_values(struct psd_tensor_file *file, struct psd_onnx_file *model, const struct psd_tensor *tensor)
{
	const struct psd_file_tensor *found = psd_tensor_file_find(file, tensor->name);
	const uint64_t n_bytes = tensor->elements * sizeof(float);
	float *expected = malloc(n_bytes), *there = malloc(n_bytes);
	struct psd_error err = {.text = ""};
	bool is_there;

	cr_assert(found && expected && there, "%s", tensor->name);
	cr_expect_eq(found->n_dims, tensor->n_dims);
	for (unsigned d = 0; d < tensor->n_dims; d++)
		cr_expect_eq(found->dims[d], tensor->dims[d]);
	cr_assert_eq(psd_onnx_values(model, tensor, expected, &is_there, &err), PSD_OK, "%s", err.text);
	cr_expect(is_there);
	cr_assert_eq(psd_tensor_file_read(file, found, 0, n_bytes, there, &err), PSD_OK, "%s", err.text);
	cr_expect_eq(memcmp(expected, there, n_bytes), 0, "%s", tensor->name);
	free(expected);
	free(there);
}

FOLDER_TEST(start_file, parameters_and_statistics_are_the_models, scratch_folder_make())
{
	struct psd_start_counts counts;
	struct psd_tensor_file *file = write_and_open(&folder, &counts);
	struct psd_onnx_file *model;
	struct psd_error err = {.text = ""};
	const struct psd_graph *graph;

	cr_assert_eq(psd_onnx_open(&model, NETWORK, NULL, &err), PSD_OK, "%s", err.text);
	graph = psd_onnx_graph(model);
	cr_expect_eq(counts.n_all, graph->n_tensors + graph->n_states);
	cr_expect_eq(counts.n_found, counts.n_all);
	cr_expect_gt(graph->n_states, 0);
	for (unsigned t = 0; t < graph->n_tensors; t++)
		expect_values(file, model, &graph->tensors[t]);
	for (unsigned s = 0; s < graph->n_states; s++)
		expect_values(file, model, &graph->states[s]);
	cr_expect_null(psd_tensor_file_at(file, counts.n_all));
	psd_onnx_close(model);
	psd_tensor_file_close(file);
}

FOLDER_TEST(start_file, takes_the_place_of_no_model, scratch_folder_make())
{
	const struct scratch_path path = scratch_folder_path(&folder, "m.onnx");
	char network[4096];
	struct psd_start_counts counts;
	struct psd_error err = {.text = ""};

	cr_assert_not_null(realpath(NETWORK, network));
	cr_assert_eq(symlink(network, path.text), 0);
	cr_expect_eq(psd_start_file_write(NETWORK, NULL, path.text, &counts, &err), PSD_EINVAL);
	cr_expect_not_null(strstr(err.text, "m.onnx: the file is read by this run, an output must be another file"),
			   "%s", err.text);
}

/* The same network, with the fourth value of its first tensor replaced. */
Test(start_file, a_value_that_is_no_number_is_named)
{
	const struct scratch_folder folder = scratch_folder_make();
	const struct scratch_path path = scratch_folder_path(&folder, "nan.onnx");
	const struct scratch_path out = scratch_folder_path(&folder, "w.safetensors");
	struct psd_start_counts counts;
	struct psd_onnx_file *model;
	struct psd_error err = {.text = ""};
	const struct psd_tensor *first;
	uint8_t *bytes = malloc(1 << 20), *found;
	FILE *in = fopen(NETWORK, "rb");
	const size_t n = in && bytes ? fread(bytes, 1, 1 << 20, in) : 0;
	char expected[512];
	float *values;
	bool is_there;

	cr_assert(n > 0 && n < 1 << 20);
	fclose(in);
	cr_assert_eq(psd_onnx_open(&model, NETWORK, NULL, &err), PSD_OK, "%s", err.text);
	first = &psd_onnx_graph(model)->tensors[0];
	values = malloc(first->elements * sizeof(*values));
	cr_assert(values && first->elements > 3);
	cr_assert_eq(psd_onnx_values(model, first, values, &is_there, &err), PSD_OK, "%s", err.text);
	found = memmem(bytes, n, values, 4 * sizeof(*values));
	cr_assert_not_null(found);
	memcpy(found + 3 * sizeof(*values), "\0\0\xc0\x7f", sizeof(*values));
	scratch_folder_write(&folder, "nan.onnx", bytes, n);
	cr_expect_eq(psd_start_file_write(path.text, NULL, out.text, &counts, &err), PSD_EINVAL);
	snprintf(expected, sizeof(expected), "%s: %s has a value that is not a finite number (element 3)", path.text,
		 first->name);
	cr_expect_str_eq(err.text, expected);
	cr_expect_not(scratch_folder_has(&folder, "w.safetensors"));
	psd_onnx_close(model);
	free(values);
	free(bytes);
	scratch_folder_remove(&folder);
}
