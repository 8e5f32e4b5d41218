/* CIFAR-10 in its binary version (Krizhevsky 2009, cs.toronto.edu/~kriz/cifar.html): records of a label byte and 3072
 * bytes, the red, green and blue plane of 32 x 32 pixels. Training samples come from data_batch_1.bin up to
 * data_batch_5.bin, until one is missing; test samples from test_batch.bin. Refuses CIFAR-100, whose records have two
 * labels. */
#define _POSIX_C_SOURCE 200809L
#include <stdio.h>
#include <unistd.h>

#include "real/data/data_parts.h"

enum { N_PIXELS = 3 * 32 * 32, RECORD_BYTES = 1 + N_PIXELS, N_CLASSES = 10, MAX_BATCHES = 5 };

struct cifar {
	float mean[N_PIXELS]; /* mean of each pixel over the training samples */
};

/* The training samples' files in their order, then that of test samples. */
static const char *const *const file_names = psd_data_file_names[PSD_DATA_CIFAR10];

static bool has_batch(const char *folder, unsigned number)
{
	char path[4096];

	return snprintf(path, sizeof(path), "%s/%s", folder, file_names[number - 1]) < (int)sizeof(path) &&
	       access(path, F_OK) == 0;
}

static unsigned count_batches(const char *folder)
{
	unsigned last = MAX_BATCHES;

	while (last > 1 && !has_batch(folder, last))
		last--;
	return last;
}

static enum psd_status map_cifar(struct psd_data_files *files, const struct psd_data_source *source,
				 struct psd_error *err)
{
	const unsigned n_batches = count_batches(source->path);
	/* a batch that is missing before the last one is an error, which names it */
	for (unsigned i = 0; i < n_batches; i++)
		PSD_TRY(psd_data_map(files, source->path, file_names[i], err));
	return psd_data_map(files, source->path, file_names[MAX_BATCHES], err);
}

static uint64_t n_records(const struct psd_mapping *file)
{
	return file->n_bytes / RECORD_BYTES;
}

static enum psd_status refuse_label(const struct psd_mapping *file, uint64_t at, struct psd_error *err)
{
	return psd_mapping_refuse(file, at, err, "label is %u, must be 0 to %d", file->bytes[at], N_CLASSES - 1);
}

static enum psd_status check_file(const struct psd_mapping *file, struct psd_error *err)
{
	const uint64_t rest_bytes = file->n_bytes % RECORD_BYTES;

	if (file->n_bytes == 0)
		return psd_mapping_refuse(file, 0, err, "the file is empty");
	if (rest_bytes)
		return psd_mapping_refuse(
			file, file->n_bytes - rest_bytes, err,
			"the last record has %u bytes, must have %d: cut short, or not a CIFAR-10 binary file",
			(unsigned)rest_bytes, RECORD_BYTES);
	for (uint64_t at = 0; at < file->n_bytes; at += RECORD_BYTES)
		if (file->bytes[at] >= N_CLASSES)
			return refuse_label(file, at, err);
	return PSD_OK;
}

static void add_pixels(uint64_t sums[N_PIXELS], const struct psd_mapping *file)
{
	for (uint64_t at = 0; at < file->n_bytes; at += RECORD_BYTES)
		for (unsigned i = 0; i < N_PIXELS; i++)
			sums[i] += file->bytes[at + 1 + i];
}

static void set_mean(struct psd_data *data)
{
	struct cifar *cifar = data->state;
	uint64_t sums[N_PIXELS] = {0};

	for (unsigned i = 0; i + 1 < data->files.n_files; i++)
		add_pixels(sums, &data->files.files[i]);
	for (unsigned i = 0; i < N_PIXELS; i++)
		cifar->mean[i] = (float)((double)sums[i] / (double)data->n_samples[PSD_DATA_TRAINING]);
}

static enum psd_status open_cifar(struct psd_data *data, struct psd_error *err)
{
	const struct psd_mapping *files = data->files.files;
	const unsigned n_batches = data->files.n_files - 1;

	PSD_TRY(psd_data_check_shape(data, &files[0], (struct psd_shape){3, 32, 32}, err));
	PSD_TRY(psd_data_check_classes(data, &files[0], N_CLASSES, err));
	for (unsigned i = 0; i <= n_batches; i++) {
		PSD_TRY(check_file(&files[i], err));
		data->n_samples[i < n_batches ? PSD_DATA_TRAINING : PSD_DATA_TEST] += n_records(&files[i]);
	}
	PSD_TRY(psd_data_take_state(data, sizeof(struct cifar), err));
	set_mean(data);
	return PSD_OK;
}

static enum psd_status read_cifar(struct psd_data *data, enum psd_data_part part, uint64_t epoch, uint64_t sample,
				  float *image, int32_t *labels, struct psd_error *err)
{
	const struct cifar *cifar = data->state;
	const struct psd_mapping *file = data->files.files;

	(void)epoch;
	if (part == PSD_DATA_TEST)
		file += data->files.n_files - 1;
	for (; sample >= n_records(file); file++)
		sample -= n_records(file);
	const uint8_t *record = file->bytes + sample * RECORD_BYTES;
	labels[0] = record[0];
	if (labels[0] >= N_CLASSES) /* the file has changed since it was opened */
		return refuse_label(file, sample * RECORD_BYTES, err);
	for (unsigned i = 0; i < N_PIXELS; i++)
		image[i] = (float)record[1 + i] - cifar->mean[i];
	return PSD_OK;
}

const struct psd_data_reader psd_data_cifar = {
	.has_images = true, .map = map_cifar, .open = open_cifar, .read = read_cifar};
