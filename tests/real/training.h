/* Whole runs in processes on this machine, for the suites that look at what training leaves. */
#ifndef PSD_TESTS_REAL_TRAINING_H
#define PSD_TESTS_REAL_TRAINING_H

#include "real/cluster/launch.h"
#include "tests/loaded_helper.h"

enum { TRAINING_MOST_HOSTS = 8 };

/* Results of a run: every host's parameters, in memory that the processes share. */
struct training {
	struct loaded loaded;
	struct psd_case made;
	struct psd_launch_options options; /* to be changed between training_make() and training_run() */
	float *parameters;		   /* host after host, tensor after tensor */
	struct psd_worker_result result;
	enum psd_status status;
	struct psd_error err;
	unsigned victim; /* kills itself in its second iteration; TRAINING_MOST_HOSTS: none */
};

/* graph: a file of scenarios/models, or an absolute path; system: the keys of one system but its name; train: those of
 * `train`. Any mistake fails the test. */
struct training *training_make(const char *graph, const char *system, unsigned workers, unsigned workers_per_node,
			       uint32_t batch, uint64_t seed, const char *train);
/* The same on groups of nodes: value of the key `cluster.groups`, which have as many nodes as the workers need; NULL:
 * training_make(). */
struct training *training_make_groups(const char *graph, const char *system, unsigned workers,
				      unsigned workers_per_node, uint32_t batch, uint64_t seed, const char *train,
				      const char *groups);
/* Before a run: its workers compute on that kind of device. kind: NULL: the processor. has_own_memory: the program is
 * that of such a device; a processor takes no notice of its copies. Returns the run. */
struct training *training_on(struct training *training, const struct psd_device_kind *kind, bool has_own_memory);
void training_run(struct training *training);
/* The same, and fails the test if the run does. what: of the run, for messages. Returns the run. */
struct training *training_finish(struct training *training, const char *what);
void training_free(struct training *training);

float *training_parameters(const struct training *training, unsigned host);
bool training_is_same(const struct training *left, unsigned left_host, const struct training *right,
		      unsigned right_host);
/* All workers have the bits of worker 0. */
void training_expect_same_on_all(const struct training *training, const char *what);
/* The node that sends most sends so much in an iteration. */
void training_expect_sent(const struct training *training, uint64_t bytes, const char *what);
/* Euclidean. right: NULL: zeros. */
double training_values_distance(const float *left, const float *right, uint64_t elements);
/* The same between the parameters of worker 0. */
double training_distance(const struct training *left, const struct training *right);
/* Distance of the other from one, as a share of the distance from `begun` to one. */
double training_apart_ratio(const struct training *begun, const struct training *one, const struct training *other);

#endif
