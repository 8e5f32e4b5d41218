/* Statuses and the one-line message that goes with a failure. Refuses to print: only the two mains do. */
#ifndef PSD_ERROR_H
#define PSD_ERROR_H

#include <stdbool.h>

enum psd_status {
	PSD_OK = 0,
	PSD_EINVAL, /* the user's input is wrong; the text names file:line:column where there is one */
	PSD_EFILE,  /* a file cannot be read or written */
	PSD_ENOMEM,
	PSD_ERUN,  /* a run started and did not finish */
	PSD_ELOST, /* the same because a process, a host or a connection is lost or stalled: another try may succeed */
};

#define PSD_MUST_CHECK __attribute__((warn_unused_result))

struct psd_error {
	enum psd_status status;
	bool is_limit; /* a limit of the scenario on its own length was met: psd_refuse_length() */
	char text[1024];
};

/* A place in an input file. path: borrowed, NULL without a place. line, column: from 1; 0 means unknown. */
struct psd_place {
	const char *path;
	unsigned line;
	unsigned column;
};

/* Fills err (if not NULL) with status and the plain text (psd_text_make_plain()) "path:line:column: message", without
 * unknown parts. Returns status, so that callers write `return psd_error_set(...)`. Any thread. */
enum psd_status psd_error_set(struct psd_error *err, enum psd_status status, struct psd_place at, const char *format,
			      ...) __attribute__((format(printf, 4, 5)));

#define PSD_NOWHERE ((struct psd_place){0})

#endif
