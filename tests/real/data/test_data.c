/* CIFAR-10 and IDX files, written here as their authors describe them: what is read, and what is refused at which byte.
 */
#define _XOPEN_SOURCE 700
#include <criterion/criterion.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "real/data/data.h"
#include "tests/real/data/data_helper.h"

/* ---- CIFAR-10 ---- */

enum { CIFAR_PIXELS = 3 * 32 * 32, CIFAR_RECORD = 1 + CIFAR_PIXELS, CIFAR_RECORDS = 5 };

/* Records 0 to 2 are data_batch_1, 3 is data_batch_2, 4 is test_batch. */
static const uint8_t cifar_labels[CIFAR_RECORDS] = {3, 0, 9, 7, 5};

static uint8_t cifar_pixel(unsigned record, unsigned i)
{
	return (uint8_t)(record * 71 + i * 13 + i / 1024);
}

struct cifar_bytes {
	uint8_t records[CIFAR_RECORDS][CIFAR_RECORD];
};

static void make_cifar(struct cifar_bytes *bytes)
{
	for (unsigned record = 0; record < CIFAR_RECORDS; record++) {
		bytes->records[record][0] = cifar_labels[record];
		for (unsigned i = 0; i < CIFAR_PIXELS; i++)
			bytes->records[record][1 + i] = cifar_pixel(record, i);
	}
}

static void write_cifar(const struct scratch_folder *folder)
{
	static struct cifar_bytes bytes;

	make_cifar(&bytes);
	scratch_folder_write(folder, "data_batch_1.bin", bytes.records[0], 3 * CIFAR_RECORD);
	scratch_folder_write(folder, "data_batch_2.bin", bytes.records[3], CIFAR_RECORD);
	scratch_folder_write(folder, "test_batch.bin", bytes.records[4], CIFAR_RECORD);
}

static struct psd_data_options cifar_options(const struct scratch_folder *folder)
{
	return (struct psd_data_options){.source = {.kind = PSD_DATA_CIFAR10, .path = folder->path},
					 .shape = {3, 32, 32},
					 .classes = 10,
					 .labels = 1,
					 .seed = 1};
}

static uint64_t hash_of(const struct psd_data_options *options)
{
	struct psd_data *data = open_data(options);
	struct psd_error err;
	uint64_t hash;

	cr_assert_eq(psd_data_hash(data, &hash, &err), PSD_OK, "%s", err.text);
	psd_data_close(data);
	return hash;
}

/* Hosts compare hashes to know that their copies are equal. */
FOLDER_TEST(data, a_label_that_differs_makes_another_hash, scratch_folder_make())
{
	enum { RECORDS = 100 };
	static uint8_t records[RECORDS][CIFAR_RECORD];
	const struct psd_data_options options = cifar_options(&folder);
	uint64_t hash;

	write_cifar(&folder);
	scratch_folder_write(&folder, "data_batch_1.bin", records, sizeof(records));
	hash = hash_of(&options);
	cr_expect_eq(hash_of(&options), hash);
	for (unsigned r = 0; r < RECORDS; r++) {
		records[r][0] = 1;
		scratch_folder_write(&folder, "data_batch_1.bin", records, sizeof(records));
		cr_expect_neq(hash_of(&options), hash, "record %u", r);
		records[r][0] = 0;
	}
}

FOLDER_TEST(data, cifar_records_come_in_file_order_less_their_mean, scratch_folder_make())
{
	const struct psd_data_options options = cifar_options(&folder);
	float image[CIFAR_PIXELS];
	struct psd_data *data;

	write_cifar(&folder);
	data = open_data(&options);
	cr_expect_eq(psd_data_samples(data, PSD_DATA_TRAINING), 4);
	cr_expect_eq(psd_data_samples(data, PSD_DATA_TEST), 1);
	for (unsigned record = 0; record < CIFAR_RECORDS; record++) {
		const enum psd_data_part part = record < 4 ? PSD_DATA_TRAINING : PSD_DATA_TEST;

		cr_expect_eq(read_sample(data, part, 0, record < 4 ? record : 0, image), cifar_labels[record]);
		for (unsigned i = 0; i < CIFAR_PIXELS; i++) {
			/* mean of the training samples only; quarters are exact */
			const float mean =
				(float)(cifar_pixel(0, i) + cifar_pixel(1, i) + cifar_pixel(2, i) + cifar_pixel(3, i)) /
				4;

			cr_assert_eq(image[i], (float)cifar_pixel(record, i) - mean, "record %u, value %u", record, i);
		}
	}
	psd_data_close(data);
}

