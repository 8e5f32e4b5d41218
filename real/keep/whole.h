/* All parameters of a model on one host, in a pause between two iterations, where each worker keeps only a part of them
 * (PSD_BUFFER_OWN). Worker 0 gathers them to test the model and to write the file of parameters. They are in the host's
 * memory only as long as the pause lasts. Sends no messages. */
#ifndef PSD_REAL_WHOLE_H
#define PSD_REAL_WHOLE_H

#include "real/keep/host.h"

/* True if workers keep only parts of parameters, so that a host that needs all of them must gather them. */
bool psd_host_keeps_parts(const struct psd_host *host);
/* Copies the parameters that this host keeps from the device's own memory to the host's memory. Statuses of the
 * device's functions. */
enum psd_status psd_host_fetch_own(struct psd_host *host, struct psd_error *err) PSD_MUST_CHECK;

/* Returns the range of an item's (bucket's) parameters that host `from` sends when worker 0 gathers all parameters. 0
 * elements: `from` keeps no part of the item, or a host with a smaller number sends the same range. */
struct psd_range psd_whole_sent(const struct psd_host *host, unsigned item, unsigned from);
/* Allocates memory for all parameters, with the part of this host. psd_host_fetch_own() must have ended. PSD_ENOMEM. */
enum psd_status psd_whole_open(struct psd_host *host, struct psd_error *err) PSD_MUST_CHECK;
/* Frees the memory of psd_whole_open(); does nothing if there is none. */
void psd_whole_close(struct psd_host *host);
/* Returns the memory for a range of an item's (bucket's) parameters. */
float *psd_whole_at(const struct psd_host *host, unsigned item, struct psd_range range);
/* Returns all parameters of a tensor; NULL: they are not gathered, or all workers have them anyway. */
const float *psd_whole_tensor(const struct psd_host *host, unsigned tensor);
/* Writes the parameters of some layers to the memory from which the device reads them. Items (buckets) take turns
 * there, so that layers must be passed in order. Statuses of the device's functions. */
enum psd_status psd_whole_use(struct psd_host *host, struct psd_layers layers, struct psd_error *err) PSD_MUST_CHECK;

#endif
