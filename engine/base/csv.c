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
	size_t length;

	text += strspn(text, " \t\r");
	length = strlen(text);
	while (length && strchr(" \t\r", text[length - 1]))
		text[--length] = '\0';
	return text;
}

static enum psd_status split(struct psd_csv *csv, char *line, struct psd_error *err)
{
	if (strchr(line, '"'))
		return psd_error_set(err, PSD_EINVAL, csv->at,
				     "the line has quotes, cells must be plain text without commas");
	for (char *cell = line; cell;) {
		char *comma = strchr(cell, ',');

		if (csv->n_cells == PSD_CSV_CELLS_MAX)
			return psd_error_set(err, PSD_EINVAL, csv->at, "the line has more than %d cells",
					     PSD_CSV_CELLS_MAX);
		if (comma)
			*comma++ = '\0';
		csv->cells[csv->n_cells++] = trim(cell);
		cell = comma;
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
