/* Reads results and matches them point by point. The first file has the predictions; the next one, with --calibrated,
 * the rows that a calibration used; all others have measured runs, one in a row. A point has one prediction, or one for
 * each run in their order. */
#include "plots/compare_match.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/grow.h"

enum { DIGITS_MAX = 15 };
static const double number_max = 1e15;

const char *const psd_compared_names[PSD_COMPARED] = {"iteration_sec", "compute_sec", "exposed_comm_sec",
						      "tx_bytes_per_node", "rx_bytes_per_node"};
const char psd_matching_columns[] = "scenario system executor nodes workers bandwidth_bps iteration_sec compute_sec "
				    "exposed_comm_sec tx_bytes_per_node rx_bytes_per_node";

/* A row that is being read. */
struct entry {
	const struct psd_row *row;
	const char *title, *system_name, *executor, *bps_text, *fuse, *key, *sizes;
	double nodes, workers, bps;
	struct psd_sample sample;
};

const char *psd_matching_key(const struct psd_matching *matching, const char *one, const char *other)
{
	return psd_figure_text(matching->comparison->figure, "%s\1%s", one, other);
}

/* A number whose limits keep quotients, sums and axes from overflowing. */
static enum psd_status read_number(const struct psd_matching *matching, const struct psd_row *row, const char *column,
				   double least, double *value)
{
	const char *text = psd_row_text(row, column);

	if (psd_results_read_number(text, value) && *value >= least && *value <= number_max)
		return PSD_OK;
	return psd_row_refuse(row, matching->err, "'%s' is '%.80s', must be a number from %g to 1e15", column, text,
			      least);
}

/* All digits count: up to 15 of them. */
static enum psd_status read_whole(const struct psd_matching *matching, const struct psd_row *row, const char *column,
				  double least, double *value)
{
	const char *text = psd_row_text(row, column);

	if (*text && !text[strspn(text, "0123456789")] && strlen(text) <= DIGITS_MAX &&
	    (*value = strtod(text, NULL)) >= least)
		return PSD_OK;
	return psd_row_refuse(row, matching->err, "'%s' is '%.80s', must be a whole number of %g or more", column, text,
			      least);
}

static enum psd_status read_entry(const struct psd_matching *matching, const struct psd_row *row, struct entry *entry)
{
	double fuse_bytes;

	*entry = (struct entry){.row = row,
				.title = psd_row_text(row, "scenario"),
				.system_name = psd_row_text(row, "system"),
				.executor = psd_row_text(row, "executor"),
				.bps_text = psd_row_text(row, "bandwidth_bps"),
				.fuse = psd_row_text(row, "fuse_bytes")};
	PSD_TRY(read_whole(matching, row, "nodes", 1, &entry->nodes));
	PSD_TRY(read_whole(matching, row, "workers", 1, &entry->workers));
	if (*entry->bps_text)
		PSD_TRY(read_number(matching, row, "bandwidth_bps", 1, &entry->bps));
	for (unsigned f = 0; f < PSD_COMPARED; f++)
		PSD_TRY((f < PSD_COMPARED_SECONDS ? read_number : read_whole)(matching, row, psd_compared_names[f],
									      f == PSD_COMPARED_ITERATION ? 1e-12 : 0,
									      &entry->sample.values[f]));
	PSD_TRY(psd_row_read_positive(row, "fuse_bytes", true, &fuse_bytes, matching->err));
	PSD_TRY(psd_row_check_numbers(row, matching->err));
	entry->sizes = psd_figure_text(matching->comparison->figure, "%s\1%.15g\1%.15g\1%.15g", entry->system_name,
				       entry->nodes, entry->workers, *entry->bps_text ? entry->bps : 0);
	entry->key = psd_matching_key(matching, entry->sizes, entry->fuse);
	return PSD_OK;
}

static enum psd_status add_sample(struct psd_samples *samples, const struct entry *entry, struct psd_error *err)
{
	void *grown = psd_grown(samples->samples, samples->n, &samples->room, sizeof(*samples->samples));

