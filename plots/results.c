#include "plots/results.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/csv.h"
#include "engine/base/grow.h"
#include "engine/base/spelling.h"
#include "engine/base/text.h"
#include "engine/base/units.h"

enum { LONGEST_FIELD = 1000, MOST_ROWS = 1 << 24 };
static const double most_number = 1e18;

/* Columns that psd-sim and psd-run fill with numbers. */
static const char *const number_columns[] = {"nodes",
					     "workers",
					     "bandwidth_bps",
					     "iteration_sec",
					     "images_per_sec",
					     "speedup",
					     "compute_sec",
					     "exposed_comm_sec",
					     "tx_bytes_per_node",
					     "rx_bytes_per_node",
					     "published_images_per_sec",
					     "published_speedup",
					     "error_ratio",
					     "other_work_sec",
					     "other_waiting_sec",
					     "fuse_bytes",
					     "tokens_per_sec",
					     "iteration_p50_sec",
					     "iteration_p95_sec",
					     "iteration_p99_sec",
					     "low",
					     "high",
					     "efficiency",
					     "memory_bytes",
					     "hours",
					     "cost",
					     "iteration",
					     "epoch",
					     "loss",
					     "training_accuracy_ratio",
					     "elapsed_sec",
					     "test_accuracy_ratio",
					     NULL};

/* ---- fields ---- */

static unsigned find_column(const struct psd_table *table, const char *column)
{
	unsigned c = 0;

	while (c < table->n_columns && strcmp(table->names[c], column) != 0)
		c++;
	return c;
}

bool psd_row_has(const struct psd_row *row, const char *column)
{
	return find_column(row->table, column) < row->table->n_columns;
}

const char *psd_row_text(const struct psd_row *row, const char *column)
{
	const unsigned c = find_column(row->table, column);

	return c < row->table->n_columns ? row->fields[c] : "";
}

bool psd_row_is_executed(const struct psd_row *row)
{
	return !strncmp(psd_row_text(row, "executor"), "real-", 5);
}

enum psd_status psd_row_refuse(const struct psd_row *row, struct psd_error *err, const char *format, ...)
{
	char text[sizeof(err->text)];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	return psd_error_set(err, PSD_EINVAL, (struct psd_place){.path = row->table->path, .line = row->line}, "%s",
			     text);
}

bool psd_results_read_number(const char *text, double *value)
{
	double read;

	if (!isdigit((unsigned char)*text) || text[strspn(text, "0123456789.eE+-")] ||
	    !psd_units_read_number(text, &read) || read > most_number)
		return false;
	*value = read;
	return true;
}

enum psd_status psd_row_read_positive(const struct psd_row *row, const char *column, bool may_lack, double *value,
				      struct psd_error *err)
{
	const char *text = psd_row_text(row, column);

	*value = 0;
	if (!*text && may_lack)
		return PSD_OK;
	if (psd_results_read_number(text, value) && *value > 0)
		return PSD_OK;
	return psd_row_refuse(row, err, "'%s' is '%.80s', must be %sa number above 0", column, text,
			      may_lack ? "empty or " : "");
}

enum psd_status psd_row_read_fitted(const struct psd_row *row, bool *is_fitted, struct psd_error *err)
{
	const char *text = psd_row_text(row, "is_fitted");

	*is_fitted = !strcmp(text, "yes");
	return *is_fitted || !*text || !strcmp(text, "no")
		       ? PSD_OK
		       : psd_row_refuse(row, err, "'is_fitted' is '%.80s', must be yes, no or empty", text);
}

/* ---- reading ---- */

static enum psd_status take_head(struct psd_results *results, struct psd_table *table, const struct psd_csv *csv,
				 const char *needed, struct psd_error *err)
{
	char name[LONGEST_FIELD];

	const char **names = psd_arena_take(&results->arena, csv->n_cells * sizeof(*names));

	if (!names)
		return psd_out_of_memory(err);
	table->names = names;
	for (unsigned c = 0; c < csv->n_cells; c++) {
		if (find_column(table, csv->cells[c]) < c)
			return psd_error_set(err, PSD_EINVAL, csv->at,
					     "column '%.80s' is there twice, must be there once", csv->cells[c]);
		names[c] = psd_arena_copy(&results->arena, csv->cells[c], strlen(csv->cells[c]));
		if (!names[c])
			return psd_out_of_memory(err);
		table->n_columns++;
	}
	for (; *needed; needed += strspn(needed, " ")) {
		const size_t length = strcspn(needed, " ");

		snprintf(name, sizeof(name), "%.*s", (int)length, needed);
		if (find_column(table, name) == table->n_columns)
			return psd_error_set(err, PSD_EINVAL, csv->at,
					     "column '%s' is missing, the first line must be that of psd-sim --csv or "
					     "psd-run --csv: 'scenario,system,executor,nodes,workers,...'",
					     name);
		needed += length;
	}
	return PSD_OK;
}

