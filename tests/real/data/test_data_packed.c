/* Packed JPEGs: files written here byte by byte as pack_format.h describes them, and files that the packer makes. */
#define _XOPEN_SOURCE 700
#include <criterion/criterion.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "real/data/data_parts.h"
#include "tests/real/data/data_helper.h"
#include "tests/real/data/jpeg_helper.h"

enum { SIDE = 64, CROP = 48, SPARE = SIDE - CROP, CROP_PIXELS = 3 * CROP * CROP };

/* ---- a packed file, byte by byte ---- */

struct packed_bytes {
	uint8_t *bytes;
	size_t n_bytes;
};

static void put(uint8_t *bytes, unsigned width, uint64_t value)
{
	for (unsigned i = 0; i < width; i++, value /= 256)
		bytes[i] = (uint8_t)(value % 256);
}

static uint64_t fnv1a(uint64_t hash, const uint8_t *bytes, size_t n_bytes)
{
	while (n_bytes--) {
		hash ^= *bytes++;
		hash *= UINT64_C(1099511628211);
	}
	return hash;
}

static const uint64_t fnv_basis = UINT64_C(14695981039346656037);

enum { HEADER = 72, ENTRY = 24, CLASSES = 5 };

/* Puts the checksum of header and index right again. */
static void seal(uint8_t *bytes, size_t n_samples)
{
	put(bytes + 64, 8, fnv1a(fnv1a(fnv_basis, bytes, 64), bytes + HEADER, n_samples * ENTRY));
}

static uint32_t label_of(unsigned sample)
{
	return (sample * 3 + 1) % CLASSES;
}

static uint8_t blue_of(unsigned sample)
{
	return (uint8_t)(40 + 30 * sample);
}

/* Mean 100, 110.5, 120. free(bytes). */
static struct packed_bytes make_packed(unsigned n_samples, uint64_t names_checksum)
{
	struct packed_bytes packed = {calloc(1, 1 << 20), HEADER + ENTRY * n_samples};
	uint8_t *header = packed.bytes;

	cr_assert_not_null(header);
	memcpy(header, "\x89PSDPK\r\n", 8);
	put(header + 8, 4, 1);
	put(header + 12, 4, CLASSES);
	put(header + 16, 8, n_samples);
	put(header + 24, 4, SIDE);
	put(header + 28, 4, SIDE);
	put(header + 32, 4, 100 * 65536);
	put(header + 36, 4, 110 * 65536 + 32768);
	put(header + 40, 4, 120 * 65536);
	put(header + 56, 8, names_checksum);
	for (unsigned sample = 0; sample < n_samples; sample++) {
		uint8_t *entry = header + HEADER + sample * ENTRY;
		struct jpeg jpeg = make_jpeg(SIDE, SIDE, blue_of(sample));

		cr_assert_lt(packed.n_bytes + jpeg.n_bytes, 1 << 20);
		memcpy(packed.bytes + packed.n_bytes, jpeg.bytes, jpeg.n_bytes);
		put(entry, 8, packed.n_bytes);
		put(entry + 8, 4, jpeg.n_bytes);
		put(entry + 12, 4, label_of(sample));
		put(entry + 16, 8, fnv1a(fnv_basis, jpeg.bytes, jpeg.n_bytes));
		packed.n_bytes += jpeg.n_bytes;
		tjFree(jpeg.bytes);
	}
	put(header + 48, 8, packed.n_bytes);
	seal(header, n_samples);
	return packed;
}

/* The paths are borrowed by psd_data_open() only, but must last until then. */
static struct psd_data_options packed_options(const char *path, const char *test_path)
{
	return (struct psd_data_options){
		.source = {.kind = PSD_DATA_PACKED, .path = path, .test_path = test_path, .is_mirrored = true},
		.shape = {3, CROP, CROP},
		.classes = CLASSES,
		.labels = 1,
		.seed = 1,
	};
}

/* ---- reading ---- */

struct seen {
	int top, left;
	bool is_mirrored;
};

/* A plane's mean along one of its columns. */
static float column_mean(const float *plane, int x)
{
	float sum = 0;

	for (int y = 0; y < CROP; y++)
		sum += plane[y * CROP + x];
	return sum / CROP;
}

