/* Operations that the stand-in's streams execute and its graphs keep. Private to stand_in_streams.c and
 * stand_in_graphs.c. Every function is called under the lock. */
#ifndef PSD_TESTS_CUDA_STAND_IN_OPERATIONS_H
#define PSD_TESTS_CUDA_STAND_IN_OPERATIONS_H

#include "tests/cuda/stand_in_parts.h"

enum psd_stand_in_operation_kind {
	PSD_STAND_IN_WORK,
	PSD_STAND_IN_HOST,
	PSD_STAND_IN_RECORD,
	PSD_STAND_IN_WAIT,
	PSD_STAND_IN_GRAPH
};

struct psd_stand_in_operation {
	struct psd_stand_in_operation *next;
	enum psd_stand_in_operation_kind kind;
	uint64_t sequence;
	void (*run)(void *arguments);
	struct psd_stand_in_record *record; /* the recording of an event */
	cudaGraphExec_t graph;
	size_t bytes;
	max_align_t arguments[];
};

struct psd_stand_in_capture;

/* NULL where memory is short. Owned by the caller until it is queued. */
struct psd_stand_in_operation *psd_stand_in_make_operation(enum psd_stand_in_operation_kind kind, void (*run)(void *),
							   size_t arguments_bytes);
/* Appends to the stream, or to its capture. Takes the operation, which may be NULL, even on failure. */
cudaError_t psd_stand_in_queue_operation(cudaStream_t stream, struct psd_stand_in_operation *operation);

/* The capture of a stream that is not the default one. */
struct psd_stand_in_capture **psd_stand_in_capture_of(cudaStream_t stream);
cudaError_t psd_stand_in_take_into(struct psd_stand_in_capture *capture, struct psd_stand_in_operation *operation);
/* The default stream must not be used by a thread that captures. CUDA allows it beside streams such as these, which do
 * not wait for it. */
cudaError_t psd_stand_in_default_stream_error(void);
/* Ends the capture without a graph. */
void psd_stand_in_drop_capture(struct psd_stand_in_capture *capture);

/* First operation that a graph's launch executes. NULL if the graph is destroyed: then the context is lost. */
struct psd_stand_in_operation *psd_stand_in_graph_operations(cudaGraphExec_t graph);
void psd_stand_in_end_graph_launch(cudaGraphExec_t graph);

#endif
