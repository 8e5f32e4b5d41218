/* Trace of one worker in the form of PyTorch's profiler (Kineto), for HolisticTraceAnalysis and other tools that read
 * a file for each rank. Operations are kernels on streams of a GPU, each with a launch; iterations are ProfilerSteps.
 * This module makes the text, the caller writes it to a file. */
#ifndef PSD_RANK_TRACE_H
#define PSD_RANK_TRACE_H

#include "engine/result/trace.h"

/* Iteration and time in which the last transfer of an item has ended on the worker. */
struct psd_rank_item {
	uint32_t iteration;
	double end_sec; /* 0: no transfer has ended */
};

struct psd_rank_trace {
	unsigned rank;
	/* The spans are those of a prediction. A receive then begins when the worker's own part of the exchange has
	 * ended, as with NCCL, and waits for work of other hosts. In a real run it begins with the first byte. Both
	 * agree with the columns of results. */
	bool is_predicted;
	struct psd_rank_item *items; /* one entry per item of the plan, for predictions */
	uint64_t n_kernels;
	bool has_step;
	uint32_t iteration; /* number of the present step */
	double step_sec;    /* begin of the present step */
	double device_sec;  /* begin of the device's last kernel */
	double end_sec;	    /* latest end of a kernel */
	struct psd_traffic until_now;
};

/* Prepares the trace of a worker of the case. psd_rank_trace_release() releases it. PSD_ENOMEM. */
enum psd_status psd_rank_trace_init(struct psd_rank_trace *trace, const struct psd_case *traced, unsigned rank,
				    bool is_predicted, struct psd_error *err) PSD_MUST_CHECK;
void psd_rank_trace_release(struct psd_rank_trace *trace);

/* These three functions append the parts of a worker's file: its beginning, a span of this worker, and its end. Spans
 * of a device must be added in the order of their times. */
void psd_rank_trace_add_head(const struct psd_rank_trace *trace, struct psd_text *text, const struct psd_case *traced,
			     const char *executor);
void psd_rank_trace_add_span(struct psd_rank_trace *trace, struct psd_text *text, const struct psd_program *program,
			     const struct psd_span *span);
void psd_rank_trace_add_end(const struct psd_rank_trace *trace, struct psd_text *text);

#endif