static float row_mean(const float *plane, int y)
{
	float sum = 0;

	for (int x = 0; x < CROP; x++)
		sum += plane[y * CROP + x];
	return sum / CROP;
}

/* Finds where image was cut, from its rims, and checks all other rows and columns against that. Neighbours differ by 4;
 * JPEG's rounding errs by up to 5 in a single pixel, by far less in the mean of 48. */
static struct seen look(const float *image, unsigned sample)
{
	static const float mean[] = {100, 110.5f, 120};
	const float *red = image, *green = image + CROP * CROP, *blue = image + 2 * CROP * CROP;
	const float left_red = column_mean(red, 0) + mean[0], right_red = column_mean(red, CROP - 1) + mean[0];
	struct seen seen = {.is_mirrored = left_red > right_red};

	seen.left = (int)lrintf((seen.is_mirrored ? right_red : left_red) * (SIDE - 1) / 255);
	seen.top = (int)lrintf((row_mean(green, 0) + mean[1]) * (SIDE - 1) / 255);
	for (int i = 0; i < CROP; i++) {
		const int column = seen.left + (seen.is_mirrored ? CROP - 1 - i : i), row = seen.top + i;

		cr_assert_float_eq(column_mean(red, i), (float)(column * 255 / (SIDE - 1)) - mean[0], 1.5);
		cr_assert_float_eq(row_mean(green, i), (float)(row * 255 / (SIDE - 1)) - mean[1], 1.5);
		cr_assert_float_eq(row_mean(blue, i), (float)blue_of(sample) - mean[2], 1.5);
	}
	return seen;
}

struct packed_set {
	struct scratch_folder folder;
	struct psd_data *data;
};

static struct packed_set open_packed(uint64_t seed, bool is_mirrored)
{
	struct packed_set set = {.folder = scratch_folder_make()};
	const struct scratch_path path = scratch_folder_path(&set.folder, "train.psdpack");
	const struct scratch_path test_path = scratch_folder_path(&set.folder, "test.psdpack");
	struct psd_data_options options = packed_options(path.text, test_path.text);
	struct packed_bytes train = make_packed(4, 77), test = make_packed(2, 77);

	scratch_folder_write(&set.folder, "train.psdpack", train.bytes, train.n_bytes);
	put(test.bytes + 32, 4, 0); /* its own mean has no effect */
	seal(test.bytes, 2);
	scratch_folder_write(&set.folder, "test.psdpack", test.bytes, test.n_bytes);
	free(train.bytes);
	free(test.bytes);
	options.seed = seed;
	options.source.is_mirrored = is_mirrored;
	set.data = open_data(&options);
	return set;
}

static void close_packed(struct packed_set *set)
{
	psd_data_close(set->data);
	scratch_folder_remove(&set->folder);
}

Test(packed, samples_have_their_labels_and_pixels)
{
	struct packed_set set = open_packed(1, true);
	float image[CROP_PIXELS];

	cr_expect_eq(psd_data_samples(set.data, PSD_DATA_TRAINING), 4);
	cr_expect_eq(psd_data_samples(set.data, PSD_DATA_TEST), 2);
	for (unsigned sample = 0; sample < 4; sample++) {
		cr_expect_eq(read_sample(set.data, PSD_DATA_TRAINING, 0, sample, image), (int32_t)label_of(sample));
		look(image, sample);
	}
	close_packed(&set);
}

Test(packed, test_samples_are_cut_from_the_middle)
{
	struct packed_set set = open_packed(1, true);
	float image[CROP_PIXELS];

	for (unsigned sample = 0; sample < 2; sample++) {
		struct seen seen;

		cr_expect_eq(read_sample(set.data, PSD_DATA_TEST, 3, sample, image), (int32_t)label_of(sample));
		seen = look(image, sample);
		cr_expect_eq(seen.top, SPARE / 2);
		cr_expect_eq(seen.left, SPARE / 2);
		cr_expect_not(seen.is_mirrored);
	}
	close_packed(&set);
}

