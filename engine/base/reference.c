#define _GNU_SOURCE 1
#include "engine/base/reference.h"

#include <string.h>

enum { INDENT = 4 };

bool psd_reference_has(const struct psd_reference *reference, const char *name, const char *meaning)
{
	const size_t length = reference->topic ? strlen(reference->topic) : 0;

	if (reference->is_in_texts)
		return length > 0 && strcasestr(meaning, reference->topic);
	while (strncmp(name, length ? reference->topic : "", length) != 0) {
		name = strchr(name, '.');
		if (!name)
			return false;
		name++;
	}
	return true;
}

bool psd_reference_searches_texts(const struct psd_text *text, const struct psd_reference *reference,
				  struct psd_reference *in_texts)
{
	*in_texts = *reference;
	in_texts->is_in_texts = true;
	return text->length == 0 && !text->is_out_of_memory && reference->topic;
}

static void add_lines(struct psd_text *text, const char *words, int indent, int width)
{
	struct psd_text plain = {.bytes = NULL};

	for (; *words; words++)
		if (*words != '`')
			psd_text_add_bytes(&plain, words, 1);
	psd_text_add(text, "%*s", indent, "");
	if (plain.bytes)
		psd_text_add_wrapped(text, plain.bytes, indent, INDENT, width);
	text->is_out_of_memory = text->is_out_of_memory || plain.is_out_of_memory;
	psd_text_release(&plain);
}

void psd_reference_add(struct psd_text *text, const struct psd_reference *reference, const char *head,
		       const char *const texts[])
{
	add_lines(text, head, 0, reference->width);
	for (; *texts; texts++)
		if (**texts)
			add_lines(text, *texts, INDENT, reference->width);
}

enum psd_status psd_reference_check(const struct psd_text *text, const struct psd_reference *reference,
				    const char *kind, struct psd_error *err)
{
	if (text->length || text->is_out_of_memory)
		return PSD_OK;
	return psd_error_set(err, PSD_EINVAL, PSD_NOWHERE, "no %s begins with '%.80s' or is explained with that word",
			     kind, reference->topic ? reference->topic : "");
}
