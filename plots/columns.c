#include "plots/columns.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/names.h"
#include "engine/base/spelling.h"
#include "engine/base/units.h"
#include "plots/words.h"

/* Columns that are values of a case, in the order in which names have them; those of a sweep of other keys follow. */
static const char *const case_columns[] = {"scenario", "bandwidth_bps", "fuse_bytes", "executor", NULL};
static const char *const last_columns[] = {"workers",	"nodes",  "model", "batch_per_worker",
					   "precision", "device", "stack", NULL};
/* The column behind which swept keys follow, and those that follow them. */
static const char before_swept[] = "stack";
static const char *const behind_swept[] = {"settings", "shard", "row", "rows", NULL};

/* ---- counting ---- */

unsigned psd_columns_count(const struct psd_results *results, const char *column)
{
	struct psd_names seen = {.slots = NULL};
	unsigned n = 0, number;

	for (unsigned r = 0; r < results->n_rows; r++) {
		const char *value = psd_row_text(&results->rows[r], column);

		if (!psd_names_find(&seen, value, &number) && psd_names_put(&seen, value, r))
			n++;
	}
	psd_names_release(&seen);
	return n;
}

/* True if rows with equal keys differ in the column. keys: NULL: all keys are equal. */
static bool is_split(const struct psd_results *results, const char *const *keys, const char *column)
{
	struct psd_names first = {.slots = NULL};
	bool is_split = false;
	unsigned other;

	for (unsigned r = 0; r < results->n_rows && !is_split; r++) {
		const char *value = psd_row_text(&results->rows[r], column);

		if (psd_names_find(&first, keys[r], &other))
			is_split = strcmp(psd_row_text(&results->rows[other], column), value) != 0;
		else if (!psd_names_put(&first, keys[r], r))
			break;
	}
	psd_names_release(&first);
	return is_split;
}

/* ---- finding ---- */

struct finder {
	struct psd_name_columns *names;
	struct psd_results *results;
	const char *over;
	const char **keys; /* system and values of the columns until now, of each row */
	const char **at;   /* value of `over`, of each row */
	bool is_out_of_memory;
};

static void extend_keys(struct finder *finder, const char *column)
{
	for (unsigned r = 0; r < finder->results->n_rows; r++) {
		const char *value = psd_row_text(&finder->results->rows[r], column);
		const size_t room = strlen(finder->keys[r]) + strlen(value) + 2;
		char *key = psd_arena_take(&finder->results->arena, room);

		finder->is_out_of_memory = finder->is_out_of_memory || !key;
		if (key) {
			snprintf(key, room, "%s\1%s", finder->keys[r], value);
			finder->keys[r] = key;
		}
	}
}

static bool is_alias(const char *column, const char *over)
{
	return !strcmp(column, over) || (!strcmp(column, "nodes") && !strcmp(over, "workers")) ||
	       (!strcmp(column, "workers") && !strcmp(over, "nodes"));
}

/* Takes a column that tells rows apart, unless the x axis does, too. */
static void consider(struct finder *finder, const char *column)
{
	struct psd_name_columns *names = finder->names;

	if (is_alias(column, finder->over) || names->n == PSD_NAME_COLUMNS_MAX ||
	    !is_split(finder->results, finder->keys, column) || !is_split(finder->results, finder->at, column))
		return;
	names->columns[names->n++] = column;
	extend_keys(finder, column);
}

bool psd_columns_is_swept(const struct psd_table *table, unsigned column)
{
	unsigned c = 0;

	while (c < table->n_columns && strcmp(table->names[c], before_swept) != 0)
		c++;
	return column > c && !psd_spelling_is_one_of(table->names[column], behind_swept);
}

/* Common beginning and end of several titles. They end at a comma and begin at a blank or bracket. */
static void find_common_ends(struct psd_name_columns *names, const struct psd_results *results)
{
	const char *first = results->n_rows ? psd_row_text(&results->rows[0], "scenario") : "";
	const size_t length = strlen(first);
	size_t head = length, tail = length;
	bool is_one = true;

	for (unsigned r = 1; r < results->n_rows; r++) {
		const char *other = psd_row_text(&results->rows[r], "scenario");
		const size_t other_length = strlen(other);
		size_t n = 0;

		is_one = is_one && !strcmp(first, other);
		while (n < head && other[n] == first[n])
			n++;
		head = n;
		for (n = 0; n < tail && n < other_length && first[length - 1 - n] == other[other_length - 1 - n];)
			n++;
		tail = n;
	}
	while (head > 0 && (head < 2 || strncmp(first + head - 2, ", ", 2) != 0))
		head--;
	while (tail > 0 && strncmp(first + length - tail, " (", 2) != 0 && strncmp(first + length - tail, ", ", 2) != 0)
		tail--;
	for (unsigned r = 0; r < results->n_rows && head + tail; r++) /* one that says no more than the others share */
		if (strlen(psd_row_text(&results->rows[r], "scenario")) <= head + tail)
			head = tail = 0;
	names->head = is_one ? 0 : (unsigned)head;
	names->tail = is_one ? 0 : (unsigned)tail;
}

enum psd_status psd_name_columns_find(struct psd_name_columns *names, struct psd_results *results, const char *over,
				      struct psd_error *err)
{
	const size_t room = (results->n_rows + 1) * sizeof(char *);
	struct finder finder = {.names = names,
				.results = results,
				.over = over,
				.keys = psd_arena_take(&results->arena, room),
				.at = psd_arena_take(&results->arena, room)};

