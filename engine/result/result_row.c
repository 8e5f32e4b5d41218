/* Fields in their order. */
#include "engine/result/result_row.h"

#include <inttypes.h>
#include <math.h>

enum { SECONDS_DIGITS = 9, RATIO_DIGITS = 6, RATE_DIGITS = 15 };

void psd_result_row_add_head(struct psd_text *text)
{
	psd_text_add(
		text,
		"scenario,system,executor,nodes,workers,bandwidth_bps,iteration_sec,images_per_sec,speedup,compute_sec,"
		"exposed_comm_sec,tx_bytes_per_node,rx_bytes_per_node,published_images_per_sec,published_speedup,"
		"error_ratio,other_work_sec,other_waiting_sec\n");
}

static void add_number(struct psd_text *text, double value, int significant)
{
	psd_text_add(text, ",");
	if (isfinite(value))
		psd_text_add(text, "%.*g", significant, value);
}

static void add_value(struct psd_text *text, struct psd_result_value value, int significant)
{
	add_number(text, value.is_there ? value.value : NAN, significant);
}

void psd_result_row_add(struct psd_text *text, const struct psd_result_row *row)
{
	psd_text_add_csv(text, row->scenario);
	psd_text_add(text, ",");
	psd_text_add_csv(text, row->system);
	psd_text_add(text, ",%s,%u,%u", row->executor, row->nodes, row->workers);
	add_value(text, row->bandwidth_bps, RATE_DIGITS);
	add_number(text, row->iteration_sec, SECONDS_DIGITS);
	add_number(text, row->images_per_sec, SECONDS_DIGITS);
	add_value(text, row->speedup, RATIO_DIGITS);
	add_number(text, row->parts.compute_sec, SECONDS_DIGITS);
	add_number(text, row->parts.exposed_comm_sec, SECONDS_DIGITS);
	psd_text_add(text, ",%" PRIu64 ",%" PRIu64, row->sent_bytes_per_node, row->received_bytes_per_node);
	add_value(text, row->published_images_per_sec, SECONDS_DIGITS);
	add_value(text, row->published_speedup, RATIO_DIGITS);
	add_value(text, row->error_ratio, RATIO_DIGITS);
	add_number(text, row->parts.other_work_sec, SECONDS_DIGITS);
	add_number(text, row->parts.other_waiting_sec, SECONDS_DIGITS);
	psd_text_add(text, "\n");
}
