/* Values that all hosts of a run must have in common, as text that hosts compare when they join: the values in use of
 * all keys that are marked PSD_AGREED. */
#ifndef PSD_SCENARIO_AGREE_H
#define PSD_SCENARIO_AGREE_H

#include <stdbool.h>

#include "engine/base/text.h"
#include "engine/scenario/scenario.h"

/* Value that replaces a key's value in the scenario: the value of an option, or the contents of the file that the key
 * names. */
struct psd_agreed_value {
	const char *path; /* path of the key, such as "train.iterations" */
	const char *text; /* value as text; NULL: no value */
};

/* Appends a line "key: value" for each key that must be equal on all hosts ("-": no value). Two texts from one version
 * of psd have the same keys in the same order: first the system's keys, then all others, then the costs of the
 * system's host. `system`: an entry of the scenario or a changed copy; values are those of the entry with its number.
 * `instead`: n_instead values that replace those of the scenario. */
void psd_scenario_add_agreed(struct psd_text *text, const struct psd_scenario *scenario,
			     const struct psd_system *system, const struct psd_agreed_value instead[],
			     unsigned n_instead);

/* Compares two texts of psd_scenario_add_agreed(). Returns true if they differ, and appends the first difference to
 * `words`: "'train.iterations' is 4 here, 5 there". The texts may be damaged or from another version. */
bool psd_agreed_find_difference(const char *here, const char *there, struct psd_text *words);

#endif
