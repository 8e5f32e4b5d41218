/* All files stay open and mapped; values are read once. */
#include "real/keep/old_checkpoint.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "real/keep/agreed_terms.h"

/* Seconds of a sample that a worker can need. */
static const double least_sample_sec = 1e-9, most_sample_sec = 1e6;

enum { NUMBER_TEXT_MAX = 24, NAME_MAX_BYTES = 1200 };

static struct psd_place place_of(const char *path)
{
	return (struct psd_place){.path = path};
}

/* ---- metadata of a file ---- */

struct psd_old_checkpoint_notes psd_old_checkpoint_read_notes(const struct psd_tensor_file *file)
{
	return (struct psd_old_checkpoint_notes){
		.iterations = psd_tensor_file_note(file, "iterations"),
		.system = psd_tensor_file_note(file, "system"),
		.program = psd_tensor_file_note(file, "program"),
		.host = psd_tensor_file_note(file, "host"),
		.run = psd_tensor_file_note(file, "run"),
		.terms = psd_tensor_file_note(file, "terms"),
		.samples = psd_tensor_file_note(file, "samples"),
		.model = psd_tensor_file_note(file, "model"),
		.shard_map = psd_tensor_file_note(file, "spread"),
	};
}

/* At least one sample per iteration, and at most those of the largest cluster. */
static enum psd_status read_samples(uint64_t *samples, const char *text, uint32_t iterations, const char *path,
				    struct psd_error *err)
{
	const double most_each = 1e6 * 4194304; /* batch_per_worker times workers */
	char *end;

	errno = 0;
	*samples = strtoull(text, &end, 10);
	if (isdigit((unsigned char)*text) && !*end && !errno && *samples >= iterations &&
	    (double)*samples <= most_each * iterations)
		return PSD_OK;
	return psd_error_set(err, PSD_EINVAL, place_of(path),
			     "'samples' is '%.40s', impossible after %" PRIu32 " iterations", text, iterations);
}

static enum psd_status check_model(const struct psd_old_checkpoint_notes *notes, const struct psd_graph *graph,
				   const char *path, struct psd_error *err)
{
	char model[NUMBER_TEXT_MAX];

	snprintf(model, sizeof(model), "%016" PRIx64, psd_terms_hash_model(graph));
	if (!strcmp(notes->model, model))
		return PSD_OK;
	return psd_error_set(err, PSD_EINVAL, place_of(path),
			     "the checkpoint is of another model: to begin with its parameters alone, see train.start");
}

enum psd_status psd_old_checkpoint_look(struct psd_old_checkpoint_about *about, const char *path, uint32_t iterations,
					const struct psd_graph *graph, const char *program, const char *shard_map,
					struct psd_error *err)
{
	struct psd_tensor_file *file;
	struct psd_old_checkpoint_notes notes;
	bool has_checksums;

	PSD_TRY(psd_tensor_file_open(&file, path, err));
	notes = psd_old_checkpoint_read_notes(file);
	*about = (struct psd_old_checkpoint_about){
		.is_alike = (!notes.program || !strcmp(notes.program, program)) &&
			    (!notes.shard_map || !strcmp(notes.shard_map, shard_map)),
		.has_samples = notes.samples,
	};
	enum psd_status status = psd_tensor_file_verify(file, &has_checksums, err);
	if (!status && notes.model)
		status = check_model(&notes, graph, path, err);
	if (!status && notes.samples)
		status = read_samples(&about->samples, notes.samples, iterations, path, err);
	snprintf(about->system, sizeof(about->system), "%s", notes.system ? notes.system : "");
	psd_tensor_file_close(file);
	return status;
}

/* ---- measured split ---- */

static enum psd_status parse_split(double sample_sec[], unsigned n_groups, const char *text, const char *path,
				   bool *has_split, struct psd_error *err)
{
	double read_sec[PSD_MAX_GROUPS];
	const char *at = text;
	unsigned n = 0;

	while (*at && n < PSD_MAX_GROUPS) {
		char *end;

		read_sec[n] = strtod(at, &end);
		if (end == at || !(read_sec[n] >= least_sample_sec && read_sec[n] <= most_sample_sec))
			return psd_error_set(err, PSD_EINVAL, place_of(path),
					     "'split' is '%.80s', must be the seconds of a sample on each group, each "
					     "from %g to %g",
					     text, least_sample_sec, most_sample_sec);
		at = end;
		n++;
	}
	*has_split = n == n_groups && !*at;
	if (*has_split)
		memcpy(sample_sec, read_sec, n * sizeof(*read_sec));
	return PSD_OK;
}

