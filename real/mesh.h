/* One connection between every two hosts of a run, each opened by the higher number, both ends sure of each other: the same version, the
 * same plan, the number that was expected. Refuses to carry anything but the greeting. */
#ifndef PSD_REAL_MESH_H
#define PSD_REAL_MESH_H

#include <stdint.h>

#include "engine/error.h"
#include "engine/layout.h"

#define PSD_MESH_ADDRESS_MAX 64

struct psd_mesh_host {
	char address[PSD_MESH_ADDRESS_MAX];
	uint16_t port;
};

struct psd_mesh_options {
	const struct psd_layout *layout;
	const struct psd_mesh_host *hosts; /* psd_layout_hosts() of them */
	unsigned self;
	int listener; /* -1: listen on the own address; otherwise it is closed here */
	uint64_t plan_hash;
	double within_sec;
};

/* fds: one for each host, -1 for the own; the caller closes them. Blocks until all are there. PSD_ERUN: who is missing or does not fit. */
enum psd_status psd_mesh_open(const struct psd_mesh_options *options, int fds[], struct psd_error *err) PSD_MUST_CHECK;

#define PSD_MESH_NAME_MAX 128
/* "worker 2 at 10.0.0.3:7411", or "server 0 at ..."; returns text. */
char *psd_mesh_name(const struct psd_layout *layout, const struct psd_mesh_host hosts[], unsigned host,
		    char text[PSD_MESH_NAME_MAX]);

#endif
