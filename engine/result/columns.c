/* A row for each column, from which CSV, JSON and tables follow. */
#include "engine/result/columns.h"

#include <math.h>

#include "engine/base/grid.h"
#include "engine/base/units.h"

enum { SEC_DIGITS = 9, RATE_DIGITS = 15, RATIO_DIGITS = 6 };

enum kind { TEXT, WORDS, COUNT, BYTES, NUMBER, VALUE, FLAG }; /* words: text in the result itself */

/* Form in a table. Every row of the first three forms has the decimals that the smallest figure needs. */
enum show {
	SHOW_SEC,
	SHOW_IMAGES,
	SHOW_MB,
	SHOW_TEXT,
	SHOW_COUNT,
	SHOW_RATE,
	SHOW_SIZE,
	SHOW_RATIO,
	SHOW_PLAIN,
	SHOW_PERCENT,
	SHOW_ERROR,
	SHOW_SHARE, /* percentage with one decimal */
	SHOW_NUMBER /* four digits, four decimals at most */
};
enum { SHOWN_ALIKE = 3 };

enum column_id {
	SCENARIO,
	SYSTEM,
	EXECUTOR,
	NODES,
	WORKERS,
	BANDWIDTH,
	ITERATION,
	IMAGES,
	SPEEDUP,
	COMPUTE,
	EXPOSED,
	SENT,
	RECEIVED,
	PUBLISHED_IMAGES,
	PUBLISHED_SPEEDUP,
	ERROR,
	OTHER_WORK,
	OTHER_WAITING,
	FUSE,
	FITTED,
	LIMIT,
	TOKENS,
	P50,
	P95,
	P99,
	LOW,
	HIGH,
	EFFICIENCY,
	MEMORY,
	HOURS,
	COST,
	COLUMNS, /* number of columns in every CSV; the next ones are there if keys are swept, before these keys */
	MODEL = COLUMNS,
	BATCH,
	PRECISION,
	DEVICE,
	STACK,
	SWEPT_COLUMNS, /* the next ones are in tables only */
	BEYOND = SWEPT_COLUMNS,
	LOSS,
	ACCURACY,
	DILATION,
	BUSY,
	ALL_COLUMNS
};

