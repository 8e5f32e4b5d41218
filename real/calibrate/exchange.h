/* A run in which workers exchange tensors with parameter servers without computing anything. Start and end of each
 * transfer are recorded. Calibration measures the network by it. */
#ifndef PSD_REAL_EXCHANGE_H
#define PSD_REAL_EXCHANGE_H

#include "engine/base/error.h"
#include "real/cluster/launch.h"

/* Bytes of a square tensor of floats with `side` rows and columns. */
#define PSD_EXCHANGE_BYTES(side) (4.0 * (side) * (side))

struct psd_exchange_options {
	unsigned n_workers; /* number of workers; a multiple of workers_per_node */
	/* Number of workers on each node, which exchange data through shared memory; >= 1. */
	unsigned workers_per_node;
	/* Number of separate servers; 0: each worker is also the server of a part of the tensors. */
	unsigned n_servers;
	unsigned n_tensors; /* number of tensors to exchange, >= 1 */
	unsigned side;	    /* number of rows, and of columns, of each tensor; >= 1 */
	unsigned n_streams; /* number of connections between two hosts, >= 1 */
	uint32_t n_iterations;
	double rate_bps; /* rate of the links, bits per second; 0: as fast as the machine allows */
	double latency_sec;
	enum psd_cluster_kind cluster_kind;
	double stall_sec;
	/* When it is not 0, the run ends with PSD_ERUN; NULL: the run cannot be stopped. */
	const volatile sig_atomic_t *stop_signal;
	/* Receives lines about hosts that join; NULL: no lines. */
	void (*remark)(void *context, const char *line);
	void *context;
};

/* Transfer of one tensor: a push (gradient from every worker to the servers) or a pull (parameters from the servers to
 * every worker). It lasts from the time at which the first byte is sent until the last byte has arrived. Times are of
 * CLOCK_MONOTONIC. */
struct psd_exchange_flight {
	bool is_push;
	uint32_t iteration;
	double start_sec, end_sec;
	double bytes; /* bytes of the transfer, summed over all hosts; 0: no data left its host */
};

struct psd_exchange {
	struct psd_exchange_flight *flights; /* all pushes and pulls of the run; owned; shape (n_flights) */
	unsigned n_flights;
	double iteration_sec; /* median duration of the measured iterations, seconds */
};

/* Runs the exchange by psd_launch(), with parameter servers and a device that computes nothing (psd_device_idle).
 * psd_exchange_release() releases *exchange. Statuses as psd_launch(). */
enum psd_status psd_exchange_run(struct psd_exchange *exchange, const struct psd_exchange_options *options,
				 struct psd_error *err) PSD_MUST_CHECK;
void psd_exchange_release(struct psd_exchange *exchange);

#endif