FOLDER_TEST(data, damaged_cifar_files_are_refused_where_they_are_damaged, scratch_folder_make())
{
	const struct psd_data_options options = cifar_options(&folder);
	static struct cifar_bytes bytes;

	write_cifar(&folder);
	make_cifar(&bytes);
	scratch_folder_write(&folder, "data_batch_2.bin", bytes.records[0], 2 * CIFAR_RECORD - 1);
	expect_refused(&options, &folder,
		       "data_batch_2.bin: at byte 3073: the last record has 3072 bytes, must have 3073: cut short, or "
		       "not a CIFAR-10 binary file");
	scratch_folder_write(&folder, "data_batch_2.bin", "", 0);
	expect_refused(&options, &folder, "data_batch_2.bin: at byte 0: the file is empty");
	bytes.records[2][0] = 10;
	scratch_folder_write(&folder, "data_batch_2.bin", bytes.records[0], 3 * CIFAR_RECORD);
	expect_refused(&options, &folder, "data_batch_2.bin: at byte 6146: label is 10, must be 0 to 9"); /* 2 * 3073 */
	write_cifar(&folder);
	scratch_folder_write(&folder, "test_batch.bin", bytes.records[0], 1);
	expect_refused(&options, &folder,
		       "test_batch.bin: at byte 0: the last record has 1 bytes, must have 3073: cut short, or not a "
		       "CIFAR-10 binary file");
}

FOLDER_TEST(data, missing_cifar_files_are_named, scratch_folder_make())
{
	const struct psd_data_options options = cifar_options(&folder);

	expect_refused(&options, &folder, "data_batch_1.bin: cannot be opened: No such file or directory");
	write_cifar(&folder);
	cr_assert_eq(rename(scratch_folder_path(&folder, "data_batch_2.bin").text,
			    scratch_folder_path(&folder, "data_batch_4.bin").text),
		     0);
	expect_refused(&options, &folder, "data_batch_2.bin: cannot be opened: No such file or directory");
	write_cifar(&folder);
	remove(scratch_folder_path(&folder, "data_batch_4.bin").text);
	remove(scratch_folder_path(&folder, "test_batch.bin").text);
	expect_refused(&options, &folder, "test_batch.bin: cannot be opened: No such file or directory");
	scratch_folder_add(&folder, "test_batch.bin");
	expect_refused(&options, &folder, "test_batch.bin: must be a regular file");
}

FOLDER_TEST(data, cifar_fits_only_its_own_networks, scratch_folder_make())
{
	struct psd_data_options options = cifar_options(&folder);

	write_cifar(&folder);
	options.shape = (struct psd_shape){3, 28, 32};
	expect_refused(
		&options, &folder,
		"data_batch_1.bin: the data has samples of 3 x 32 x 32, the network expects 3 x 28 x 32 (channels, "
		"height, width)");
	options = cifar_options(&folder);
	options.classes = 1000;
	expect_refused(&options, &folder, "data_batch_1.bin: the data has 10 classes, the network has 1000");
	options = cifar_options(&folder);
	options.shape = (struct psd_shape){1, 32, 32};
	options.vocabulary = 300;
	expect_refused(&options, &folder,
		       "data_batch_1.bin: the data has images, the network expects tokens of a vocabulary of 300");
	options = cifar_options(&folder);
	options.labels = 14 * 14;
	expect_refused(&options, &folder,
		       "data_batch_1.bin: an image has one label, the network expects labels for 196 positions");
}

