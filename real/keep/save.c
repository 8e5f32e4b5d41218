/* Checkpoints: written between two iterations, read before the first. Also the file of initial parameters. */
#include "real/keep/save.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/hash.h"
#include "real/keep/agreed_terms.h"
#include "real/keep/checkpoint.h"
#include "real/keep/soundness.h"

enum { NUMBER_TEXT_MAX = 24, HOST_TEXT_MAX = 32, HASH_TEXT_MAX = 20, MOST_NAMED = 4 };

static struct psd_checkpoint_host host_of(const struct psd_host *host)
{
	return (struct psd_checkpoint_host){host->self, host->n_hosts};
}

/* A line that is equal for equal programs. */
static enum psd_status describe_program(struct psd_text *program, const struct psd_host *host, struct psd_error *err)
{
	*program = (struct psd_text){.bytes = NULL};
	psd_terms_add_program(program, host->graph, host->program);
	if (!program->is_out_of_memory)
		return PSD_OK;
	psd_text_release(program);
	return psd_worker_out_of_memory(err);
}

static uint64_t hash_terms(const struct psd_host *host)
{
	const char *terms = host->options->terms;

	return terms ? psd_hash_bytes(PSD_HASH_START, terms, strlen(terms)) : host->saved_terms_hash;
}

/* Hash of the run, equal on all hosts: folders of hosts may contain files of two runs. A run that resumes with
 * unchanged terms keeps its hash. */
static uint64_t hash_run(const struct psd_host *host)
{
	const uint64_t terms_hash = hash_terms(host);

	return terms_hash == host->saved_terms_hash
		       ? host->saved_run_hash
		       : psd_hash_number(psd_hash_number(PSD_HASH_START, host->saved_run_hash), terms_hash);
}

/* ---- writing ---- */

/* A checkpoint has the buffer of which a divided parameter is a view. */
static bool is_written(const struct psd_state_part *part, bool is_checkpoint)
{
	return !is_checkpoint || !part->is_divided;
}

static enum psd_status write_parts(const struct psd_state *state, bool is_checkpoint, struct psd_tensor_writer *writer,
				   struct psd_error *err)
{
	const unsigned n_parts = is_checkpoint ? state->n_parts : state->n_plain;

	for (unsigned p = 0; p < n_parts; p++) {
		if (!is_written(&state->parts[p], is_checkpoint))
			continue;
		PSD_TRY(psd_state_write(state, &state->parts[p], writer, err));
		psd_host_moved_save(state->host);
	}
	return psd_tensor_writer_finish(writer, err);
}

/* Writes a checkpoint, or the plain parts. */
static enum psd_status write_file(const struct psd_state *state, bool is_checkpoint, struct psd_checkpoint_path path,
				  const struct psd_file_note notes[], unsigned n_notes, struct psd_error *err)
{
	const unsigned n_parts = is_checkpoint ? state->n_parts : state->n_plain;
	struct psd_file_tensor *tensors = calloc(n_parts + 1u, sizeof(*tensors));
	struct psd_tensor_writer *writer = NULL;
	unsigned n = 0;

	if (!tensors)
		return psd_worker_out_of_memory(err);
	for (unsigned p = 0; p < n_parts; p++)
		if (is_written(&state->parts[p], is_checkpoint))
			tensors[n++] = state->parts[p].tensor;
	enum psd_status status = psd_tensor_writer_open(&writer, path.text, tensors, n, notes, n_notes, err);
	if (!status)
		status = write_parts(state, is_checkpoint, writer, err);
	psd_tensor_writer_close(writer);
	free(tensors);
	return status;
}

/* Metadata of a host's file. */
struct metadata {
	struct psd_text program, shard_map, split;
	char iterations[NUMBER_TEXT_MAX], samples[NUMBER_TEXT_MAX], host[HOST_TEXT_MAX];
	char run[HASH_TEXT_MAX], terms[HASH_TEXT_MAX], model[HASH_TEXT_MAX];
};

static void release_metadata(struct metadata *metadata)
{
	psd_text_release(&metadata->program);
	psd_text_release(&metadata->shard_map);
	psd_text_release(&metadata->split);
}

static enum psd_status describe_shard_map(struct psd_text *text, const struct psd_host *host, struct psd_error *err)
{
	struct psd_shard_map shard_map;

	PSD_TRY(psd_shard_map_make(&shard_map, host->plan, err));
	psd_shard_map_add(text, &shard_map);
	psd_shard_map_release(&shard_map);
	return text->is_out_of_memory ? psd_worker_out_of_memory(err) : PSD_OK;
}

/* A run that resumes divides its samples by the same bits. Adds nothing if the split was not measured. */
static enum psd_status describe_split(struct psd_text *text, const struct psd_case *made, struct psd_error *err)
{
	const struct psd_costed_model *costed = made->costed;
	const bool is_there = made->system->split == PSD_SPLIT_MEASURED && costed->is_measured;