enum psd_status psd_old_checkpoint_read_split(double sample_sec[], unsigned n_groups, const char *path, bool *has_split,
					      struct psd_error *err)
{
	struct psd_tensor_file *file;
	enum psd_status status = psd_tensor_file_open(&file, path, err);
	const char *text = status ? NULL : psd_tensor_file_note(file, "split");

	*has_split = false;
	if (status)
		return status;
	if (text)
		status = parse_split(sample_sec, n_groups, text, path, has_split, err);
	psd_tensor_file_close(file);
	return status;
}

/* ---- opening ---- */

struct psd_checkpoint_path psd_old_checkpoint_path(const struct psd_old_checkpoint *old, unsigned host)
{
	return psd_checkpoint_path(old->checkpoints, (struct psd_checkpoint_host){host, old->n_hosts}, old->iterations);
}

enum psd_status psd_old_checkpoint_check_name(const struct psd_old_checkpoint_notes *notes,
					      struct psd_checkpoint_host host, uint32_t iterations, const char *path,
					      struct psd_error *err)
{
	char number[NUMBER_TEXT_MAX], self[2 * NUMBER_TEXT_MAX];

	snprintf(number, sizeof(number), "%" PRIu32, iterations);
	snprintf(self, sizeof(self), "%u of %u", host.host, host.n_hosts);
	if (!notes->iterations || !notes->host || !notes->run || !notes->terms || !notes->program)
		return psd_error_set(err, PSD_EINVAL, place_of(path), "the file has no metadata of a checkpoint");
	if (strcmp(notes->iterations, number) != 0)
		return psd_error_set(err, PSD_EINVAL, place_of(path),
				     "the checkpoint is of %.20s iterations, its name says %s", notes->iterations,
				     number);
	if (strcmp(notes->host, self) != 0)
		return psd_error_set(err, PSD_EINVAL, place_of(path),
				     "the checkpoint is of host %.20s, its name says %s", notes->host, self);
	return PSD_OK;
}

/* Files of an older psd-run lack some entries. */
static bool is_same(const char *one, const char *other)
{
	return one && other ? !strcmp(one, other) : one == other;
}

enum psd_status psd_old_checkpoint_check_run(const struct psd_old_checkpoint_notes *first,
					     const struct psd_old_checkpoint_notes *notes, const char *path,
					     struct psd_error *err)
{
	const bool is_of_run = is_same(notes->run, first->run) && is_same(notes->samples, first->samples) &&
			       is_same(notes->program, first->program) && is_same(notes->shard_map, first->shard_map) &&
			       is_same(notes->model, first->model);

	return is_of_run ? PSD_OK
			 : psd_error_set(err, PSD_EINVAL, place_of(path),
					 "the checkpoint is of another run than the file of host 0 beside it");
}

static enum psd_status check_version(const struct psd_old_checkpoint *old, const struct psd_old_checkpoint_notes *notes,
				     const char *path, struct psd_error *err)
{
	return notes->model && notes->samples && notes->shard_map
		       ? PSD_OK
		       : psd_error_set(err, PSD_EINVAL, place_of(path),
				       "the checkpoint is of another version of psd-run, must be resumed with %u hosts "
				       "and '%.80s'",
				       old->n_hosts, notes->system ? notes->system : "");
}

static enum psd_status open_file(struct psd_old_checkpoint *old, unsigned host, const struct psd_graph *graph,
				 struct psd_error *err)
{
	const struct psd_checkpoint_path path = psd_old_checkpoint_path(old, host);
	struct psd_old_checkpoint_notes notes, first;

	PSD_TRY(psd_tensor_file_open(&old->files[host], path.text, err));
	notes = psd_old_checkpoint_read_notes(old->files[host]);
	first = psd_old_checkpoint_read_notes(old->files[0]);
	PSD_TRY(psd_old_checkpoint_check_name(&notes, (struct psd_checkpoint_host){host, old->n_hosts}, old->iterations,
					      path.text, err));
	PSD_TRY(check_version(old, &notes, path.text, err));
	PSD_TRY(check_model(&notes, graph, path.text, err));
	PSD_TRY(psd_old_checkpoint_check_run(&first, &notes, path.text, err));
	if (host == 0)
		PSD_TRY(psd_shard_map_parse(&old->shard_map, graph, notes.shard_map, place_of(path.text), err));
	if (psd_layout_hosts(&old->shard_map.layout) != old->n_hosts)
		return psd_error_set(err, PSD_EINVAL, place_of(path.text),
				     "the shard map ('spread') is for %u hosts, must be for %u",
				     psd_layout_hosts(&old->shard_map.layout), old->n_hosts);
	return PSD_OK;
}

enum psd_status psd_old_checkpoint_open(struct psd_old_checkpoint *old, const struct psd_checkpoints *checkpoints,
					unsigned n_hosts, uint32_t iterations, const struct psd_graph *graph,
					struct psd_error *err)
{
	struct psd_old_checkpoint opened = {.checkpoints = checkpoints, .iterations = iterations, .n_hosts = n_hosts};
	enum psd_status status = PSD_OK;

