/* The beginning and the end of each call of the stand-in: its lock, ordered faults, waits that are left out, the last
 * error. Refuses to know what calls do. */
#define _GNU_SOURCE
#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "tests/cuda/stand_in_parts.h"

enum { MOST_FAULTS = 16, MOST_PLACES = 1024, NSEC_PER_SEC = 1000000000 };

#ifdef __SANITIZE_THREAD__
void AnnotateIgnoreSyncBegin(const char *file, int line);
void AnnotateIgnoreSyncEnd(const char *file, int line);
void AnnotateIgnoreReadsBegin(const char *file, int line);
void AnnotateIgnoreReadsEnd(const char *file, int line);
void AnnotateIgnoreWritesBegin(const char *file, int line);
void AnnotateIgnoreWritesEnd(const char *file, int line);
void __tsan_acquire(void *token);
void __tsan_release(void *token);
#else
#define AnnotateIgnoreSyncBegin(file, line)   ((void)0)
#define AnnotateIgnoreSyncEnd(file, line)     ((void)0)
#define AnnotateIgnoreReadsBegin(file, line)  ((void)0)
#define AnnotateIgnoreReadsEnd(file, line)    ((void)0)
#define AnnotateIgnoreWritesBegin(file, line) ((void)0)
#define AnnotateIgnoreWritesEnd(file, line)   ((void)0)
#define __tsan_acquire(token)		      ((void)(token))
#define __tsan_release(token)		      ((void)(token))
#endif

struct fault {
	const char *function; /* NULL: any */
	unsigned countdown;   /* 0: none */
	cudaError_t error;
};

struct psd_stand_in_holdings psd_stand_in_count;
_Thread_local bool psd_stand_in_is_host_function;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t change;
static struct fault faults[MOST_FAULTS];
static unsigned n_faults; /* number of faults that were ordered */
static struct fault operation_fault;
static cudaError_t lost = cudaSuccess;
unsigned psd_stand_in_n_running;
static unsigned n_calls;
static bool was_called, is_forked; /* forked: from a process that had called */

static struct psd_stand_in_wait_place places[MOST_PLACES];
static bool is_place_skipped[MOST_PLACES];
static unsigned n_positions;
static const void *skipped_site;
static unsigned one_skipped; /* counts down */
static void (*tell_left_out)(void);
static atomic_uint *n_left_out; /* by processes forked from this one, too; NULL: none is to be */

static _Thread_local cudaError_t last_error = cudaSuccess;

/* Notes the fork here, as asking for the process at each call takes a quarter of the tests' time. */
static void enter_child(void)
{
	is_forked = was_called;
	psd_stand_in_unlock();
}

/* Before main(): waits with an end count by the clock that nobody sets. */
__attribute__((constructor)) static void prepare(void)
{
	pthread_condattr_t attributes;

	pthread_condattr_init(&attributes);
	pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	pthread_cond_init(&change, &attributes);
	pthread_condattr_destroy(&attributes);
	/* A child finds the lock free, so that its first call can fail. */
	pthread_atfork(psd_stand_in_lock, psd_stand_in_unlock, enter_child);
}

void psd_stand_in_lock(void)
{
	AnnotateIgnoreSyncBegin(__FILE__, __LINE__);
	AnnotateIgnoreReadsBegin(__FILE__, __LINE__);
	AnnotateIgnoreWritesBegin(__FILE__, __LINE__);
	pthread_mutex_lock(&lock);
}

void psd_stand_in_unlock(void)
{
	pthread_mutex_unlock(&lock);
	AnnotateIgnoreWritesEnd(__FILE__, __LINE__);
	AnnotateIgnoreReadsEnd(__FILE__, __LINE__);
	AnnotateIgnoreSyncEnd(__FILE__, __LINE__);
}

bool psd_stand_in_await_change(uint64_t until_nsec)
{
	const struct timespec until = {.tv_sec = (time_t)(until_nsec / NSEC_PER_SEC),
				       .tv_nsec = (long)(until_nsec % NSEC_PER_SEC)};

	if (until_nsec != 0)
		return pthread_cond_timedwait(&change, &lock, &until) == 0;
	pthread_cond_wait(&change, &lock);
	return true;
}

