/* Import of a trace of PyTorch's profiler: finds the seconds of each layer, and writes them as a profile for scenarios.
 * For a trace without a model file it also writes a graph. */
#ifndef PSD_IMPORT_H
#define PSD_IMPORT_H

#include <stdio.h>

#include "engine/base/text.h"
#include "sim/import/match.h"

/* First words of each graph that an import writes. */
#define PSD_IMPORT_GRAPH_HEAD "# Layers of a trace of PyTorch's profiler, by psd-sim import."

struct psd_import_settings {
	const char *trace_path;
	/* contents of the trace file, trace_length bytes in memory; NULL: the file at trace_path is read */
	const void *trace_bytes;
	size_t trace_length;
	/* model file whose layers get the seconds; NULL: each operator of the trace becomes a layer */
	const char *model_path;
	const char *profile_path; /* path of the profile, for the lines of a scenario in the summary */
	const char *graph_path;	  /* path of the graph, for the same lines; used only if model_path is NULL */
	unsigned batch; /* number of samples in a training step of one worker; 0: it is found from the trace */
	/* rate of a node's link, bits per second, for predicted times of collectives; 0: no predictions */
	double bits_per_sec;
	double latency_sec;
};

/* Statistics of one time, measured in each training step: median, 90th and 99th percentile and maximum, seconds. */
struct psd_import_spread {
	double median, p90, p99, most;
	double ratio; /* standard deviation divided by mean, computed without the slow steps */
	/* Slow steps, which take at least 1.5 times the median: their share of all steps, and their mean time divided
	 * by that of the others. Both are 0 if there are none. */
	double tail_chance_ratio, tail_factor;
};

enum psd_batch_source {
	PSD_BATCH_TOLD,	  /* given by the user, or found in the shapes of operators' inputs */
	PSD_BATCH_GRIDS,  /* guessed from the grids (numbers of blocks and threads) of elementwise kernels */
	PSD_BATCH_UNKNOWN /* not found, so a step counts as one sample */
};

struct psd_import {
	struct psd_import_settings settings;
	struct psd_trace trace;
	struct psd_places places;
	struct psd_graph graph; /* graph of the model file; empty if there is none */
	struct psd_match match;
	unsigned batch;
	enum psd_batch_source batch_source;
	/* seconds of each layer's forward and backward pass, one entry per layer; medians over the steps */
	double *forward_sec, *backward_sec;
	/* Used without a model file, for parameters that the trace does not show with a layer's own operators: number
	 * of parameters of each layer, from lists of tensors or from the all-reduces after its backward pass. */
	uint64_t *bucket_elements;
	double layers_sec;		 /* sum of forward_sec and backward_sec over all layers, seconds */
	struct psd_import_spread spread; /* statistics of the seconds of all layers in single steps */
	double role_sec[PSD_ROLES];	 /* seconds of each role in a step (enum psd_role), medians over the steps */
	double kernel_sec, busy_sec, step_sec;
	double gemm_flops_per_sec;
	const char *gemm_source;
	double layers_sure_ratio; /* share of the layers' time that surely belongs to them */
	double sure_ratio;	  /* share of all kernel time that surely belongs to a layer or a role */
	/* share of all kernel time that counts for the layer of the operator before, as its own layer is unknown */
	double near_ratio;
	double loose_ratio; /* share of all kernel time that is counted for no layer and no role */
	unsigned n_steps;   /* number of training steps in which the device computes */
};

/* Reads the trace and the model file, and computes the seconds of layers and roles. *import must not be moved in
 * memory; psd_import_release() releases it, also after a failure. PSD_EFILE, PSD_EINVAL with a place, PSD_ENOMEM. */
enum psd_status psd_import_make(struct psd_import *import, const struct psd_import_settings *settings,
				struct psd_error *err) PSD_MUST_CHECK;
void psd_import_release(struct psd_import *import);

/* Appends the profile, in the format of traces/profiles/README.md. */
void psd_import_add_profile(struct psd_text *text, const struct psd_import *import);
/* Appends a graph as a YAML model for predictions. It has the layers in the order of the trace, each with the
 * parameters that its weights' shapes show. Only for an import without a model file. */
void psd_import_add_graph(struct psd_text *text, const struct psd_import *import);
/* Appends a summary for people: seconds of each role, the share of time that is not assigned, collectives, and lines
 * for a scenario. */
void psd_import_add_summary(struct psd_text *text, const struct psd_import *import);
/* Appends a table of the trace's collectives with their measured times. If settings.bits_per_sec is given, it has
 * predicted times as well. */
void psd_import_add_collectives(struct psd_text *text, const struct psd_import *import);

#endif