static const struct column {
	const char *name;
	const char *upper, *lower; /* a table's head */
	enum show show;
	enum kind kind;
	size_t offset;
	int digits; /* in CSV; of a percentage: decimals */
	const char *unit, *meaning;
	const char *lower_msec; /* head in a table in milliseconds */
} columns[ALL_COLUMNS] = {
#define AT(member) offsetof(struct psd_result, member)
	[SCENARIO] = {"scenario", "", "", SHOW_TEXT, TEXT, AT(scenario), 0, "", "title of the scenario"},
	[SYSTEM] = {"system", "", "system", SHOW_TEXT, TEXT, AT(system_name), 0, "",
		    "name of the system in the scenario"},
	[EXECUTOR] =
		{"executor", "", "", SHOW_TEXT, TEXT, AT(executor), 0, "",
		 "program and method that made the row. `sim-flow` and `sim-message` are simulations of that fidelity, "
		 "`estimate` is an estimate in closed form; `real-cpu` and `real-cuda` are training on that device, "
		 "`real-replay` is a replay, `real-cpu-replay` a replay in which some workers compute. `-paced` is "
		 "appended if there were no emulated links, and processes limited their own rates"},
	[NODES] = {"nodes", "", "nodes", SHOW_COUNT, COUNT, AT(point.nodes), 0, "", "number of nodes with workers"},
	[WORKERS] = {"workers", "", "workers", SHOW_COUNT, COUNT, AT(point.workers), 0, "",
		     "number of workers on all nodes"},
	[BANDWIDTH] = {"bandwidth_bps", "", "link", SHOW_RATE, VALUE, AT(bandwidth_bps), RATE_DIGITS, "bit/s",
		       "bandwidth of each node's link, each direction; if each group has its own, that of the slowest; "
		       "empty if the run was not limited to the scenario's bandwidth"},
	[ITERATION] =
		{"iteration_sec", "iteration", "s", SHOW_SEC, NUMBER, AT(outcome.iteration_sec), SEC_DIGITS, "s",
		 "duration of an iteration: mean over the measured iterations of a prediction, median in a real run",
		 "ms"},
	[IMAGES] = {"images_per_sec", "", "samples/s", SHOW_IMAGES, NUMBER, AT(images_per_sec), SEC_DIGITS, "1/s",
		    "samples per second that all workers together train on"},
	[SPEEDUP] = {"speedup", "", "speedup", SHOW_RATIO, VALUE, AT(speedup), RATIO_DIGITS, "",
		     "`images_per_sec` divided by that of the `baseline`, which is a single worker. If it is compute, "
		     "that worker only computes layers; in a real run the fastest system without factors (sync sfb) "
		     "decides. Empty if it was not measured"},
	[COMPUTE] = {"compute_sec", "compute", "s", SHOW_SEC, NUMBER, AT(outcome.parts.compute_sec), SEC_DIGITS, "s",
		     "part of `iteration_sec` in which the device executes forward and backward passes, except "
		     "gradients that it rebuilds from factors (sync sfb)",
		     "ms"},
	[EXPOSED] = {"exposed_comm_sec", "exposed", "comm s", SHOW_SEC, NUMBER, AT(outcome.parts.exposed_comm_sec),
		     SEC_DIGITS, "s",
		     "part of `iteration_sec` in which the device waits while data is copied between device and host, "
		     "sent, received or summed, or waits for that in a queue. nccl-tests' `algbw` is the gradient's "
		     "bytes over it, `busbw` that times 2 (N - 1) / N",
		     "comm ms"},
	[SENT] = {"tx_bytes_per_node", "sent", "MB/node", SHOW_MB, BYTES, AT(outcome.sent_bytes_per_node), 0, "byte",
		  "bytes sent to other nodes in an iteration, by the node that sends most"},
	[RECEIVED] = {"rx_bytes_per_node", "", "", SHOW_MB, BYTES, AT(outcome.received_bytes_per_node), 0, "byte",
		      "bytes received from other nodes in an iteration, by the node that receives most"},
	[PUBLISHED_IMAGES] = {"published_images_per_sec", "published", "samples/s", SHOW_IMAGES, VALUE,
			      AT(published_images_per_sec), SEC_DIGITS, "1/s",
			      "published samples per second of all workers; empty if none are published"},
	[PUBLISHED_SPEEDUP] = {"published_speedup", "published", "speedup", SHOW_RATIO, VALUE, AT(published_speedup),
			       RATIO_DIGITS, "", "published speedup; empty if none is published"},
	[ERROR] = {"error_ratio", "error", "%  ", SHOW_ERROR, VALUE, AT(error_ratio), RATIO_DIGITS, "",
		   "predicted / published - 1, of samples per second if they are published, else of the speedup. Empty "
		   "if nothing is published"},
	[OTHER_WORK] = {"other_work_sec", "other", "work s", SHOW_SEC, NUMBER, AT(outcome.parts.other_work_sec),
			SEC_DIGITS, "s",
			"part of `iteration_sec` in which the device executes other operations: gradients from "
			"factors, compression, low-rank factors, updates, bookkeeping of the stack at the end",
			"work ms"},
	[OTHER_WAITING] = {"other_waiting_sec", "other", "wait s", SHOW_SEC, NUMBER,
			   AT(outcome.parts.other_waiting_sec), SEC_DIGITS, "s",
			   "part of `iteration_sec` in which the device waits for something else, such as a slower "
			   "worker's layers or a processor core",
			   "wait ms"},
	[FUSE] = {"fuse_bytes", "bucket", "size", SHOW_SIZE, VALUE, AT(fuse_bytes), RATE_DIGITS, "byte",
		  "smallest size of the system's buckets; empty if it does not fuse tensors, or with `fuse: auto`"},
	[FITTED] = {"is_fitted", "", "", SHOW_TEXT, FLAG, AT(is_fitted), 0, "",
		    "`yes` if a constant was fitted to the published value, so that its error does not test the "
		    "prediction; `no` for other published values; empty without one. In JSON true, false and null"},
	[LIMIT] =
		{"limit", "", "limit", SHOW_TEXT, WORDS, AT(limit), 0, "",
		 "resource that limits a prediction: `device`; `link`; `local link` (inside a node); `uplinks` (of "
		 "racks); `stack` (host.transport, "
		 "host.incast); `budget` (systems.budget); `servers` (their processors); `copies` (between device and "
		 "host); two of them that work alternately, as in `device+link`; `waiting` (latency, or stages that "
		 "cannot overlap); `cores`; `jitter` (also spread, tail); a slow node (`node 3`) or its link (`link of "
		 "node 3`); the group that computes longest (`group 1`). Empty in a real run"},
	[TOKENS] = {"tokens_per_sec", "", "tokens/s", SHOW_IMAGES, VALUE, AT(tokens_per_sec), SEC_DIGITS, "1/s",
		    "tokens per second that all workers together train on; empty if the input is not a sequence"},
#define PERCENTILE(name, p, percent)                                                                                   \
	{                                                                                                              \
		name, "", "p" percent " s", SHOW_SEC, VALUE, AT(percentiles_sec[p]), SEC_DIGITS, "s",                  \
			"duration that " percent                                                                       \
			" % of the measured iterations do not exceed; empty in a real run, and without "               \
			"`compute.jitter`, `compute.spread` and `compute.tail`",                                       \
			"p" percent " ms"                                                                              \
	}
	[P50] = PERCENTILE("iteration_p50_sec", PSD_P50, "50"),
	[P95] = PERCENTILE("iteration_p95_sec", PSD_P95, "95"),
	[P99] = PERCENTILE("iteration_p99_sec", PSD_P99, "99"),
#undef PERCENTILE
	[LOW] = {"low", "low", "samples/s", SHOW_IMAGES, VALUE, AT(low), SEC_DIGITS, "1/s",
		 "lower end of the prediction's band, in samples per second as `images_per_sec`. The band holds 8 of "
		 "10 published values of the system's stack to which the stack was not fitted. Empty if it has too few "
		 "such values, with one worker and in a real run"},
	[HIGH] = {"high", "high", "samples/s", SHOW_IMAGES, VALUE, AT(high), SEC_DIGITS, "1/s",
		  "upper end of the band, in samples per second, see `low`"},
	[EFFICIENCY] = {"efficiency", "", "efficiency", SHOW_SHARE, VALUE, AT(efficiency_ratio), RATIO_DIGITS, "",
			"`images_per_sec` divided by that of as many workers that only compute; empty in a real run"},
	[MEMORY] = {"memory_bytes", "memory", "worker", SHOW_SIZE, VALUE, AT(memory_bytes), RATE_DIGITS, "byte",
		    "memory that a worker's device needs in psd-run for parameters, gradients, optimiser, "
		    "activations, buffers of the method, samples and workspace; empty in a real run"},
	[HOURS] = {"hours", "job", "hours", SHOW_NUMBER, VALUE, AT(job_hours), SEC_DIGITS, "h",
		   "duration of the whole `job` in hours, until the slowest worker ends; empty without "
		   "`job.samples`"},
	[COST] = {"cost", "job", "cost", SHOW_NUMBER, VALUE, AT(job_cost), SEC_DIGITS, "",
		  "money for the whole `job`, in the unit of `job.price`; empty without `job.samples` and `job.price`"},
#define IF_SWEPT "; only if `sweep` has other keys than nodes, workers, bandwidth and fuse"
	[MODEL] = {"model", "", "", SHOW_TEXT, TEXT, AT(model), 0, "", "name of the model" IF_SWEPT},
	[BATCH] = {"batch_per_worker", "", "", SHOW_COUNT, COUNT, AT(batch), 0, "", "samples of a worker" IF_SWEPT},
	[PRECISION] = {"precision", "", "", SHOW_TEXT, TEXT, AT(precision), 0, "", "precision of layers" IF_SWEPT},
	[DEVICE] = {"device", "", "", SHOW_TEXT, TEXT, AT(device), 0, "",
		    "device of a worker, or path of its profile" IF_SWEPT},
	[STACK] = {"stack", "", "", SHOW_TEXT, TEXT, AT(stack), 0, "", "software stack of the system" IF_SWEPT},
#undef IF_SWEPT
	[BEYOND] = {NULL, "beyond", "calibration", SHOW_TEXT, TEXT, AT(beyond), 0, "", ""},
	[LOSS] = {NULL, "last", "loss", SHOW_PLAIN, VALUE, AT(last_loss), 0, "", ""},
	[ACCURACY] = {NULL, "test", "accuracy", SHOW_PERCENT, VALUE, AT(accuracy_ratio), 2, "", ""},
	[DILATION] = {NULL, "", "dilation", SHOW_PLAIN, VALUE, AT(dilation_ratio), 0, "", ""},
	[BUSY] = {NULL, "machine", "busy", SHOW_PERCENT, VALUE, AT(busy_ratio), 0, "", ""},
#undef AT
};

