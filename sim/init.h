/* A new scenario from a few answers, with a comment for each key. */
#ifndef PSD_SIM_INIT_H
#define PSD_SIM_INIT_H

#include "engine/base/error.h"
#include "engine/base/text.h"

/* Answers as the user wrote them; NULL: the default. */
struct psd_init_answers {
	const char *model; /* name of an installed model, or path of a model file */
	const char *nodes, *bandwidth;
	const char *device, *workers, *batch, *latency, *stack; /* stack: the default is that of the scenario */
	const char *sync;					/* methods to compare, with commas between them */
	const char *output_path; /* path of the file that the scenario is for; NULL: not known */
};

/* Appends the scenario. PSD_EINVAL: an answer is not a value of its key; the text is a line for the user. PSD_EFILE,
 * PSD_ENOMEM. */
enum psd_status psd_init_add_scenario(struct psd_text *text, const struct psd_init_answers *answers,
				      struct psd_error *err) PSD_MUST_CHECK;

#endif
