/* Keys that an executor heeds, from their rows: keys that it must refuse, and keys that it reports as unheeded. */
#ifndef PSD_SCENARIO_HEED_H
#define PSD_SCENARIO_HEED_H

#include "engine/base/text.h"
#include "engine/scenario/scenario.h"
#include "engine/scenario/scenario_keys.h"

/* Refuses the first key of the file that the executor cannot heed and that changes its results: PSD_EINVAL, the text
 * names the programs that heed it. executor: one of PSD_BY_SIMULATION, PSD_BY_ESTIMATE, PSD_BY_RUN, PSD_BY_REPLAY;
 * PSD_BY_PSD_RUN: a run in which some workers train and some replay. */
enum psd_status psd_scenario_check_heeded(const struct psd_scenario *scenario, enum psd_use executor,
					  struct psd_error *err) PSD_MUST_CHECK;
/* Appends the other keys of the file that the executor does not heed and that differ from their defaults: "heeded only
 * by psd-sim: 'fidelity' 'published'", a line for each set of executors with one of `others`. Appends nothing when it
 * heeds all. */
void psd_scenario_add_unheeded(struct psd_text *text, const struct psd_scenario *scenario, enum psd_use executor,
			       enum psd_use others);

/* "psd-sim and replays"; "nobody" for a key that no executor heeds. */
enum { PSD_USERS_TEXT_MAX = 48 };
char *psd_scenario_write_users(unsigned uses, char text[PSD_USERS_TEXT_MAX]);
/* The system chooses its methods by seconds, so that all executors heed costs. */
bool psd_scenario_chooses_by_seconds(const struct psd_system *system);

#endif
