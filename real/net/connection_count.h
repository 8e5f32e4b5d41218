/* How many connections two hosts are to have, where the scenario does not say: the number that raises the rate, which
 * at least a second of traffic tells. All hosts send to one of the next node and receive from one of the node before,
 * over one connection, then over several, each with a thread of its own as socket threads would be. Refuses to open
 * connections. */
#ifndef PSD_REAL_CONNECTION_COUNT_H
#define PSD_REAL_CONNECTION_COUNT_H

#include <stdbool.h>

#include "real/net/mesh.h"
#include "real/net/wire.h"

enum { PSD_CONNECTIONS_MOST = 1 << (PSD_WIRE_LINES_TRIED - 1) }; /* 1, 2 and 4 are tried */

/* Whether it is worth trying: all hosts at once, by the one connection that they have. wants_several: this host has the
 * processors for it. PSD_ELOST: somebody has gone or says nothing until until_sec. */
enum psd_status psd_connection_count_agree(const struct psd_mesh_options *mesh, const int fds[], bool wants_several,
					   double until_sec, bool *is_tried, struct psd_error *err) PSD_MUST_CHECK;
/* The number, the same for all hosts, which all call it at once; a node has fewer workers than there are hosts. fds:
 * PSD_CONNECTIONS_MOST for each host, host after host, with nothing on them. tried: rates of all hosts together by 1, 2, ...
 * connections, on host 0; try_sec: for each. */
enum psd_status psd_connection_count_try(const struct psd_mesh_options *mesh, const int fds[], double try_sec,
					 double until_sec, unsigned *n_connections, struct psd_wire_lines *tried,
					 struct psd_error *err) PSD_MUST_CHECK;
/* The exponent of the smallest number of connections whose rate is as good as the best one's but for a tenth. Pure. */
unsigned psd_connection_count_best(const double bps[PSD_WIRE_LINES_TRIED]);

#endif