static struct psd_result_value number_of(const struct psd_result *result, const struct column *column)
{
	const void *at = (const char *)result + column->offset;

	switch (column->kind) {
	case COUNT: return (struct psd_result_value){true, *(const unsigned *)at};
	case BYTES: return (struct psd_result_value){true, (double)*(const uint64_t *)at};
	case NUMBER: return (struct psd_result_value){true, *(const double *)at};
	case VALUE:
	case FLAG: return *(const struct psd_result_value *)at;
	case TEXT:
	case WORDS: break;
	}
	return (struct psd_result_value){false, 0.0};
}

static const char *text_of(const struct psd_result *result, const struct column *column)
{
	const void *at = (const char *)result + column->offset;

	if (column->kind == TEXT)
		return *(const char *const *)at;
	return column->kind == WORDS && *(const char *)at ? at : NULL;
}

/* Columns of a sweep in parts, behind all others. */
static bool shard_field(const struct psd_result *result, unsigned c, struct psd_field *field)
{
	const struct psd_field fields[] = {
		{.name = "settings", .text = result->settings},
		{.name = "shard", .text = result->shard},
		{.name = "row", .number = {true, result->row}},
		{.name = "rows", .number = {true, result->n_rows}},
	};

	if (!result->shard || c >= sizeof(fields) / sizeof(fields[0]))
		return false;
	*field = fields[c];
	return true;
}

