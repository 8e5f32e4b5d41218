/* Any bytes as a hosts file: either hosts with an address and a port each, no two alike, or an error with a text. Never
 * a crash, leak or hang. */
#include <stdlib.h>
#include <string.h>

#include "real/cluster/hosts.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct psd_hosts hosts;
	struct psd_error err = {0};

	if (psd_hosts_parse(&hosts, "fuzz", (const char *)data, size, &err)) {
		if (err.status == PSD_OK || !err.text[0])
			abort();
		return 0;
	}
	if (hosts.n_hosts == 0)
		abort();
	for (unsigned h = 0; h < hosts.n_hosts; h++) {
		unsigned nth;

		if (!hosts.hosts[h].address[0] || !hosts.hosts[h].port || psd_hosts_beside(&hosts, h, &nth) <= nth)
			abort();
		for (unsigned other = 0; other < h; other++)
			if (hosts.hosts[other].port == hosts.hosts[h].port &&
			    !strcmp(hosts.hosts[other].address, hosts.hosts[h].address))
				abort();
	}
	psd_hosts_release(&hosts);
	return 0;
}
