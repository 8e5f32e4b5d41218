/* Names and sizes in choices about a model file. */
#include "engine/model/choices.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/text.h"
#include "engine/model/layer.h"

static const struct psd_place at_input = {.path = "model.input"};

static bool read_sides(const char *text, struct psd_choice_sizes *sizes)
{
	*sizes = (struct psd_choice_sizes){.n = 0};
	for (;;) {
		char *end;
		const unsigned long long side = *text >= '0' && *text <= '9' ? strtoull(text, &end, 10) : 0;

		if (side < 1 || side > PSD_LAYER_CHANNELS_MAX || sizes->n == PSD_CHOICE_SIDES_MAX)
			return false;
		sizes->sides[sizes->n++] = (uint32_t)side;
		if (*end == '\0')
			return true;
		if (*end != 'x')
			return false;
		text = end + 1;
	}
}

/* Length of the name in "data=3x224x224". A name may contain '='. */
static size_t name_length(const char *entry)
{
	const char *equals = strrchr(entry, '=');

	return equals ? (size_t)(equals - entry) : strlen(entry);
}

static bool has_name(const char *entry, const char *name)
{
	return strlen(name) == name_length(entry) && !strncmp(entry, name, strlen(name));
}

enum psd_status psd_choices_find_sizes(const struct psd_model_choices *choices, const char *name,
				       struct psd_choice_sizes *sizes, struct psd_error *err)
{
	*sizes = (struct psd_choice_sizes){.n = 0};
	for (unsigned i = 0; choices && i < choices->n_inputs; i++) {
		const char *entry = choices->inputs[i];
		const size_t length = name_length(entry);

		if (!has_name(entry, name))
			continue;
		if (!entry[length] || !read_sides(entry + length + 1, sizes))
			return psd_error_set(err, PSD_EINVAL, at_input,
					     "'%.80s' must have sizes behind '=', from 1 to %u, such as 3x224x224",
					     entry, PSD_LAYER_CHANNELS_MAX);
	}
	return PSD_OK;
}

static bool is_known(const char *entry, const char *const known[], unsigned n_known)
{
	for (unsigned k = 0; k < n_known; k++)
		if (has_name(entry, known[k]))
			return true;
	return false;
}

enum psd_status psd_choices_check_inputs(const struct psd_model_choices *choices, const char *path,
					 const char *const known[], unsigned n_known, struct psd_error *err)
{
	for (unsigned i = 0; choices && i < choices->n_inputs; i++) {
		struct psd_text names = {.bytes = NULL};
		enum psd_status status;

		if (is_known(choices->inputs[i], known, n_known))
			continue;
		for (unsigned k = 0; k < n_known; k++)
			psd_text_add(&names, "%s'%.80s'", k ? ", " : "", known[k]);
		status = psd_error_set(err, PSD_EINVAL, at_input,
				       "'%.80s' is not in %.200s, which has the inputs and open sides %s",
				       choices->inputs[i], path, names.bytes ? names.bytes : "''");
		psd_text_release(&names);
		return status;
	}
	return PSD_OK;
}
