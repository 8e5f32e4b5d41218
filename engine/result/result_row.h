/* A result as a line of CSV, whichever executor it comes from. The columns and their order are a promise; absent values
 * are empty fields. */
#ifndef PSD_RESULT_ROW_H
#define PSD_RESULT_ROW_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/base/text.h"
#include "engine/program/account.h"

/* A number that may not be there. */
struct psd_result_value {
	bool is_there;
	double value;
};

struct psd_result_row {
	const char *scenario, *system, *executor;
	unsigned nodes, workers;
	struct psd_result_value bandwidth_bps;
	double iteration_sec;
	double images_per_sec; /* of all workers together */
	struct psd_result_value speedup;
	struct psd_parts parts; /* of iteration_sec */
	uint64_t sent_bytes_per_node, received_bytes_per_node;
	struct psd_result_value published_images_per_sec, published_speedup;
	struct psd_result_value error_ratio;
};

void psd_result_row_add_head(struct psd_text *text);
void psd_result_row_add(struct psd_text *text, const struct psd_result_row *row);

#endif
