/* The estimate of a case, and its simulation in a child process (SimGrid is one per process). Any failure ends the test
 * with the library's own message. */
#ifndef PSD_TESTS_SIMULATE_HELPER_H
#define PSD_TESTS_SIMULATE_HELPER_H

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "engine/case/case.h"
#include "engine/estimate/estimate.h"
#include "engine/program/outcome.h"
#include "sim/executor/simulate.h"
#include "tests/loaded_helper.h"

enum { SIMULATION_CPU_SEC_MAX = 60 };

static inline struct psd_outcome estimated(const struct psd_case *made)
{
	const struct psd_scenario *scenario = made->costed->scenario;
	const struct psd_run_length length =
		psd_run_length_make(made->system, scenario->iterations, scenario->jitter_ratio);
	struct psd_outcome outcome;
	struct psd_error err = {.text = ""};

	cr_assert_eq(psd_estimate(&made->program, length, &outcome, &err), PSD_OK, "%s of %u workers: %s",
		     made->system->name, made->plan.layout.workers, err.text);
	return outcome;
}

struct child_result {
	enum psd_status status;
	struct psd_outcome outcome;
	struct psd_error err;
};

/* Memory that a child process shares, all zeros; munmap() when done. */
static inline void *shared_memory(size_t bytes)
{
	void *shared = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	cr_assert_neq(shared, MAP_FAILED);
	return shared;
}

/* An iteration that never ends is an error of psd_simulate(), so that every simulation here also claims an end without
 * deadlock. span is called in a child process; its context has to be shared memory. */
static inline struct psd_outcome simulated_in_detail(const struct psd_case *made, enum psd_detail detail,
						     psd_span_fn span, void *context)
{
	struct child_result *shared = shared_memory(sizeof(*shared));
	/* a simulation that never ends must not outlive its test for long */
	const struct rlimit limit = {SIMULATION_CPU_SEC_MAX, SIMULATION_CPU_SEC_MAX};
	int wait_status = 0;

	shared->status = PSD_ERUN;
	fflush(NULL);
	const pid_t child = fork();
	cr_assert_geq(child, 0);
	if (child == 0) {
		setrlimit(RLIMIT_CPU, &limit);
		shared->status = psd_simulate(made, detail, span, context, &shared->outcome, &shared->err);
		_exit(0);
	}
	cr_assert_eq(waitpid(child, &wait_status, 0), child);
	const struct child_result result = *shared;
	munmap(shared, sizeof(*shared));
	cr_assert(WIFEXITED(wait_status) && WEXITSTATUS(wait_status) == 0,
		  "%s of %u workers: the simulation crashed or ran for too long", made->system->name,
		  made->plan.layout.workers);
	cr_assert_eq(result.status, PSD_OK, "%s of %u workers: %s", made->system->name, made->plan.layout.workers,
		     result.err.text);
	return result.outcome;
}

static inline struct psd_outcome simulated_spans(const struct psd_case *made, psd_span_fn span, void *context)
{
	return simulated_in_detail(made, PSD_DETAIL_HOSTS, span, context);
}

/* Time in which the sends of one kind of message were in progress; filled by the simulation of simulated_window(). */
struct window {
	const struct psd_collective *collective; /* in: which */
	double start_sec;
	double end_sec;
};

static inline void widen_window(void *context, const struct psd_program *program, const struct psd_span *span)
{
	const struct psd_op *op = &program->ops[span->task.op];
	struct window *window = context;

	if (!span->is_arrival || op->payload.collective != window->collective)
		return;
	if (window->end_sec == 0.0 || span->start_sec < window->start_sec)
		window->start_sec = span->start_sec;
	if (span->end_sec > window->end_sec)
		window->end_sec = span->end_sec;
}

static inline struct psd_outcome simulated_window(const struct psd_case *made, struct window *window)
{
	struct window *shared = shared_memory(sizeof(*shared));

	*shared = *window;
	const struct psd_outcome outcome = simulated_spans(made, widen_window, shared);
	*window = *shared;
	munmap(shared, sizeof(*shared));
	return outcome;
}

static inline struct psd_outcome simulated(const struct psd_case *made)
{
	return simulated_in_detail(made, PSD_DETAIL_CLASSES, NULL, NULL);
}

#endif
