/* Statuses and the one-line message that goes with a failure. Refuses to print: only the two mains do. */
#ifndef PSD_ERROR_H
#define PSD_ERROR_H

#include <stdbool.h>

enum psd_status {
	PSD_OK = 0,
	PSD_EINVAL, /* the user's input is wrong; the text names file:line:column where there is one */
	PSD_EFILE,  /* a file cannot be read or written */
	PSD_ENOMEM,
	PSD_ERUN,    /* a run started and did not finish */
	PSD_ELOST,   /* a run did not finish: a process, host or connection is lost or stalled; retrying may help */
	PSD_EABSENT, /* a run did not finish: a host did not come in time; retrying may help, but not at once */
};

#define PSD_MUST_CHECK __attribute__((warn_unused_result))

struct psd_error {
	enum psd_status status;
	bool is_limit; /* a limit of the scenario on its own length was met: psd_refuse_length() */
	char text[1024];
};

/* Place in an input file. path: borrowed; NULL: no place. line, column: from 1; 0: unknown. */
struct psd_place {
	const char *path;
	unsigned line;
	unsigned column;
};

/* Fills err (if not NULL) with status and the plain text (psd_text_make_plain()) "path:line:column: message", without
 * unknown parts. Returns status, so that callers write `return psd_error_set(...)`. Any thread. */
enum psd_status psd_error_set(struct psd_error *err, enum psd_status status, struct psd_place at, const char *format,
			      ...) __attribute__((format(printf, 4, 5)));

/* PSD_ENOMEM, "out of memory". */
enum psd_status psd_out_of_memory(struct psd_error *err);

/* Returns the status of a call from the function around it unless it is PSD_OK. Only where nothing must be released. */
#define PSD_TRY(...)                                                                                                   \
	do {                                                                                                           \
		const enum psd_status psd_try_status = (__VA_ARGS__);                                                  \
		if (psd_try_status)                                                                                    \
			return psd_try_status;                                                                         \
	} while (0)

#define PSD_NOWHERE ((struct psd_place){0})

#endif
