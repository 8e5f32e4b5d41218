/* The table of readers of model files. A reader knows the graph; the graph knows no reader. */
#include <stdlib.h>
#include <string.h>

#include "engine/base/file.h"
#include "engine/model/model.h"
#include "engine/model/onnx/onnx.h"
#include "engine/model/prototxt.h"

static const struct reader {
	const char *suffix; /* end of the path; "" is the end of all */
	size_t bytes_max;   /* limit of a binary file; 0: the file is text */
	enum psd_status (*parse)(struct psd_graph *graph, const char *path, const void *bytes, size_t length,
				 const struct psd_model_choices *choices, struct psd_error *err);
} readers[] = {
	{".onnx", PSD_ONNX_BYTES_MAX, psd_onnx_parse},
	{".prototxt", 0, psd_prototxt_parse},
	{"", 0, NULL}, /* psd_model_parse_sequence() */
};

static bool ends_in(const char *text, const char *ending)
{
	const size_t text_length = strlen(text), ending_length = strlen(ending);

	return text_length >= ending_length && !strcmp(text + text_length - ending_length, ending);
}

/* Refuses choices that the file's form has no use for. */
static enum psd_status check_choices(const struct reader *reader, const struct psd_model_choices *choices,
				     const char *path, struct psd_error *err)
{
	const bool is_onnx = reader->parse == psd_onnx_parse;
	const char *name = choices->sequence && reader->parse	 ? "sequence"
			   : choices->n_inputs && !reader->parse ? "input"
			   : choices->n_tied && !is_onnx	 ? "tied"
			   : choices->n_outputs && !is_onnx	 ? "outputs"
								 : NULL;
	if (!name)
		return PSD_OK;
	return psd_error_set(err, PSD_EINVAL, (struct psd_place){.path = path},
			     "'%s' in the scenario needs a model in %s, this is '%s'", name,
			     !strcmp(name, "sequence") ? "YAML"
			     : !strcmp(name, "input")  ? "ONNX or Caffe's form"
						       : "ONNX",
			     reader->parse ? reader->suffix : ".yaml");
}

enum psd_status psd_graph_load_as(struct psd_graph *graph, const char *path, const struct psd_model_choices *choices,
				  struct psd_error *err)
{
	const struct reader *reader = readers;
	char *bytes;
	size_t length;

	while (!ends_in(path, reader->suffix))
		reader++;
	if (choices)
		PSD_TRY(check_choices(reader, choices, path, err));
	PSD_TRY(reader->bytes_max ? psd_file_read_bytes(&bytes, &length, reader->bytes_max, path, err)
				  : psd_file_read(&bytes, &length, path, err));
	const enum psd_status status = reader->parse ? reader->parse(graph, path, bytes, length, choices, err)
						     : psd_model_parse_sequence(graph, path, bytes, length,
										choices ? choices->sequence : 0, err);
	free(bytes);
	return status;
}

enum psd_status psd_graph_load(struct psd_graph *graph, const char *path, struct psd_error *err)
{
	return psd_graph_load_as(graph, path, NULL, err);
}
