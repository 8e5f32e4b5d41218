/* Seconds of layers from a trace of PyTorch's profiler: a profile for scenarios, and for a trace without a model also a
 * graph. */
#ifndef PSD_IMPORT_H
#define PSD_IMPORT_H

#include <stdio.h>

#include "engine/base/text.h"
#include "sim/import/match.h"

struct psd_import_settings {
	const char *trace_path;
	const void *trace_bytes; /* the trace in memory; NULL: it is read from trace_path */
	size_t trace_length;
	const char *model_path;	  /* NULL: layers are the trace's operators */
	const char *profile_path; /* name of the profile in the scenario's lines */
	const char *graph_path;	  /* name of the graph in the scenario's lines, where model_path is NULL */
	unsigned batch;		  /* samples of a step; 0: by the trace */
	double bits_per_sec;	  /* rate of a link of the cluster, for collectives; 0: unknown */
	double latency_sec;
};

/* A set of times of several steps. */
struct psd_import_spread {
	double median, p90, p99, most;
	double ratio;			       /* standard deviation over mean, without the tail */
	double tail_chance_ratio, tail_factor; /* steps that take 1.5 medians or more; 0: there are none */
};

enum psd_batch_source {
	PSD_BATCH_TOLD,	  /* by the user, or by the shapes of the trace */
	PSD_BATCH_GRIDS,  /* by the grids of elementwise kernels */
	PSD_BATCH_UNKNOWN /* a step counts as one sample */
};

struct psd_import {
	struct psd_import_settings settings;
	struct psd_trace trace;
	struct psd_places places;
	struct psd_graph graph; /* with a model */
	struct psd_match match;
	unsigned batch;
	enum psd_batch_source batch_source;
	double *forward_sec, *backward_sec; /* seconds of each layer in a median step */
	/* without a model: parameters of each layer in lists, or, without shapes, in the all-reduces behind it */
	uint64_t *bucket_elements;
	double layers_sec;		 /* their sum */
	struct psd_import_spread spread; /* spread of the sums of single steps */
	double role_sec[PSD_ROLES];	 /* medians over steps */
	double kernel_sec, busy_sec, step_sec;
	double gemm_flops_per_sec;
	const char *gemm_source;
	double sure_ratio;  /* share of all kernel time that a layer's own operators, or a role, have */
	double near_ratio;  /* share that goes with the operator before it */
	double loose_ratio; /* share that is not placed */
	unsigned n_steps;   /* steps that compute */
};

/* Reads trace and model, and places the seconds. The import must not be moved; psd_import_release() releases it, also
 * after a failure. PSD_EFILE, PSD_EINVAL with a place, PSD_ENOMEM. */
enum psd_status psd_import_make(struct psd_import *import, const struct psd_import_settings *settings,
				struct psd_error *err) PSD_MUST_CHECK;
void psd_import_release(struct psd_import *import);

/* Adds the profile (traces/profiles/README.md). */
void psd_import_add_profile(struct psd_text *text, const struct psd_import *import);
/* Adds a graph in the native form, for predictions: layers in the order of the trace with parameters of their
 * weights' shapes. Import without a model. */
void psd_import_add_graph(struct psd_text *text, const struct psd_import *import);
/* Adds a summary for people: seconds by role, the share that is not placed, collectives, lines for a scenario. */
void psd_import_add_summary(struct psd_text *text, const struct psd_import *import);
/* Adds the table of collectives: measured, and predicted where the settings have the rate of links. */
void psd_import_add_collectives(struct psd_text *text, const struct psd_import *import);

#endif
