/* Published throughput and speedup of a scenario's systems, to stand beside what is predicted. */
#ifndef PSD_PUBLISHED_H
#define PSD_PUBLISHED_H

#include <stdbool.h>

#include "engine/base/error.h"

/* One published point. */
struct psd_published_row {
	const char *system; /* as the scenario names it; borrowed from the struct psd_published */
	unsigned workers;
	bool has_images_per_sec;
	double images_per_sec; /* all workers together */
	bool has_speedup;
	double speedup; /* over the scenario's baseline */
	bool is_fit;	/* a constant of the scenario was fitted to this value, which so tests no prediction */
	unsigned line;	/* line in the file */
};

struct psd_published {
	struct psd_published_row *rows; /* by system, then workers */
	unsigned n_rows;
	char *text; /* private: owns the names */
};

/* Reads a CSV with the columns system,workers,images_per_sec,speedup,use,source: use is fit or check, one of the two
 * figures may be empty, source names the paper. *published is filled on success and released by
 * psd_published_release(). PSD_EFILE, PSD_EINVAL with file:line, PSD_ENOMEM. */
enum psd_status psd_published_load(struct psd_published *published, const char *path,
				   struct psd_error *err) PSD_MUST_CHECK;
/* The row of that system and number of workers, borrowed; NULL when nothing is published. Any thread. */
const struct psd_published_row *psd_published_find(const struct psd_published *published, const char *system,
						   unsigned workers);
void psd_published_release(struct psd_published *published);

#endif
