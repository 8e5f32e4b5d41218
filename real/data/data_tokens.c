/* Tokens without a header: bytes of a text, or numbers of 16 bits, little-endian, as nanoGPT's prepare.py writes them.
 * Samples lie side by side, each with a token for each position. A position's label is the next token; a remainder
 * shorter than a sample is left out. Refuses to make tokens of words. */
#include <inttypes.h>

#include "real/data/data_parts.h"

/* Largest file whose tokens are checked when it is opened. Tokens of a larger file are checked when they are read:
 * otherwise each process would first read the whole file. */
#define CHECKED_WHOLE_BYTES (UINT64_C(256) << 20)

static unsigned token_bytes(const struct psd_data *data)
{
	return data->options.source.kind == PSD_DATA_TEXT ? 1 : 2;
}

static uint32_t token_at(const struct psd_data *data, const struct psd_mapping *file, uint64_t number)
{
	return token_bytes(data) == 1 ? file->bytes[number] : psd_little_u16(file->bytes + 2 * number);
}

static uint64_t count_tokens(const struct psd_data *data, const struct psd_mapping *file)
{
	return file->n_bytes / token_bytes(data);
}

static enum psd_status check_length(const struct psd_data *data, const struct psd_mapping *file, struct psd_error *err)
{
	const uint64_t rest_bytes = file->n_bytes % token_bytes(data), needed = psd_data_positions(data) + 1;

	if (rest_bytes)
		return psd_mapping_refuse(file, file->n_bytes - rest_bytes, err,
					  "the last token has 1 byte, must have 2: cut short, or not a file of 16-bit "
					  "numbers");
	if (count_tokens(data, file) < needed)
		return psd_mapping_refuse(file, file->n_bytes, err,
					  "the file has %" PRIu64 " tokens, a sample and its last label need %" PRIu64,
					  count_tokens(data, file), needed);
	return PSD_OK;
}

/* True if the token is the label of some position: all tokens except the first; if a sample has one label, only the
 * token behind the sample. */
static bool is_label(const struct psd_data *data, uint64_t token)
{
	return token > 0 && (data->options.labels > 1 || token % psd_data_positions(data) == 0);
}

static enum psd_status check_tokens(const struct psd_data *data, const struct psd_mapping *file, uint64_t first,
				    uint64_t end, struct psd_error *err)
{
	const uint32_t vocabulary = data->options.vocabulary, classes = data->options.classes;

	for (uint64_t i = first; i < end; i++) {
		const uint32_t token = token_at(data, file, i);

		if (token < vocabulary && (token < classes || !is_label(data, i)))
			continue;
		return psd_mapping_refuse(file, i * token_bytes(data), err,
					  "token is %" PRIu32 ", the network's %s 0 to %" PRIu32, token,
					  token >= vocabulary ? "vocabulary is" : "classes are",
					  (token >= vocabulary ? vocabulary : classes) - 1);
	}
	return PSD_OK;
}

static enum psd_status open_tokens(struct psd_data *data, struct psd_error *err)
{
	for (unsigned i = 0; i < data->files.n_files; i++) {
		const struct psd_mapping *file = &data->files.files[i];

		PSD_TRY(check_length(data, file, err));
		/* the owner of a view's files has checked them */
		if (!file->owner && file->n_bytes <= CHECKED_WHOLE_BYTES)
			PSD_TRY(check_tokens(data, file, 0, count_tokens(data, file), err));
		data->n_samples[i] = (count_tokens(data, file) - 1) / psd_data_positions(data);
	}
	return PSD_OK;
}

static enum psd_status read_tokens(struct psd_data *data, enum psd_data_part part, uint64_t epoch, uint64_t sample,
				   float *image, int32_t *labels, struct psd_error *err)
{
	const struct psd_mapping *file = &data->files.files[part];
	const uint64_t positions = psd_data_positions(data), first = sample * positions;
	const uint64_t first_label = first + positions - data->options.labels + 1;

	PSD_TRY(check_tokens(data, file, first, first + positions + 1, err));
	(void)epoch;
	for (uint64_t i = 0; i < positions; i++)
		image[i] = (float)token_at(data, file, first + i);
	for (uint64_t i = 0; i < data->options.labels; i++)
		labels[i] = (int32_t)token_at(data, file, first_label + i);
	return PSD_OK;
}

const struct psd_data_reader psd_data_tokens = {
	.has_tokens = true, .map = psd_data_map_pair, .open = open_tokens, .read = read_tokens};
