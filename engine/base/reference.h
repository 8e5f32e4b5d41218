/* How the meaning of names is printed, keys of a scenario or columns of a result: rows of a table in Markdown, or lines
 * for a terminal. Refuses to know any name. */
#ifndef PSD_REFERENCE_H
#define PSD_REFERENCE_H

#include <stdbool.h>

#include "engine/base/error.h"
#include "engine/base/text.h"

struct psd_reference {
	bool is_markdown;
	const char *topic; /* only names a part of which begins so: "cluster.network", "band"; NULL: all */
	int width;	   /* of a terminal's lines, in characters */
};

bool psd_reference_has(const struct psd_reference *reference, const char *name);
/* For a terminal: the head, and each of the texts (NULL-terminated, empty ones are left out) in lines below it. Without
 * the marks that Markdown has for code. */
void psd_reference_add(struct psd_text *text, const struct psd_reference *reference, const char *head,
		       const char *const texts[]);
/* PSD_EINVAL with a line for the user where nothing was added: no such `what`, "key". */
enum psd_status psd_reference_check(const struct psd_text *text, const struct psd_reference *reference,
				    const char *what, struct psd_error *err) PSD_MUST_CHECK;

#endif
