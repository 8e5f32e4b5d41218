/* The packer: folders of JPEGs become one file of squares; what it cannot pack, it names. */
#define _XOPEN_SOURCE 700
#include <criterion/criterion.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "real/data/data.h"
#include "real/data/pack.h"
#include "tests/real/data/data_helper.h"
#include "tests/real/data/jpeg_helper.h"

enum { SIDE = 64 };

static void add_jpeg(const struct scratch_folder *folder, const char *name, unsigned height, unsigned width,
		     uint8_t blue)
{
	struct jpeg jpeg = make_jpeg(height, width, blue);

	scratch_folder_write(folder, name, jpeg.bytes, jpeg.n_bytes);
	tjFree(jpeg.bytes);
}

/* Two classes; "cat" before "dog", so cat is 0. */
static struct scratch_folder make_classes(void)
{
	struct scratch_folder folder = scratch_folder_make();

	scratch_folder_add(&folder, "in");
	scratch_folder_add(&folder, "in/dog");
	scratch_folder_add(&folder, "in/cat");
	add_jpeg(&folder, "in/dog/b.jpg", SIDE, SIDE, 40);
	add_jpeg(&folder, "in/dog/a.JPEG", 2 * SIDE, 2 * SIDE, 80);
	add_jpeg(&folder, "in/cat/z.jpg", SIDE, 3 * SIDE, 120);
	scratch_folder_write(&folder, "in/cat/.hidden", "x", 1);
	return folder;
}

static enum psd_status pack(const struct scratch_folder *folder, struct psd_error *err)
{
	static const struct psd_pack_options options = {.side = SIDE};

	return psd_pack_directory(scratch_folder_path(folder, "in").text,
				  scratch_folder_path(folder, "out.psdpack").text, &options, err);
}

static double mean_of(const float *plane)
{
	double sum = 0;

	for (unsigned i = 0; i < SIDE * SIDE; i++)
		sum += (double)plane[i];
	return sum / (SIDE * SIDE);
}

FOLDER_TEST(pack, images_are_squared_and_scaled, make_classes())
{
	/* the middle third of z.jpg shows the columns 64 to 127 of 192 */
	static const struct {
		int32_t label;
		double blue, first_red, last_red;
	} expected[] = {{0, 120, 255 * 64 / 191.0, 255 * 127 / 191.0}, {1, 80, 0, 255}, {1, 40, 0, 255}};
	const double mean_blue = (120 + 80 + 40) / 3.0;
	const struct scratch_path path = scratch_folder_path(&folder, "out.psdpack");
	const struct psd_data_options options = {.source = {.kind = PSD_DATA_PACKED, .path = path.text},
						 .shape = {3, SIDE, SIDE},
						 .classes = 2,
						 .labels = 1,
						 .seed = 1};
	static float image[3 * SIDE * SIDE];
	struct psd_error err = {.text = ""};
	struct psd_data *data;
	double mean_red = 0;

	cr_assert_eq(pack(&folder, &err), PSD_OK, "%s", err.text);
	data = open_data(&options);
	cr_assert_eq(psd_data_samples(data, PSD_DATA_TRAINING), 3);
	for (unsigned i = 0; i < 3; i++)
		mean_red += (expected[i].first_red + expected[i].last_red) / 2 / 3;
	for (unsigned i = 0; i < 3; i++) {
		const float *red = image + SIDE / 2 * SIDE, *blue = image + 2 * SIDE * SIDE;

		cr_expect_eq(read_sample(data, PSD_DATA_TRAINING, 0, i, image), expected[i].label);
		/* a second JPEG at quality 90 with halved colours errs by a few steps, more at the rim */
		cr_expect_float_eq(mean_of(blue), expected[i].blue - mean_blue, 2, "image %u: blue %g", i,
				   mean_of(blue));
		cr_expect_float_eq((double)red[0], expected[i].first_red - mean_red, 10, "image %u: %g", i,
				   (double)red[0]);
		cr_expect_float_eq((double)red[SIDE - 1], expected[i].last_red - mean_red, 10, "image %u: %g", i,
				   (double)red[SIDE - 1]);
		for (unsigned x = 0; x < SIDE; x++)
			cr_assert_float_eq((double)red[x],
					   expected[i].first_red +
						   (expected[i].last_red - expected[i].first_red) * x / (SIDE - 1) -
						   mean_red,
					   10, "image %u, column %u", i, x);
	}
	psd_data_close(data);
}

struct whole_file {
	uint8_t *bytes;
	size_t n_bytes;
};

static struct whole_file read_file(const char *path)
{
	struct whole_file file = {calloc(1, 1 << 20), 0};
	FILE *in = fopen(path, "rb");

	cr_assert_not_null(in);
	cr_assert_not_null(file.bytes);
	file.n_bytes = fread(file.bytes, 1, 1 << 20, in);
	fclose(in);
	return file;
}