Test(packed, cuts_depend_on_seed_epoch_and_sample_only)
{
	struct packed_set one = open_packed(1, true), again = open_packed(1, true), other = open_packed(2, true);
	float image[CROP_PIXELS], same[CROP_PIXELS];
	unsigned n_different = 0;

	for (uint64_t epoch = 0; epoch < 8; epoch++)
		for (uint64_t sample = 0; sample < 4; sample++) {
			read_sample(one.data, PSD_DATA_TRAINING, epoch, sample, image);
			read_sample(again.data, PSD_DATA_TRAINING, epoch + 1, 3 - sample,
				    same); /* another order of reading */
			read_sample(again.data, PSD_DATA_TRAINING, epoch, sample, same);
			cr_expect_eq(memcmp(image, same, sizeof(image)), 0);
			read_sample(other.data, PSD_DATA_TRAINING, epoch, sample, same);
			n_different += memcmp(image, same, sizeof(image)) != 0;
		}
	/* equal by chance once in 17 * 17 * 2 */
	cr_expect_gt(n_different, 29);
	close_packed(&one);
	close_packed(&again);
	close_packed(&other);
}

Test(packed, cuts_go_everywhere_and_to_both_sides)
{
	enum { EPOCHS = 500 };
	struct packed_set set = open_packed(1, true);
	unsigned n_mirrored = 0, tops[SPARE + 1] = {0}, lefts[SPARE + 1] = {0};
	float image[CROP_PIXELS];

	for (uint64_t epoch = 0; epoch < EPOCHS; epoch++) {
		struct seen seen;

		read_sample(set.data, PSD_DATA_TRAINING, epoch, 1, image);
		seen = look(image, 1);
		cr_assert(seen.top >= 0 && seen.top <= SPARE && seen.left >= 0 && seen.left <= SPARE);
		n_mirrored += seen.is_mirrored;
		tops[seen.top]++;
		lefts[seen.left]++;
	}
	/* 29 of each on average; a fair place is missed by half of that once in 1,000, a coin by 50 once in 100,000 */
	for (unsigned i = 0; i <= SPARE; i++) {
		cr_expect(tops[i] > 10 && tops[i] < 55, "top %u: %u times", i, tops[i]);
		cr_expect(lefts[i] > 10 && lefts[i] < 55, "left %u: %u times", i, lefts[i]);
	}
	cr_expect(n_mirrored > EPOCHS / 2 - 50 && n_mirrored < EPOCHS / 2 + 50, "%u mirrored", n_mirrored);
	close_packed(&set);
}

Test(packed, mirrors_can_be_left_out)
{
	struct packed_set set = open_packed(1, false);
	float image[CROP_PIXELS];

	for (uint64_t epoch = 0; epoch < 30; epoch++) {
		read_sample(set.data, PSD_DATA_TRAINING, epoch, 0, image);
		cr_expect_not(look(image, 0).is_mirrored);
	}
	close_packed(&set);
}

/* ---- damage ---- */

/* Opens the bytes as if they were a file, without writing one, and reads every sample. */
static enum psd_status read_all(const struct packed_bytes *packed, struct psd_error *err)
{
	const struct psd_data_options options = packed_options("a.psdpack", NULL);
	struct psd_data_files files = {.n_files = 1};
	static float image[CROP_PIXELS];
	enum psd_status status;
	struct psd_data *data;
	int32_t label;

	cr_assert_eq(psd_mapping_borrow(&files.files[0], "a.psdpack", packed->bytes, packed->n_bytes, err), PSD_OK);
	status = psd_data_open_mapped(&data, &options, &files, err);
	if (status)
		return status;
	for (uint64_t sample = 0; !status && sample < psd_data_samples(data, PSD_DATA_TRAINING); sample++)
		status = psd_data_read(data, PSD_DATA_TRAINING, 0, sample, image, &label, err);
	psd_data_close(data);
	return status;
}

