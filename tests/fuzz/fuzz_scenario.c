/* Whatever the bytes, reading a scenario ends in a scenario whose points can be listed, or in a message. Lines before
 * one that is
 * "--" are settings. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "engine/scenario/scenario.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MAX_SETTINGS = 8 };

/* Cuts the settings off the front of text, in place; returns where the document begins. */
static char *cut_settings(char *text, const char *settings[MAX_SETTINGS + 1])
{
	char *separator = strstr(text, "\n--\n"), *line = text;
	unsigned n_settings = 0;

	if (!separator)
		return text;
	*separator = '\0';
	while (line && n_settings < MAX_SETTINGS) {
		char *end = strchr(line, '\n');

		if (end)
			*end++ = '\0';
		settings[n_settings++] = line;
		line = end;
	}
	return separator + 4;
}

static void use(const struct psd_scenario *scenario)
{
	const unsigned points = psd_scenario_points(scenario);

	for (unsigned i = 0; i < points; i++) {
		const struct psd_point point = psd_scenario_point(scenario, i);

		if (point.nodes < 1 || point.workers < 1 || point.workers_per_node < 1 ||
		    point.workers > point.nodes * point.workers_per_node)
			abort();
	}
	for (unsigned i = 0; i < scenario->n_systems; i++)
		if (!strlen(scenario->systems[i].name) || scenario->systems[i].slice_bytes == 0)
			abort();
	if (scenario->has_train && !scenario->train.solver_path &&
	    (scenario->train.rate.base <= 0.0 || !scenario->train.iterations == !scenario->train.epochs))
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *settings[MAX_SETTINGS + 1] = {NULL};
	char *text = malloc(size + 1), *document;
	struct psd_scenario scenario;
	struct psd_error err = {.text = ""};

	if (!text)
		return 0;
	memcpy(text, data, size);
	text[size] = '\0';
	document = cut_settings(text, settings);
	if (psd_scenario_parse(&scenario, "fuzz.yaml", document, size - (size_t)(document - text), settings, &err) ==
	    PSD_OK) {
		use(&scenario);
		psd_scenario_release(&scenario);
	} else if (!*err.text) {
		abort();
	}
	free(text);
	return 0;
}
