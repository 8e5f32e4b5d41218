#include "engine/base/csv.h"

#include <stdlib.h>
#include <string.h>

#include "engine/base/file.h"

enum psd_status psd_csv_open(struct psd_csv *csv, const char *path, struct psd_error *err)
{
	struct psd_csv fresh = {.at = {.path = path}};
	size_t length;

	PSD_TRY(psd_file_read(&fresh.text, &length, path, err));
	if (memchr(fresh.text, '\0', length)) {
		free(fresh.text);
		return psd_error_set(err, PSD_EINVAL, fresh.at, "contains a zero byte, must be text");
	}
	fresh.rest = fresh.text;
	*csv = fresh;
	return PSD_OK;
}

static char *trim(char *text)
{
	text += strspn(text, " \t\r");
	size_t length = strlen(text);
	while (length && strchr(" \t\r", text[length - 1]))
		text[--length] = '\0';
	return text;
}

/* Ends the cell at `cell`, which is quoted as RFC 4180 says, and removes its quotes. Returns the text behind it, or
 * NULL where a quote is open or out of place. */
static char *end_quoted(char *cell)
{
	char *to = cell, *from = cell + 1;

	while (*from && (*from != '"' || from[1] == '"')) {
		from += *from == '"';
		*to++ = *from++;
	}
	if (!*from++)
		return NULL;
	*to = '\0';
	from += strspn(from, " \t\r");
	return !*from || *from == ',' ? from : NULL;
}

/* Removes the apostrophe that psd_text_add_csv() puts before signs. */
static const char *without_guard(const char *cell)
{
	const char first = cell[strspn(cell, "'")];

	return *cell == '\'' && first && strchr("=+-@", first) ? cell + 1 : cell;
}

static enum psd_status split(struct psd_csv *csv, char *line, struct psd_error *err)
{
	for (char *cell = line; cell;) {
		cell += strspn(cell, " \t\r");
		const bool is_quoted = *cell == '"';
		char *end = is_quoted ? end_quoted(cell) : cell + strcspn(cell, ",\"");

		if (!end || *end == '"')
			return psd_error_set(err, PSD_EINVAL, csv->at,
					     "a quote is open or out of place, must be around a whole cell");
		if (csv->n_cells == PSD_CSV_CELLS_MAX)
			return psd_error_set(err, PSD_EINVAL, csv->at, "the line has more than %d cells",
					     PSD_CSV_CELLS_MAX);
		char *next = *end ? end + 1 : NULL;
		*end = '\0';
		csv->cells[csv->n_cells++] = without_guard(is_quoted ? cell : trim(cell));
		cell = next;
	}
	return PSD_OK;
}

enum psd_status psd_csv_next(struct psd_csv *csv, bool *has_line, struct psd_error *err)
{
	csv->n_cells = 0;
	csv->comment = NULL;
	*has_line = false;
	while (*csv->rest) {
		char *line = csv->rest, *end = line + strcspn(line, "\n");

		csv->rest = *end ? end + 1 : end;
		*end = '\0';
		csv->at.line++;
		line = trim(line);
		if (!*line)
			continue;
		*has_line = true;
		if (*line != '#')
			return split(csv, line, err);
		csv->comment = trim(line + 1);
		return PSD_OK;
	}
	return PSD_OK;
}

enum psd_status psd_csv_check_header(const struct psd_csv *csv, const char *header, struct psd_error *err)
{
	const char *expected = header;

	for (unsigned i = 0; i < csv->n_cells; i++) {
		const size_t length = strcspn(expected, ",");
		const bool is_last = i + 1 == csv->n_cells;

		if (strlen(csv->cells[i]) != length || strncmp(csv->cells[i], expected, length) ||
		    is_last != !expected[length])
			return psd_error_set(err, PSD_EINVAL, csv->at, "column %u is '%.80s', the header must be '%s'",
					     i + 1, csv->cells[i], header);
		expected += length + !is_last;
	}
	return PSD_OK;
}

void psd_csv_close(struct psd_csv *csv)
{
	free(csv->text);
	*csv = (struct psd_csv){.text = NULL};
}
