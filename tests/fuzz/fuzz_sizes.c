/* Any text as sizes of a model's inputs and open axes, for a Caffe or ONNX model: either a sealed graph whose layers
 * are in order, or an error with a text. Lines before one that is "--" are sizes, "data=3x8x8"; the model follows.
 * Never a crash, leak or hang. */
#include <stdio.h>
#include <string.h>

#include "engine/model/onnx/onnx.h"
#include "engine/model/prototxt.h"
#include "engine/scenario/scenario.h"
#include "tests/fuzz/parsed_graph.h"

enum { SETTINGS_MAX = 8, SETTING_ROOM = 128 };

static const char end_of_sizes[] = "\n--\n";

struct settings {
	char texts[SETTINGS_MAX][SETTING_ROOM];
	const char *all[SETTINGS_MAX + 1]; /* as psd_scenario_parse_choices() takes them */
};

/* Length of the sizes in front of the model; 0: there are none. */
static size_t find_end(const uint8_t *data, size_t size)
{
	for (size_t i = 0; i + strlen(end_of_sizes) <= size; i++)
		if (!memcmp(data + i, end_of_sizes, strlen(end_of_sizes)))
			return i;
	return 0;
}

/* Makes a setting of each line, as psd-sim makes of --input. */
static void make_settings(struct settings *settings, const char *text, size_t length)
{
	unsigned n = 0;

	while (length && n < SETTINGS_MAX) {
		const char *end = memchr(text, '\n', length);
		const size_t line = end ? (size_t)(end - text) : length;

		snprintf(settings->texts[n], SETTING_ROOM, "model.input.%.*s", (int)(line & 127), text);
		settings->all[n] = settings->texts[n];
		n++;
		text += line + (end != NULL);
		length -= line + (end != NULL);
	}
	settings->all[n] = NULL;
}

static void load(const struct psd_model_choices *choices, const uint8_t *model, size_t size)
{
	struct psd_graph graph;
	struct psd_error err = {0}, other_err = {0};

	check_parsed(psd_onnx_parse(&graph, "fuzz", model, size, choices, &err), &graph, &err);
	check_parsed(psd_prototxt_parse(&graph, "fuzz", (const char *)model, size, choices, &other_err), &graph,
		     &other_err);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const size_t length = find_end(data, size), head = length ? length + strlen(end_of_sizes) : 0;
	struct settings settings;
	struct psd_scenario scenario;
	struct psd_error err = {0};

	make_settings(&settings, (const char *)data, length);
	if (psd_scenario_parse_choices(&scenario, settings.all, &err)) {
		if (err.status == PSD_OK || !err.text[0])
			abort();
		return 0;
	}
	load(&scenario.choices, data + head, size - head);
	scenario.choices.allows_other = true;
	scenario.choices.sample = (struct psd_shape){1, 28, 28};
	load(&scenario.choices, data + head, size - head);
	psd_scenario_release(&scenario);
	return 0;
}
