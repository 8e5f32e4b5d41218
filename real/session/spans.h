/* Who did what when in a real run: each host writes records into a file that has no name, made before the host's
 * process, and whoever started the processes reads all of them back into one trace. Refuses to say when time began:
 * seconds are those of the monotonic clock, which the processes of one machine share. */
#ifndef PSD_REAL_SPANS_H
#define PSD_REAL_SPANS_H

#include <stdint.h>
#include <stdio.h>

#include "engine/base/error.h"
#include "engine/case/case.h"
#include "engine/result/trace.h"

enum { PSD_MAX_SPANS = 1000000 }; /* of one host: 40 MB; later ones are left out */

struct psd_recorder {
	FILE *file;
	uint64_t n_spans;
};

struct psd_spans {
	struct psd_recorder *hosts;
	unsigned n_hosts;
};

/* One recorder for each host. *spans is filled on success, closed by psd_spans_close(). PSD_ENOMEM, PSD_ERUN. */
enum psd_status psd_spans_open(struct psd_spans *spans, unsigned n_hosts, struct psd_error *err) PSD_MUST_CHECK;
void psd_spans_close(struct psd_spans *spans);

/* In a host's process, of that host. Write errors stay in the file's flag until psd_recorder_finish(). */
void psd_recorder_add(struct psd_recorder *recorder, const struct psd_span *span);
/* Before the process ends. PSD_ERUN when something could not be written. */
enum psd_status psd_recorder_finish(struct psd_recorder *recorder, struct psd_error *err) PSD_MUST_CHECK;

/* Once all hosts' processes have ended: tells all spans, host by host, in the order in which they ended. PSD_ERUN. */
enum psd_status psd_spans_tell(const struct psd_spans *spans, const struct psd_program *program, psd_span_fn span,
			       void *context, struct psd_error *err) PSD_MUST_CHECK;
/* Once all hosts' processes have ended: writes the trace of the case, its first span being at 0. *last_iteration: of
 * the first host that left spans out, the last in the trace, or UINT32_MAX. Write errors stay in out's flag. */
enum psd_status psd_spans_write(const struct psd_spans *spans, FILE *out, const struct psd_case *traced,
				const char *executor, uint32_t *last_iteration, struct psd_error *err) PSD_MUST_CHECK;

#endif