FOLDER_TEST(data, batches_follow_the_sampler, scratch_folder_make())
{
	const struct psd_data_options options = cifar_options(&folder);
	static float images[8][CIFAR_PIXELS];
	float image[CIFAR_PIXELS];
	unsigned seen[2][10] = {0};
	struct psd_error err = {.text = ""};
	struct psd_data *data;
	int32_t labels[8];

	write_cifar(&folder);
	data = open_data(&options);
	/* positions 2 to 9 of epochs of 4: the rest of one, a whole one, the beginning of a third */
	cr_assert_eq(psd_data_read_batch(data, PSD_DATA_TRAINING, 2, 8, images[0], labels, &err), PSD_OK, "%s",
		     err.text);
	for (unsigned i = 2; i < 6; i++)
		seen[0][labels[i]]++;
	for (unsigned record = 0; record < 4; record++)
		cr_expect_eq(seen[0][cifar_labels[record]], 1, "the whole epoch has every sample once");
	for (unsigned i = 0; i < 8; i++)
		for (unsigned record = 0; record < 4; record++)
			if (labels[i] == read_sample(data, PSD_DATA_TRAINING, 0, record, image))
				cr_expect_eq(memcmp(images[i], image, sizeof(image)), 0,
					     "images and labels stay together");
	cr_assert_eq(psd_data_read_batch(data, PSD_DATA_TEST, 0, 1, images[0], labels, &err), PSD_OK, "%s", err.text);
	cr_expect_eq(labels[0], cifar_labels[4]);
	psd_data_close(data);
}

/* ---- IDX ---- */

enum { IDX_ROWS = 3, IDX_COLUMNS = 5, IDX_IMAGE = IDX_ROWS * IDX_COLUMNS, IDX_TRAINING = 4, IDX_TEST = 2 };

static uint8_t idx_pixel(unsigned part, unsigned sample, unsigned i)
{
	return (uint8_t)(part * 100 + sample * 17 + i * 3);
}

static uint8_t idx_label(unsigned part, unsigned sample)
{
	return (uint8_t)((part * 5 + sample * 3) % 10);
}

static void write_idx_images(const struct scratch_folder *folder, const char *name, unsigned part, uint8_t n_samples,
			     size_t n_bytes)
{
	uint8_t bytes[16 + 8 * IDX_IMAGE] = {0, 0, 8, 3, 0, 0, 0, n_samples, 0, 0, 0, IDX_ROWS, 0, 0, 0, IDX_COLUMNS};

	for (unsigned sample = 0; sample < n_samples; sample++)
		for (unsigned i = 0; i < IDX_IMAGE; i++)
			bytes[16 + sample * IDX_IMAGE + i] = idx_pixel(part, sample, i);
	scratch_folder_write(folder, name, bytes, n_bytes);
}

static void write_idx_labels(const struct scratch_folder *folder, const char *name, unsigned part, uint8_t n_samples,
			     size_t n_bytes)
{
	uint8_t bytes[8 + 8] = {0, 0, 8, 1, 0, 0, 0, n_samples};

	for (unsigned sample = 0; sample < n_samples; sample++)
		bytes[8 + sample] = idx_label(part, sample);
	scratch_folder_write(folder, name, bytes, n_bytes);
}

static void write_idx(const struct scratch_folder *folder)
{
	write_idx_images(folder, "train-images-idx3-ubyte", 0, IDX_TRAINING, 16 + IDX_TRAINING * IDX_IMAGE);
	write_idx_labels(folder, "train-labels-idx1-ubyte", 0, IDX_TRAINING, 8 + IDX_TRAINING);
	write_idx_images(folder, "t10k-images-idx3-ubyte", 1, IDX_TEST, 16 + IDX_TEST * IDX_IMAGE);
	write_idx_labels(folder, "t10k-labels-idx1-ubyte", 1, IDX_TEST, 8 + IDX_TEST);
}

static struct psd_data_options idx_options(const struct scratch_folder *folder)
{
	return (struct psd_data_options){.source = {.kind = PSD_DATA_IDX, .path = folder->path},
					 .shape = {1, IDX_ROWS, IDX_COLUMNS},
					 .classes = 10,
					 .labels = 1,
					 .seed = 1};
}

