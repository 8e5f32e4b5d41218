/* The whole training of which a scenario predicts iterations: its length, prices, bounds and failures. Only questions
 * use it; no prediction of an iteration depends on it. */
#ifndef PSD_JOB_H
#define PSD_JOB_H

#include <stdint.h>

/* A member that is 0 is absent, and questions that need it are not answered. */
struct psd_training_job {
	uint64_t samples;	 /* samples of an epoch */
	double epochs;		 /* epochs of the training */
	double price;		 /* money for a worker in an hour */
	double within_sec;	 /* time in which the training must end */
	double budget;		 /* most money that the training may cost */
	double efficiency_ratio; /* smallest efficiency that a user accepts; never absent */
	uint64_t memory_bytes;	 /* memory of a worker's device */
	double mtbf_sec;	 /* mean time between failures of a node */
	double checkpoint_sec;	 /* time in which training stands still for a checkpoint */
	double restart_sec;	 /* time from a failure until training goes on */
};

/* Efficiency in scenarios without a job. */
#define PSD_JOB_EFFICIENCY_RATIO 0.8

#endif