/* Tells whether a swept key has a value for the result: keys of a system have none for other systems. */
static bool has_swept(const struct psd_result *result, unsigned key)
{
	const unsigned system = psd_scenario_swept_system(result->swept, key);

	return system == result->swept->n_systems || !result->system ||
	       result->system == &result->swept->systems[system];
}

bool psd_result_field(const struct psd_result *result, unsigned c, struct psd_field *field)
{
	const unsigned n_columns = result->swept ? SWEPT_COLUMNS : COLUMNS;

	if (c >= n_columns && result->swept && c < n_columns + result->swept->n_swept) {
		const struct psd_swept *swept = &result->swept->swept[c - n_columns];
		const bool is_there = has_swept(result, c - n_columns);

		*field = (struct psd_field){.name = swept->column,
					    .text = swept->has_number || !is_there ? NULL : swept->value,
					    .number = {swept->has_number && is_there, swept->number},
					    .digits = RATE_DIGITS};
		return true;
	}
	if (c >= n_columns)
		return shard_field(result, c - n_columns - (result->swept ? result->swept->n_swept : 0), field);
	*field = (struct psd_field){columns[c].name,   text_of(result, &columns[c]), number_of(result, &columns[c]),
				    columns[c].digits, columns[c].kind == FLAG,	     columns[c].kind == WORDS};
	return true;
}

/* ---- CSV ---- */