	for (unsigned g = 0; g < costed->scenario->n_groups && is_there; g++)
		psd_text_add(text, "%s%a", g > 0 ? " " : "", costed->sample_sec[g]);
	return text->is_out_of_memory ? psd_worker_out_of_memory(err) : PSD_OK;
}

static enum psd_status describe(struct metadata *metadata, const struct psd_host *host, uint32_t iterations,
				struct psd_error *err)
{
	*metadata = (struct metadata){.shard_map.bytes = NULL};
	snprintf(metadata->iterations, NUMBER_TEXT_MAX, "%" PRIu32, iterations);
	snprintf(metadata->samples, NUMBER_TEXT_MAX, "%" PRIu64, psd_host_samples(host, iterations));
	snprintf(metadata->run, HASH_TEXT_MAX, "%016" PRIx64, hash_run(host));
	snprintf(metadata->terms, HASH_TEXT_MAX, "%016" PRIx64, hash_terms(host));
	snprintf(metadata->model, HASH_TEXT_MAX, "%016" PRIx64, psd_terms_hash_model(host->graph));
	snprintf(metadata->host, HOST_TEXT_MAX, "%u of %u", host->self, host->n_hosts);
	enum psd_status status = describe_program(&metadata->program, host, err);
	if (!status)
		status = describe_shard_map(&metadata->shard_map, host, err);
	if (!status)
		status = describe_split(&metadata->split, host->options->made, err);
	if (status)
		release_metadata(metadata);
	return status;
}

static enum psd_status write_files(const struct psd_state *state, uint32_t iterations, const struct metadata *metadata,
				   struct psd_error *err)
{
	const struct psd_host *host = state->host;
	const struct psd_checkpoints *checkpoints = host->options->checkpoints;
	const struct psd_file_note notes[] = {{"format", "pt"},
					      {"iterations", metadata->iterations},
					      {"system", host->plan->system->name},
					      {"program", metadata->program.bytes},
					      {"host", metadata->host},
					      {"run", metadata->run},
					      {"terms", metadata->terms},
					      {"samples", metadata->samples},
					      {"model", metadata->model},
					      {"spread", metadata->shard_map.bytes},
					      {"split", metadata->split.bytes}};
	enum { N_NOTES = sizeof(notes) / sizeof(notes[0]), N_PLAIN_NOTES = 3 };

	PSD_TRY(psd_checkpoint_begin(checkpoints, iterations, err));
	/* parameters first: a run whose last checkpoint is complete is not repeated, so they must be there */
	if (host->self == 0)
		PSD_TRY(write_file(state, false, psd_checkpoint_parameters_path(checkpoints), notes, N_PLAIN_NOTES,
				   err));
	PSD_TRY(write_file(state, true, psd_checkpoint_path(checkpoints, host_of(host), iterations), notes,
			   metadata->split.bytes ? N_NOTES : N_NOTES - 1, err));
	psd_checkpoint_prune(checkpoints, host_of(host), iterations,
			     host->layout->has_separate_servers ? PSD_CHECKPOINTS_KEPT_WITH_SERVERS
								: PSD_CHECKPOINTS_KEPT);
	return PSD_OK;
}

enum psd_status psd_host_save(struct psd_host *host, uint32_t iteration, struct psd_error *err)
{
	struct metadata metadata;
	struct psd_state state;

	PSD_TRY(psd_state_open(&state, host, iteration, err));
	enum psd_status status = psd_host_check_state(&state, state.n_parts, iteration, err);
	if (!status)
		status = describe(&metadata, host, iteration, err);
	if (!status) {
		status = write_files(&state, iteration, &metadata, err);
		release_metadata(&metadata);
	}
	psd_state_close(&state);
	return status;
}

enum psd_status psd_host_begin_saving(const struct psd_host *host, struct psd_error *err)
{
	return psd_checkpoint_drop_later(host->options->checkpoints, host_of(host), host->options->first_iteration,
					 err);
}

/* ---- reading ---- */

static enum psd_status verify(const struct psd_host *host, struct psd_tensor_file *file, const char *path,
			      struct psd_error *err)
{
	struct psd_error line;
	bool has_checksums;
	const enum psd_status status = psd_tensor_file_verify(file, &has_checksums, err);

	if (status || has_checksums || host->self != 0 || !host->options->remark)
		return status;
	psd_error_set(&line, PSD_EINVAL, (struct psd_place){.path = path},
		      "has no checksums, as an older psd-run wrote it: damage to its values is not noticed");
	host->options->remark(host->options->context, line.text);
	return PSD_OK;
}

void psd_host_take_hashes(struct psd_host *host, const struct psd_old_checkpoint_notes *notes)
{
	host->saved_run_hash = strtoull(notes->run, NULL, 16);
	host->saved_terms_hash = strtoull(notes->terms, NULL, 16);
}

