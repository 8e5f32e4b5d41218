#include "real/net/transport.h"

#include <unistd.h>

/* Preferred transports first. */
static const struct psd_transport *const transports[] = {&psd_transport_shared, &psd_transport_tls, &psd_transport_tcp,
							 NULL};

bool psd_carrier_holds(const struct psd_carrier *carrier)
{
	return carrier->fd >= 0 && carrier->transport->holds && carrier->transport->holds(carrier);
}

void psd_carrier_close(struct psd_carrier *carrier)
{
	if (carrier->fd < 0)
		return;
	if (carrier->transport)
		carrier->transport->release(carrier);
	close(carrier->fd);
	carrier->fd = -1;
}

enum psd_status psd_transport_join(const struct psd_transport_join *join, struct psd_carrier carriers[],
				   struct psd_error *err)
{
	const unsigned n_carriers = psd_layout_hosts(join->mesh->layout) * join->mesh->n_connections;
	enum psd_status status = PSD_OK;

	for (unsigned i = 0; i < n_carriers; i++)
		carriers[i] = (struct psd_carrier){.fd = join->fds[i]};
	for (unsigned t = 0; transports[t] && !status; t++)
		status = transports[t]->join(join, carriers, err);
	for (unsigned i = 0; status && i < n_carriers; i++)
		psd_carrier_close(&carriers[i]);
	return status;
}