Test(packed, no_changed_byte_and_no_cut_goes_unnoticed)
{
	struct packed_bytes packed = make_packed(1, 77);
	const struct packed_bytes whole = packed;
	struct psd_error err = {.text = ""};

	cr_assert_eq(read_all(&packed, &err), PSD_OK, "%s", err.text);
	for (size_t i = 0; i < whole.n_bytes; i++) {
		packed.bytes[i] ^= (uint8_t)(1 + i % 255);
		cr_assert_eq(read_all(&packed, &err), PSD_EINVAL, "byte %zu", i);
		packed.bytes[i] ^= (uint8_t)(1 + i % 255);
	}
	for (packed.n_bytes = 0; packed.n_bytes < whole.n_bytes; packed.n_bytes++) {
		char place[32];

		cr_assert_eq(read_all(&packed, &err), PSD_EINVAL, "%zu bytes", packed.n_bytes);
		snprintf(place, sizeof(place), "at byte %zu: ", packed.n_bytes);
		cr_assert_not_null(strstr(err.text, place), "%s", err.text);
	}
	packed.n_bytes = whole.n_bytes + 1;
	cr_assert_eq(read_all(&packed, &err), PSD_EINVAL);
	free(packed.bytes);
}

/* Puts `width` bytes of value at `offset` of a file of two samples, with a correct checksum of header and index, so
 * that the value itself must be refused. */
static void expect_field_refused(size_t offset, unsigned width, uint64_t value, const char *expected)
{
	struct packed_bytes packed = make_packed(2, 77);
	struct psd_error err = {.text = "accepted"};
	char text[1024];

	put(packed.bytes + offset, width, value);
	seal(packed.bytes, 2);
	snprintf(text, sizeof(text), "a.psdpack: %s", expected);
	cr_expect_eq(read_all(&packed, &err), PSD_EINVAL);
	cr_expect_str_eq(err.text, text);
	free(packed.bytes);
}

Test(packed, impossible_fields_are_refused_where_they_stand)
{
	enum { SECOND = HEADER + ENTRY };
	struct packed_bytes packed = make_packed(2, 77);
	const size_t first_bytes = packed.bytes[HEADER + 8] + 256u * packed.bytes[HEADER + 9];
	const size_t second_offset = HEADER + 2 * ENTRY + first_bytes;
	char text[256];

	expect_field_refused(8, 4, 2, "at byte 8: version is 2, must be 1");
	expect_field_refused(12, 4, 0, "at byte 12: number of classes is 0, must be 1 to 1000000");
	expect_field_refused(12, 4, 4,
			     "at byte 108: label is 4, must be below 4"); /* 72 + 24 + 12: sample 1 has (3 + 1) % 5 */
	snprintf(text, sizeof(text), "at byte 16: number of samples is 0, must be 1 to %zu in a file of this length",
		 (packed.n_bytes - HEADER) / ENTRY);
	expect_field_refused(16, 8, 0, text);
	snprintf(text, sizeof(text),
		 "at byte 16: number of samples is 18446744073709551615, must be 1 to %zu in a file of this length",
		 (packed.n_bytes - HEADER) / ENTRY);
	expect_field_refused(16, 8, UINT64_MAX, text);
	expect_field_refused(24, 4, 0, "at byte 24: height is 0, must be 1 to 4096");
	expect_field_refused(28, 4, 4097, "at byte 28: width is 4097, must be 1 to 4096");
	expect_field_refused(36, 4, 255 * 65536 + 1, "at byte 36: mean is 16711681/65536, must be at most 255");
	expect_field_refused(44, 4, 1, "at byte 44: these bytes must be zero in version 1");
	snprintf(text, sizeof(text), "at byte %d: sample 1 begins at 0, must begin at %zu", SECOND, second_offset);
	expect_field_refused(SECOND, 8, 0, text);
	snprintf(text, sizeof(text), "at byte %d: sample 1 has 4294967295 bytes, must have 1 to %zu", SECOND + 8,
		 packed.n_bytes - second_offset);
	expect_field_refused(SECOND + 8, 4, UINT32_MAX, text);
	snprintf(text, sizeof(text), "at byte %d: sample 1 has 0 bytes, must have 1 to %zu", SECOND + 8,
		 packed.n_bytes - second_offset);
	expect_field_refused(SECOND + 8, 4, 0, text);
	snprintf(text, sizeof(text), "at byte %zu: the file has bytes behind its last sample", second_offset + 1);
	expect_field_refused(SECOND + 8, 4, 1, text);
	snprintf(text, sizeof(text), "at byte %zu: sample 1 is damaged: its checksum differs", second_offset);
	expect_field_refused(SECOND + 16, 8, 1, text);
	free(packed.bytes);
}

