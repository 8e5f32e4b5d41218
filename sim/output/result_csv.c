/* Results as CSV. */
#include "engine/result/result_row.h"
#include "sim/output/output.h"

static struct psd_result_value value(bool is_there, double figure)
{
	return (struct psd_result_value){is_there, figure};
}

struct psd_result_row psd_output_row(const struct psd_report *report, const struct psd_result *result)
{
	static const struct psd_published_row nothing = {.has_speedup = false};
	const struct psd_published_row *published = result->published ? result->published : &nothing;

	return (struct psd_result_row){
		.scenario = report->matter->scenario->title,
		.system = result->system->name,
		.executor = psd_report_executor(report),
		.nodes = result->point.nodes,
		.workers = result->point.workers,
		.bandwidth_bps = value(result->point.bandwidth_bps > 0.0, result->point.bandwidth_bps),
		.iteration_sec = result->outcome.iteration_sec,
		.images_per_sec = result->images_per_sec,
		.speedup = value(true, result->speedup),
		.parts = result->outcome.parts,
		.sent_bytes_per_node = result->outcome.sent_bytes_per_node,
		.received_bytes_per_node = result->outcome.received_bytes_per_node,
		.published_images_per_sec = value(published->has_images_per_sec, published->images_per_sec),
		.published_speedup = value(published->has_speedup, published->speedup),
		.error_ratio = value(result->has_error_ratio, result->error_ratio),
	};
}

enum psd_status psd_output_text(FILE *out, struct psd_text *text, struct psd_error *err)
{
	const bool is_complete = !text->is_out_of_memory;

	if (is_complete)
		fwrite(text->bytes ? text->bytes : "", 1, text->length, out);
	psd_text_release(text);
	return is_complete ? PSD_OK : psd_error_set(err, PSD_ENOMEM, PSD_NOWHERE, "out of memory for the output");
}

enum psd_status psd_output_csv(FILE *out, const struct psd_report *report, struct psd_error *err)
{
	struct psd_text text = {.bytes = NULL};

	for (unsigned i = 0; i < report->n_systems * report->n_points; i++) {
		const struct psd_result_row row = psd_output_row(report, &report->results[i]);

		psd_result_row_add(&text, &row);
	}
	return psd_output_text(out, &text, err);
}
