/* Lookups in the user's choices about a model file (struct psd_model_choices). Private to the engine. */
#ifndef PSD_MODEL_CHOICES_H
#define PSD_MODEL_CHOICES_H

#include <stdint.h>

#include "engine/base/error.h"
#include "engine/model/graph.h"

#define PSD_CHOICE_SIDES_MAX 8u

/* Sizes that the user gives for an input or an axis; n is 0 if the user gives none. */
struct psd_choice_sizes {
	unsigned n;
	uint32_t sides[PSD_CHOICE_SIDES_MAX];
};

/* Sets *sizes to the user's sizes for the input or axis `name`: 3, 224 and 224 in "data=3x224x224". choices: may be
 * NULL. PSD_EINVAL: the entry does not have whole numbers from 1 to PSD_LAYER_CHANNELS_MAX with 'x' between them. */
enum psd_status psd_choices_find_sizes(const struct psd_model_choices *choices, const char *name,
				       struct psd_choice_sizes *sizes, struct psd_error *err) PSD_MUST_CHECK;
/* Checks that all entries of choices->inputs have names in `known`: the names of the inputs and open axes of the file
 * at `path`. PSD_EINVAL: an entry has another name. */
enum psd_status psd_choices_check_inputs(const struct psd_model_choices *choices, const char *path,
					 const char *const known[], unsigned n_known,
					 struct psd_error *err) PSD_MUST_CHECK;

#endif