Test(packed, what_is_no_jpeg_of_the_size_is_refused_when_read)
{
	struct packed_bytes packed = make_packed(1, 77);
	uint8_t *jpeg = packed.bytes + HEADER + ENTRY;
	struct psd_error err = {.text = "accepted"};

	/* checksums right, contents wrong: the header says another size, then the JPEG loses its end, then its
	 * beginning
	 */
	put(packed.bytes + 28, 4, SIDE + 8);
	seal(packed.bytes, 1);
	cr_expect_eq(read_all(&packed, &err), PSD_EINVAL);
	cr_expect_not_null(strstr(err.text, "a.psdpack: at byte 96: sample 0 is 64 x 64, must be 64 x 72"), "%s",
			   err.text);
	put(packed.bytes + 28, 4, SIDE);
	memset(jpeg + (packed.n_bytes - HEADER - ENTRY) / 2, 0xff, 8);
	put(packed.bytes + HEADER + 16, 8, fnv1a(fnv_basis, jpeg, packed.n_bytes - HEADER - ENTRY));
	seal(packed.bytes, 1);
	cr_expect_eq(read_all(&packed, &err), PSD_EINVAL);
	cr_expect_not_null(strstr(err.text, "a.psdpack: at byte 96: not a complete JPEG: "), "%s", err.text);
	jpeg[0] = 0;
	put(packed.bytes + HEADER + 16, 8, fnv1a(fnv_basis, jpeg, packed.n_bytes - HEADER - ENTRY));
	seal(packed.bytes, 1);
	cr_expect_eq(read_all(&packed, &err), PSD_EINVAL);
	cr_expect_not_null(strstr(err.text, "a.psdpack: at byte 96: not a complete JPEG: "), "%s", err.text);
	free(packed.bytes);
}

FOLDER_TEST(packed, files_must_fit_the_network_and_each_other, scratch_folder_make())
{
	const struct scratch_path path = scratch_folder_path(&folder, "a.psdpack"),
				  test_path = scratch_folder_path(&folder, "b.psdpack");
	struct psd_data_options options = packed_options(path.text, test_path.text);
	struct packed_bytes one = make_packed(1, 77), other = make_packed(1, 78);
	char expected[512];

	scratch_folder_write(&folder, "a.psdpack", one.bytes, one.n_bytes);
	scratch_folder_write(&folder, "b.psdpack", other.bytes, other.n_bytes);
	snprintf(expected, sizeof(expected), "b.psdpack: at byte 56: its class names are not those of '%s'", path.text);
	expect_refused(&options, &folder, expected);
	options.source.test_path = NULL;
	options.shape.height = SIDE + 1;
	expect_refused(
		&options, &folder,
		"a.psdpack: the file has images of 3 x 64 x 64, the network expects 3 x 65 x 48 (channels, height, "
		"width), which cannot be cut from them");
	options = packed_options(path.text, NULL);
	options.shape.channels = 1;
	expect_refused(
		&options, &folder,
		"a.psdpack: the file has images of 3 x 64 x 64, the network expects 1 x 48 x 48 (channels, height, "
		"width), which cannot be cut from them");
	options = packed_options(path.text, NULL);
	options.classes = 10;
	expect_refused(&options, &folder, "a.psdpack: the data has 5 classes, the network has 10");
	options = packed_options(path.text, NULL);
	options.shape = (struct psd_shape){1, CROP, CROP};
	options.vocabulary = 9;
	expect_refused(&options, &folder,
		       "a.psdpack: the data has images, the network expects tokens of a vocabulary of 9");
	options = packed_options(path.text, NULL);
	options.labels = 2;
	expect_refused(&options, &folder,
		       "a.psdpack: an image has one label, the network expects labels for 2 positions");
	free(one.bytes);
	free(other.bytes);
}
