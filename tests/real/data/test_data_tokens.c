/* Texts and files of 16-bit tokens, written here byte by byte: tokens of a sample and its labels, and errors with their
 * byte. */
#define _XOPEN_SOURCE 700
#include <criterion/criterion.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "real/data/data.h"
#include "real/data/sampler.h"
#include "tests/real/data/data_helper.h"
#include "tests/test_with.h"

/* Two samples of four, a token that follows them, and two that fill none. */
enum { PLACES = 4, TOKENS = 2 * PLACES + 1 + 2 };

struct tokens {
	struct scratch_folder folder;
	struct scratch_path path, test_path;
	struct psd_data_options options;
};

static struct tokens make_tokens(enum psd_data_kind kind)
{
	struct tokens tokens = {.folder = scratch_folder_make()};

	tokens.path = scratch_folder_path(&tokens.folder, "train");
	tokens.test_path = scratch_folder_path(&tokens.folder, "test");
	tokens.options = (struct psd_data_options){
		.source.kind = kind,
		.shape = {1, PLACES, 1},
		.classes = kind == PSD_DATA_TEXT ? 256 : 65536,
		.labels = PLACES,
		.vocabulary = kind == PSD_DATA_TEXT ? 256 : 65536,
		.seed = 1,
	};
	return tokens;
}

/* Sets its paths. */
static void name_files(struct tokens *tokens, bool has_test)
{
	tokens->options.source.path = tokens->path.text;
	tokens->options.source.test_path = has_test ? tokens->test_path.text : NULL;
}

/* The lower bytes differ, and the upper ones that are above 127; of a text the lower byte. */
static uint32_t token_of(enum psd_data_kind kind, unsigned i)
{
	const uint32_t token = 50000 + 259 * i;

	return kind == PSD_DATA_TEXT ? token % 256 : token;
}

static void write_tokens(const struct tokens *tokens, const char *name, unsigned first, size_t n_tokens)
{
	const enum psd_data_kind kind = tokens->options.source.kind;
	const size_t width = kind == PSD_DATA_TEXT ? 1 : 2;
	uint8_t bytes[2 * TOKENS];

	for (unsigned i = 0; i < n_tokens; i++)
		for (unsigned b = 0; b < width; b++)
			bytes[i * width + b] = (uint8_t)(token_of(kind, first + i) >> 8 * b);
	scratch_folder_write(&tokens->folder, name, bytes, n_tokens * width);
}

static void expect_sample(struct psd_data *data, const struct tokens *tokens, enum psd_data_part part, uint64_t sample,
			  unsigned first)
{
	const enum psd_data_kind kind = tokens->options.source.kind;
	float values[PLACES];
	int32_t labels[PLACES];

	read_sequence(data, part, 0, sample, values, labels);
	for (unsigned i = 0; i < PLACES; i++) {
		cr_expect_eq(values[i], (float)token_of(kind, first + i), "place %u", i);
		cr_expect_eq(labels[i], (int32_t)token_of(kind, first + i + 1), "label of place %u", i);
	}
}

static void check_samples(enum psd_data_kind kind)
{
	struct tokens tokens = make_tokens(kind);
	struct psd_error err = {.text = ""};
	struct psd_data *data, *view;

	name_files(&tokens, true);
	write_tokens(&tokens, "train", 0, TOKENS);
	write_tokens(&tokens, "test", 50, 2 * PLACES); /* the label of the last place is missing */
	data = open_data(&tokens.options);
	cr_assert_eq(psd_data_view(&view, data, &err), PSD_OK, "%s", err.text);
	cr_expect_eq(psd_data_samples(data, PSD_DATA_TRAINING), 2);
	cr_expect_eq(psd_data_samples(view, PSD_DATA_TRAINING), 2);
	cr_expect_eq(psd_data_samples(data, PSD_DATA_TEST), 1);
	expect_sample(data, &tokens, PSD_DATA_TRAINING, 1, PLACES);
	expect_sample(data, &tokens, PSD_DATA_TRAINING, 0, 0);
	expect_sample(view, &tokens, PSD_DATA_TRAINING, 1, PLACES);
	expect_sample(data, &tokens, PSD_DATA_TEST, 0, 50);
	psd_data_close(view);
	psd_data_close(data);
	scratch_folder_remove(&tokens.folder);
}

