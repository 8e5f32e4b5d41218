/* Keys that an executor heeds, from their rows: keys that it must refuse, and keys that it reports as unheeded. */
#ifndef PSD_SCENARIO_HEED_H
#define PSD_SCENARIO_HEED_H

#include "engine/base/text.h"
#include "engine/scenario/scenario.h"
#include "engine/scenario/scenario_keys.h"

/* Checks that the executor heeds every key of the file that changes its results. PSD_EINVAL: the first one that it does
 * not; the text names the programs that do. executor: one of PSD_BY_SIMULATION, PSD_BY_ESTIMATE, PSD_BY_RUN,
 * PSD_BY_REPLAY; PSD_BY_PSD_RUN: a run in which some workers train and some replay. */
enum psd_status psd_scenario_check_heeded(const struct psd_scenario *scenario, enum psd_use executor,
					  struct psd_error *err) PSD_MUST_CHECK;
/* Appends the keys of the file that the executor ignores, if they differ from their defaults: "heeded only by psd-sim:
 * 'fidelity' 'published'". There is a line for each set of executors that has one of `others`; nothing if it heeds all
 * keys. */
void psd_scenario_add_unheeded(struct psd_text *text, const struct psd_scenario *scenario, enum psd_use executor,
			       enum psd_use others);

/* Writes the names of executors: "psd-sim and replays"; "nobody" for a key that no executor heeds. */
enum { PSD_USERS_TEXT_MAX = 48 };
char *psd_scenario_write_users(unsigned uses, char text[PSD_USERS_TEXT_MAX]);
/* True if the system chooses its methods by seconds: then every executor heeds costs. */
bool psd_scenario_chooses_by_seconds(const struct psd_system *system);

#endif
