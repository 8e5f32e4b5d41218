/* Variants of a scenario, one for each combination of the values of its swept keys. Private to engine/scenario/. */
#ifndef PSD_SCENARIO_VARIANT_H
#define PSD_SCENARIO_VARIANT_H

#include "engine/base/arena.h"
#include "engine/document/document.h"
#include "engine/scenario/scenario.h"

/* Takes the swept keys out of `sweep` in *root into scenario->swept, and sets them to the values of this variant. *root
 * becomes a changed copy, owned by the arena. variant: less than psd_scenario_variants(). PSD_EINVAL with place,
 * PSD_ENOMEM. */
enum psd_status psd_scenario_take_variant(struct psd_scenario *scenario, const struct psd_node **root, unsigned variant,
					  struct psd_arena *arena, struct psd_error *err) PSD_MUST_CHECK;
/* True if the key at the path is swept. */
bool psd_scenario_sweeps(const struct psd_scenario *scenario, const char *path);

#endif