void psd_columns_add_csv_head(struct psd_text *text, const struct psd_result *example)
{
	static const struct psd_result plain;
	struct psd_field field;

	for (unsigned c = 0; psd_result_field(example ? example : &plain, c, &field); c++) {
		psd_text_add(text, "%s", c ? "," : "");
		psd_text_add_csv(text, field.name);
	}
	psd_text_add(text, "\n");
}

void psd_columns_add_csv(struct psd_text *text, const struct psd_result *result)
{
	struct psd_field field;

	if (result->is_refused)
		return;
	for (unsigned c = 0; psd_result_field(result, c, &field); c++) {
		psd_text_add(text, "%s", c ? "," : "");
		if (field.text)
			psd_text_add_csv(text, field.text);
		else if (field.is_flag)
			psd_text_add(text, "%s", !field.number.is_there ? "" : field.number.value > 0.0 ? "yes" : "no");
		else if (field.number.is_there && isfinite(field.number.value))
			psd_text_add(text, field.digits ? "%.*g" : "%.*f", field.digits, field.number.value);
	}
	psd_text_add(text, "\n");
}

/* ---- tables ---- */

/* In their order: the four parts of an iteration side by side. */
static const enum column_id in_tables[] = {NODES,
					   WORKERS,
					   BANDWIDTH,
					   FUSE,
					   SYSTEM,
					   ITERATION,
					   P50,
					   P95,
					   P99,
					   IMAGES,
					   TOKENS,
					   LOW,
					   HIGH,
					   SPEEDUP,
					   EFFICIENCY,
					   HOURS,
					   COST,
					   MEMORY,
					   COMPUTE,
					   OTHER_WORK,
					   EXPOSED,
					   OTHER_WAITING,
					   SENT,
					   PUBLISHED_IMAGES,
					   PUBLISHED_SPEEDUP,
					   ERROR,
					   LIMIT,
					   BEYOND,
					   LOSS,
					   ACCURACY,
					   DILATION,
					   BUSY};
enum { IN_TABLES = sizeof(in_tables) / sizeof(in_tables[0]) };

_Static_assert((int)IN_TABLES + (int)PSD_MAX_SWEPT <= (int)PSD_GRID_COLUMNS, "a grid holds every column");

/* Columns that a narrow terminal leaves out, those of least worth first. All others are shown. */
static const enum column_id by_worth[] = {
	BUSY,	 DILATION, P50, OTHER_WAITING, SENT,	 OTHER_WORK,	    LOW,    HIGH,	COMPUTE, P95,
	EXPOSED, BEYOND,   P99, TOKENS,	       ACCURACY, PUBLISHED_SPEEDUP, MEMORY, EFFICIENCY, COST,	 HOURS};
enum { WITH_WORTH = sizeof(by_worth) / sizeof(by_worth[0]) };

enum { KEPT_DIGITS = 3, RATIO_DECIMALS = 2, MOST_RATIO_DECIMALS = 6 };
static const int most_decimals[SHOWN_ALIKE] = {[SHOW_SEC] = 7, [SHOW_IMAGES] = 3, [SHOW_MB] = 3};

struct table {
	const struct psd_result *results;
	unsigned n_results;
	bool is_in_msec;
	double scales[SHOWN_ALIKE];
	int decimals[SHOWN_ALIKE];
};

#define LEAST_IN_SEC 0.01 /* a table with a shorter iteration or computation is in milliseconds */

/* The smallest of these figures above 0 keeps three digits, the others have no more decimals than it. */
static void find_decimals(struct table *table)
{
	static const enum column_id measures[] = {ITERATION, COMPUTE, IMAGES, SENT};
	double least[SHOWN_ALIKE] = {INFINITY, INFINITY, INFINITY};

	for (unsigned i = 0; i < table->n_results; i++)
		for (unsigned m = 0; m < sizeof(measures) / sizeof(measures[0]); m++) {
			const struct column *column = &columns[measures[m]];
			const double value = number_of(&table->results[i], column).value;

			if (value > 0.0 && !table->results[i].is_refused)
				least[column->show] = fmin(least[column->show], value);
		}
	table->is_in_msec = least[SHOW_SEC] < LEAST_IN_SEC;
	table->scales[SHOW_SEC] = table->is_in_msec ? 1e3 : 1;
	table->scales[SHOW_IMAGES] = 1;
	table->scales[SHOW_MB] = 1e-6;
	for (unsigned s = 0; s < SHOWN_ALIKE; s++)
		table->decimals[s] = psd_units_decimals(least[s] * table->scales[s], KEPT_DIGITS, most_decimals[s]);
}