/* Reads a number, or a quantity with its unit in the unit of columns. */
static bool read_quantity(const char *text, double *value)
{
	uint64_t bytes;

	if (psd_results_read_number(text, value) || psd_units_read_rate(text, value) ||
	    psd_units_read_seconds(text, value))
		return true;
	if (!psd_units_read_bytes(text, &bytes))
		return false;
	*value = (double)bytes;
	return true;
}

/* True if the row has the values that all conditions name. Numbers are compared as such: 8 is 8.0. */
static bool is_wanted(const struct psd_row *row, const char *const where[])
{
	for (; where && *where; where++) {
		const char *equals = strchr(*where, '=');
		char column[LONGEST_FIELD];
		double one, other;

		snprintf(column, sizeof(column), "%.*s", (int)(equals - *where), *where);
		const char *value = psd_row_text(row, column);
		const bool is_equal = !strcmp(value, equals + 1) || (psd_results_read_number(value, &one) &&
								     read_quantity(equals + 1, &other) && one == other);

		if (!is_equal)
			return false;
	}
	return true;
}

static enum psd_status take_row(struct psd_results *results, struct psd_table *table, const struct psd_csv *csv,
				struct psd_error *err)
{
	struct psd_row row = {.table = table, .line = csv->at.line};

	if (csv->n_cells != table->n_columns)
		return psd_error_set(err, PSD_EINVAL, csv->at, "the line has %u fields, must have %u", csv->n_cells,
				     table->n_columns);
	row.fields = psd_arena_take(&results->arena, csv->n_cells * sizeof(*row.fields));
	void *grown = psd_grown(results->rows, results->n_rows, &results->rows_room, sizeof(*results->rows));

	if (grown)
		results->rows = grown;
	if (!grown || !row.fields)
		return psd_out_of_memory(err);
	for (unsigned c = 0; c < csv->n_cells; c++) {
		const size_t length = strlen(csv->cells[c]);

		if (length > LONGEST_FIELD)
			return psd_error_set(err, PSD_EINVAL, csv->at, "field %u has %zu bytes, must have %d or fewer",
					     c + 1, length, LONGEST_FIELD);
		char *field = psd_arena_copy(&results->arena, csv->cells[c], length);

		if (!field)
			return psd_out_of_memory(err);
		psd_text_make_plain(field);
		row.fields[c] = field;
	}
	table->n_rows++;
	results->rows[results->n_rows++] = row;
	return PSD_OK;
}

static enum psd_status read_table(struct psd_results *results, struct psd_table *table, const char *needed,
				  struct psd_error *err)
{
	struct psd_csv csv;
	bool has_line = true;
	enum psd_status status = psd_csv_open(&csv, table->path, err);

	if (status)
		return status;
	while (!status && has_line) {
		status = psd_csv_next(&csv, &has_line, err);
		if (status || !has_line || csv.comment)
			continue;
		status = table->n_columns ? take_row(results, table, &csv, err)
					  : take_head(results, table, &csv, needed, err);
	}
	if (!status && !table->n_columns)
		status = psd_error_set(err, PSD_EINVAL, (struct psd_place){.path = table->path, .line = 1},
				       "is empty, the first line must be that of psd-sim --csv or psd-run --csv");
	psd_csv_close(&csv);
	return status;
}

/* ---- parts of a sweep ---- */

struct sweep {
	struct sweep *next;
	const char *title, *settings;
	unsigned n_rows, n_shards;
	const struct psd_table *table;
	bool *is_there; /* n_rows entries */
};

static bool read_place(const struct psd_row *row, uint64_t *number, uint64_t *n_rows, uint64_t *n_shards)
{
	const char *slash = strchr(psd_row_text(row, "shard"), '/');

	return slash && psd_units_read_count(slash + 1, n_shards) && *n_shards && *n_shards <= MOST_ROWS &&
	       psd_units_read_count(psd_row_text(row, "row"), number) &&
	       psd_units_read_count(psd_row_text(row, "rows"), n_rows) && *number && *number <= *n_rows &&
	       *n_rows <= MOST_ROWS;
}

static enum psd_status note_part(struct psd_results *results, struct sweep **sweeps, const struct psd_row *row,
				 struct psd_error *err)
{
	const char *title = psd_row_text(row, "scenario"), *settings = psd_row_text(row, "settings");
	struct sweep *sweep = *sweeps;
	uint64_t number, n_rows, n_shards;

	if (!read_place(row, &number, &n_rows, &n_shards))
		return psd_row_refuse(row, err, "'shard', 'row' and 'rows' must be such as 2/8,10,40");
	while (sweep &&
	       (strcmp(sweep->title, title) != 0 || strcmp(sweep->settings, settings) != 0 || sweep->n_rows != n_rows))
		sweep = sweep->next;
	if (!sweep) {
		sweep = psd_arena_take(&results->arena, sizeof(*sweep));
		bool *is_there = psd_arena_take(&results->arena, n_rows * sizeof(*is_there));

		if (!sweep || !is_there)
			return psd_out_of_memory(err);
		*sweep = (struct sweep){*sweeps,    title,   settings, (unsigned)n_rows, (unsigned)n_shards,
					row->table, is_there};
		*sweeps = sweep;
	}
	sweep->is_there[number - 1] = true;
	return PSD_OK;
}