	*names = (struct psd_name_columns){.keys = finder.keys};
	if (!finder.keys || !finder.at)
		return psd_out_of_memory(err);
	for (unsigned r = 0; r < results->n_rows; r++) {
		finder.keys[r] = psd_row_text(&results->rows[r], "system");
		finder.at[r] = psd_row_text(&results->rows[r], over);
	}
	for (unsigned i = 0; case_columns[i]; i++)
		consider(&finder, case_columns[i]);
	for (unsigned t = 0; t < results->n_tables; t++)
		for (unsigned c = 0; c < results->tables[t].n_columns; c++)
			if (psd_columns_is_swept(&results->tables[t], c))
				consider(&finder, results->tables[t].names[c]);
	for (unsigned i = 0; last_columns[i]; i++)
		consider(&finder, last_columns[i]);
	find_common_ends(names, results);
	return finder.is_out_of_memory ? psd_out_of_memory(err) : PSD_OK;
}

/* ---- words ---- */

const char *psd_columns_quantity(struct psd_figure *figure, const char *column, double value)
{
	char words[PSD_WORDS_MAX];

	if (psd_words_ends_with(column, "_bps"))
		return psd_figure_text(figure, "%s", psd_words_bandwidth(value, words));
	if (psd_words_ends_with(column, "_bytes"))
		return psd_figure_text(figure, "%s", psd_words_bytes(value, words));
	if (psd_words_ends_with(column, "_sec"))
		return psd_figure_text(figure, "%s", psd_units_write_seconds(value, words));
	return psd_figure_text(figure, "%g", value);
}

const char *psd_columns_value(struct psd_figure *figure, const struct psd_name_columns *names,
			      const struct psd_row *row, const char *column)
{
	const char *text = psd_row_text(row, column), *words;
	double value;

	if (!strcmp(column, "scenario") && names)
		return psd_figure_text(figure, "%.*s", (int)(strlen(text) - names->head - names->tail),
				       text + names->head);
	if (!strcmp(column, "bandwidth_bps") && !*text)
		return "own platform";
	if (!psd_results_read_number(text, &value))
		return text;
	words = psd_columns_quantity(figure, column, value);
	if (!strcmp(column, "workers"))
		return psd_figure_text(figure, value == 1 ? "%s worker" : "%s workers", words);
	if (!strcmp(column, "nodes"))
		return psd_figure_text(figure, value == 1 ? "%s node" : "%s nodes", words);
	if (psd_words_ends_with(column, "batch_per_worker"))
		return psd_figure_text(figure, "batch %s", words);
	return words[strspn(words, "0123456789.eE+-")]
		       ? words
		       : psd_figure_text(figure, "%s %s", psd_columns_label(figure, column), words);
}

const char *psd_columns_label(struct psd_figure *figure, const char *column)
{
	static const char *const known[][2] = {{"bandwidth_bps", "bandwidth of a link"},
					       {"fuse_bytes", "bucket size"},
					       {"batch_per_worker", "samples of a worker"},
					       {"model.batch_per_worker", "samples of a worker"},
					       {"cluster.network.latency_sec", "latency"}};
	static const char *const units[] = {"_bps", "_bytes", "_sec"};
	const char *dot = strrchr(column, '.');

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (!strcmp(column, known[i][0]))
			return known[i][1];
	column = dot && !strncmp(column, "systems.", 8) ? dot + 1 : column;
	size_t length = strlen(column);
	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++)
		if (psd_words_ends_with(column, units[i]))
			length = strlen(column) - strlen(units[i]);
	return psd_figure_text(figure, "%.*s", (int)length, column);
}

/* True if the rows of the row's system have several values in the column. */
static bool varies(const struct psd_results *results, const struct psd_row *row, const char *column)
{
	const char *system_name = psd_row_text(row, "system"), *value = psd_row_text(row, column);

	for (unsigned r = 0; r < results->n_rows; r++)
		if (!strcmp(psd_row_text(&results->rows[r], "system"), system_name) &&
		    strcmp(psd_row_text(&results->rows[r], column), value) != 0)
			return true;
	return false;
}

const char *psd_columns_name(struct psd_figure *figure, const struct psd_name_columns *names,
			     const struct psd_results *results, const struct psd_row *row, bool is_full,
			     const char *except)
{
	const char *name = "";

	for (unsigned i = 0; i < names->n; i++) {
		const char *column = names->columns[i], *value = psd_columns_value(figure, names, row, column);

		if ((except && !strcmp(column, except)) || !*psd_row_text(row, column) || !*value ||
		    (!is_full && !varies(results, row, column)))
			continue;
		name = psd_figure_text(figure, "%s%s%s", name, *name ? ", " : "", value);
	}
	return name;
}

const char *psd_columns_title(struct psd_figure *figure, const struct psd_name_columns *names,
			      const struct psd_results *results, const char *other)
{
	const char *first = results->n_rows ? psd_row_text(&results->rows[0], "scenario") : "";
	struct psd_range bps = {.is_there = false};
	double value;

	if (psd_columns_count(results, "scenario") == 1) {
		for (unsigned r = 0; r < results->n_rows; r++)
			if (psd_results_read_number(psd_row_text(&results->rows[r], "bandwidth_bps"), &value) &&
			    value > 0)
				psd_range_add(&bps, value);
		return psd_words_title_at(&figure->arena, first, &bps);
	}
	const char *end = first + strlen(first) - names->tail;
	int head = (int)names->head;

	while (head > 0 && strchr(", ", first[head - 1]))
		head--;
	if (!head && !strncmp(end, " (", 2) && psd_words_ends_with(end, ")"))
		return psd_figure_text(figure, "%.*s", (int)strlen(end) - 3, end + 2);
	return head || *end ? psd_figure_text(figure, "%.*s%s", head, first, !head && *end ? end + 2 : end) : other;
}