	opened.files = calloc(n_hosts, sizeof(struct psd_tensor_file *));
	opened.found = calloc(n_hosts, sizeof(const struct psd_file_tensor *));
	if (!opened.files || !opened.found)
		status = psd_error_set(err, PSD_ENOMEM, PSD_NOWHERE, "out of memory for a checkpoint");
	for (unsigned h = 0; h < n_hosts && !status; h++)
		status = open_file(&opened, h, graph, err);
	if (status)
		psd_old_checkpoint_close(&opened);
	else
		*old = opened;
	return status;
}

void psd_old_checkpoint_close(struct psd_old_checkpoint *old)
{
	for (unsigned h = 0; old->files && h < old->n_hosts; h++)
		psd_tensor_file_close(old->files[h]);
	psd_shard_map_release(&old->shard_map);
	free(old->files);
	free(old->found);
}

/* ---- values ---- */

unsigned psd_old_checkpoint_root(const struct psd_old_checkpoint *old, unsigned tensor)
{
	const struct psd_shard_map_place *place = &old->shard_map.places[tensor];
	const bool has_root = place->is_known && old->shard_map.items[place->item].has_root;

	return has_root ? old->shard_map.items[place->item].root : 0;
}

/* Finds a buffer, named after its item's first tensor. The result is kept, since buffers are read range by range. */
static void look(struct psd_old_checkpoint *old, enum psd_buffer buffer, unsigned item)
{
	const unsigned first = old->shard_map.items[item].tensors[0];
	char name[NAME_MAX_BYTES]; /* longest name in a file */

	if (old->has_looked && old->buffer == buffer && old->item == item)
		return;
	snprintf(name, sizeof(name), "%s.%s", old->shard_map.graph->tensors[first].name, psd_buffers[buffer].name);
	for (unsigned h = 0; h < old->n_hosts; h++)
		old->found[h] = psd_tensor_file_find(old->files[h], name);
	old->has_looked = true;
	old->buffer = buffer;
	old->item = item;
}

/* Blocks belong to compressed buffers. */
static bool may_keep(const struct psd_old_checkpoint *old, enum psd_buffer buffer, unsigned tensor)
{
	return old->shard_map.places[tensor].is_known &&
	       (psd_buffers[buffer].content != PSD_CONTENT_BLOCK_ELEMENTS || old->shard_map.block.elements > 0);
}

bool psd_old_checkpoint_keeps(struct psd_old_checkpoint *old, enum psd_buffer buffer, unsigned tensor)
{
	bool is_there = false;

	if (!may_keep(old, buffer, tensor))
		return false;
	look(old, buffer, old->shard_map.places[tensor].item);
	for (unsigned h = 0; h < old->n_hosts && !is_there; h++)
		is_there = old->found[h];
	return is_there;
}

enum psd_status psd_old_checkpoint_read_run(struct psd_old_checkpoint *old, enum psd_buffer buffer, unsigned host,
					    unsigned tensor, struct psd_range range, float *to, struct psd_error *err)
{
	const unsigned item = old->shard_map.places[tensor].item;
	const char *name = old->shard_map.graph->tensors[old->shard_map.items[item].tensors[0]].name;
	const struct psd_file_tensor *found;

	look(old, buffer, item);
	found = old->found[host];
	if (!found || found->type != PSD_TENSOR_F32 || found->n_dims != 1 || range.first > found->dims[0] ||
	    range.elements > found->dims[0] - range.first)
		return psd_error_set(err, PSD_EINVAL, place_of(psd_old_checkpoint_path(old, host).text),
				     "the checkpoint has no '%.100s.%s' of %" PRIu64
				     " values, which a run resumes from",
				     name, psd_buffers[buffer].name, range.first + range.elements);
	return psd_tensor_file_read(old->files[host], found, range.first * sizeof(float),
				    range.elements * sizeof(float), to, err);
}

enum psd_status psd_old_checkpoint_read(struct psd_old_checkpoint *old, enum psd_buffer buffer, unsigned host,
					unsigned tensor, struct psd_range range, float *to, struct psd_error *err)
{
	for (uint64_t done = 0; done < range.elements;) {
		const struct psd_shard_map_run run =
			psd_shard_map_find(&old->shard_map, buffer, tensor, range.first + done);
		const uint64_t left = range.elements - done, n = run.elements < left ? run.elements : left;

		PSD_TRY(psd_old_checkpoint_read_run(old, buffer, run.is_divided ? run.host : host, tensor,
						    (struct psd_range){run.first, n}, to + done, err));
		done += n;
	}
	return PSD_OK;
}