TEST_ROW(tokens, a_text_s_samples_are_its_bytes_and_labels_the_ones_that_follow, check_samples(PSD_DATA_TEXT))
TEST_ROW(tokens, a_file_s_samples_are_its_numbers_and_labels_the_ones_that_follow, check_samples(PSD_DATA_TOKENS))

Test(tokens, without_a_test_file_there_are_no_test_samples)
{
	struct tokens tokens = make_tokens(PSD_DATA_TOKENS);
	struct psd_data *data;

	name_files(&tokens, false);
	write_tokens(&tokens, "train", 0, TOKENS);
	data = open_data(&tokens.options);
	cr_expect_eq(psd_data_samples(data, PSD_DATA_TEST), 0);
	psd_data_close(data);
	scratch_folder_remove(&tokens.folder);
}

Test(tokens, the_only_label_is_the_token_after_the_last)
{
	struct tokens tokens = make_tokens(PSD_DATA_TOKENS);
	float values[PLACES];
	struct psd_data *data;

	name_files(&tokens, false);
	write_tokens(&tokens, "train", 0, TOKENS);
	tokens.options.labels = 1;
	data = open_data(&tokens.options);
	cr_assert_eq(psd_data_samples(data, PSD_DATA_TRAINING), 2);
	for (unsigned sample = 0; sample < 2; sample++) {
		const int32_t label = read_sample(data, PSD_DATA_TRAINING, 0, sample, values);

		cr_expect_eq(label, (int32_t)token_of(PSD_DATA_TOKENS, (sample + 1) * PLACES));
		cr_expect_eq(values[0], (float)token_of(PSD_DATA_TOKENS, sample * PLACES));
	}
	psd_data_close(data);
	scratch_folder_remove(&tokens.folder);
}

Test(tokens, a_sequence_may_lie_in_rows)
{
	struct tokens tokens = make_tokens(PSD_DATA_TEXT);
	struct psd_data *data;

	name_files(&tokens, false);
	write_tokens(&tokens, "train", 0, TOKENS);
	tokens.options.shape = (struct psd_shape){1, 2, PLACES / 2};
	data = open_data(&tokens.options);
	cr_expect_eq(psd_data_samples(data, PSD_DATA_TRAINING), 2);
	expect_sample(data, &tokens, PSD_DATA_TRAINING, 1, PLACES);
	psd_data_close(data);
	scratch_folder_remove(&tokens.folder);
}

/* The batch covers two epochs, so that the order of each shows. */
Test(tokens, labels_of_a_batch_stay_with_their_samples)
{
	enum { BATCH = 4 };
	struct tokens tokens = make_tokens(PSD_DATA_TEXT);
	const struct psd_sampler sampler = {.seed = 1, .n_samples = 2};
	float values[BATCH][PLACES];
	int32_t labels[BATCH][PLACES];
	struct psd_error err = {.text = ""};
	struct psd_data *data;

	name_files(&tokens, false);
	write_tokens(&tokens, "train", 0, TOKENS);
	data = open_data(&tokens.options);
	cr_assert_eq(psd_data_read_batch(data, PSD_DATA_TRAINING, 0, BATCH, values[0], labels[0], &err), PSD_OK, "%s",
		     err.text);
	for (unsigned s = 0; s < BATCH; s++) {
		const unsigned first = (unsigned)psd_sampler_draw(&sampler, s).sample * PLACES;

		for (unsigned i = 0; i < PLACES; i++) {
			cr_expect_eq(values[s][i], (float)token_of(PSD_DATA_TEXT, first + i));
			cr_expect_eq(labels[s][i], (int32_t)token_of(PSD_DATA_TEXT, first + i + 1));
		}
	}
	psd_data_close(data);
	scratch_folder_remove(&tokens.folder);
}

/* ---- errors ---- */

static void put_byte(const char *path, uint64_t at, uint8_t byte)
{
	FILE *file = fopen(path, "r+b");

	cr_assert(file);
	cr_assert_eq(fseek(file, (long)at, SEEK_SET), 0);
	cr_assert_eq(fputc(byte, file), byte);
	cr_assert_eq(fclose(file), 0);
}

