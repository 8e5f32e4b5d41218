/* A scenario with all its values, as a scenario file. */
#ifndef PSD_SCENARIO_PRINT_H
#define PSD_SCENARIO_PRINT_H

#include "engine/base/text.h"
#include "engine/scenario/scenario.h"

/* All values that take effect, so that reading the text gives the same again; its paths hold from the working
 * directory. */
void psd_scenario_add_text(struct psd_text *text, const struct psd_scenario *scenario);

#endif
