/* Any bytes as a trace of PyTorch's profiler: either seconds of layers, finite and not negative, with texts of them,
 * or an error with a text. Never a crash, leak or hang. */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>

#include "sim/import/import.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(int is_right)
{
	if (!is_right)
		abort();
}

static void check_texts(const struct psd_import *import)
{
	struct psd_text text = {.bytes = NULL};

	psd_import_add_profile(&text, import);
	psd_import_add_summary(&text, import);
	psd_import_add_graph(&text, import);
	psd_text_release(&text);
	for (unsigned i = 0; i < import->match.n_layers; i++)
		check(import->forward_sec[i] >= 0 && isfinite(import->forward_sec[i]) && import->backward_sec[i] >= 0 &&
		      isfinite(import->backward_sec[i]));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct psd_import_settings settings = {.trace_path = "fuzz",
						     .trace_bytes = data,
						     .trace_length = size,
						     .profile_path = "p",
						     .graph_path = "g",
						     .batch = 1,
						     .bits_per_sec = 1e9};
	struct psd_import import;
	struct psd_error err = {.status = PSD_OK};

	if (psd_import_make(&import, &settings, &err))
		check(err.text[0] != '\0');
	else
		check_texts(&import);
	psd_import_release(&import);
	return 0;
}
