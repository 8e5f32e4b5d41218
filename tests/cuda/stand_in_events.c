/* The stand-in's events: each recording is a mark in a stream, and the latest counts. Refuses to know delays. */
#include <stdio.h>
#include <stdlib.h>

#include "tests/cuda/stand_in_parts.h"

struct CUevent_st {
	int device;
	bool is_timed;
	struct psd_stand_in_record *record; /* the latest; NULL: none yet, or captured */
	uint64_t capture;		    /* number of the capture of the latest; 0: none */
};

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned flags)
{
	cudaError_t error = psd_stand_in_begin(__func__);
	struct CUevent_st *made = NULL;

	if (error == cudaSuccess) {
		made = calloc(1, sizeof(*made));
		error = made ? cudaSuccess : cudaErrorMemoryAllocation;
	}
	if (error == cudaSuccess) {
		*made = (struct CUevent_st){.device = psd_stand_in_device(),
					    .is_timed = (flags & cudaEventDisableTiming) == 0};
		*event = made;
		psd_stand_in_count.events++;
	}
	return psd_stand_in_end(error);
}

cudaError_t cudaEventCreate(cudaEvent_t *event)
{
	return cudaEventCreateWithFlags(event, cudaEventDefault);
}

/* A wait for a recording of the event goes on. */
cudaError_t cudaEventDestroy(cudaEvent_t event)
{
	cudaError_t error = psd_stand_in_begin(__func__);

	if (!event && error == cudaSuccess)
		error = cudaErrorInvalidResourceHandle;
	if (event && psd_stand_in_may_release(error)) {
		if (event->record)
			psd_stand_in_drop_record(event->record);
		free(event);
		psd_stand_in_count.events--;
	}
	return psd_stand_in_end(error);
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream)
{
	cudaError_t error = psd_stand_in_begin(__func__);
	struct psd_stand_in_record *record = NULL;

	if (error == cudaSuccess && (!event || event->device != psd_stand_in_stream_device(stream)))
		error = cudaErrorInvalidResourceHandle;
	if (error == cudaSuccess && !psd_stand_in_is_captured(stream)) {
		record = psd_stand_in_queue_record(stream);
		error = record ? cudaSuccess : cudaErrorMemoryAllocation;
	}
	if (error == cudaSuccess) {
		if (event->record)
			psd_stand_in_drop_record(event->record);
		event->record = record;
		event->capture = psd_stand_in_is_captured(stream);
	}
	return psd_stand_in_end(error);
}

/* Whether a wait for the recording is left out. The host's waits for one recording count once together. */
static bool is_skipped(const char *function, const void *site, struct psd_stand_in_record *record, bool is_host)
{
	bool is_left_out;

	if (is_host && record->is_counted)
		return record->is_left_out;
	is_left_out = psd_stand_in_is_skipped(function, site);
	record->is_counted |= is_host;
	record->is_left_out |= is_host && is_left_out;
	if (is_left_out && !record->is_over)
		psd_stand_in_be_late(record->stream, record->sequence);
	return is_left_out;
}

/* Checks a stream's wait. A recording in the stream's own capture precedes its next operations anyway; a capture must
 * not wait for work outside. */
static cudaError_t check_captured(cudaStream_t stream, const struct CUevent_st *event)
{
	const uint64_t capture = psd_stand_in_is_captured(stream);

	if (event->capture == capture)
		return cudaSuccess;
	if (event->record)
		return psd_stand_in_invalidate(stream, cudaErrorStreamCaptureIsolation);
	if (event->capture)
		fprintf(stderr, "stand-in: graphs of several streams are not known here\n");
	return event->capture ? cudaErrorNotSupported : cudaSuccess;
}

/* An event without a recording counts as over. */
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags)
{
	cudaError_t error = psd_stand_in_begin(__func__);

	(void)flags;
	if (error == cudaSuccess && !event)
		error = cudaErrorInvalidResourceHandle;
	if (error == cudaSuccess)
		error = check_captured(stream, event);
	if (error == cudaSuccess && event->record &&
	    !is_skipped(__func__, __builtin_return_address(0), event->record, false))
		error = psd_stand_in_queue_wait(stream, event->record);
	return psd_stand_in_end(error);
}

/* Begins a wait of the host. */
static cudaError_t begin_wait(const char *function, const struct CUevent_st *event)
{
	const cudaError_t error = psd_stand_in_begin_unsafe(function);

	if (error == cudaSuccess && !event)
		return cudaErrorInvalidResourceHandle;
	return error == cudaSuccess && event->capture ? cudaErrorCapturedEvent : error;
}

cudaError_t cudaEventSynchronize(cudaEvent_t event)
{
	cudaError_t error = begin_wait(__func__, event);

	if (error == cudaSuccess && event->record &&
	    !is_skipped(__func__, __builtin_return_address(0), event->record, true)) {
		struct psd_stand_in_record *const record = event->record;

		record->references++; /* the event may be recorded anew meanwhile */
		error = psd_stand_in_await_record(record);
		psd_stand_in_drop_record(record);
	}
	return psd_stand_in_end(error);
}

cudaError_t cudaEventQuery(cudaEvent_t event)
{
	cudaError_t error = begin_wait(__func__, event);

	if (error == cudaSuccess && event->record &&
	    !is_skipped(__func__, __builtin_return_address(0), event->record, true)) {
		if (event->record->is_over)
			psd_stand_in_meet(event->record);
		else
			error = cudaErrorNotReady;
		psd_stand_in_demand_record(event->record);
	}
	return psd_stand_in_end(error);
}

static cudaError_t check_timed(const struct CUevent_st *event)
{
	if (event && event->capture)
		return cudaErrorCapturedEvent;
	if (!event || !event->is_timed || !event->record)
		return cudaErrorInvalidResourceHandle;
	return event->record->is_over ? cudaSuccess : cudaErrorNotReady;
}

cudaError_t cudaEventElapsedTime(float *msec, cudaEvent_t from, cudaEvent_t to)
{
	cudaError_t error = psd_stand_in_begin(__func__);

	if (error == cudaSuccess)
		error = check_timed(from);
	if (error == cudaSuccess)
		error = check_timed(to);
	if (error == cudaSuccess)
		*msec = (float)((double)(int64_t)(to->record->at_nsec - from->record->at_nsec) * 1e-6);
	return psd_stand_in_end(error);
}