	if (!grown)
		return psd_out_of_memory(err);
	samples->samples = grown;
	if (samples->n == 0) {
		samples->executor = entry->executor;
		samples->first = (struct psd_place){entry->row->table->path, entry->row->line, 0};
	}
	samples->samples[samples->n++] = entry->sample;
	return PSD_OK;
}

static void note_executor(struct psd_matching *matching, enum psd_role_of_file role, const char *executor)
{
	unsigned *n = &matching->n_executors[role], i = 0;

	while (i < *n && strcmp(matching->executors[role][i], executor) < 0)
		i++;
	if (*n == 8 || (i < *n && !strcmp(matching->executors[role][i], executor)))
		return;
	memmove(&matching->executors[role][i + 1], &matching->executors[role][i],
		(*n - i) * sizeof(matching->executors[role][0]));
	matching->executors[role][i] = executor;
	++*n;
}

/* ---- predictions ---- */

static enum psd_status add_point(struct psd_matching *matching, const struct entry *entry, unsigned *number)
{
	struct psd_comparison *comparison = matching->comparison;
	void *grown = psd_grown(comparison->points, comparison->n_points, &comparison->points_room,
				sizeof(*comparison->points));

	if (!grown)
		return psd_out_of_memory(matching->err);
	comparison->points = grown;
	comparison->points[comparison->n_points] = (struct psd_compared_point){
		.title = entry->title,
		.system_name = entry->system_name,
		.key = entry->key,
		.sizes = psd_matching_key(matching, entry->sizes, entry->title),
		.fuse = entry->fuse,
		.nodes = entry->nodes,
		.workers = entry->workers,
		.bps_text = entry->bps_text,
		.bps = entry->bps,
	};
	*number = comparison->n_points;
	if (!psd_names_put(&matching->points, psd_matching_key(matching, entry->key, entry->title), *number))
		return psd_out_of_memory(matching->err);
	comparison->n_points++;
	return PSD_OK;
}

/* A prediction whose constants were fitted to the published value of its point counts as calibrated. */
static enum psd_status add_predicted(struct psd_matching *matching, const struct entry *entry)
{
	struct psd_compared_point *point = NULL;
	unsigned number;
	bool is_fitted;

	if (psd_row_is_executed(entry->row))
		return psd_row_refuse(entry->row, matching->err,
				      "'executor' is '%s', must be one that predicts, such as sim-flow: the first file "
				      "is the predicted one",
				      entry->executor);
	if (!psd_names_find(&matching->points, psd_matching_key(matching, entry->key, entry->title), &number))
		PSD_TRY(add_point(matching, entry, &number));
	point = &matching->comparison->points[number];
	if (point->predictions.n && strcmp(point->predictions.executor, entry->executor) != 0)
		return psd_row_refuse(entry->row, matching->err,
				      "'executor' is '%s', must be '%s' as in line %u, which predicts the same point",
				      entry->executor, point->predictions.executor, point->line);
	PSD_TRY(psd_row_read_fitted(entry->row, &is_fitted, matching->err));
	point->line = entry->row->line;
	point->is_fitted = point->is_fitted || is_fitted;
	note_executor(matching, PSD_FILE_PREDICTED, entry->executor);
	return add_sample(&point->predictions, entry, matching->err);
}

static enum psd_status add_calibrated(struct psd_matching *matching, const struct entry *entry)
{
	struct psd_comparison *comparison = matching->comparison;
	const char *key = psd_matching_key(matching, entry->key, entry->title);
	unsigned number;

	comparison->calibrated_workers_most = fmax(comparison->calibrated_workers_most, entry->workers);
	if (psd_names_find(&matching->calibrated, key, &number))
		return PSD_OK;
	matching->calibrated_keys[matching->n_calibrated_keys++] = key;
	return psd_names_put(&matching->calibrated, key, 0) ? PSD_OK : psd_out_of_memory(matching->err);
}

/* ---- runs ---- */

/* Sets *found to the predicted point of a run. If no prediction has its title, the other columns must name one
 * point. */
