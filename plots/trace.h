/* A trace of psd-sim or psd-run in memory: Chrome trace-event JSON with one event per line, which may be compressed by
 * gzip. Reads no other layout of JSON. */
#ifndef PSD_PLOTS_TRACE_H
#define PSD_PLOTS_TRACE_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/base/arena.h"
#include "engine/base/error.h"

enum { PSD_TRACE_THREADS_MAX = 64, PSD_TRACE_KINDS_MAX = 64 };

struct psd_plot_event {
	const char *name;
	unsigned process; /* index in the trace's processes */
	unsigned thread;
	unsigned kind; /* index in the trace's kinds */
	double begin_us, length_us;
	int64_t iteration; /* -1: the event names none */
};

struct psd_plot_process {
	double pid;
	const char *name;
	int64_t worker; /* -1: it is not a worker */
};

struct psd_plot_trace {
	struct psd_arena arena;
	const char *path; /* borrowed */
	/* members of the first line, as text; "" if one is missing */
	const char *scenario, *system_name, *executor, *nodes, *workers, *bandwidth_bps;
	const char *kinds[PSD_TRACE_KINDS_MAX];
	unsigned n_kinds;
	const char *threads[PSD_TRACE_THREADS_MAX]; /* names by number; NULL: not named */
	struct psd_plot_process *processes;
	uint32_t n_processes, processes_room;
	struct psd_plot_event *events;
	uint32_t n_events, events_room;
	int64_t last_iteration;
	unsigned n_workers;
};

/* Reads a trace; psd_plot_trace_release() releases *trace, also after a failure. PSD_EINVAL with file and line,
 * PSD_EFILE, PSD_ENOMEM. */
enum psd_status psd_plot_trace_read(struct psd_plot_trace *trace, const char *path,
				    struct psd_error *err) PSD_MUST_CHECK;
void psd_plot_trace_release(struct psd_plot_trace *trace);

/* Sets *begins_with to whether the file is such a trace, by its first line, and *head to the beginning of the file, in
 * the arena. PSD_EFILE, PSD_EINVAL, PSD_ENOMEM. */
enum psd_status psd_plot_trace_peek(struct psd_arena *arena, const char *path, bool *is_trace, const char **head,
				    struct psd_error *err) PSD_MUST_CHECK;

/* Return the text or the number of "key":... in a line of JSON, as a copy in the arena; "" if the key is missing. */
const char *psd_plot_json_text(struct psd_arena *arena, const char *json, const char *key);
const char *psd_plot_json_number(struct psd_arena *arena, const char *json, const char *key);

#endif