FOLDER_TEST(data, idx_samples_come_in_file_order_scaled, scratch_folder_make())
{
	const struct psd_data_options options = idx_options(&folder);
	float image[IDX_IMAGE];
	struct psd_data *data;

	write_idx(&folder);
	data = open_data(&options);
	for (unsigned part = 0; part < 2; part++) {
		const unsigned n_samples = part ? IDX_TEST : IDX_TRAINING;

		cr_assert_eq(psd_data_samples(data, part ? PSD_DATA_TEST : PSD_DATA_TRAINING), n_samples);
		for (unsigned sample = 0; sample < n_samples; sample++) {
			cr_expect_eq(read_sample(data, part ? PSD_DATA_TEST : PSD_DATA_TRAINING, 0, sample, image),
				     idx_label(part, sample));
			for (unsigned i = 0; i < IDX_IMAGE; i++)
				cr_assert_eq(image[i], (float)idx_pixel(part, sample, i) / 256);
		}
	}
	psd_data_close(data);
}

FOLDER_TEST(data, images_are_no_tokens, scratch_folder_make())
{
	struct psd_data_options options = idx_options(&folder);

	write_idx(&folder);
	options.vocabulary = 300;
	options.labels = IDX_IMAGE;
	expect_refused(
		&options, &folder,
		"train-images-idx3-ubyte: the data has images, the network expects tokens of a vocabulary of 300");
	options.vocabulary = 0;
	expect_refused(&options, &folder,
		       "train-images-idx3-ubyte: an image has one label, the network expects labels for 15 positions");
}

/* Before it is read, and with its labels. */
Test(data, a_file_that_is_shortened_is_named)
{
	static const char *const names[] = {"train-images-idx3-ubyte", "train-labels-idx1-ubyte"};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		struct scratch_folder folder = scratch_folder_make();
		const struct psd_data_options options = idx_options(&folder);
		const struct scratch_path path = scratch_folder_path(&folder, names[i]);
		struct psd_error err = {.text = ""};
		char expected[512];
		float image[IDX_IMAGE];
		struct psd_data *data;
		int32_t label;
		uint64_t hash;

		snprintf(expected, sizeof(expected), "%s: was shortened while it was read", path.text);
		write_idx(&folder);
		data = open_data(&options);
		cr_assert_eq(truncate(path.text, 0), 0);
		cr_expect_eq(psd_data_read(data, PSD_DATA_TEST, 0, 0, image, &label, &err), PSD_OK, "%s", err.text);
		cr_expect_eq(psd_data_read(data, PSD_DATA_TRAINING, 0, 0, image, &label, &err), PSD_ERUN);
		cr_expect_str_eq(err.text, expected);
		err.text[0] = '\0';
		cr_expect_eq(psd_data_hash(data, &hash, &err), PSD_ERUN);
		cr_expect_str_eq(err.text, expected);
		psd_data_close(data);
		scratch_folder_remove(&folder);
	}
}

/* After one reader has met the end, all read zeros. */
FOLDER_TEST(data, a_file_that_is_shortened_is_so_for_all_its_readers, scratch_folder_make())
{
	const struct psd_data_options options = idx_options(&folder);
	const struct scratch_path path = scratch_folder_path(&folder, "train-images-idx3-ubyte");
	struct psd_error err = {.text = ""}, other_err = {.text = ""};
	float image[IDX_IMAGE];
	struct psd_data *data, *view, *other;
	int32_t label;

	write_idx(&folder);
	data = open_data(&options);
	cr_assert_eq(psd_data_view(&view, data, &err), PSD_OK, "%s", err.text);
	cr_assert_eq(psd_data_view(&other, view, &err), PSD_OK, "%s", err.text);
	cr_assert_eq(truncate(path.text, 0), 0);
	cr_expect_eq(psd_data_read(view, PSD_DATA_TRAINING, 0, 0, image, &label, &err), PSD_ERUN);
	cr_expect_eq(psd_data_read(data, PSD_DATA_TRAINING, 0, 0, image, &label, &other_err), PSD_ERUN);
	cr_expect_str_eq(other_err.text, err.text);
	other_err.text[0] = '\0';
	cr_expect_eq(psd_data_read(other, PSD_DATA_TRAINING, 0, 0, image, &label, &other_err), PSD_ERUN);
	cr_expect_str_eq(other_err.text, err.text);
	psd_data_close(other);
	psd_data_close(view);
	psd_data_close(data);
}

