/* Soundness of a run: loss and state are finite, and all workers have the same parameters. Except for the loss and the
 * comparison, functions are called by the thread that executes the device's operations. */
#ifndef PSD_REAL_SOUNDNESS_H
#define PSD_REAL_SOUNDNESS_H

#include "real/keep/state.h"

/* On worker 0: returns PSD_ERUN if the loss of an iteration is infinite or not a number, unless the key
 * 'train.diverged' allows it. */
enum psd_status psd_host_check_loss(const struct psd_host *host, uint32_t iteration, double loss,
				    struct psd_error *err) PSD_MUST_CHECK;
/* Checks the values of the first n_parts parts of the state after `iterations` iterations. They must include all
 * parameters. Stores the digest of the parameters. PSD_ERUN: a value is infinite or not a number, and the key
 * 'train.diverged' does not allow that; statuses of psd_state_visit(). */
enum psd_status psd_host_check_state(const struct psd_state *state, unsigned n_parts, uint32_t iterations,
				     struct psd_error *err) PSD_MUST_CHECK;
/* Checks the values of the first n_parts parts of a state after they were read from the file at `path`. PSD_EINVAL: a
 * value is infinite or not a number; the text names file, tensor and element. */
enum psd_status psd_host_check_read(const struct psd_state *state, unsigned n_parts, const char *path,
				    struct psd_error *err) PSD_MUST_CHECK;
/* Stores the digest of the parameters after `iterations` iterations, with the check of psd_host_check_state(). Does
 * nothing if this run does not compare workers. */
enum psd_status psd_host_look(struct psd_host *host, uint32_t iterations, struct psd_error *err) PSD_MUST_CHECK;
/* Returns the hash of this worker's processor, device and libraries, see psd_wire_parameters.arithmetic. */
uint64_t psd_host_arithmetic(const struct psd_host *host);
/* Returns the digest of this worker's parameters after `iterations` iterations; all zeros if it is not known. */
struct psd_wire_parameters psd_host_digest(const struct psd_host *host, uint32_t iterations);
/* Compares the digests of all workers' parameters after `iterations` iterations. parameters: one entry per worker. A
 * digest that is not known is not compared, nor is a worker whose arithmetic differs from worker 0's. PSD_ERUN: digests
 * differ; the text names the workers and the tensor. */
enum psd_status psd_host_compare(const struct psd_host *host, const struct psd_wire_parameters parameters[],
				 uint32_t iterations, struct psd_error *err) PSD_MUST_CHECK;

#endif