void psd_stand_in_changed(void)
{
	pthread_cond_broadcast(&change);
}

void psd_stand_in_await(pthread_cond_t *condition)
{
	pthread_cond_wait(condition, &lock);
}

void psd_stand_in_publish(void *token)
{
	AnnotateIgnoreSyncEnd(__FILE__, __LINE__);
	__tsan_release(token);
	AnnotateIgnoreSyncBegin(__FILE__, __LINE__);
}

void psd_stand_in_meet(void *token)
{
	AnnotateIgnoreSyncEnd(__FILE__, __LINE__);
	__tsan_acquire(token);
	AnnotateIgnoreSyncBegin(__FILE__, __LINE__);
}

uint64_t psd_stand_in_now_nsec(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * NSEC_PER_SEC + (uint64_t)now.tv_nsec;
}

static atomic_bool has_spent;
static atomic_ullong spent_nsec;

uint64_t psd_stand_in_event_nsec(void)
{
	return atomic_load(&has_spent) ? atomic_load(&spent_nsec) : psd_stand_in_now_nsec();
}

void psd_stand_in_spend_nsec(uint64_t nsec)
{
	atomic_store(&has_spent, true);
	atomic_fetch_add(&spent_nsec, nsec);
}

/* ---- faults ---- */

/* After which errors CUDA says that the process must end to use the device again. */
static bool is_fatal(cudaError_t error)
{
	static const cudaError_t fatal[] = {
		cudaErrorIllegalAddress,     cudaErrorLaunchTimeout,
		cudaErrorECCUncorrectable,   cudaErrorIllegalInstruction,
		cudaErrorHardwareStackError, cudaErrorMisalignedAddress,
		cudaErrorLaunchFailure,	     cudaErrorUnknown,
	};

	for (size_t i = 0; i < sizeof(fatal) / sizeof(fatal[0]); i++)
		if (error == fatal[i])
			return true;
	return false;
}

void psd_stand_in_lose(cudaError_t error)
{
	if (lost == cudaSuccess)
		lost = error;
	psd_stand_in_changed();
}

bool psd_stand_in_is_lost(void)
{
	return lost != cudaSuccess;
}

cudaError_t psd_stand_in_lost_error(void)
{
	return lost;
}

static cudaError_t count_down(struct fault *fault)
{
	if (fault->countdown == 0 || --fault->countdown > 0)
		return cudaSuccess;
	if (is_fatal(fault->error))
		psd_stand_in_lose(fault->error);
	return fault->error;
}

/* Every order counts the call. */
static cudaError_t ordered_fault(const char *function)
{
	cudaError_t error = cudaSuccess;

	n_calls++;
	for (struct fault *fault = faults; fault < faults + n_faults; fault++) {
		if (fault->function && strcmp(fault->function, function) != 0)
			continue;
		const cudaError_t next = count_down(fault);

		if (error == cudaSuccess)
			error = next;
	}
	return error;
}

cudaError_t psd_stand_in_operation_fault(void)
{
	const cudaError_t error = count_down(&operation_fault);

	if (error != cudaSuccess)
		psd_stand_in_lose(error);
	return error;
}

static cudaError_t state_error(void)
{
	was_called = true;
	if (is_forked)
		return cudaErrorInitializationError;
	if (psd_stand_in_is_host_function)
		return cudaErrorNotPermitted;
	return psd_stand_in_machine_error();
}

cudaError_t psd_stand_in_begin(const char *function)
{
	psd_stand_in_lock();
	cudaError_t error = state_error();

	if (error == cudaSuccess)
		error = ordered_fault(function);
	return error != cudaSuccess ? error : lost;
}

bool psd_stand_in_may_release(cudaError_t error)
{
	return error == cudaSuccess || error == lost;
}

cudaError_t psd_stand_in_end(cudaError_t error)
{
	while (lost != cudaSuccess && psd_stand_in_n_running > 0)
		psd_stand_in_await_change(0);
	psd_stand_in_unlock();
	if (error != cudaSuccess) /* cudaErrorNotReady too: CUDA's guide says no, but code must not rely on it */
		last_error = error;
	return error;
}

