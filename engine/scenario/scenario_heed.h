/* Keys that an executor (simulation, estimate, training or replay) heeds, which means that it uses their values. An
 * executor refuses some of the other keys in a file, and reports the rest. The fields psd_key.uses and is_refused of a
 * key decide. */
#ifndef PSD_SCENARIO_HEED_H
#define PSD_SCENARIO_HEED_H

#include "engine/base/text.h"
#include "engine/scenario/scenario.h"
#include "engine/scenario/scenario_keys.h"

/* Checks that the file has no key that would change the results but that this executor ignores. PSD_EINVAL: it has;
 * the text names the first such key, and the programs that heed it. executor: PSD_BY_SIMULATION, PSD_BY_ESTIMATE,
 * PSD_BY_RUN or PSD_BY_REPLAY; PSD_BY_PSD_RUN is a run in which some workers train and some replay. */
enum psd_status psd_scenario_check_heeded(const struct psd_scenario *scenario, enum psd_use executor,
					  struct psd_error *err) PSD_MUST_CHECK;
/* Appends the keys of the file that this executor ignores and that differ from their defaults, in lines such as "used
 * only by psd-sim: 'fidelity' 'published'". A line lists all keys that the same executors heed. Keys that no executor
 * in `others` heeds are left out. Appends nothing if there are no such keys. */
void psd_scenario_add_unheeded(struct psd_text *text, const struct psd_scenario *scenario, enum psd_use executor,
			       enum psd_use others);

/* psd_scenario_write_users() writes the names of the executors in `uses` (bits of enum psd_use) to `text` and returns
 * it: "psd-sim and replays". The text is "nobody" for a key that no executor heeds. PSD_USERS_TEXT_MAX: size of `text`,
 * bytes. */
enum { PSD_USERS_TEXT_MAX = 48 };
char *psd_scenario_write_users(unsigned uses, char text[PSD_USERS_TEXT_MAX]);
/* True if the system chooses its methods by predicted seconds. Then costs matter to every executor. */
bool psd_scenario_chooses_by_seconds(const struct psd_system *system);

#endif
