/* Soundness of a run: loss and state are finite, and all workers have the same parameters. Worker 0 compares digests of
 * parameters that come with each worker's report, all hosts those that come with BYE. */
#include "real/keep/soundness.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "engine/base/hash.h"
#include "engine/program/outcome.h"
#include "real/base/machine.h"
#include "real/keep/checkpoint.h"

enum { MOST_NAMED = 8 };

/* ---- the last good checkpoint ---- */

/* True if each value of the tensor is a number. */
static bool is_finite(struct psd_tensor_file *file, const struct psd_file_tensor *tensor)
{
	struct psd_error ignored;
	bool is_odd = true;
	uint64_t element;

	return !psd_tensor_file_find_odd(file, tensor, &is_odd, &element, &ignored) && !is_odd;
}

/* True for a host's part of an item's (bucket's) parameters. */
static bool is_own(const char *name)
{
	const char *end = strrchr(name, '.');

	return end && !strcmp(end + 1, psd_buffers[PSD_BUFFER_OWN].name);
}

/* True if the file has all of the model's parameters, or a host's parts of them, and each value is a number. */
static bool has_finite_parameters(const struct psd_host *host, const char *path)
{
	struct psd_tensor_file *file;
	struct psd_error ignored;
	bool is_good = !psd_tensor_file_open(&file, path, &ignored), has_parts = false;

	if (!is_good)
		return false;
	for (unsigned n = 0; psd_tensor_file_at(file, n) && is_good; n++)
		if (is_own(psd_tensor_file_at(file, n)->name)) {
			is_good = is_finite(file, psd_tensor_file_at(file, n));
			has_parts = true;
		}
	for (unsigned t = 0; t < host->graph->n_tensors && is_good; t++) {
		const struct psd_file_tensor *tensor = psd_tensor_file_find(file, host->graph->tensors[t].name);

		is_good = tensor ? is_finite(file, tensor) : has_parts;
	}
	psd_tensor_file_close(file);
	return is_good;
}

/* Adds the newest checkpoint before that iteration whose parameters are numbers. */
static void add_last_good(struct psd_text *text, const struct psd_host *host, uint32_t below_iterations)
{
	const struct psd_checkpoints *checkpoints = host->options->checkpoints;
	const struct psd_checkpoint_host self = {host->self, host->n_hosts};
	struct psd_checkpoints_found found;
	struct psd_error ignored;

	while (checkpoints && below_iterations > 1 &&
	       !psd_checkpoints_find(checkpoints, self, below_iterations, &found, &ignored) &&
	       found.newest.iterations > 0) {
		const struct psd_checkpoint_set *set = &found.newest;
		const struct psd_checkpoint_host of = {set->n_hosts == self.n_hosts ? self.host : 0, set->n_hosts};

		if (has_finite_parameters(host, psd_checkpoint_path(checkpoints, of, set->iterations).text)) {
			psd_text_add(text, "; the last checkpoint with finite parameters is %s/iteration-%" PRIu32,
				     checkpoints->folder, set->iterations);
			return;
		}
		below_iterations = set->iterations;
	}
	psd_text_add(text, checkpoints ? "; no checkpoint before it has finite parameters" : "");
}

/* Takes over the text. */
static enum psd_status end_run(struct psd_text *text, struct psd_error *err)
{
	const enum psd_status status = text->is_out_of_memory
					       ? psd_worker_out_of_memory(err)
					       : psd_error_set(err, PSD_ERUN, PSD_NOWHERE, "%s", text->bytes);

	psd_text_release(text);
	return status;
}

static bool may_diverge(const struct psd_host *host)
{
	return host->options->replay || host->options->train->diverged == PSD_DIVERGED_CONTINUES;
}

static void add_ways_out(struct psd_text *text)
{
	psd_text_add(text, "; lower train.learning_rate.base, or set train.diverged=continue to go on");
}

/* ---- numbers ---- */

enum psd_status psd_host_check_loss(const struct psd_host *host, uint32_t iteration, double loss, struct psd_error *err)
{
	struct psd_text text = {.bytes = NULL};

	if (isfinite(loss) || may_diverge(host))
		return PSD_OK;
	psd_text_add(&text, "loss is %s at iteration %" PRIu32,
		     isnan(loss) ? "nan"
		     : loss > 0	 ? "inf"
				 : "-inf",
		     iteration);
	add_last_good(&text, host, iteration + 1);
	add_ways_out(&text);
	return end_run(&text, err);
}

/* True if workers must have equal parameters after so many iterations. */
static bool compares(const struct psd_host *host, uint32_t iterations)
{
	return !host->options->replay && host->options->train->compare_every > 0 &&
	       psd_layout_is_worker(host->layout, host->self) &&
	       (!psd_plan_streams(host->plan) || iterations == 0 || iterations == host->options->n_iterations);
}

enum psd_status psd_host_check_state(const struct psd_state *state, unsigned n_parts, uint32_t iterations,
				     struct psd_error *err)
{
	struct psd_host *host = state->host;
	struct psd_state_look look;
	struct psd_text text = {.bytes = NULL};

