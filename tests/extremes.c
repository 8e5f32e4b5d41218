/* extremes SEED FOLDER-OF-MODELS: writes a scenario that the reader accepts, with values as extreme as its rows allow,
 * to standard output. Which keys there are, and what they may be, the schema says. Equal seeds give equal scenarios. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/scenario/scenario.h"
#include "engine/scenario/scenario_keys.h"

enum { MOST_TRIES = 100000, MOST_ROWS = 32, FEW_ENTRIES = 3 };

static const char *const models[] = {"mlp", "alexnet", "small-layers", "resnet50", "vgg19-22k", "resnet152"};
static const char *model_folder;
static uint64_t state;

/* xorshift64* */
static double uniform(void)
{
	state ^= state >> 12;
	state ^= state << 25;
	state ^= state >> 27;
	return (double)(state * UINT64_C(2685821657736338717) >> 11) / 9007199254740992.0;
}

static unsigned below(unsigned n)
{
	return (unsigned)(uniform() * n);
}

/* An end of the range each sixth time, else any order of magnitude. */
static double extreme(double lowest, double highest)
{
	const double least = lowest > 0 ? lowest : fmin(1e-9, highest);
	const double side = uniform();

	if (side < 1.0 / 6 || side > 5.0 / 6)
		return side < 0.5 ? lowest : highest;
	return least * pow(highest / least, uniform());
}

static void add_value(struct psd_text *text, const struct psd_key *key, unsigned choice)
{
	static unsigned n_names;

	switch (key->type) {
	case PSD_KEY_SECTION:
	case PSD_KEY_OTHER: break;
	case PSD_KEY_TEXT: psd_text_add(text, "t%u", n_names++); break;
	case PSD_KEY_PATH:
		psd_text_add(text, "%s/%s.yaml", model_folder, models[below(sizeof(models) / sizeof(*models))]);
		break;
	case PSD_KEY_NAME:
	case PSD_KEY_CHOICE: psd_text_add(text, "%s", key->names[choice]); break;
	case PSD_KEY_FLAG: psd_text_add(text, "%s", key->names ? key->names[choice] : choice ? "true" : "false"); break;
	case PSD_KEY_RATE: psd_text_add(text, "%.6gbps", extreme(1, 1e15)); break;
	case PSD_KEY_BYTES: psd_text_add(text, "%.0fB", extreme(1, 9e18)); break;
	case PSD_KEY_SECONDS: psd_text_add(text, "%.6gs", extreme(0, 1e6)); break;
	case PSD_KEY_RATIO:
	case PSD_KEY_NUMBER: psd_text_add(text, "%.6g", extreme(key->lowest, key->highest)); break;
	case PSD_KEY_UNSIGNED:
	case PSD_KEY_COUNT:
	case PSD_KEY_PAIR: psd_text_add(text, "%.0f", floor(extreme(key->lowest, key->highest))); break;
	}
}

static const char *const unwanted[] = {"most_events", /* is what is tried */
				       "profile",     "platform", "published",
				       "baseline",    NULL}; /* need other files or names */

static bool is_wanted(const struct psd_key *key)
{
	for (const char *const *name = unwanted; *name; name++)
		if (!strcmp(*name, key->name))
			return false;
	return !key->uses || key->uses & PSD_BY_SIM;
}

/* Whether a file gets the key. choices[]: values of the rows before it; a key stands behind the one it depends on. */
static bool is_taken(const struct psd_section *section, const struct psd_key *key, const unsigned choices[])
{
	const struct psd_key *chooser = NULL;
	unsigned i = 0;

	if (!is_wanted(key))
		return false;
	while (key->when.key && (chooser = psd_section_key(section, i)) && strcmp(chooser->name, key->when.key) != 0)
		i++;
	if (chooser && !(key->when.choices >> choices[i] & 1))
		return false;
	return key->is_required || (chooser && key->when.needed >> choices[i] & 1) || uniform() < 0.4;
}

static unsigned choose(const struct psd_key *key)
{
	unsigned n_names = key->type == PSD_KEY_FLAG ? 2 : 0;

	while (key->names && key->names[n_names])
		n_names++;
	return below(n_names);
}

static unsigned fallback_of(const struct psd_key *key)
{
	unsigned choice = 0;

	while (key->type == PSD_KEY_CHOICE && key->fallback && strcmp(key->names[choice], key->fallback) != 0)
		choice++;
	return choice;
}

static void add_section(struct psd_text *text, const struct psd_section *section);

static void add_entries(struct psd_text *text, const struct psd_key *key, unsigned choice)
{
	const unsigned n_entries = uniform() < 0.05 ? key->most_entries : 1 + below(FEW_ENTRIES);

	psd_text_add(text, "[");
	for (unsigned e = 0; e < n_entries && e < key->most_entries; e++) {
		psd_text_add(text, e ? ", " : "");
		if (key->section)
			add_section(text, key->section);
		else
			add_value(text, key, choice);
	}
	psd_text_add(text, "]");
}

static void add_section(struct psd_text *text, const struct psd_section *section)
{
	unsigned choices[MOST_ROWS] = {0};
	const char *separator = "{";
	const struct psd_key *key;

	for (unsigned i = 0; (key = psd_section_key(section, i)); i++) {
		const bool is_here = is_taken(section, key, choices);

		choices[i] = is_here ? choose(key) : fallback_of(key);
		if (!is_here)
			continue;
		psd_text_add(text, "%s%s: ", separator, key->name);
		separator = ", ";
		if (key->most_entries)
			add_entries(text, key, choices[i]);
		else if (key->section)
			add_section(text, key->section);
		else
			add_value(text, key, choices[i]);
	}
	psd_text_add(text, *separator == '{' ? "{}" : "}");
}

int main(int argc, char *argv[])
{
	static const char *const no_settings[] = {NULL};

	if (argc != 3)
		return 2;
	state = strtoull(argv[1], NULL, 10) * UINT64_C(0x9e3779b97f4a7c15) + 1;
	model_folder = argv[2];
	for (unsigned try = 0; try < MOST_TRIES; try++) {
		struct psd_text text = {.bytes = NULL};
		struct psd_scenario scenario;
		struct psd_error err;

		add_section(&text, psd_scenario_root.section);
		if (!psd_scenario_parse(&scenario, "extreme.yaml", text.bytes, text.length, no_settings, &err)) {
			puts(text.bytes);
			psd_scenario_release(&scenario);
			psd_text_release(&text);
			return 0;
		}
		psd_text_release(&text);
	}
	fprintf(stderr, "extremes: no scenario in %d tries\n", MOST_TRIES);
	return 1;
}
