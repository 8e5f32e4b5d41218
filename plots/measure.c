#include "plots/measure.h"

const char *const psd_measure_names[] = {"speedup", "efficiency", "seconds", "throughput", NULL};

const char *psd_measure_columns(enum psd_measure measure)
{
	static const char *const columns[] = {
		[PSD_MEASURE_SPEEDUP] = "scenario system executor workers bandwidth_bps images_per_sec speedup "
					"published_images_per_sec published_speedup",
		[PSD_MEASURE_EFFICIENCY] = "scenario system executor workers images_per_sec speedup",
		[PSD_MEASURE_SECONDS] = "scenario system workers iteration_sec",
		[PSD_MEASURE_THROUGHPUT] = "scenario system executor workers images_per_sec",
	};

	return columns[measure];
}

const char *psd_measure_label(enum psd_measure measure)
{
	static const char *const labels[] = {
		[PSD_MEASURE_SPEEDUP] = "speedup",
		[PSD_MEASURE_EFFICIENCY] = "efficiency, %",
		[PSD_MEASURE_SECONDS] = "iteration, ms",
		[PSD_MEASURE_THROUGHPUT] = "samples per second",
	};

	return labels[measure];
}

static enum psd_status read_basis(enum psd_measure measure, const struct psd_row *row, double *value,
				  struct psd_error *err)
{
	double workers;

	switch (measure) {
	case PSD_MEASURE_SPEEDUP: return psd_row_read_positive(row, "speedup", true, value, err);
	case PSD_MEASURE_EFFICIENCY:
		PSD_TRY(psd_row_read_positive(row, "workers", false, &workers, err));
		PSD_TRY(psd_row_read_positive(row, "speedup", true, value, err));
		*value *= 100 / workers;
		return PSD_OK;
	case PSD_MEASURE_SECONDS:
		PSD_TRY(psd_row_read_positive(row, "iteration_sec", false, value, err));
		*value *= 1000;
		return PSD_OK;
	case PSD_MEASURE_THROUGHPUT: return psd_row_read_positive(row, "images_per_sec", true, value, err);
	}
	return PSD_OK;
}

enum psd_status psd_measure_read(enum psd_measure measure, const struct psd_row *row, struct psd_value *value,
				 struct psd_error *err)
{
	double images, speedup, low, high, published, published_speedup, ratio = 0;

	*value = (struct psd_value){.value = 0};
	PSD_TRY(read_basis(measure, row, &value->value, err));
	PSD_TRY(psd_row_read_positive(row, "images_per_sec", true, &images, err));
	PSD_TRY(psd_row_read_positive(row, "speedup", true, &speedup, err));
	PSD_TRY(psd_row_read_positive(row, "published_images_per_sec", true, &published, err));
	PSD_TRY(psd_row_read_positive(row, "published_speedup", true, &published_speedup, err));
	PSD_TRY(psd_row_read_positive(row, "low", true, &low, err));
	PSD_TRY(psd_row_read_positive(row, "high", true, &high, err));
	PSD_TRY(psd_row_read_fitted(row, &value->is_fitted, err));
	const bool is_speedup = measure == PSD_MEASURE_SPEEDUP || measure == PSD_MEASURE_EFFICIENCY;

	if (published > 0 && images > 0)
		ratio = published / images;
	if (published_speedup > 0 && speedup > 0 && (is_speedup || ratio <= 0))
		ratio = published_speedup / speedup;
	const bool is_inverse = measure == PSD_MEASURE_SECONDS;

	if (ratio > 0)
		value->published = is_inverse ? value->value / ratio : value->value * ratio;
	if (low > 0 && high > 0 && images > 0) {
		value->low = value->value * (is_inverse ? images / high : low / images);
		value->high = value->value * (is_inverse ? images / low : high / images);
	}
	return PSD_OK;
}
