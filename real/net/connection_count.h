/* Measures how many connections two hosts should have, for scenarios that do not set this number. The result is the
 * smallest number whose rate is nearly the best in a short measurement. In the measurement, each host sends to a host
 * of the next node and receives from a host of the previous node, over 1, 2 and 4 connections, each with its own
 * thread. Opens no connections. */
#ifndef PSD_REAL_CONNECTION_COUNT_H
#define PSD_REAL_CONNECTION_COUNT_H

#include <stdbool.h>

#include "real/net/mesh.h"
#include "real/net/wire.h"

/* Largest number of connections that is measured. The numbers are 1, 2 and 4. */
enum { PSD_CONNECTIONS_MOST = 1 << (PSD_WIRE_TRIALS - 1) };

/* Decides whether several connections are measured: *is_tried becomes true if every host wants this. All hosts call
 * this function at the same time. fds: one connection to each host. wants_several: true if this host has enough
 * processors for several connections. until_sec: deadline (psd_socket_now_sec()). PSD_ELOST: a host has closed its
 * connection, or has sent nothing until until_sec. */
enum psd_status psd_connection_count_agree(const struct psd_mesh_options *mesh, const int fds[], bool wants_several,
					   double until_sec, bool *is_tried, struct psd_error *err) PSD_MUST_CHECK;
/* Measures the rates over 1, 2 and 4 connections, and sets *n_connections, equal on all hosts. All hosts call it at the
 * same time. There must be at least two nodes. fds: PSD_CONNECTIONS_MOST connections to each host, over which nothing
 * was sent so far. try_sec: duration of one measurement, seconds. until_sec: deadline (psd_socket_now_sec()). *tried:
 * on host 0, the sum of all hosts' rates for each number of connections. */
enum psd_status psd_connection_count_try(const struct psd_mesh_options *mesh, const int fds[], double try_sec,
					 double until_sec, unsigned *n_connections, struct psd_wire_rates *tried,
					 struct psd_error *err) PSD_MUST_CHECK;
/* Returns the exponent e of the smallest number of connections, 2^e, whose rate is at least 90 % of the best rate.
 * bps[e]: rate over 2^e connections, bits per second. Pure. */
unsigned psd_connection_count_best(const double bps[PSD_WIRE_TRIALS]);

#endif