/* Refuses a sweep in parts that lacks a row. */
static enum psd_status check_parts(struct psd_results *results, struct psd_error *err)
{
	struct sweep *sweeps = NULL;

	for (unsigned r = 0; r < results->n_rows; r++)
		if (psd_row_has(&results->rows[r], "shard") && psd_row_has(&results->rows[r], "rows"))
			PSD_TRY(note_part(results, &sweeps, &results->rows[r], err));
	for (const struct sweep *sweep = sweeps; sweep; sweep = sweep->next)
		for (unsigned i = 0; i < sweep->n_rows; i++)
			if (!sweep->is_there[i])
				return psd_error_set(err, PSD_EINVAL, (struct psd_place){.path = sweep->table->path},
						     "row %u of %u of '%.200s' is missing, it belongs to part %u/%u",
						     i + 1, sweep->n_rows, sweep->title, i % sweep->n_shards + 1,
						     sweep->n_shards);
	return PSD_OK;
}

/* True if any file has the column. */
static bool has_column(const struct psd_results *results, const char *column)
{
	for (unsigned t = 0; t < results->n_tables; t++)
		if (find_column(&results->tables[t], column) < results->tables[t].n_columns)
			return true;
	return false;
}

enum psd_status psd_results_check_column(struct psd_results *results, const char *option, const char *column,
					 struct psd_error *err)
{
	const struct psd_table *table = &results->tables[0];
	const char **names;

	if (has_column(results, column))
		return PSD_OK;
	names = psd_arena_take(&results->arena, (table->n_columns + 1) * sizeof(*names));
	if (!names)
		return psd_out_of_memory(err);
	memcpy(names, table->names, table->n_columns * sizeof(*names));
	const char *nearest = psd_spelling_nearest(column, names);

	return psd_error_set(err, PSD_EINVAL, (struct psd_place){.path = table->path},
			     "'%s' is '%.80s', must be a column of the results%s%s", option, column,
			     nearest ? ", such as " : "", nearest ? nearest : "");
}

enum psd_status psd_results_keep(struct psd_results *results, const char *const where[], struct psd_error *err)
{
	const struct psd_place at = {.path = results->tables[0].path};
	char column[LONGEST_FIELD];
	uint32_t n = 0;

	for (unsigned w = 0; where && where[w]; w++) {
		snprintf(column, sizeof(column), "%.*s", (int)strcspn(where[w], "="), where[w]);
		PSD_TRY(psd_results_check_column(results, "--where", column, err));
	}
	for (uint32_t r = 0; r < results->n_rows; r++)
		if (is_wanted(&results->rows[r], where))
			results->rows[n++] = results->rows[r];
	if (!n && results->n_rows)
		return psd_error_set(err, PSD_EINVAL, at, "'--where %s'%s leaves no row", where[0],
				     where[1] ? " with the other conditions" : "");
	results->n_rows = n;
	return PSD_OK;
}

enum psd_status psd_results_read(struct psd_results *results, const char *const paths[], unsigned n_paths,
				 const char *needed, const char *const where[], struct psd_error *err)
{
	*results = (struct psd_results){.n_tables = n_paths};
	results->tables = psd_arena_take(&results->arena, n_paths * sizeof(*results->tables));
	if (!results->tables)
		return psd_out_of_memory(err);
	for (unsigned i = 0; i < n_paths; i++) {
		results->tables[i].path = paths[i];
		PSD_TRY(read_table(results, &results->tables[i], needed, err));
	}
	PSD_TRY(check_parts(results, err));
	return psd_results_keep(results, where, err);
}

void psd_results_release(struct psd_results *results)
{
	psd_arena_release(&results->arena);
	free(results->rows);
	*results = (struct psd_results){.n_rows = 0};
}

enum psd_status psd_row_check_numbers(const struct psd_row *row, struct psd_error *err)
{
	double value;

	for (unsigned i = 0; number_columns[i]; i++) {
		const char *text = psd_row_text(row, number_columns[i]);

		if (*text && !psd_results_read_number(text + (*text == '-'), &value))
			return psd_row_refuse(row, err, "'%s' is '%.80s', must be empty or a number", number_columns[i],
					      text);
	}
	return PSD_OK;
}

enum psd_status psd_results_check_numbers(const struct psd_results *results, struct psd_error *err)
{
	for (unsigned r = 0; r < results->n_rows; r++)
		PSD_TRY(psd_row_check_numbers(&results->rows[r], err));
	return PSD_OK;
}