/* With token number `i` of the training file or of the test file beyond the network's. */
static void expect_token_refused(enum psd_data_kind kind, bool is_in_test, unsigned i, uint32_t vocabulary,
				 uint32_t classes, const char *expected)
{
	struct tokens tokens = make_tokens(kind);
	const unsigned width = kind == PSD_DATA_TEXT ? 1 : 2;
	uint8_t good[2 * TOKENS] = {0}, bad[2 * TOKENS] = {0};

	name_files(&tokens, true);
	bad[i * width] = 200;
	scratch_folder_write(&tokens.folder, "train", is_in_test ? good : bad, (size_t)TOKENS * width);
	scratch_folder_write(&tokens.folder, "test", is_in_test ? bad : good, (size_t)TOKENS * width);
	tokens.options.vocabulary = vocabulary;
	tokens.options.classes = classes;
	expect_refused(&tokens.options, &tokens.folder, expected);
	scratch_folder_remove(&tokens.folder);
}

Test(tokens, each_token_must_be_one_of_the_network_s)
{
	expect_token_refused(PSD_DATA_TEXT, false, 5, 128, 256,
			     "train: at byte 5: token is 200, the network's vocabulary is 0 to 127");
	expect_token_refused(PSD_DATA_TEXT, false, TOKENS - 1, 200, 200,
			     "train: at byte 10: token is 200, the network's vocabulary is 0 to 199");
	expect_token_refused(PSD_DATA_TEXT, false, 1, 256, 200,
			     "train: at byte 1: token is 200, the network's classes are 0 to 199");
	expect_token_refused(PSD_DATA_TOKENS, false, 5, 128, 65536,
			     "train: at byte 10: token is 200, the network's vocabulary is 0 to 127");
	expect_token_refused(PSD_DATA_TOKENS, true, 3, 201, 150,
			     "test: at byte 6: token is 200, the network's classes are 0 to 149");
}

/* The first token is no label; where a sequence has one label it is the token behind it. */
Test(tokens, what_is_no_label_may_be_beyond_the_classes)
{
	struct tokens tokens = make_tokens(PSD_DATA_TEXT);
	uint8_t bytes[TOKENS] = {[0] = 200, [1] = 200, [PLACES + 1] = 200};
	struct psd_data *data;

	tokens.options.labels = 1;
	tokens.options.vocabulary = 256;
	tokens.options.classes = 200;
	name_files(&tokens, false);
	scratch_folder_write(&tokens.folder, "train", bytes, TOKENS);
	data = open_data(&tokens.options);
	psd_data_close(data);
	bytes[2 * PLACES] = 201;
	scratch_folder_write(&tokens.folder, "train", bytes, TOKENS);
	expect_refused(&tokens.options, &tokens.folder,
		       "train: at byte 8: token is 201, the network's classes are 0 to 199");
	scratch_folder_remove(&tokens.folder);
}

/* Zeros but for the last label of the third sample from behind, with which the next one begins. */
Test(tokens, those_of_a_large_file_are_checked_when_they_are_read)
{
	const uint64_t n_bytes = (UINT64_C(256) << 20) + 1, n_samples = (n_bytes - 1) / PLACES;
	const uint64_t first = (n_samples - 3) * PLACES, bad = first + PLACES;
	struct tokens tokens = make_tokens(PSD_DATA_TEXT);
	struct psd_error err = {0};
	struct psd_data *data;
	int32_t labels[PLACES];
	float values[PLACES];
	char expected[80];

	tokens.options.classes = 128;
	name_files(&tokens, true);
	scratch_folder_write(&tokens.folder, "train", "", 0);
	scratch_folder_write(&tokens.folder, "test", "abcde", 5);
	cr_assert_eq(truncate(tokens.path.text, (off_t)n_bytes), 0);
	data = open_data(&tokens.options);
	cr_assert_eq(psd_data_samples(data, PSD_DATA_TRAINING), n_samples);
	psd_data_close(data);
	put_byte(tokens.path.text, bad, 200);
	data = open_data(&tokens.options);
	snprintf(expected, sizeof(expected), "at byte %llu: token is 200, the network's classes are 0 to 127",
		 (unsigned long long)bad);
	for (uint64_t s = n_samples - 4; s < n_samples; s++) {
		const enum psd_status status = psd_data_read(data, PSD_DATA_TRAINING, 0, s, values, labels, &err);

		const bool has_it = s == n_samples - 3 || s == n_samples - 2;

		cr_expect_eq(status, has_it ? PSD_EINVAL : PSD_OK, "sample %llu", (unsigned long long)s);
		cr_expect(!has_it || strstr(err.text, expected), "%s", err.text);
	}
	psd_data_close(data);
	scratch_folder_remove(&tokens.folder);
}

