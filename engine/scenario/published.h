/* Published throughput and speedup of a scenario's systems, which output shows beside the predictions. */
#ifndef PSD_PUBLISHED_H
#define PSD_PUBLISHED_H

#include <stdbool.h>

#include "engine/base/error.h"

/* Published results of a system with a given number of workers. */
struct psd_published_row {
	const char *system; /* name of the system in the scenario; borrowed from the struct psd_published */
	unsigned workers;
	bool has_images_per_sec;
	double images_per_sec; /* throughput of all workers together, samples per second */
	bool has_speedup;
	double speedup; /* speedup relative to the scenario's baseline */
	/* a constant of the scenario was fitted to this value, so the value does not test the prediction */
	bool is_fit;
	unsigned line; /* number of the line in the file */
};

struct psd_published {
	struct psd_published_row *rows; /* rows ordered by system, then workers */
	unsigned n_rows;
	char *text; /* contents of the file, which the names in `rows` point into; private */
};

/* Reads a CSV file with the columns system,workers,images_per_sec,speedup,use,source. `use` is fit or check, `source`
 * names the paper. One of images_per_sec and speedup may be empty. *published is filled on success and released by
 * psd_published_release(). PSD_EFILE, PSD_EINVAL with file:line, PSD_ENOMEM. */
enum psd_status psd_published_load(struct psd_published *published, const char *path,
				   struct psd_error *err) PSD_MUST_CHECK;
/* Returns the row of a system with that number of workers, borrowed from *published; NULL: there is no such row. Any
 * thread. */
const struct psd_published_row *psd_published_find(const struct psd_published *published, const char *system,
						   unsigned workers);
void psd_published_release(struct psd_published *published);

#endif
