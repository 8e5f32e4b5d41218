/* Offset of each host's clock to that of host 0. */
#ifndef PSD_REAL_CLOCKS_H
#define PSD_REAL_CLOCKS_H

#include "real/net/mesh.h"

/* All hosts call it at once, with the connections of psd_mesh_open(). PSD_ELOST: a host did not answer until until_sec;
 * other statuses as psd_frame_read(). */
enum psd_status psd_clocks_compare(const struct psd_mesh_options *options, const int fds[], double until_sec,
				   struct psd_mesh_clock *clock, struct psd_error *err) PSD_MUST_CHECK;

#endif
