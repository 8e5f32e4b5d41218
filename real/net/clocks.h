/* How far a host's clock is ahead of host 0's, once all hosts are joined. */
#ifndef PSD_REAL_CLOCKS_H
#define PSD_REAL_CLOCKS_H

#include "real/net/mesh.h"

/* Every host at once, with the connections that it has joined by. PSD_ELOST: somebody did not answer until until_sec;
 * as psd_frame_read(). */
enum psd_status psd_clocks_compare(const struct psd_mesh_options *options, const int fds[], double until_sec,
				   struct psd_mesh_clock *clock, struct psd_error *err) PSD_MUST_CHECK;

#endif
