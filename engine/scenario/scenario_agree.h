/* What all hosts of a run must have in common: the effective values of the keys whose rows say so, as text, for hosts
 * to compare when they join. */
#ifndef PSD_SCENARIO_AGREE_H
#define PSD_SCENARIO_AGREE_H

#include <stdbool.h>

#include "engine/base/text.h"
#include "engine/scenario/scenario.h"

/* What a key says where it is not the scenario that says it: options, the contents of a file in place of its path. */
struct psd_agreed_value {
	const char *path; /* "train.iterations" */
	const char *text; /* NULL: nothing */
};

/* A line "key: value" for each key that is to be agreed on, whatever its value ("-": nothing), so that two texts of one
 * version have the same lines: those of the system first, then all others, then its host; of paths only what `instead`
 * says. */
void psd_scenario_add_agreed(struct psd_text *text, const struct psd_scenario *scenario,
			     const struct psd_system *system, const struct psd_agreed_value instead[],
			     unsigned n_instead);

/* Whether two such texts differ; then words about the first line that does: "'train.iterations' is 4 here, 5 there".
 * Takes any texts. */
bool psd_agreed_find_difference(const char *here, const char *there, struct psd_text *words);

#endif
