/* A run of made-up tensors that nobody computes: what the network between processes takes, and when. Judges nothing. */
#ifndef PSD_REAL_EXCHANGE_H
#define PSD_REAL_EXCHANGE_H

#include "engine/base/error.h"
#include "real/cluster/launch.h"

#define PSD_EXCHANGE_BYTES(side) (4.0 * (side) * (side)) /* of a tensor */

struct psd_exchange_options {
	unsigned n_workers;	   /* a multiple of workers_per_node */
	unsigned workers_per_node; /* who share memory; >= 1 */
	unsigned n_servers;	   /* on nodes of their own; 0: a shard with every worker */
	unsigned n_tensors;	   /* >= 1 */
	unsigned side;		   /* each a square matrix of so many rows and columns of floats, >= 1 */
	unsigned n_streams;	   /* connections between two hosts */
	uint32_t n_iterations;
	double rate_bps; /* of the links; 0: as fast as the machine */
	double latency_sec;
	enum psd_cluster_kind cluster_kind;
	double stall_sec;
	const volatile sig_atomic_t *stop_signal;	 /* as in psd_launch_options */
	void (*remark)(void *context, const char *line); /* may be NULL: as in psd_worker_options */
	void *context;
};

/* A push (a gradient from every worker to its shards) or a pull (parameters from the shards to every worker) of one
 * tensor, from the first byte's departure to the last byte's arrival, on the monotonic clock. */
struct psd_exchange_flight {
	bool is_push;
	uint32_t iteration;
	double start_sec, end_sec;
	double bytes; /* of all hosts; 0: none left its host */
};

struct psd_exchange {
	struct psd_exchange_flight *flights; /* owned */
	unsigned n_flights;
	double iteration_sec; /* the median, as of every run */
};

/* Runs it through psd_launch() with a parameter server and the idle device. *exchange is filled on success, its
 * flights are freed by psd_exchange_release(). As psd_launch(). */
enum psd_status psd_exchange_run(struct psd_exchange *exchange, const struct psd_exchange_options *options,
				 struct psd_error *err) PSD_MUST_CHECK;
void psd_exchange_release(struct psd_exchange *exchange);

#endif