/* Tells whether the scenario has the keys to which a column belongs. */
static bool is_asked(const struct psd_result *result, enum column_id c)
{
	if (c == MEMORY)
		return result->job && result->job->memory_bytes > 0;
	return c != EFFICIENCY || result->job;
}

/* Left out is what would say the same in every row: as many workers as nodes, one bandwidth, no such part of an
 * iteration. */
static bool says_something(const struct table *table, enum column_id c)
{
	const double least_sec = 0.5 * pow(10, -table->decimals[SHOW_SEC]) / table->scales[SHOW_SEC];

	for (unsigned i = 0; i < table->n_results; i++) {
		const struct psd_result *result = &table->results[i];

		if (!result->is_refused && is_asked(result, c) &&
		    (c != WORKERS || result->point.workers != result->point.nodes) &&
		    (c != FUSE || result->point.fuse_bytes > 0) &&
		    (c != BANDWIDTH || result->bandwidth_bps.value != table->results[0].bandwidth_bps.value) &&
		    ((c != OTHER_WORK && c != OTHER_WAITING) || number_of(result, &columns[c]).value >= least_sec))
			return true;
	}
	return false;
}

/* A ratio that two decimals would not show keeps two digits. */
static int ratio_decimals(double value)
{
	const int decimals = psd_units_decimals(value, 2, MOST_RATIO_DECIMALS);

	return decimals > RATIO_DECIMALS ? decimals : RATIO_DECIMALS;
}

static void set_number(struct psd_grid *grid, unsigned at, const struct table *table, const struct column *column,
		       const struct psd_result *result)
{
	const double value = number_of(result, column).value;
	char rate[PSD_UNITS_TEXT_MAX];

	switch (column->show) {
	case SHOW_SEC:
	case SHOW_IMAGES:
	case SHOW_MB:
		psd_grid_set_number(grid, at, value * table->scales[column->show], table->decimals[column->show]);
		break;
	case SHOW_COUNT: psd_grid_set(grid, at, "%.0f", value); break;
	case SHOW_RATE: psd_grid_set(grid, at, "%s", psd_units_write_rate(value, rate)); break;
	case SHOW_SIZE: psd_grid_set(grid, at, "%s", psd_units_write_bytes((uint64_t)value, rate)); break;
	case SHOW_RATIO: psd_grid_set_number(grid, at, value, ratio_decimals(value)); break;
	case SHOW_PLAIN: psd_grid_set(grid, at, isfinite(value) ? "%.4g" : "diverged", value); break;
	case SHOW_PERCENT: psd_grid_set(grid, at, "%.*f %%", column->digits, 100.0 * value); break;
	case SHOW_SHARE: psd_grid_set(grid, at, "%.1f %%", 100.0 * value); break;
	case SHOW_NUMBER: psd_grid_set_number(grid, at, value, psd_units_decimals(value, 4, 4)); break;
	case SHOW_ERROR:
		psd_grid_set(grid, at, "%+.1f %c", 100.0 * value, result->is_fitted.value > 0.0 ? 'c' : ' ');
		break;
	case SHOW_TEXT: break;
	}
}

static void set_cell(struct psd_grid *grid, unsigned at, const struct table *table, const struct column *column,
		     const struct psd_result *result)
{
	const char *text = text_of(result, column);

	if (text)
		psd_grid_set(grid, at, "%s", text);
	else if (number_of(result, column).is_there)
		set_number(grid, at, table, column, result);
}

