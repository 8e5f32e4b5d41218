/* Columns in their order, figures with the decimals that all rows share. */
#include "engine/result/result_table.h"

#include "engine/base/units.h"

enum { MOST_SEC_DECIMALS = 7, MOST_DECIMALS = 3 };

static const double bytes_per_mb = 1e6;

static void note(double *least, double value)
{
	if (value > 0.0 && (*least == 0.0 || value < *least))
		*least = value;
}

void psd_result_least_note(struct psd_result_least *least, const struct psd_result_row *row)
{
	note(&least->sec, row->iteration_sec);
	note(&least->sec, row->parts.compute_sec);
	note(&least->images_per_sec, row->images_per_sec);
	note(&least->sent_mb, (double)row->sent_bytes_per_node / bytes_per_mb);
}

int psd_result_least_decimals(const struct psd_result_least *least)
{
	return psd_grid_decimals(least->images_per_sec, MOST_DECIMALS);
}

void psd_result_table_add_columns(struct psd_grid *grid)
{
	psd_grid_add_column(grid, "", "nodes", false);
	psd_grid_add_column(grid, "", "workers", false);
	psd_grid_add_column(grid, "", "link", false);
	psd_grid_add_column(grid, "", "system", true);
	psd_grid_add_column(grid, "iteration", "s", false);
	psd_grid_add_column(grid, "", "images/s", false);
	psd_grid_add_column(grid, "", "speedup", false);
	psd_grid_add_column(grid, "compute", "s", false);
	psd_grid_add_column(grid, "exposed", "comm s", false);
	psd_grid_add_column(grid, "sent", "MB/node", false);
}

void psd_result_table_add_row(struct psd_grid *grid, const struct psd_result_row *row,
			      const struct psd_result_least *least, bool has_workers, bool has_bandwidth)
{
	const int sec_decimals = psd_grid_decimals(least->sec, MOST_SEC_DECIMALS);
	char rate[PSD_UNITS_TEXT_MAX];

	psd_grid_add_row(grid);
	psd_grid_set(grid, PSD_COLUMN_NODES, "%u", row->nodes);
	if (has_workers)
		psd_grid_set(grid, PSD_COLUMN_WORKERS, "%u", row->workers);
	if (has_bandwidth)
		psd_grid_set(grid, PSD_COLUMN_BANDWIDTH, "%s", psd_units_write_rate(row->bandwidth_bps.value, rate));
	psd_grid_set(grid, PSD_COLUMN_SYSTEM, "%s", row->system);
	psd_grid_set(grid, PSD_COLUMN_ITERATION, "%.*f", sec_decimals, row->iteration_sec);
	psd_grid_set(grid, PSD_COLUMN_THROUGHPUT, "%.*f", psd_result_least_decimals(least), row->images_per_sec);
	if (row->speedup.is_there)
		psd_grid_set(grid, PSD_COLUMN_SPEEDUP, "%.2f", row->speedup.value);
	psd_grid_set(grid, PSD_COLUMN_COMPUTE, "%.*f", sec_decimals, row->parts.compute_sec);
	psd_grid_set(grid, PSD_COLUMN_EXPOSED, "%.*f", sec_decimals, row->parts.exposed_comm_sec);
	psd_grid_set(grid, PSD_COLUMN_SENT, "%.*f", psd_grid_decimals(least->sent_mb, MOST_DECIMALS),
		     (double)row->sent_bytes_per_node / bytes_per_mb);
}
