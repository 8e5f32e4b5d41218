/* Writes explanations of names (keys of a scenario, columns of a result): as rows of a Markdown table, or as lines for
 * a terminal. This module itself knows no names. */
#ifndef PSD_REFERENCE_H
#define PSD_REFERENCE_H

#include <stdbool.h>

#include "engine/base/error.h"
#include "engine/base/text.h"

struct psd_reference {
	bool is_markdown;
	/* Only names with a part (between dots) that begins with this text are included, such as "cluster.network" or
	 * "band"; NULL: all names. */
	const char *topic;
	int width; /* largest length of a line on a terminal, characters */
};

/* True if reference->topic includes the name, or is NULL. */
bool psd_reference_has(const struct psd_reference *reference, const char *name);
/* Appends lines for a terminal: the line `head`, and below it each text of the NULL-terminated list `texts`. Empty
 * texts are omitted, and Markdown's backquotes are removed. */
void psd_reference_add(struct psd_text *text, const struct psd_reference *reference, const char *head,
		       const char *const texts[]);
/* Checks that `text` is not empty. PSD_EINVAL: it is empty, as no name matches the topic; the message is a line for
 * the user. kind: word for the names, such as "key" or "column". */
enum psd_status psd_reference_check(const struct psd_text *text, const struct psd_reference *reference,
				    const char *kind, struct psd_error *err) PSD_MUST_CHECK;

#endif