static enum psd_status check_notes(struct psd_host *host, const struct psd_tensor_file *file, const char *path,
				   struct psd_error *err)
{
	const struct psd_old_checkpoint_notes notes = psd_old_checkpoint_read_notes(file);
	struct psd_text program;

	PSD_TRY(describe_program(&program, host, err));
	enum psd_status status =
		psd_old_checkpoint_check_name(&notes, host_of(host), host->options->first_iteration, path, err);
	if (!status && strcmp(notes.program, program.bytes) != 0)
		status = psd_error_set(
			err, PSD_EINVAL, (struct psd_place){.path = path},
			"the checkpoint is of another model, optimiser, system or cluster, or of "
			"another version of psd-run: to begin with its parameters alone, see train.start");
	if (!status)
		psd_host_take_hashes(host, &notes);
	psd_text_release(&program);
	return status;
}

static enum psd_status read_parts(const struct psd_state *state, struct psd_tensor_file *file, const char *path,
				  struct psd_error *err)
{
	PSD_TRY(check_notes(state->host, file, path, err));
	PSD_TRY(verify(state->host, file, path, err));
	for (unsigned p = 0; p < state->n_parts; p++) {
		bool is_found = false;

		if (state->parts[p].is_divided)
			continue;
		PSD_TRY(psd_state_read(state, &state->parts[p], file, path, &is_found, err));
		psd_host_moved(state->host);
		if (!is_found)
			return psd_error_set(err, PSD_EINVAL, (struct psd_place){.path = path},
					     "the checkpoint has no '%.100s', which this run resumes from",
					     state->parts[p].tensor.name);
	}
	if (state->host->options->train->diverged == PSD_DIVERGED_CONTINUES)
		return PSD_OK;
	return psd_host_check_read(state, state->n_parts, path, err);
}

enum psd_status psd_host_restore(struct psd_host *host, struct psd_error *err)
{
	const struct psd_checkpoint_path path =
		psd_checkpoint_path(host->options->checkpoints, host_of(host), host->options->first_iteration);
	struct psd_tensor_file *file = NULL;
	struct psd_state state;

	PSD_TRY(psd_state_open(&state, host, host->options->first_iteration, err));
	enum psd_status status = psd_tensor_file_open(&file, path.text, err);
	if (!status)
		status = read_parts(&state, file, path.text, err);
	for (unsigned k = 0; k < host->n_keepers && !status; k++)
		status = host->keepers[k].take(host->keepers[k].context, path.text, err);
	psd_tensor_file_close(file);
	psd_state_close(&state);
	return status;
}

/* ---- initial parameters ---- */

/* Names some of them. */
static void remark_missing(const struct psd_host *host, const struct psd_text *names, unsigned n_missing, unsigned n)
{
	struct psd_error line;

	if (n_missing == 0 || host->self != 0 || !host->options->remark)
		return;
	psd_error_set(
		&line, PSD_EINVAL, (struct psd_place){.path = host->options->train->start_path},
		"has %u of the model's %u parameters and statistics, the others start as the model says: %.400s%s",
		n - n_missing, n, names->bytes ? names->bytes : "", n_missing > MOST_NAMED ? ", ..." : "");
	host->options->remark(host->options->context, line.text);
}

static enum psd_status read_start(const struct psd_state *state, struct psd_tensor_file *file, const char *path,
				  struct psd_error *err)
{
	struct psd_text names = {.bytes = NULL};
	unsigned n_missing = 0;
	bool has_checksums;

	enum psd_status status = psd_tensor_file_verify(file, &has_checksums, err);
	for (unsigned p = 0; p < state->n_plain && !status; p++) {
		bool is_found = true;

		status = psd_state_read(state, &state->parts[p], file, path, &is_found, err);
		if (!is_found && n_missing++ < MOST_NAMED)
			psd_text_add(&names, "%s%s", n_missing > 1 ? ", " : "", state->parts[p].tensor.name);
	}
	if (!status && n_missing == state->n_plain && n_missing > 0)
		status = psd_error_set(err, PSD_EINVAL, (struct psd_place){.path = path},
				       "the file has none of the model's parameters, such as '%.100s'",
				       state->parts[0].tensor.name);
	if (!status)
		status = psd_host_check_read(state, state->n_plain, path, err);
	if (!status)
		remark_missing(state->host, &names, n_missing, state->n_plain);
	psd_text_release(&names);
	return status;
}

enum psd_status psd_host_read_start(struct psd_host *host, struct psd_error *err)
{
	const char *path = host->options->train->start_path;
	struct psd_tensor_file *file = NULL;
	struct psd_state state;

	PSD_TRY(psd_state_open(&state, host, 0, err));
	enum psd_status status = psd_tensor_file_open(&file, path, err);
	if (!status)
		status = read_start(&state, file, path, err);
	psd_tensor_file_close(file);
	psd_state_close(&state);
	return status;
}