FOLDER_TEST(data, test_batches_come_in_file_order, scratch_folder_make())
{
	const struct psd_data_options options = idx_options(&folder);
	float images[2][IDX_IMAGE], image[IDX_IMAGE];
	struct psd_error err = {.text = ""};
	struct psd_data *data;
	int32_t labels[2];

	write_idx(&folder);
	data = open_data(&options);
	cr_assert_eq(psd_data_read_batch(data, PSD_DATA_TEST, 0, 2, images[0], labels, &err), PSD_OK, "%s", err.text);
	cr_assert_eq(psd_data_read_batch(data, PSD_DATA_TEST, 1, 1, image, labels, &err), PSD_OK, "%s", err.text);
	cr_expect_eq(labels[0], idx_label(1, 1));
	cr_expect_eq(labels[1], idx_label(1, 1));
	cr_expect_eq(memcmp(image, images[1], sizeof(image)), 0);
	psd_data_close(data);
}

/* Writes a file with one byte replaced. */
static void spoil(const struct scratch_folder *folder, const char *name, long offset, uint8_t value)
{
	FILE *file = fopen(scratch_folder_path(folder, name).text, "r+b");

	cr_assert_not_null(file);
	cr_assert_eq(fseek(file, offset, SEEK_SET), 0);
	cr_assert_eq(fputc(value, file), value);
	cr_assert_eq(fclose(file), 0);
}

static void expect_spoilt_idx_refused(const char *name, long offset, uint8_t value, const char *expected)
{
	struct scratch_folder folder = scratch_folder_make();
	const struct psd_data_options options = idx_options(&folder);

	write_idx(&folder);
	spoil(&folder, name, offset, value);
	expect_refused(&options, &folder, expected);
	scratch_folder_remove(&folder);
}

Test(data, damaged_idx_files_are_refused_where_they_are_damaged)
{
	static const char images[] = "train-images-idx3-ubyte", labels[] = "t10k-labels-idx1-ubyte";

	expect_spoilt_idx_refused(
		images, 2, 9,
		"train-images-idx3-ubyte: at byte 0: magic number is 0x00000903, must be 0x00000803 (IDX, images)");
	expect_spoilt_idx_refused(
		labels, 3, 3,
		"t10k-labels-idx1-ubyte: at byte 0: magic number is 0x00000803, must be 0x00000801 (IDX, labels)");
	expect_spoilt_idx_refused(images, 7, 0,
				  "train-images-idx3-ubyte: at byte 4: number of samples is 0, must be 1 or more");
	expect_spoilt_idx_refused(
		images, 7, 5,
		"train-images-idx3-ubyte: at byte 76: the file is cut short, its header says 91 bytes"); /* 16 + 5 *
													      15 */
	expect_spoilt_idx_refused(
		images, 4, 255, /* 0xff000004 samples of 15 bytes: more than 32 bits hold */
		"train-images-idx3-ubyte: at byte 76: the file is cut short, its header says 64172851276 bytes");
	expect_spoilt_idx_refused(
		images, 7, 3,
		"train-images-idx3-ubyte: at byte 61: the file has more bytes than its header says, 76 in all");
	expect_spoilt_idx_refused(
		images, 8, 255,
		"train-images-idx3-ubyte: the data has samples of 1 x 4278190083 x 5, the network expects 1 "
		"x 3 x 5 (channels, height, width)");
	expect_spoilt_idx_refused(labels, 9, 10,
				  "t10k-labels-idx1-ubyte: at byte 9: label is 10, the network's classes are 0 to 9");
}