static void add_column(struct psd_grid *grid, const struct table *table, enum column_id id)
{
	const struct column *column = &columns[id];
	const char *lower = table->is_in_msec && column->lower_msec ? column->lower_msec : column->lower;
	const unsigned at =
		psd_grid_add_column(grid, column->upper, lower, column->kind == TEXT || column->kind == WORDS);

	grid->is_whole[at] = id == LIMIT;
	for (unsigned w = 0; w < WITH_WORTH; w++)
		if (by_worth[w] == id)
			grid->worth[at] = w + 1;
}

/* Tells whether the system trains more samples per second at its point than all systems before it, and no fewer than
 * those behind it. */
static bool is_best(const struct psd_result results[], unsigned n_systems, unsigned n_points, unsigned s, unsigned p)
{
	const double own = results[s * n_points + p].images_per_sec;

	for (unsigned other = 0; other < n_systems; other++) {
		const struct psd_result *result = &results[other * n_points + p];

		if (!result->is_refused &&
		    (result->images_per_sec > own || (other < s && result->images_per_sec == own)))
			return false;
	}
	return n_systems > 1;
}

void psd_columns_add_table(struct psd_text *text, const struct psd_result results[], unsigned n_systems,
			   unsigned n_points)
{
	struct table table = {.results = results, .n_results = n_systems * n_points};
	const struct psd_scenario *swept = table.n_results ? results[0].swept : NULL;
	const unsigned n_swept = swept ? swept->n_swept : 0;
	struct psd_grid grid = {.n_rows = 0};

	find_decimals(&table);
	for (unsigned k = 0; k < n_swept; k++)
		psd_grid_add_column(&grid, swept->swept[k].section, swept->swept[k].name, !swept->swept[k].has_number);
	for (unsigned t = 0; t < IN_TABLES; t++)
		add_column(&grid, &table, in_tables[t]);
	for (unsigned p = 0; p < n_points; p++) {
		if (n_systems > 1)
			psd_grid_add_gap(&grid);
		for (unsigned s = 0; s < n_systems; s++) {
			const struct psd_result *result = &results[s * n_points + p];

			if (result->is_refused)
				continue;
			psd_grid_add_row(&grid);
			if (is_best(results, n_systems, n_points, s, p))
				psd_grid_set_best(&grid);
			for (unsigned k = 0; k < n_swept; k++)
				psd_grid_set(&grid, k, "%s", has_swept(result, k) ? result->swept->swept[k].text : "");
			for (unsigned t = 0; t < IN_TABLES; t++)
				if (says_something(&table, in_tables[t]))
					set_cell(&grid, n_swept + t, &table, &columns[in_tables[t]], result);
		}
	}
	psd_grid_add(text, &grid);
	psd_grid_release(&grid);
}

/* ---- the reference ---- */

static void add_entry(struct psd_text *text, const struct psd_reference *how, const struct column *column)
{
	struct psd_text head = {.bytes = NULL};

	psd_text_add(&head, "%s%s%s", column->name, *column->unit ? ": " : "", column->unit);
	if (head.bytes)
		psd_reference_add(text, how, head.bytes, (const char *const[]){column->meaning, NULL});
	text->is_out_of_memory = text->is_out_of_memory || head.is_out_of_memory;
	psd_text_release(&head);
}

static void add_explained(struct psd_text *text, const struct psd_reference *how)
{
	for (const struct column *column = columns; column < columns + SWEPT_COLUMNS; column++) {
		if (!psd_reference_has(how, column->name, column->meaning))
			continue;
		if (how->is_markdown)
			psd_text_add(text, "| `%s` | %s | %s |\n", column->name, column->unit, column->meaning);
		else
			add_entry(text, how, column);
	}
}

enum psd_status psd_columns_add_reference(struct psd_text *text, const struct psd_reference *how, struct psd_error *err)
{
	struct psd_reference in_texts;

	if (how->is_markdown)
		psd_text_add(text, "| column | unit | meaning |\n|---|---|---|\n");
	add_explained(text, how);
	if (psd_reference_searches_texts(text, how, &in_texts))
		add_explained(text, &in_texts);
	return psd_reference_check(text, how, "column", err);
}
