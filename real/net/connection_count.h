/* Number of connections between two hosts if the scenario does not set it: the smallest number with nearly the best
 * rate in a short measurement. For this, each host sends to a host of the next node and receives from a host of the
 * previous node, over 1, 2 and 4 connections, each with a thread of its own. Opens no connections. */
#ifndef PSD_REAL_CONNECTION_COUNT_H
#define PSD_REAL_CONNECTION_COUNT_H

#include <stdbool.h>

#include "real/net/mesh.h"
#include "real/net/wire.h"

/* Largest number of connections that is tried; 1, 2 and 4 are tried. */
enum { PSD_CONNECTIONS_MOST = 1 << (PSD_WIRE_TRIALS - 1) };

/* Decides whether several connections are tried: *is_tried is true if every host wants that. All hosts call this
 * function at once, with one connection each in fds. wants_several: this host has enough processors for several
 * connections. until_sec: deadline (psd_socket_now_sec()). PSD_ELOST: a host has gone, or is silent until until_sec. */
enum psd_status psd_connection_count_agree(const struct psd_mesh_options *mesh, const int fds[], bool wants_several,
					   double until_sec, bool *is_tried, struct psd_error *err) PSD_MUST_CHECK;
/* Measures the rates over 1, 2 and 4 connections and chooses *n_connections, equal on all hosts. All hosts call it at
 * once. There must be more hosts than workers in a node. fds: PSD_CONNECTIONS_MOST connections to each host, over which
 * nothing was sent so far. try_sec: duration of one measurement. until_sec: deadline. *tried: on host 0, for each
 * number of connections the sum of all hosts' rates. */
enum psd_status psd_connection_count_try(const struct psd_mesh_options *mesh, const int fds[], double try_sec,
					 double until_sec, unsigned *n_connections, struct psd_wire_rates *tried,
					 struct psd_error *err) PSD_MUST_CHECK;
/* Returns the exponent e of the smallest number of connections, 2^e, whose rate is at least 90 % of the best rate.
 * bps[e]: rate over 2^e connections, bits per second. Pure. */
unsigned psd_connection_count_best(const double bps[PSD_WIRE_TRIALS]);

#endif
