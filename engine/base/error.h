/* Statuses, and the one-line message that belongs to a failure. Only the two main programs print messages. */
#ifndef PSD_ERROR_H
#define PSD_ERROR_H

#include <stdbool.h>

enum psd_status {
	PSD_OK = 0,
	PSD_EINVAL, /* the user's input is wrong; the message names file:line:column if the input is a file */
	PSD_EFILE,  /* a file cannot be read or written */
	PSD_ENOMEM,
	PSD_ERUN, /* a run began, but failed */
	/* A run failed because a process, host or connection was lost or made no progress. Another attempt may
	 * succeed. */
	PSD_ELOST,
	/* A run failed because a host did not join in time. An attempt some time later may succeed. */
	PSD_EABSENT,
};

#define PSD_MUST_CHECK __attribute__((warn_unused_result))

struct psd_error {
	enum psd_status status;
	/* The input asks for more events than the scenario's `most_events` allows: psd_refuse_length(). */
	bool is_limit;
	char text[1024];
};

/* Place in an input file. path is borrowed; NULL: no place. line and column count from 1; 0: not known. */
struct psd_place {
	const char *path;
	unsigned line;
	unsigned column;
};

/* Fills *err (if err is not NULL) with the status and the text "path:line:column: message". Parts of the place that
 * are not known are omitted. Control characters are replaced, see psd_text_make_plain(). Returns the status, so that
 * callers can write `return psd_error_set(...)`. Any thread. */
enum psd_status psd_error_set(struct psd_error *err, enum psd_status status, struct psd_place at, const char *format,
			      ...) __attribute__((format(printf, 4, 5)));

/* Fills *err with "out of memory" and returns PSD_ENOMEM. */
enum psd_status psd_out_of_memory(struct psd_error *err);

/* Makes the function that uses this macro return the status of a call if it is not PSD_OK. Use it only if nothing has
 * to be released. */
#define PSD_TRY(...)                                                                                                   \
	do {                                                                                                           \
		const enum psd_status psd_try_status = (__VA_ARGS__);                                                  \
		if (psd_try_status)                                                                                    \
			return psd_try_status;                                                                         \
	} while (0)

#define PSD_NOWHERE ((struct psd_place){0})

#endif
