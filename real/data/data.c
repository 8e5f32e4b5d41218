/* Functions of a data set for all formats; each format has a reader in a file of its own. */
#include "real/data/data.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>

#include "engine/base/hash.h"
#include "real/data/data_parts.h"

#define HASHED_WHOLE_BYTES (UINT64_C(256) << 20)
/* Pieces of a larger file that are hashed, evenly spread. The first contains a packed file's checksum of labels and
 * images. */
enum { HASHED_PIECES = 1024, HASHED_BYTES = 128 };

static const struct psd_data_reader *const readers[] = {
	[PSD_DATA_SYNTHETIC] = &psd_data_synthetic,
	[PSD_DATA_CIFAR10] = &psd_data_cifar,
	[PSD_DATA_IDX] = &psd_data_idx,
	[PSD_DATA_PACKED] = &psd_data_packed,
	[PSD_DATA_TEXT] = &psd_data_tokens,
	[PSD_DATA_TOKENS] = &psd_data_tokens,
};

struct psd_data_options psd_data_options_of(const struct psd_graph *graph, const struct psd_train *train)
{
	return (struct psd_data_options){
		.source = train->data,
		.shape = graph->layers[0].shape,
		.classes = graph->classes,
		.labels = graph->labels,
		.vocabulary = graph->vocabulary,
		.seed = train->seed,
	};
}

static void close_files(struct psd_data_files *files)
{
	for (unsigned i = 0; i < files->n_files; i++)
		psd_mapping_close(&files->files[i]);
	files->n_files = 0;
}

/* Checks that the data suits the network. A network that begins with an embedding needs tokens, any other network needs
 * images; both need the right number of labels. */
static enum psd_status check_network(const struct psd_data *data, struct psd_error *err)
{
	const struct psd_place at = {.path = data->files.n_files ? data->files.files[0].path : NULL};
	const uint64_t labels = data->options.labels, positions = psd_data_positions(data);
	const bool takes_tokens = data->options.vocabulary > 0;

	if (takes_tokens && !data->reader->has_tokens)
		return psd_error_set(err, PSD_EINVAL, at,
				     "the data has images, the network expects tokens of a vocabulary of %" PRIu32,
				     data->options.vocabulary);
	if (!takes_tokens && !data->reader->has_images)
		return psd_error_set(
			err, PSD_EINVAL, at,
			"the data has tokens, the network expects images: its first layer is not an embedding");
	if (!takes_tokens && labels != 1)
		return psd_error_set(err, PSD_EINVAL, at,
				     "an image has one label, the network expects labels for %" PRIu64 " positions",
				     labels);
	if (labels != 1 && labels != positions)
		return psd_error_set(err, PSD_EINVAL, at,
				     "a sequence of %" PRIu64 " tokens has one label or one for each token, the "
				     "network has %" PRIu64,
				     positions, labels);
	return PSD_OK;
}

static enum psd_status open_reader(void *context, struct psd_error *err)
{
	struct psd_data *data = context;

	PSD_TRY(check_network(data, err));
	return data->reader->open(data, err);
}

enum psd_status psd_data_open_mapped(struct psd_data **data, const struct psd_data_options *options,
				     struct psd_data_files *files, struct psd_error *err)
{
	struct psd_data *fresh = calloc(1, sizeof(*fresh));

	assert(options->shape.channels && options->shape.height && options->shape.width && options->classes);
	assert(options->labels && (!options->vocabulary || options->shape.channels == 1));
	if (!fresh) {
		close_files(files);
		return psd_out_of_memory(err);
	}
	*fresh = (struct psd_data){.reader = readers[options->source.kind], .options = *options, .files = *files};
	*files = (struct psd_data_files){.n_files = 0};
	const enum psd_status status =
		psd_mapping_guard(fresh->files.files, fresh->files.n_files, open_reader, fresh, err);
	if (status) {
		psd_data_close(fresh);
		return status;
	}
	assert(fresh->n_samples[PSD_DATA_TRAINING] > 0);
	fresh->sampler = (struct psd_sampler){.seed = options->seed, .n_samples = fresh->n_samples[PSD_DATA_TRAINING]};
	*data = fresh;
	return PSD_OK;
}

