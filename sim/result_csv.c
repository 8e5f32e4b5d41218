/* Results as CSV. Absent values are empty fields, never 0. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "sim/output.h"

enum { SECONDS_DIGITS = 9, RATIO_DIGITS = 6, RATE_DIGITS = 15 };

void psd_output_csv_head(FILE *out)
{
	fputs("scenario,system,executor,nodes,workers,bandwidth_bps,iteration_sec,images_per_sec,speedup,compute_sec,exposed_"
	      "comm_sec,"
	      "tx_bytes_per_node,rx_bytes_per_node,published_images_per_sec,published_speedup,error_ratio\n",
	      out);
}

void psd_output_csv_text(FILE *out, const char *text)
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

static void write_result(FILE *out, const struct psd_result *result)
{
	const struct psd_published_row *published = result->published;

	fprintf(out, ",%u,%u", result->point.nodes, result->point.workers);
	write_number(out, result->point.bandwidth_bps > 0.0, result->point.bandwidth_bps, RATE_DIGITS);
	write_number(out, true, result->outcome.iteration_sec, SECONDS_DIGITS);
	write_number(out, true, result->images_per_sec, SECONDS_DIGITS);
	write_number(out, true, result->speedup, RATIO_DIGITS);
	write_number(out, true, result->compute_sec, SECONDS_DIGITS);
	write_number(out, true, result->exposed_comm_sec, SECONDS_DIGITS);
	fprintf(out, ",%" PRIu64 ",%" PRIu64, result->outcome.sent_bytes_per_node, result->outcome.received_bytes_per_node);
	write_number(out, published && published->has_images_per_sec, published ? published->images_per_sec : 0.0,
		     SECONDS_DIGITS);
	write_number(out, published && published->has_speedup, published ? published->speedup : 0.0, RATIO_DIGITS);
	write_number(out, result->has_error_ratio, result->error_ratio, RATIO_DIGITS);
	fputc('\n', out);
}

void psd_output_csv(FILE *out, const struct psd_report *report)
{
	for (unsigned i = 0; i < report->n_systems * report->n_points; i++) {
		psd_output_csv_text(out, report->matter->scenario->title);
		fputc(',', out);
		psd_output_csv_text(out, report->results[i].system->name);
		fputc(',', out);
		fputs(psd_report_executor(report), out);
		write_result(out, &report->results[i]);
	}
}