FOLDER_TEST(data, idx_labels_must_be_as_many_as_images, scratch_folder_make())
{
	const struct psd_data_options options = idx_options(&folder);
	char expected[512];

	write_idx(&folder);
	write_idx_labels(&folder, "train-labels-idx1-ubyte", 0, 3, 8 + 3);
	snprintf(expected, sizeof(expected),
		 "train-labels-idx1-ubyte: at byte 4: number of labels is 3, but '%s' holds 4 images",
		 scratch_folder_path(&folder, "train-images-idx3-ubyte").text);
	expect_refused(&options, &folder, expected);
}

FOLDER_TEST(data, a_compressed_idx_file_is_recognised, scratch_folder_make())
{
	const struct psd_data_options options = idx_options(&folder);

	write_idx(&folder);
	scratch_folder_write(&folder, "train-images-idx3-ubyte", "\x1f\x8b\x08", 3);
	expect_refused(&options, &folder,
		       "train-images-idx3-ubyte: at byte 0: the file is compressed, unpack it with gunzip");
}

FOLDER_TEST(data, no_shorter_idx_file_is_accepted, scratch_folder_make())
{
	const struct psd_data_options options = idx_options(&folder);

	write_idx(&folder);
	for (size_t n_bytes = 0; n_bytes < 16 + IDX_TRAINING * IDX_IMAGE; n_bytes++) {
		struct psd_error err = {.text = ""};
		struct psd_data *data = NULL;
		char place[32];

		write_idx_images(&folder, "train-images-idx3-ubyte", 0, IDX_TRAINING, n_bytes);
		cr_assert_eq(psd_data_open(&data, &options, &err), PSD_EINVAL, "%zu bytes", n_bytes);
		snprintf(place, sizeof(place), "at byte %zu: ", n_bytes);
		cr_assert_not_null(strstr(err.text, place), "%s", err.text);
	}
	write_idx_images(&folder, "train-images-idx3-ubyte", 0, IDX_TRAINING, 16 + IDX_TRAINING * IDX_IMAGE);
	for (size_t n_bytes = 0; n_bytes < 8 + IDX_TRAINING; n_bytes++) {
		struct psd_error err = {.text = ""};
		struct psd_data *data = NULL;

		write_idx_labels(&folder, "train-labels-idx1-ubyte", 0, IDX_TRAINING, n_bytes);
		cr_assert_eq(psd_data_open(&data, &options, &err), PSD_EINVAL, "%zu bytes", n_bytes);
	}
}

/* ---- files that change while they are used ---- */

/* The file is opened, then its byte there becomes value; reading sample 0 of the part says this. */
static void expect_change_named(const struct psd_data_options *options, const struct scratch_folder *folder,
				enum psd_data_part part, const char *name, long offset, uint8_t value,
				const char *words)
{
	struct psd_data *data = open_data(options);
	struct psd_error err = {.text = "accepted"};
	static float image[CIFAR_PIXELS];
	char expected[512];
	int32_t label;

	snprintf(expected, sizeof(expected), "%s/%s: at byte %ld: %s", folder->path, name, offset, words);
	cr_assert_eq(psd_data_read(data, part, 0, 0, image, &label, &err), PSD_OK, "%s", err.text);
	spoil(folder, name, offset, value);
	cr_expect_eq(psd_data_read(data, part, 0, 0, image, &label, &err), PSD_EINVAL);
	cr_expect_str_eq(err.text, expected);
	psd_data_close(data);
}

Test(data, a_label_that_changes_is_named_with_its_file)
{
	struct scratch_folder folder = scratch_folder_make();
	const struct psd_data_options cifar = cifar_options(&folder), idx = idx_options(&folder);

	write_cifar(&folder);
	write_idx(&folder);
	expect_change_named(&cifar, &folder, PSD_DATA_TRAINING, "data_batch_1.bin", 0, 255,
			    "label is 255, must be 0 to 9");
	write_cifar(&folder);
	expect_change_named(&cifar, &folder, PSD_DATA_TEST, "test_batch.bin", 0, 10, "label is 10, must be 0 to 9");
	expect_change_named(&idx, &folder, PSD_DATA_TRAINING, "train-labels-idx1-ubyte", 8, 255,
			    "label is 255, the network's classes are 0 to 9");
	scratch_folder_remove(&folder);
}
