#include "engine/program/repeat.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/program/host_state.h"

/* most bytes of a state */
enum { MOST_BYTES = 32 << 20 };

/* sums of equal durations differ in their last bits */
static const double rounding_ratio = 1e-12;

/* State of one host, in iterations from the one that ended. */
struct host_image {
	int64_t iteration;
	struct psd_task given[PSD_RESOURCES][PSD_MOST_AHEAD + 1];
	unsigned n_given[PSD_RESOURCES];
	double elapsed_sec[PSD_RESOURCES]; /* since the begin of the first of them */
	struct psd_task collective;
	unsigned n_missing;
	bool has_collective;
	double busy_sec[PSD_RESOURCES]; /* is not compared */
};

struct psd_repeat_state {
	struct host_image *hosts;
	uint32_t *waiting; /* shape (hosts, window, operations): psd_scheduler.waiting */
	bool is_settled;
};

static size_t n_waiting(const struct psd_interpreter *in)
{
	return (size_t)in->program->window * in->program->n_ops;
}

static struct psd_repeat_state *make_state(const struct psd_interpreter *in)
{
	struct psd_repeat_state *state = calloc(1, sizeof(*state));

	if (!state)
		return NULL;
	state->hosts = calloc(in->n_hosts, sizeof(*state->hosts));
	state->waiting = calloc(in->n_hosts * n_waiting(in) + 1, sizeof(*state->waiting));
	return state;
}

static void free_state(struct psd_repeat_state *state)
{
	if (!state)
		return;
	free(state->hosts);
	free(state->waiting);
	free(state);
}

/* Iterations that must remain: those that may have begun, twice. */
static uint64_t n_kept(const struct psd_repeat *repeat, const struct psd_interpreter *in)
{
	return UINT64_C(2) * in->program->window + repeat->unit;
}

enum psd_status psd_repeat_init(struct psd_repeat *repeat, const struct psd_interpreter *in, uint32_t unit,
				uint32_t first_measured, struct psd_error *err)
{
	const size_t bytes = in->n_hosts * (n_waiting(in) * sizeof(uint32_t) + sizeof(struct host_image));
	uint32_t next = 2 * unit - 1;

	*repeat = (struct psd_repeat){.unit = unit};
	while (next < first_measured)
		next += unit;
	repeat->next = next;
	repeat->is_on = bytes <= MOST_BYTES && !in->program->plan->async &&
			next + 2 * unit + n_kept(repeat, in) < in->iterations.end;
	if (!repeat->is_on)
		return PSD_OK;
	repeat->states[0] = make_state(in);
	repeat->states[1] = make_state(in);
	repeat->busy_sec = calloc((size_t)in->n_hosts * PSD_RESOURCES, sizeof(*repeat->busy_sec));
	if (repeat->states[0] && repeat->states[0]->hosts && repeat->states[0]->waiting && repeat->states[1] &&
	    repeat->states[1]->hosts && repeat->states[1]->waiting && repeat->busy_sec)
		return PSD_OK;
	return psd_error_set(err, PSD_ENOMEM, PSD_NOWHERE, "out of memory for repeated iterations");
}

void psd_repeat_release(struct psd_repeat *repeat)
{
	free_state(repeat->states[0]);
	free_state(repeat->states[1]);
	free(repeat->busy_sec);
	*repeat = (struct psd_repeat){.is_on = false};
}

/* The task, in iterations from `last`. */
static struct psd_task relative(struct psd_task task, uint32_t last)
{
	return (struct psd_task){task.iteration - last, task.op};
}

static void take_host(struct host_image *image, uint32_t *waiting, const struct psd_interpreter *in, unsigned h,
		      uint32_t last)
{
	const struct psd_host_state *host = &in->hosts[h];
	const struct psd_scheduler *scheduler = &host->scheduler;
	const uint32_t window = in->program->window, n_ops = in->program->n_ops;
	const double now_sec = in->seam.now(in->seam.context) + in->skipped_sec;

	memset(image, 0, sizeof(*image));
	image->iteration = scheduler->duties->n_carried > 0 ? (int64_t)scheduler->iteration - last : 0;
	for (unsigned r = 0; r < PSD_RESOURCES; r++) {
		image->n_given[r] = host->given[r].n;
		for (unsigned i = 0; i < host->given[r].n; i++)
			image->given[r][i] = relative(host->given[r].tasks[i], last);
		image->elapsed_sec[r] = host->given[r].n > 0 ? now_sec - host->started_sec[r] : 0.0;
		image->busy_sec[r] = host->busy_sec[r];
	}
	image->has_collective = host->collective != NULL;
	if (host->collective) {
		image->collective = relative(host->collective->task, last);
		image->n_missing = host->collective->n_missing;
	}
	for (uint32_t i = 0; i < window; i++)
		memcpy(waiting + (size_t)i * n_ops,
		       scheduler->waiting + (size_t)((scheduler->iteration + i) % window) * n_ops,
		       n_ops * sizeof(*waiting));
}

