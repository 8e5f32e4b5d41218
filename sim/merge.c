#include "sim/merge.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/file.h"
#include "engine/base/units.h"

enum { MOST_ROWS = 1 << 24 };

struct line {
	const char *bytes; /* line without the four columns; NULL: the row was not seen */
	size_t length;
};

struct merge {
	const char *path; /* path of the first part, for messages about all */
	const char *head;
	size_t head_length;
	struct line settings; /* field of the first row, with its quotes */
	struct line *lines;   /* one for each row of the whole sweep */
	unsigned n_rows;      /* rows of the whole sweep; 0: no row was seen */
	unsigned n_shards;
	struct psd_error *err;
};

/* Cuts the last field off a line of *length bytes, and returns it; NULL: the line has one field. A field in quotes has
 * its own quotes doubled. */
static const char *cut_field(const char *line, size_t *length)
{
	size_t end = *length;
	bool is_quoted = false;

	for (; end > 0 && (is_quoted || line[end - 1] != ','); end--)
		is_quoted = is_quoted != (line[end - 1] == '"');
	if (end == 0)
		return NULL;
	*length = end - 1;
	return line + end;
}

static bool read_number(const char *field, size_t length, unsigned *number)
{
	char digits[16];
	uint64_t count;

	if (length >= sizeof(digits))
		return false;
	memcpy(digits, field, length);
	digits[length] = '\0';
	if (!psd_units_read_count(digits, &count) || count < 1 || count > MOST_ROWS)
		return false;
	*number = (unsigned)count;
	return true;
}

/* Reads "2/8" and keeps the 8. */
static bool read_shards(const char *field, size_t length, unsigned *n_shards)
{
	const char *slash = memchr(field, '/', length);

	return slash && read_number(slash + 1, length - (size_t)(slash + 1 - field), n_shards);
}

static enum psd_status take_head(struct merge *merge, const char *line, size_t length, struct psd_place at)
{
	static const char ending[] = ",settings,shard,row,rows";
	const size_t n = sizeof(ending) - 1;

	if (length < n || memcmp(line + length - n, ending, n) != 0)
		return psd_error_set(
			merge->err, PSD_EINVAL, at,
			"the last columns must be settings,shard,row,rows, as psd-sim --csv --shard writes them");
	if (merge->head && (merge->head_length != length - n || memcmp(merge->head, line, length - n) != 0))
		return psd_error_set(merge->err, PSD_EINVAL, at, "the columns must be those of the first part");
	merge->head = line;
	merge->head_length = length - n;
	return PSD_OK;
}

/* Returns the option that begins at byte `from` of the settings, as in " --set seed=2". */
static struct line option_at(const struct line *settings, size_t from)
{
	static const char end[] = " nothing more";
	size_t to = from + 1;

	if (from >= settings->length)
		return (struct line){end, sizeof(end) - 1};
	while (to < settings->length && strncmp(settings->bytes + to, " --", 3) != 0)
		to++;
	return (struct line){settings->bytes + from, to - from};
}

static bool are_equal(const struct line *one, const struct line *other)
{
	return one->length == other->length && !memcmp(one->bytes, other->bytes, one->length);
}

/* Names the first option in which the settings differ from those of the first part. */
static enum psd_status refuse_settings(const struct merge *merge, const struct line *settings, struct psd_place at)
{
	struct line own = option_at(settings, 0), first = option_at(&merge->settings, 0);

	for (size_t from = 0; are_equal(&own, &first);) {
		from += own.length;
		own = option_at(settings, from);
		first = option_at(&merge->settings, from);
	}
	return psd_error_set(merge->err, PSD_EINVAL, at, "the settings have%.*s, those of the first part%.*s",
			     (int)own.length, own.bytes, (int)first.length, first.bytes);
}

static enum psd_status take_settings(struct merge *merge, const char *field, size_t length, struct psd_place at)
{
	const bool is_quoted = length > 1 && field[0] == '"';
	const struct line settings = {field + is_quoted, length - (is_quoted ? 2 : 0)};

	if (!merge->settings.bytes)
		merge->settings = settings;
	return are_equal(&settings, &merge->settings) ? PSD_OK : refuse_settings(merge, &settings, at);
}

static enum psd_status take_row(struct merge *merge, const char *line, size_t length, struct psd_place at)
{
	const size_t whole = length;
	const char *rows = cut_field(line, &length), *row = rows ? cut_field(line, &length) : NULL;
	const char *shard = row ? cut_field(line, &length) : NULL;
	const char *settings = shard ? cut_field(line, &length) : NULL;
	unsigned number, n_rows, n_shards;