Test(tokens, a_network_of_ascii_reads_ascii)
{
	struct tokens tokens = make_tokens(PSD_DATA_TEXT);
	struct psd_data *data;

	name_files(&tokens, false);
	tokens.options.vocabulary = tokens.options.classes = 128;
	scratch_folder_write(&tokens.folder, "train", "\x7f\0ok!", PLACES + 1);
	data = open_data(&tokens.options);
	cr_expect_eq(psd_data_samples(data, PSD_DATA_TRAINING), 1);
	psd_data_close(data);
	scratch_folder_remove(&tokens.folder);
}

static void check_short_files(enum psd_data_kind kind)
{
	struct tokens tokens = make_tokens(kind);
	char expected[256];

	name_files(&tokens, true);
	write_tokens(&tokens, "train", 0, TOKENS);
	for (unsigned n = 0; n <= PLACES; n++) {
		write_tokens(&tokens, "test", 0, n);
		snprintf(expected, sizeof(expected),
			 "test: at byte %u: the file has %u tokens, a sample and its last label need %d",
			 kind == PSD_DATA_TEXT ? n : 2 * n, n, PLACES + 1);
		expect_refused(&tokens.options, &tokens.folder, expected);
	}
	write_tokens(&tokens, "test", 0, PLACES + 1);
	psd_data_close(open_data(&tokens.options));
	scratch_folder_remove(&tokens.folder);
}

Test(tokens, a_file_must_have_a_sample)
{
	check_short_files(PSD_DATA_TEXT);
	check_short_files(PSD_DATA_TOKENS);
}

Test(tokens, half_a_token_is_refused)
{
	struct tokens tokens = make_tokens(PSD_DATA_TOKENS);
	const uint8_t bytes[2 * TOKENS] = {0};

	name_files(&tokens, false);
	scratch_folder_write(&tokens.folder, "train", bytes, 2 * TOKENS - 1);
	expect_refused(&tokens.options, &tokens.folder,
		       "train: at byte 20: the last token has 1 byte, must have 2: cut short, or not a file of 16-bit "
		       "numbers");
	scratch_folder_remove(&tokens.folder);
}

Test(tokens, files_fit_only_networks_that_look_tokens_up)
{
	struct tokens tokens = make_tokens(PSD_DATA_TEXT);

	name_files(&tokens, false);
	write_tokens(&tokens, "train", 0, TOKENS);
	tokens.options.vocabulary = 0;
	expect_refused(&tokens.options, &tokens.folder,
		       "train: the data has tokens, the network expects images: its first layer is not an embedding");
	tokens.options.vocabulary = 256;
	tokens.options.labels = PLACES / 2;
	expect_refused(&tokens.options, &tokens.folder,
		       "train: a sequence of 4 tokens has one label or one for each token, the network has 2");
	remove(tokens.path.text);
	expect_refused(&tokens.options, &tokens.folder, "train: cannot be opened: No such file or directory");
	scratch_folder_remove(&tokens.folder);
}

Test(tokens, a_file_that_is_shortened_is_named)
{
	struct tokens tokens = make_tokens(PSD_DATA_TOKENS);
	struct psd_error err = {.text = ""};
	float values[PLACES];
	int32_t labels[PLACES];
	struct psd_data *data;
	char expected[512];

	name_files(&tokens, true);
	write_tokens(&tokens, "train", 0, TOKENS);
	write_tokens(&tokens, "test", 0, TOKENS);
	data = open_data(&tokens.options);
	cr_assert_eq(truncate(tokens.test_path.text, 0), 0);
	expect_sample(data, &tokens, PSD_DATA_TRAINING, 0, 0);
	cr_expect_eq(psd_data_read(data, PSD_DATA_TEST, 0, 0, values, labels, &err), PSD_ERUN);
	snprintf(expected, sizeof(expected), "%s: was shortened while it was read", tokens.test_path.text);
	cr_expect_str_eq(err.text, expected);
	psd_data_close(data);
	scratch_folder_remove(&tokens.folder);
}
