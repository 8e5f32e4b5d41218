/* Prints the meaning of names, keys of a scenario or columns of a result, as rows of a table in Markdown or as lines
 * for a terminal. Refuses to know any name. */
#ifndef PSD_REFERENCE_H
#define PSD_REFERENCE_H

#include <stdbool.h>

#include "engine/base/error.h"
#include "engine/base/text.h"

struct psd_reference {
	bool is_markdown;
	const char *topic; /* limits the output to names of which a part begins with this: "cluster.network", "band" */
	int width;	   /* length of a terminal's line, characters */
};

/* True if the topic includes the name; without a topic it includes all names. */
bool psd_reference_has(const struct psd_reference *reference, const char *name);
/* Adds lines for a terminal: the head, and below it each of the texts (NULL-terminated list, empty ones are left out),
 * without Markdown's marks of code. */
void psd_reference_add(struct psd_text *text, const struct psd_reference *reference, const char *head,
		       const char *const texts[]);
/* Checks that something was added. PSD_EINVAL with a line for the user: nothing. kind: "key", "column". */
enum psd_status psd_reference_check(const struct psd_text *text, const struct psd_reference *reference,
				    const char *kind, struct psd_error *err) PSD_MUST_CHECK;

#endif
