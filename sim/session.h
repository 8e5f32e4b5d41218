/* One scenario of the command line, loaded with all it names. Refuses to run anything. */
#ifndef PSD_SIM_SESSION_H
#define PSD_SIM_SESSION_H

#include <stdbool.h>

#include "engine/base/error.h"
#include "engine/case/case.h"
#include "engine/scenario/published.h"
#include "engine/scenario/scenario.h"

/* Must not move: matter points to scenario. */
struct psd_session {
	struct psd_scenario scenario;
	struct psd_subject_matter matter;
	struct psd_published published;
	bool has_scenario, has_matter, has_published;
};

/* Loads the scenario at path and, with_matter, its model, costs and published values. On failure *session can be
 * released, too. Statuses of the loaders. */
enum psd_status psd_session_load(struct psd_session *session, const char *path, const char *const settings[],
				 bool with_matter, struct psd_error *err) PSD_MUST_CHECK;
void psd_session_release(struct psd_session *session);
/* NULL when the scenario names none. */
const struct psd_published *psd_session_published(const struct psd_session *session);

#endif
