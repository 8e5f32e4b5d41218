/* Values that all hosts of a run must have in common: effective values of the keys whose rows say so, as text that
 * hosts compare when they join. */
#ifndef PSD_SCENARIO_AGREE_H
#define PSD_SCENARIO_AGREE_H

#include <stdbool.h>

#include "engine/base/text.h"
#include "engine/scenario/scenario.h"

/* Value of a key that does not come from the scenario: from an option, or the contents of a file in place of its path.
 */
struct psd_agreed_value {
	const char *path; /* path of the key, such as "train.iterations" */
	const char *text; /* value as text; NULL: no value */
};

/* Appends a line "key: value" for each key that hosts agree on ("-": no value), so that two texts of one version have
 * equal keys. The system's keys come first, then all others, then those of the system's host. `instead` replaces the
 * values of some paths. */
void psd_scenario_add_agreed(struct psd_text *text, const struct psd_scenario *scenario,
			     const struct psd_system *system, const struct psd_agreed_value instead[],
			     unsigned n_instead);

/* Returns true if two such texts differ, and describes the first difference: "'train.iterations' is 4 here, 5 there".
 * Accepts any texts. */
bool psd_agreed_find_difference(const char *here, const char *there, struct psd_text *words);

#endif
