/* The reader of published values. Refuses a value without a source, and a point that is there twice. */
#include "engine/scenario/published.h"

#include <stdlib.h>
#include <string.h>

#include "engine/base/csv.h"
#include "engine/base/grow.h"
#include "engine/base/units.h"
#include "engine/scenario/scenario.h"

enum column { SYSTEM, WORKERS, IMAGES_PER_SEC, SPEEDUP, USE, SOURCE, N_COLUMNS };
static const char header[] = "system,workers,images_per_sec,speedup,use,source";

static enum psd_status read_figure(double *figure, bool *has_figure, const struct psd_csv *csv, const char *name,
				   const char *text, struct psd_error *err)
{
	*has_figure = *text != '\0';
	if (*has_figure && (!psd_units_read_number(text, figure) || *figure <= 0))
		return psd_error_set(err, PSD_EINVAL, csv->at, "'%s' is '%.80s', must be a number above 0 or empty",
				     name, text);
	return PSD_OK;
}

static enum psd_status read_use(bool *is_fit, const struct psd_csv *csv, struct psd_error *err)
{
	const char *use = csv->cells[USE];

	*is_fit = !strcmp(use, "fit");
	if (!*is_fit && strcmp(use, "check"))
		return psd_error_set(err, PSD_EINVAL, csv->at, "'use' is '%.80s', must be fit or check", use);
	return PSD_OK;
}

static enum psd_status check_cells(const struct psd_csv *csv, struct psd_error *err)
{
	if (csv->n_cells != N_COLUMNS)
		return psd_error_set(err, PSD_EINVAL, csv->at, "the line has %u cells, must have the %d of '%s'",
				     csv->n_cells, N_COLUMNS, header);
	if (!*csv->cells[SYSTEM])
		return psd_error_set(err, PSD_EINVAL, csv->at, "'system' is empty, must be the name of a system");
	if (!*csv->cells[SOURCE])
		return psd_error_set(err, PSD_EINVAL, csv->at, "'source' is empty, must name the publication");
	if (!*csv->cells[IMAGES_PER_SEC] && !*csv->cells[SPEEDUP])
		return psd_error_set(err, PSD_EINVAL, csv->at,
				     "'images_per_sec' and 'speedup' are empty, one of them must have a value");
	return PSD_OK;
}

static enum psd_status read_row(struct psd_published_row *row, const struct psd_csv *csv, struct psd_error *err)
{
	const char *const *cells = csv->cells;
	uint64_t workers;

	PSD_TRY(check_cells(csv, err));
	if (!psd_units_read_count(cells[WORKERS], &workers) || workers < 1 ||
	    workers > PSD_MAX_NODES * PSD_MAX_WORKERS_PER_NODE)
		return psd_error_set(err, PSD_EINVAL, csv->at,
				     "'workers' is '%.80s', must be a whole number from 1 to %d", cells[WORKERS],
				     PSD_MAX_NODES * PSD_MAX_WORKERS_PER_NODE);
	row->workers = (unsigned)workers;
	PSD_TRY(read_figure(&row->images_per_sec, &row->has_images_per_sec, csv, "images_per_sec",
			    cells[IMAGES_PER_SEC], err));
	PSD_TRY(read_figure(&row->speedup, &row->has_speedup, csv, "speedup", cells[SPEEDUP], err));
	PSD_TRY(read_use(&row->is_fit, csv, err));
	row->system = cells[SYSTEM];
	row->line = csv->at.line;
	return PSD_OK;
}

static enum psd_status add_row(struct psd_published *published, uint32_t *room, const struct psd_csv *csv,
			       struct psd_error *err)
{
	struct psd_published_row row = {.system = NULL}, *grown;

	PSD_TRY(read_row(&row, csv, err));
	grown = psd_grown(published->rows, published->n_rows, room, sizeof(*grown));
	if (!grown)
		return psd_error_set(err, PSD_ENOMEM, csv->at, "out of memory");
	published->rows = grown;
	published->rows[published->n_rows++] = row;
	return PSD_OK;
}

static int compare_points(const void *left, const void *right)
{
	const struct psd_published_row *a = left, *b = right;
	const int order = strcmp(a->system, b->system);

	return order ? order : (a->workers > b->workers) - (a->workers < b->workers);
}

static int compare_rows(const void *left, const void *right)
{
	const struct psd_published_row *a = left, *b = right;
	const int order = compare_points(a, b);

	return order ? order : (a->line > b->line) - (a->line < b->line);
}

/* Sorts, and names the first row of the file that is there already. */
static enum psd_status sort(struct psd_published *published, const char *path, struct psd_error *err)
{
	const struct psd_published_row *rows = published->rows, *again = NULL;

	if (published->n_rows)
		qsort(published->rows, published->n_rows, sizeof(*rows), compare_rows);
	for (unsigned i = 1; i < published->n_rows; i++)
		if (!compare_points(&rows[i - 1], &rows[i]) && (!again || rows[i].line < again->line))
			again = &rows[i];
	return again ? psd_error_set(err, PSD_EINVAL, (struct psd_place){.path = path, .line = again->line},
				     "system '%.80s' with %u workers is in an earlier line already", again->system,
				     again->workers)
		     : PSD_OK;
}

enum psd_status psd_published_load(struct psd_published *published, const char *path, struct psd_error *err)
{
	struct psd_published fresh = {.rows = NULL};
	struct psd_csv csv;
	bool has_line = true, has_header = false;
	uint32_t room = 0;
	enum psd_status status = PSD_OK;

	PSD_TRY(psd_csv_open(&csv, path, err));
	while (!status && has_line) {
		status = psd_csv_next(&csv, &has_line, err);
		if (status || !has_line || csv.comment)
			continue;
		status = has_header ? add_row(&fresh, &room, &csv, err) : psd_csv_check_header(&csv, header, err);
		has_header = true;
	}
	if (!status && !has_header)
		status = psd_error_set(err, PSD_EINVAL, (struct psd_place){.path = path},
				       "the file has no header line, must have '%s'", header);
	if (!status)
		status = sort(&fresh, path, err);
	fresh.text = csv.text; /* the names are cells of it */
	if (status)
		psd_published_release(&fresh);
	else
		*published = fresh;
	return status;
}

const struct psd_published_row *psd_published_find(const struct psd_published *published, const char *system,
						   unsigned workers)
{
	const struct psd_published_row sought = {.system = system, .workers = workers};

	return published->n_rows ? bsearch(&sought, published->rows, published->n_rows, sizeof(sought), compare_points)
				 : NULL;
}

void psd_published_release(struct psd_published *published)
{
	free(published->rows);
	free(published->text);
	*published = (struct psd_published){.rows = NULL};
}