cudaError_t cudaGetLastError(void)
{
	const cudaError_t error = cudaPeekAtLastError();

	last_error = cudaSuccess;
	return error;
}

cudaError_t cudaPeekAtLastError(void)
{
	psd_stand_in_lock();
	const cudaError_t error = lost != cudaSuccess ? lost : last_error;

	psd_stand_in_unlock();
	return error;
}

void psd_stand_in_fail(const char *function, unsigned nth, cudaError_t error)
{
	unsigned i = 0;

	psd_stand_in_lock();
	while (i < n_faults && faults[i].countdown > 0)
		i++;
	assert(i < MOST_FAULTS);
	n_faults = i == n_faults ? i + 1 : n_faults;
	faults[i] = (struct fault){.function = function, .countdown = nth, .error = error};
	psd_stand_in_unlock();
}

void psd_stand_in_fail_no_more(void)
{
	psd_stand_in_lock();
	n_faults = 0;
	psd_stand_in_unlock();
}

void psd_stand_in_fail_operation(unsigned nth, cudaError_t error)
{
	psd_stand_in_lock();
	operation_fault = (struct fault){.countdown = nth, .error = error};
	psd_stand_in_unlock();
}

unsigned psd_stand_in_calls(void)
{
	psd_stand_in_lock();
	const unsigned calls = n_calls;

	psd_stand_in_unlock();
	return calls;
}

/* ---- waits left out ---- */

static unsigned place_of(const char *function, const void *site)
{
	unsigned place = 0;

	while (place < n_positions && places[place].site != site)
		place++;
	if (place == n_positions) {
		assert(n_positions < MOST_PLACES);
		places[n_positions++] = (struct psd_stand_in_wait_place){.function = function, .site = site};
	}
	return place;
}

bool psd_stand_in_is_skipped(const char *function, const void *site)
{
	const unsigned place = place_of(function, site);
	const bool is_the_one = one_skipped > 0 && --one_skipped == 0;

	places[place].calls++;
	if (!is_the_one && !is_place_skipped[place] && site != skipped_site)
		return false;
	if (n_left_out)
		atomic_fetch_add(n_left_out, 1);
	if (tell_left_out)
		tell_left_out();
	return true;
}

bool psd_stand_in_is_about_to_skip(void)
{
	return one_skipped > 0;
}

static void count_left_out(void)
{
	if (!n_left_out)
		n_left_out = mmap(NULL, sizeof(*n_left_out), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if ((void *)n_left_out == MAP_FAILED) {
		perror("stand-in");
		abort();
	}
	atomic_store(n_left_out, 0);
}

unsigned psd_stand_in_waits(void)
{
	psd_stand_in_lock();
	const unsigned n = n_positions;

	psd_stand_in_unlock();
	return n;
}

struct psd_stand_in_wait_place psd_stand_in_wait(unsigned place)
{
	psd_stand_in_lock();
	assert(place < n_positions);
	const struct psd_stand_in_wait_place wait = places[place];

	psd_stand_in_unlock();
	return wait;
}

void psd_stand_in_skip_wait(unsigned place)
{
	psd_stand_in_lock();
	assert(place < MOST_PLACES);
	is_place_skipped[place] = true;
	psd_stand_in_unlock();
}

void psd_stand_in_skip_wait_at(const void *site)
{
	psd_stand_in_lock();
	skipped_site = site;
	psd_stand_in_unlock();
}

void psd_stand_in_skip_one_wait(unsigned nth)
{
	psd_stand_in_lock();
	one_skipped = nth;
	if (nth) /* a process that leaves none out keeps the count of the others */
		count_left_out();
	psd_stand_in_unlock();
}

void psd_stand_in_on_left_out(void (*tell)(void))
{
	psd_stand_in_lock();
	tell_left_out = tell;
	psd_stand_in_unlock();
}

unsigned psd_stand_in_left_out(void)
{
	psd_stand_in_lock();
	const unsigned n = n_left_out ? atomic_load(n_left_out) : 0;

	psd_stand_in_unlock();
	return n;
}

struct psd_stand_in_holdings psd_stand_in_held(void)
{
	psd_stand_in_lock();
	const struct psd_stand_in_holdings held = psd_stand_in_count;

	psd_stand_in_unlock();
	return held;
}
