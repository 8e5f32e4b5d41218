/* Speedup is relative to one worker's measured compute alone; a scenario that names a baseline system needs that system's own run on one
 * worker, so the field stays empty there. */
#include "real/run_output.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "engine/units.h"

enum { SECONDS_DIGITS = 9, RATIO_DIGITS = 6, RATE_DIGITS = 15 };

static double images_per_sec(const struct psd_scenario *scenario, const struct psd_run_row *row)
{
	return (double)row->point.workers * scenario->batch_per_worker / row->result.iteration_sec;
}

static double exposed_sec(const struct psd_run_row *row)
{
	return fmax(0.0, row->result.iteration_sec - row->result.compute_sec);
}

static double speedup(const struct psd_run_row *row)
{
	return row->point.workers * row->result.compute_sec / row->result.iteration_sec;
}

void psd_run_output_csv_head(FILE *out)
{
	fputs("scenario,system,executor,nodes,workers,bandwidth_bps,iteration_sec,images_per_sec,speedup,compute_sec,exposed_"
	      "comm_sec,"
	      "tx_bytes_per_node,rx_bytes_per_node,published_images_per_sec,published_speedup,error_ratio\n",
	      out);
}

static void write_text(FILE *out, const char *text)
{
	if (!strpbrk(text, ",\"\r\n")) {
		fputs(text, out);
		return;
	}
	fputc('"', out);
	for (; *text; text++) {
		if (*text == '"')
			fputc('"', out);
		fputc(*text, out);
	}
	fputc('"', out);
}

static void write_number(FILE *out, bool is_there, double value, int significant)
{
	fputc(',', out);
	if (is_there && isfinite(value))
		fprintf(out, "%.*g", significant, value);
}

void psd_run_output_csv(FILE *out, const struct psd_scenario *scenario, const struct psd_run_row *row)
{
	write_text(out, scenario->title);
	fputc(',', out);
	write_text(out, row->system->name);
	fprintf(out, ",real-cpu,%u,%u", row->point.nodes, row->point.workers);
	write_number(out, row->has_bandwidth, row->point.bandwidth_bps, RATE_DIGITS);
	write_number(out, true, row->result.iteration_sec, SECONDS_DIGITS);
	write_number(out, true, images_per_sec(scenario, row), SECONDS_DIGITS);
	write_number(out, scenario->baseline_system < 0, speedup(row), RATIO_DIGITS);
	write_number(out, true, row->result.compute_sec, SECONDS_DIGITS);
	write_number(out, true, exposed_sec(row), SECONDS_DIGITS);
	fprintf(out, ",%" PRIu64 ",%" PRIu64 ",,,\n", row->result.sent_bytes_per_node, row->result.received_bytes_per_node);
}

void psd_run_output_table(FILE *out, const struct psd_scenario *scenario, const struct psd_run_row rows[], unsigned n_rows)
{
	char rate[PSD_UNITS_TEXT_MAX], sent[PSD_UNITS_TEXT_MAX];

	fprintf(out, "%s\n", scenario->title);
	if (n_rows > 0)
		fprintf(out, "executed on %u node%s, %u worker%s, links of %s\n\n", rows[0].point.nodes,
			rows[0].point.nodes == 1 ? "" : "s", rows[0].point.workers, rows[0].point.workers == 1 ? "" : "s",
			rows[0].has_bandwidth ? psd_units_write_rate(rows[0].point.bandwidth_bps, rate) : "any rate (loopback)");
	fprintf(out, "%-20s %12s %10s %12s %12s %12s %10s %10s\n", "system", "iteration s", "images/s", "compute s", "exposed s",
		"sent/node", "loss", "accuracy");
	for (unsigned i = 0; i < n_rows; i++) {
		const struct psd_worker_result *result = &rows[i].result;

		fprintf(out, "%-20.20s %12.5f %10.1f %12.5f %12.5f %12s %10.5f", rows[i].system->name, result->iteration_sec,
			images_per_sec(scenario, &rows[i]), result->compute_sec, exposed_sec(&rows[i]),
			psd_units_write_bytes(result->sent_bytes_per_node, sent), result->last_loss);
		if (result->test_samples > 0)
			fprintf(out, " %8.2f %%", 100.0 * (double)result->test_correct / (double)result->test_samples);
		fputc('\n', out);
	}
}
