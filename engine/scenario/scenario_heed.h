/* Who heeds which keys of a scenario, from their rows: what an executor must refuse, and what it should say. */
#ifndef PSD_SCENARIO_HEED_H
#define PSD_SCENARIO_HEED_H

#include "engine/base/text.h"
#include "engine/scenario/scenario.h"
#include "engine/scenario/scenario_keys.h"

/* executor: one of PSD_BY_SIMULATION, PSD_BY_ESTIMATE, PSD_BY_RUN, PSD_BY_REPLAY; PSD_BY_PSD_RUN: a run in which some
 * train and some replay. PSD_EINVAL at the first key of the file without which the executor would carry out something
 * else, and which it cannot heed; the text says who can. */
enum psd_status psd_scenario_check_heeded(const struct psd_scenario *scenario, enum psd_use executor,
					  struct psd_error *err) PSD_MUST_CHECK;
/* The other keys of the file that differ from what holds without them, and that the executor does not heed: "heeded
 * only by psd-sim: 'fidelity' 'published'", a line for each set of executors with one of `others`; nothing when it
 * heeds all. */
void psd_scenario_add_unheeded(struct psd_text *text, const struct psd_scenario *scenario, enum psd_use executor,
			       enum psd_use others);

/* "psd-sim and replays"; of what no executor heeds "nobody". */
enum { PSD_USERS_TEXT_MAX = 48 };
char *psd_scenario_write_users(unsigned uses, char text[PSD_USERS_TEXT_MAX]);
/* Whether the system's methods are chosen by seconds, so that costs are heeded by whatever carries them out. */
bool psd_scenario_chooses_by_seconds(const struct psd_system *system);

#endif
