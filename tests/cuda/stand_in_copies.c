/* Copies and fills of the stand-in. A copy first poisons its target, when its turn comes. Pinned memory is read then,
 * too. Pageable memory is read when the copy is queued. A graph's copy reads it at each launch. Refuses to know
 * streams. */
#define _POSIX_C_SOURCE 200809L
#include <sched.h>
#include <string.h>

#include "tests/cuda/stand_in_parts.h"

#define LONGEST_HOLD_NSEC UINT64_C(20000000000)

struct copy {
	void *to;
	const void *from; /* NULL: the bytes behind the arguments */
	uint64_t bytes;
};

struct fill {
	void *to;
	int value;
	uint64_t bytes;
};

static const void *held; /* or NULL */

void psd_stand_in_hold_copy(const void *from)
{
	psd_stand_in_lock();
	held = from;
	psd_stand_in_changed();
	psd_stand_in_unlock();
}

static void hold(const void *from)
{
	psd_stand_in_lock();
	const uint64_t until_nsec = psd_stand_in_now_nsec() + LONGEST_HOLD_NSEC;

	while (held == from && !psd_stand_in_is_lost() && psd_stand_in_await_change(until_nsec))
		continue;
	psd_stand_in_unlock();
}

static void run_copy(void *arguments)
{
	const struct copy *const copy = arguments;
	const char *const from = copy->from ? copy->from : (const char *)(copy + 1);
	const uint64_t half_bytes = copy->bytes / 2;

	memset(copy->to, PSD_STAND_IN_POISON, copy->bytes);
	sched_yield();
	memcpy(copy->to, from, half_bytes);
	sched_yield();
	hold(from);
	memcpy((char *)copy->to + half_bytes, from + half_bytes, copy->bytes - half_bytes);
}

static bool is_on_device(enum psd_stand_in_place place)
{
	return place == PSD_STAND_IN_ON_DEVICE;
}

static cudaError_t check_copy(const void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind)
{
	const enum psd_stand_in_place to_place = psd_stand_in_place_of(to, bytes);
	const enum psd_stand_in_place from_place = psd_stand_in_place_of(from, bytes);

	if (!to || !from || to_place == PSD_STAND_IN_NOWHERE || from_place == PSD_STAND_IN_NOWHERE)
		return cudaErrorInvalidValue;
	if (kind == cudaMemcpyDefault)
		return cudaSuccess;
	if (is_on_device(to_place) != (kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice) ||
	    is_on_device(from_place) != (kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice))
		return cudaErrorInvalidValue;
	return cudaSuccess;
}

static cudaError_t queue_copy(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind, cudaStream_t stream)
{
	const bool is_staged =
		!psd_stand_in_is_captured(stream) && psd_stand_in_place_of(from, bytes) == PSD_STAND_IN_PAGEABLE;
	const struct copy copy = {to, is_staged ? NULL : from, bytes};
	const cudaError_t error = bytes > 0 ? check_copy(to, from, bytes, kind) : cudaSuccess;

	if (error != cudaSuccess || bytes == 0)
		return error;
	return psd_stand_in_queue(stream, run_copy, &copy, sizeof(copy), from, is_staged ? bytes : 0);
}

cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind, cudaStream_t stream)
{
	cudaError_t error = psd_stand_in_begin(__func__);

	if (error == cudaSuccess)
		error = queue_copy(to, from, bytes, kind, stream);
	return psd_stand_in_end(error);
}

cudaError_t cudaMemcpy(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind)
{
	cudaError_t error = psd_stand_in_begin_unsafe(__func__);

	if (error == cudaSuccess)
		error = queue_copy(to, from, bytes, kind, NULL);
	if (error == cudaSuccess)
		error = psd_stand_in_finish(NULL);
	return psd_stand_in_end(error);
}

static void run_fill(void *arguments)
{
	const struct fill *const fill = arguments;

	memset(fill->to, fill->value, fill->bytes);
}

static cudaError_t queue_fill(void *to, int value, size_t bytes, cudaStream_t stream)
{
	const struct fill fill = {to, value, bytes};

	if (bytes == 0)
		return cudaSuccess;
	if (psd_stand_in_place_of(to, bytes) != PSD_STAND_IN_ON_DEVICE)
		return cudaErrorInvalidValue;
	return psd_stand_in_queue(stream, run_fill, &fill, sizeof(fill), NULL, 0);
}

cudaError_t cudaMemsetAsync(void *to, int value, size_t bytes, cudaStream_t stream)
{
	cudaError_t error = psd_stand_in_begin(__func__);

	if (error == cudaSuccess)
		error = queue_fill(to, value, bytes, stream);
	return psd_stand_in_end(error);
}

/* A fill of device memory may still run when the call returns. */
cudaError_t cudaMemset(void *to, int value, size_t bytes)
{
	cudaError_t error = psd_stand_in_begin_unsafe(__func__);

	if (error == cudaSuccess)
		error = queue_fill(to, value, bytes, NULL);
	return psd_stand_in_end(error);
}
