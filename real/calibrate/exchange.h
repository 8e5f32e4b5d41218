/* A run that exchanges tensors without computing them, and records when each message is sent and received. */
#ifndef PSD_REAL_EXCHANGE_H
#define PSD_REAL_EXCHANGE_H

#include "engine/base/error.h"
#include "real/cluster/launch.h"

#define PSD_EXCHANGE_BYTES(side) (4.0 * (side) * (side)) /* bytes of a square tensor of floats */

struct psd_exchange_options {
	unsigned n_workers;	   /* number of workers, a multiple of workers_per_node */
	unsigned workers_per_node; /* number of workers on a node, which share memory; >= 1 */
	unsigned n_servers;	   /* number of separate servers; 0: a shard on every worker */
	unsigned n_tensors;	   /* number of tensors, >= 1 */
	unsigned side;		   /* rows and columns of each square tensor, >= 1 */
	unsigned n_streams;	   /* number of connections between two hosts */
	uint32_t n_iterations;
	double rate_bps; /* rate of the links; 0: as fast as the machine */
	double latency_sec;
	enum psd_cluster_kind cluster_kind;
	double stall_sec;
	const volatile sig_atomic_t *stop_signal;	 /* ends the run once it is not 0, see psd_launch_options */
	void (*remark)(void *context, const char *line); /* receives lines about hosts that join; may be NULL */
	void *context;
};

/* A push (a gradient from every worker to its shards) or a pull (parameters from the shards to every worker) of one
 * tensor, from the first byte's departure to the last byte's arrival, on the monotonic clock. */
struct psd_exchange_flight {
	bool is_push;
	uint32_t iteration;
	double start_sec, end_sec;
	double bytes; /* bytes sent, over all hosts; 0: no message left its host */
};

struct psd_exchange {
	struct psd_exchange_flight *flights; /* pushes and pulls of the run; owned */
	unsigned n_flights;
	double iteration_sec; /* median duration of the measured iterations */
};

/* Runs the exchange by psd_launch() with a parameter server and the idle device. psd_exchange_release() releases
 * *exchange. Statuses as psd_launch(). */
enum psd_status psd_exchange_run(struct psd_exchange *exchange, const struct psd_exchange_options *options,
				 struct psd_error *err) PSD_MUST_CHECK;
void psd_exchange_release(struct psd_exchange *exchange);

#endif