	PSD_TRY(psd_state_look_at(state, n_parts, &look, err));
	if (compares(host, iterations) && look.is_whole) {
		host->look_iterations = iterations;
		host->look = (struct psd_wire_parameters){1, look.sum, look.weighted, host->arithmetic};
	}
	if (!look.is_odd || may_diverge(host))
		return PSD_OK;
	psd_text_add(&text,
		     "%.100s has a value that is not a finite number (element %" PRIu64 ") after %" PRIu32
		     " iterations",
		     state->parts[look.part].tensor.name, look.element, iterations);
	add_last_good(&text, host, iterations);
	add_ways_out(&text);
	return end_run(&text, err);
}

enum psd_status psd_host_check_read(const struct psd_state *state, unsigned n_parts, const char *path,
				    struct psd_error *err)
{
	struct psd_state_look look;
	const enum psd_status status = psd_state_look_at(state, n_parts, &look, err);

	if (status || !look.is_odd)
		return status;
	return psd_error_set(err, PSD_EINVAL, (struct psd_place){.path = path},
			     "%.100s has a value that is not a finite number (element %" PRIu64 ")",
			     state->parts[look.part].tensor.name, look.element);
}

enum psd_status psd_host_look(struct psd_host *host, uint32_t iterations, struct psd_error *err)
{
	struct psd_state state;

	if (!compares(host, iterations))
		return PSD_OK;
	PSD_TRY(psd_state_open(&state, host, iterations, err));
	enum psd_status status = psd_host_check_state(&state, state.n_plain, iterations, err);
	psd_state_close(&state);
	return status;
}

/* ---- equal parameters ---- */

/* True if workers compute parts of an update themselves whose bits depend on the processor: rebuilt gradients, and
 * norms of whole tensors. */
static bool has_own_arithmetic(const struct psd_host *host)
{
	return host->plan->clips || host->plan->low_rank > 0 || psd_outcome_takes_factors(host->program) ||
	       host->options->train->optimiser.kind == PSD_OPTIMISER_LARS;
}

uint64_t psd_host_arithmetic(const struct psd_host *host)
{
	uint64_t hash = psd_hash_bytes(PSD_HASH_START, host->kind->name, strlen(host->kind->name));
	char model[PSD_MACHINE_MODEL_MAX], device[PSD_DEVICE_TEXT_MAX] = "";

	if (!has_own_arithmetic(host))
		return hash;
	psd_machine_model(model);
	host->kind->describe(host->device, device);
	hash = psd_hash_bytes(hash, model, strlen(model));
	hash = psd_hash_bytes(hash, device, strlen(device));
	hash = psd_hash_number(hash, host->options->train->threads);
	/* each worker may sum in another order, and choose another algorithm */
	return host->options->train->is_deterministic ? hash : psd_hash_number(hash, host->self);
}

struct psd_wire_parameters psd_host_digest(const struct psd_host *host, uint32_t iterations)
{
	return host->look_iterations == iterations ? host->look : (struct psd_wire_parameters){.is_known = 0};
}

/* The only tensor in which two workers differ; NULL: there are several. */
static const char *different_tensor(const struct psd_host *host, const struct psd_wire_parameters *one,
				    const struct psd_wire_parameters *other)
{
	const uint64_t sum = one->sum - other->sum, weighted = one->weighted - other->weighted;

	for (unsigned t = 0; t < host->graph->n_tensors; t++)
		if (sum != 0 && (t + UINT64_C(1)) * sum == weighted)
			return host->graph->tensors[t].name;
	return NULL;
}

static bool are_different(const struct psd_wire_parameters *one, const struct psd_wire_parameters *other)
{
	return one->is_known && other->is_known && one->arithmetic == other->arithmetic &&
	       (one->sum != other->sum || one->weighted != other->weighted);
}

static void add_last_checkpoint(struct psd_text *text, const struct psd_host *host, uint32_t iterations)
{
	const struct psd_checkpoint_host self = {host->self, host->n_hosts};
	struct psd_checkpoints_found found = {.has_any = false};
	struct psd_error ignored;

	if (iterations > 0 && host->options->checkpoints &&
	    !psd_checkpoints_find(host->options->checkpoints, self, iterations, &found, &ignored) &&
	    found.newest.iterations > 0)
		psd_text_add(text, "; the last checkpoint before is %s/iteration-%" PRIu32,
			     host->options->checkpoints->folder, found.newest.iterations);
}

enum psd_status psd_host_compare(const struct psd_host *host, const struct psd_wire_parameters parameters[],
				 uint32_t iterations, struct psd_error *err)
{
	struct psd_text text = {.bytes = NULL};
	const char *tensor = NULL;
	unsigned n = 0;

	for (unsigned w = 1; w < host->layout->workers && !host->plan->async; w++)
		if (are_different(&parameters[w], &parameters[0])) {
			if (n < MOST_NAMED)
				psd_text_add(&text, "%s%u", n ? ", " : "worker 0 has other parameters than worker ", w);
			tensor = n == 0 ? different_tensor(host, &parameters[w], &parameters[0]) : tensor;
			n++;
		}
	if (n == 0)
		return PSD_OK;
	psd_text_add(&text, "%s after %" PRIu32 " iterations: ", n > MOST_NAMED ? ", ..." : "", iterations);
	if (tensor)
		psd_text_add(&text, "%.100s differs", tensor);
	else
		psd_text_add(&text, "several tensors differ");
	add_last_checkpoint(&text, host, iterations);
	return end_run(&text, err);
}
