/* Number of connections between two hosts where the scenario leaves it open: the number that raises the rate, as a
 * second of traffic tells. Each host sends to a host of the next node and receives from one of the node before, over 1,
 * 2 and 4 connections with a thread each. Opens no connections. */
#ifndef PSD_REAL_CONNECTION_COUNT_H
#define PSD_REAL_CONNECTION_COUNT_H

#include <stdbool.h>

#include "real/net/mesh.h"
#include "real/net/wire.h"

enum { PSD_CONNECTIONS_MOST = 1 << (PSD_WIRE_TRIALS - 1) }; /* largest number that is tried; 1, 2 and 4 are */

/* Decides whether to measure several connections at all. All hosts call it at once, with one connection each.
 * wants_several: this host has enough processors. PSD_ELOST: a host has gone, or is silent until until_sec. */
enum psd_status psd_connection_count_agree(const struct psd_mesh_options *mesh, const int fds[], bool wants_several,
					   double until_sec, bool *is_tried, struct psd_error *err) PSD_MUST_CHECK;
/* Measures and chooses the number, equal on all hosts; all call it at once. A node has fewer workers than there are
 * hosts. fds: PSD_CONNECTIONS_MOST per host, unused so far. try_sec: duration of each trial. tried: on host 0, the
 * summed rates over 1, 2, 4 connections. */
enum psd_status psd_connection_count_try(const struct psd_mesh_options *mesh, const int fds[], double try_sec,
					 double until_sec, unsigned *n_connections, struct psd_wire_rates *tried,
					 struct psd_error *err) PSD_MUST_CHECK;
/* Returns the exponent (of 2) of the smallest number of connections whose rate is at least 90 % of the best. Pure. */
unsigned psd_connection_count_best(const double bps[PSD_WIRE_TRIALS]);

#endif