FOLDER_TEST(pack, an_image_of_the_size_is_kept_byte_for_byte, make_classes())
{
	struct psd_error err = {.text = ""};
	struct whole_file file;
	struct jpeg jpeg = make_jpeg(SIDE, SIDE, 40);

	cr_assert_eq(pack(&folder, &err), PSD_OK, "%s", err.text);
	file = read_file(scratch_folder_path(&folder, "out.psdpack").text);
	/* in/dog/b.jpg is the last of three */
	cr_assert_gt(file.n_bytes, jpeg.n_bytes);
	cr_expect_eq(memcmp(file.bytes + file.n_bytes - jpeg.n_bytes, jpeg.bytes, jpeg.n_bytes), 0);
	free(file.bytes);
	tjFree(jpeg.bytes);
}

FOLDER_TEST(pack, packing_twice_gives_the_same_file_and_leaves_nothing_else, make_classes())
{
	const struct scratch_path path = scratch_folder_path(&folder, "out.psdpack");
	struct psd_error err = {.text = ""};
	struct whole_file first, second;

	cr_assert_eq(pack(&folder, &err), PSD_OK, "%s", err.text);
	first = read_file(path.text);
	cr_assert_eq(pack(&folder, &err), PSD_OK, "%s", err.text);
	second = read_file(path.text);
	cr_expect_eq(first.n_bytes, second.n_bytes);
	cr_expect_eq(memcmp(first.bytes, second.bytes, first.n_bytes), 0);
	cr_expect_eq(scratch_folder_count(&folder), 2, "images and pack");
	free(first.bytes);
	free(second.bytes);
}

static void expect_pack_refused(const struct scratch_folder *folder, const char *expected)
{
	struct psd_error err = {.text = "accepted"};
	char text[1024];

	snprintf(text, sizeof(text), "%s/%s", folder->path, expected);
	cr_expect_neq(pack(folder, &err), PSD_OK);
	cr_expect_str_eq(err.text, text);
	cr_expect_eq(scratch_folder_count(folder), 1, "the images alone: no half file");
}

/* It would be in the way of the next call. */
FOLDER_TEST(pack, no_file_is_put_among_the_images, make_classes())
{
	static const char *const names[] = {"in", "in/out", "in/cat/out", "in/dog/../out", "link/out"};
	static const struct psd_pack_options options = {.side = SIDE};
	struct psd_error err = {.text = ""};

	cr_assert_eq(symlink(scratch_folder_path(&folder, "in/cat").text, scratch_folder_path(&folder, "link").text),
		     0);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		cr_expect_eq(psd_pack_directory(scratch_folder_path(&folder, "in").text,
						scratch_folder_path(&folder, names[i]).text, &options, &err),
			     PSD_EINVAL, "%s", names[i]);
		cr_expect_not_null(strstr(err.text, "is in the folder that is packed, '"), "%s: %s", names[i],
				   err.text);
		cr_expect(i == 0 || !scratch_folder_has(&folder, names[i]), "%s", names[i]);
	}
	cr_expect_eq(psd_pack_directory(scratch_folder_path(&folder, "in").text,
					scratch_folder_path(&folder, "inner").text, &options, &err),
		     PSD_OK, "%s", err.text);
}

FOLDER_TEST(pack, what_cannot_be_packed_is_named, make_classes())
{
	struct jpeg jpeg = make_jpeg(SIDE, SIDE, 40);
	struct psd_error err = {.text = ""};

	scratch_folder_write(&folder, "in/dog/c.png", "x", 1);
	expect_pack_refused(&folder, "in/dog/c.png: the file must be a .jpg");
	remove(scratch_folder_path(&folder, "in/dog/c.png").text);
	scratch_folder_write(&folder, "in/dog/c.jpg", "", 0);
	expect_pack_refused(&folder, "in/dog/c.jpg: at byte 0: the file is empty");
	scratch_folder_write(&folder, "in/dog/c.jpg", jpeg.bytes, jpeg.n_bytes / 2);
	expect_pack_refused(&folder, "in/dog/c.jpg: at byte 0: not a complete JPEG: Premature end of JPEG file");
	remove(scratch_folder_path(&folder, "in/dog/c.jpg").text);
	scratch_folder_add(&folder, "in/emu");
	expect_pack_refused(&folder, "in/emu: holds no images");
	remove(scratch_folder_path(&folder, "in/emu").text);
	scratch_folder_write(&folder, "in/README", "x", 1);
	expect_pack_refused(&folder, "in/README: the path must be a folder: images lie in FOLDER/CLASS/NAME.jpg");
	cr_expect_eq(psd_pack_directory("/nowhere", "/tmp/psd-never", &(struct psd_pack_options){.side = SIDE}, &err),
		     PSD_EFILE);
	cr_expect_str_eq(err.text, "/nowhere: cannot be listed: No such file or directory");
	cr_expect_eq(psd_pack_directory("/nowhere", "/tmp/psd-never", &(struct psd_pack_options){.side = 7}, &err),
		     PSD_EINVAL);
	cr_expect_str_eq(err.text, "side of packed images is 7 pixels, must be 8 to 4096");
	tjFree(jpeg.bytes);
}
