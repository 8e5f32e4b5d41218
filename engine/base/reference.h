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
	int width;	  /* largest length of a line on a terminal, characters */
	bool is_in_texts; /* the topic is searched in explanations instead of names */
};

/* True if reference->topic includes the name, or is NULL. With is_in_texts: true if `meaning` has the topic, in
 * capitals or small letters. */
bool psd_reference_has(const struct psd_reference *reference, const char *name, const char *meaning);
/* Returns true if no name matches the topic, so that nothing was appended. The caller then searches explanations, by
 * *in_texts. */
bool psd_reference_searches_texts(const struct psd_text *text, const struct psd_reference *reference,
				  struct psd_reference *in_texts);
/* Appends lines for a terminal: the line `head`, and below it each text of the NULL-terminated list `texts`. Empty
 * texts are omitted, and Markdown's backquotes are removed. */
void psd_reference_add(struct psd_text *text, const struct psd_reference *reference, const char *head,
		       const char *const texts[]);
/* Checks that something matched. PSD_EINVAL: no name and no explanation matches the topic; the message is a line for
 * the user. kind: word for the names, such as "key" or "column". */
enum psd_status psd_reference_check(const struct psd_text *text, const struct psd_reference *reference,
				    const char *kind, struct psd_error *err) PSD_MUST_CHECK;

#endif