enum psd_status psd_data_open(struct psd_data **data, const struct psd_data_options *options, struct psd_error *err)
{
	const struct psd_data_reader *reader = readers[options->source.kind];
	struct psd_data_files files = {.n_files = 0};
	enum psd_status status = reader->map ? reader->map(&files, &options->source, err) : PSD_OK;

	if (!status)
		return psd_data_open_mapped(data, options, &files, err);
	close_files(&files);
	return status;
}

enum psd_status psd_data_view(struct psd_data **view, struct psd_data *data, struct psd_error *err)
{
	struct psd_data_files files = {.n_files = 0};
	enum psd_status status = PSD_OK;

	while (!status && files.n_files < data->files.n_files) {
		status = psd_mapping_share(&files.files[files.n_files], &data->files.files[files.n_files], err);
		files.n_files += !status;
	}
	if (!status)
		return psd_data_open_mapped(view, &data->options, &files, err);
	close_files(&files);
	return status;
}

void psd_data_close(struct psd_data *data)
{
	if (!data)
		return;
	if (data->reader->close)
		data->reader->close(data);
	free(data->state);
	close_files(&data->files);
	free(data);
}

uint64_t psd_data_samples(const struct psd_data *data, enum psd_data_part part)
{
	return data->n_samples[part];
}

struct hashing {
	const struct psd_data_files *files;
	uint64_t hash;
};

static enum psd_status hash_files(void *context, struct psd_error *err)
{
	struct hashing *hashing = context;
	uint64_t hash = PSD_HASH_START;

	(void)err;
	for (unsigned f = 0; f < hashing->files->n_files; f++) {
		const struct psd_mapping *file = &hashing->files->files[f];
		const uint64_t stride =
			file->n_bytes > HASHED_WHOLE_BYTES ? file->n_bytes / HASHED_PIECES : HASHED_BYTES;

		hash = psd_hash_number(hash, file->n_bytes);
		for (uint64_t at = 0; at < file->n_bytes; at += stride) {
			const uint64_t rest = file->n_bytes - at < stride ? file->n_bytes - at : stride;

			hash = psd_hash_bytes(hash, file->bytes + at, rest < HASHED_BYTES ? rest : HASHED_BYTES);
		}
	}
	hashing->hash = hash;
	return PSD_OK;
}

enum psd_status psd_data_hash(struct psd_data *data, uint64_t *hash, struct psd_error *err)
{
	struct hashing hashing = {.files = &data->files};

	PSD_TRY(psd_mapping_guard(data->files.files, data->files.n_files, hash_files, &hashing, err));
	*hash = hashing.hash;
	return PSD_OK;
}

struct reading {
	struct psd_data *data;
	enum psd_data_part part;
	uint64_t epoch, sample;
	float *image;
	int32_t *labels;
};

static enum psd_status read_sample(void *context, struct psd_error *err)
{
	const struct reading *r = context;

	return r->data->reader->read(r->data, r->part, r->epoch, r->sample, r->image, r->labels, err);
}

enum psd_status psd_data_read(struct psd_data *data, enum psd_data_part part, uint64_t epoch, uint64_t sample,
			      float *image, int32_t *labels, struct psd_error *err)
{
	assert(sample < data->n_samples[part]);
	return psd_mapping_guard(data->files.files, data->files.n_files, read_sample,
				 &(struct reading){data, part, epoch, sample, image, labels}, err);
}

enum psd_status psd_data_read_batch(struct psd_data *data, enum psd_data_part part, uint64_t first, uint32_t batch,
				    float *images, int32_t *labels, struct psd_error *err)
{
	const struct psd_shape shape = data->options.shape;
	const uint64_t elements = (uint64_t)shape.channels * shape.height * shape.width;
	const uint64_t n_labels = data->options.labels;

	for (uint32_t i = 0; i < batch; i++) {
		const struct psd_draw draw = part == PSD_DATA_TRAINING ? psd_sampler_draw(&data->sampler, first + i)
								       : (struct psd_draw){0, first + i};

		PSD_TRY(psd_data_read(data, part, draw.epoch, draw.sample, images + i * elements, labels + i * n_labels,
				      err));
	}
	return PSD_OK;
}