static enum psd_status find_point(const struct psd_matching *matching, const struct entry *entry,
				  struct psd_compared_point **found)
{
	struct psd_comparison *comparison = matching->comparison;
	bool is_predicted_title = false;
	unsigned number, n_points = 0, only = 0;
	char nodes[PSD_WORDS_MAX], workers[PSD_WORDS_MAX], bandwidth[PSD_WORDS_MAX] = "own platform";

	for (unsigned p = 0; p < comparison->n_points; p++) {
		const bool is_here = !strcmp(comparison->points[p].key, entry->key);

		is_predicted_title = is_predicted_title || !strcmp(comparison->points[p].title, entry->title);
		n_points += is_here;
		only = is_here ? p : only;
	}
	if (is_predicted_title
		    ? psd_names_find(&matching->points, psd_matching_key(matching, entry->key, entry->title), &number)
		    : n_points == 1) {
		*found = &comparison->points[is_predicted_title ? number : only];
		return PSD_OK;
	}
	if (!is_predicted_title && n_points > 1)
		return psd_row_refuse(
			entry->row, matching->err,
			"'scenario' is '%s', must be a title in %s, where several scenarios have this point",
			entry->title, comparison->predicted_path);
	if (*entry->bps_text)
		psd_words_bandwidth(entry->bps, bandwidth);
	return psd_row_refuse(entry->row, matching->err, "%s, %s, %s, %s of '%s' is not predicted, must be a row of %s",
			      entry->system_name, psd_words_count((unsigned long)entry->nodes, "node", "nodes", nodes),
			      psd_words_count((unsigned long)entry->workers, "worker", "workers", workers), bandwidth,
			      entry->title, comparison->predicted_path);
}

static enum psd_status add_measured(struct psd_matching *matching, const struct entry *entry)
{
	struct psd_compared_point *point = NULL;

	if (!psd_row_is_executed(entry->row))
		return psd_row_refuse(
			entry->row, matching->err,
			"'executor' is '%s', must be one that runs, such as real-cpu: only the first file is "
			"the predicted one",
			entry->executor);
	PSD_TRY(find_point(matching, entry, &point));
	const struct psd_place first = point->runs.first;

	if (point->runs.n == 0)
		point->run_title = entry->title;
	else if (strcmp(point->run_title, entry->title) != 0)
		return psd_row_refuse(entry->row, matching->err,
				      "'scenario' is '%s', must be '%s' as in %s:%u, which is a run of the same point",
				      entry->title, point->run_title, first.path, first.line);
	else if (strcmp(point->runs.executor, entry->executor) != 0)
		return psd_row_refuse(entry->row, matching->err,
				      "'executor' is '%s', must be '%s' as in %s:%u, which is a run of the same point",
				      entry->executor, point->runs.executor, first.path, first.line);
	note_executor(matching, PSD_FILE_MEASURED, entry->executor);
	matching->comparison->n_runs++;
	return add_sample(&point->runs, entry, matching->err);
}

enum psd_status psd_matching_read(struct psd_matching *matching)
{
	const bool has_calibrated = matching->comparison->calibrated_path;
	struct psd_results *results = matching->results;

	matching->calibrated_keys =
		psd_arena_take(&results->arena, (results->n_rows + 1) * sizeof(*matching->calibrated_keys));
	if (!matching->calibrated_keys)
		return psd_out_of_memory(matching->err);
	for (unsigned r = 0; r < results->n_rows; r++) {
		const struct psd_row *row = &results->rows[r];
		struct entry entry;

		PSD_TRY(read_entry(matching, row, &entry));
		if (row->table == &results->tables[0])
			PSD_TRY(add_predicted(matching, &entry));
		else if (has_calibrated && row->table == &results->tables[1])
			PSD_TRY(add_calibrated(matching, &entry));
		else
			PSD_TRY(add_measured(matching, &entry));
	}
	for (unsigned t = 0; t < results->n_tables; t++)
		if (!results->tables[t].n_rows)
			return psd_error_set(matching->err, PSD_EINVAL,
					     (struct psd_place){results->tables[t].path, 2, 0},
					     "has no result, must have a row for each %s",
					     t == 0			? "point"
					     : t == 1 && has_calibrated ? "point that was calibrated"
									: "run");
	return PSD_OK;
}
