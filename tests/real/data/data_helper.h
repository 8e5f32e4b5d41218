/* Helpers for tests of data sets: opening with or without an error, and reading. */
#ifndef PSD_TESTS_DATA_HELPER_H
#define PSD_TESTS_DATA_HELPER_H

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "real/data/data.h"
#include "tests/scratch_folder.h"

static inline struct psd_data *open_data(const struct psd_data_options *options)
{
	struct psd_data *data = NULL;
	struct psd_error err = {.text = ""};

	cr_assert_eq(psd_data_open(&data, options, &err), PSD_OK, "%s", err.text);
	return data;
}

/* labels: one for each output position of the network. */
static inline void read_sequence(struct psd_data *data, enum psd_data_part part, uint64_t epoch, uint64_t sample,
				 float *values, int32_t *labels)
{
	struct psd_error err = {.text = ""};

	cr_assert_eq(psd_data_read(data, part, epoch, sample, values, labels, &err), PSD_OK, "%s", err.text);
}

/* Reads a sample with one label. */
static inline int32_t read_sample(struct psd_data *data, enum psd_data_part part, uint64_t epoch, uint64_t sample,
				  float *image)
{
	int32_t label = -1;

	read_sequence(data, part, epoch, sample, image, &label);
	return label;
}

/* expected: the message behind "FOLDER/". */
static inline void expect_refused(const struct psd_data_options *options, const struct scratch_folder *folder,
				  const char *expected)
{
	struct psd_data *data = NULL;
	struct psd_error err = {.text = "accepted"};
	char text[1024];

	snprintf(text, sizeof(text), "%s/%s", folder->path, expected);
	cr_expect_neq(psd_data_open(&data, options, &err), PSD_OK);
	cr_expect_str_eq(err.text, text);
	psd_data_close(data);
}

#endif
