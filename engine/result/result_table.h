/* The columns of a table of results that a prediction and a run have in common, and a row's figures in them. */
#ifndef PSD_RESULT_TABLE_H
#define PSD_RESULT_TABLE_H

#include <stdbool.h>

#include "engine/base/grid.h"
#include "engine/result/result_row.h"

enum psd_result_column {
	PSD_COLUMN_NODES,
	PSD_COLUMN_WORKERS,
	PSD_COLUMN_BANDWIDTH,
	PSD_COLUMN_SYSTEM,
	PSD_COLUMN_ITERATION,
	PSD_COLUMN_THROUGHPUT,
	PSD_COLUMN_SPEEDUP,
	PSD_COLUMN_COMPUTE,
	PSD_COLUMN_EXPOSED,
	PSD_COLUMN_SENT,
	PSD_RESULT_COLUMNS /* a program's own come behind them */
};

/* The smallest figure of each kind above 0, which keeps three digits: all rows get its decimals. All zero to begin
 * with. */
struct psd_result_least {
	double sec;
	double images_per_sec;
	double sent_mb;
};
void psd_result_least_note(struct psd_result_least *least, const struct psd_result_row *row);
/* Decimals of images per second, for columns of a program's own. */
int psd_result_least_decimals(const struct psd_result_least *least);

void psd_result_table_add_columns(struct psd_grid *grid);
/* Adds a row. has_workers, has_bandwidth: they vary or need to be said. */
void psd_result_table_add_row(struct psd_grid *grid, const struct psd_result_row *row,
			      const struct psd_result_least *least, bool has_workers, bool has_bandwidth);

#endif