	if (!settings || !read_number(rows, (size_t)(line + whole - rows), &n_rows) ||
	    !read_number(row, (size_t)(rows - 1 - row), &number) ||
	    !read_shards(shard, (size_t)(row - 1 - shard), &n_shards) || number > n_rows)
		return psd_error_set(merge->err, PSD_EINVAL, at,
				     "the last fields must be settings, a part, a row and the number of rows, such as "
				     "psd-sim,2/8,10,40");
	PSD_TRY(take_settings(merge, settings, (size_t)(shard - 1 - settings), at));
	if (!merge->lines) {
		merge->lines = calloc(n_rows, sizeof(*merge->lines));
		if (!merge->lines)
			return psd_out_of_memory(merge->err);
		merge->n_rows = n_rows;
		merge->n_shards = n_shards;
	}
	if (n_rows != merge->n_rows || n_shards != merge->n_shards)
		return psd_error_set(merge->err, PSD_EINVAL, at,
				     "the sweep has %u rows in %u parts, that of the first part %u rows in %u parts",
				     n_rows, n_shards, merge->n_rows, merge->n_shards);
	if (merge->lines[number - 1].bytes)
		return psd_error_set(merge->err, PSD_EINVAL, at, "row %u is there twice, must be there once", number);
	merge->lines[number - 1] = (struct line){line, length};
	return PSD_OK;
}

static enum psd_status take_part(struct merge *merge, const char *path, const char *text)
{
	struct psd_place at = {path, 1, 0};

	for (const char *line = text; *line; at.line++) {
		const size_t length = strcspn(line, "\n");
		const size_t n = length && line[length - 1] == '\r' ? length - 1 : length;

		if (at.line == 1)
			PSD_TRY(take_head(merge, line, n, at));
		else if (n)
			PSD_TRY(take_row(merge, line, n, at));
		line += length + (line[length] == '\n');
	}
	if (at.line == 1)
		return psd_error_set(merge->err, PSD_EINVAL, at, "the file is empty, must be a part of a sweep");
	return PSD_OK;
}

/* Names the part of the first missing row, and the row itself if others of its part are there. */
static enum psd_status check_rows(const struct merge *merge)
{
	unsigned missing = 0;
	bool is_part_lost = true;

	if (!merge->n_rows)
		return psd_error_set(merge->err, PSD_EINVAL, (struct psd_place){merge->path, 0, 0},
				     "the parts have no row, must have one or more");
	while (missing < merge->n_rows && merge->lines[missing].bytes)
		missing++;
	if (missing == merge->n_rows)
		return PSD_OK;
	for (unsigned r = missing; r < merge->n_rows; r += merge->n_shards)
		is_part_lost = is_part_lost && !merge->lines[r].bytes;
	for (unsigned r = missing % merge->n_shards; r < missing; r += merge->n_shards)
		is_part_lost = false; /* it was there */
	if (is_part_lost)
		return psd_error_set(merge->err, PSD_EINVAL, (struct psd_place){merge->path, 0, 0},
				     "part %u/%u of the sweep is missing", missing % merge->n_shards + 1,
				     merge->n_shards);
	return psd_error_set(merge->err, PSD_EINVAL, (struct psd_place){merge->path, 0, 0},
			     "row %u of %u is missing, it belongs to part %u/%u", missing + 1, merge->n_rows,
			     missing % merge->n_shards + 1, merge->n_shards);
}

enum psd_status psd_merge(struct psd_text *text, const char *const paths[], unsigned n_parts, struct psd_error *err)
{
	char **texts = calloc(n_parts, sizeof(*texts));
	struct merge merge = {.path = paths[0], .err = err};
	enum psd_status status = texts ? PSD_OK : psd_out_of_memory(err);
	size_t length;

	for (unsigned i = 0; i < n_parts && !status; i++) {
		status = psd_file_read(&texts[i], &length, paths[i], err);
		if (!status)
			status = take_part(&merge, paths[i], texts[i]);
	}
	if (!status)
		status = check_rows(&merge);
	if (!status) {
		psd_text_add_bytes(text, merge.head, merge.head_length);
		psd_text_add(text, "\n");
	}
	for (unsigned r = 0; r < merge.n_rows && !status; r++) {
		psd_text_add_bytes(text, merge.lines[r].bytes, merge.lines[r].length);
		psd_text_add(text, "\n");
	}
	for (unsigned i = 0; texts && i < n_parts; i++)
		free(texts[i]);
	free(texts);
	free(merge.lines);
	return status;
}