static void take_state(struct psd_repeat_state *state, const struct psd_interpreter *in, uint32_t last, bool is_settled)
{
	state->is_settled = is_settled;
	for (unsigned h = 0; h < in->n_hosts; h++) {
		take_host(&state->hosts[h], state->waiting + h * n_waiting(in), in, h, last);
		if (in->hosts[h].scheduler.early.n > 0)
			state->is_settled = false;
	}
}

static bool are_images_equal(const struct host_image *a, const struct host_image *b, double most_sec)
{
	if (a->iteration != b->iteration || a->has_collective != b->has_collective || a->n_missing != b->n_missing ||
	    memcmp(&a->collective, &b->collective, sizeof(a->collective)) != 0 ||
	    memcmp(a->given, b->given, sizeof(a->given)) != 0 ||
	    memcmp(a->n_given, b->n_given, sizeof(a->n_given)) != 0)
		return false;
	for (unsigned r = 0; r < PSD_RESOURCES; r++)
		if (fabs(a->elapsed_sec[r] - b->elapsed_sec[r]) > most_sec)
			return false;
	return true;
}

static bool are_states_equal(const struct psd_repeat *repeat, const struct psd_interpreter *in)
{
	const struct psd_repeat_state *a = repeat->states[0], *b = repeat->states[1];
	const double sec = repeat->end_sec[2] - repeat->end_sec[1],
		     before_sec = repeat->end_sec[1] - repeat->end_sec[0];
	const double most_sec = rounding_ratio * repeat->end_sec[2];

	if (!a->is_settled || !b->is_settled || fabs(sec - before_sec) > most_sec ||
	    memcmp(a->waiting, b->waiting, in->n_hosts * n_waiting(in) * sizeof(*a->waiting)) != 0)
		return false;
	for (unsigned h = 0; h < in->n_hosts; h++)
		if (!are_images_equal(&a->hosts[h], &b->hosts[h], most_sec))
			return false;
	return true;
}

static void find_busy(struct psd_repeat *repeat, const struct psd_interpreter *in)
{
	for (unsigned h = 0; h < in->n_hosts; h++)
		for (unsigned r = 0; r < PSD_RESOURCES; r++)
			repeat->busy_sec[h * PSD_RESOURCES + r] =
				repeat->states[1]->hosts[h].busy_sec[r] - repeat->states[0]->hosts[h].busy_sec[r];
}

uint32_t psd_repeat_compare(struct psd_repeat *repeat, struct psd_interpreter *in, bool is_settled)
{
	const uint32_t last = repeat->next;
	struct psd_repeat_state *oldest = repeat->states[0];
	uint32_t n_units = 0;

	if (last + 1 + n_kept(repeat, in) + repeat->unit > in->iterations.end) {
		repeat->is_on = false; /* the end is too near */
		return 0;
	}
	repeat->states[0] = repeat->states[1];
	repeat->states[1] = oldest;
	take_state(oldest, in, last, is_settled);
	repeat->end_sec[0] = repeat->end_sec[1];
	repeat->end_sec[1] = repeat->end_sec[2];
	repeat->end_sec[2] = in->next_sec[last];
	repeat->next += repeat->unit;
	repeat->n_ends++;
	if (repeat->n_ends == 1)
		repeat->end_sec[1] = in->next_sec[last - repeat->unit];
	if (repeat->n_ends < 2 || !are_states_equal(repeat, in))
		return 0;
	n_units = (uint32_t)((in->iterations.end - last - 1 - n_kept(repeat, in)) / repeat->unit);
	find_busy(repeat, in);
	psd_interpreter_skip(in, last, repeat->unit, n_units, repeat->busy_sec);
	repeat->is_on = false;
	return n_units;
}
