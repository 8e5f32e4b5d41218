/* Terms of a run: scenario keys and file contents that must be equal on all hosts. */
#ifndef PSD_REAL_AGREED_TERMS_H
#define PSD_REAL_AGREED_TERMS_H

#include "engine/base/text.h"
#include "engine/case/case.h"

/* Adds the lines of psd_scenario_add_agreed(), after reading the files of the graph and the profile and opening the
 * data set. Statuses as those of psd_scenario_add_agreed(). */
enum psd_status psd_terms_add(struct psd_text *text, const struct psd_case *made, const struct psd_train *train,
			      uint32_t n_iterations, struct psd_error *err) PSD_MUST_CHECK;
/* Adds the checkpoint that the run resumes from: hosts with different ones would wait for each other for ever, or train
 * with different parameters. from_hosts: number of hosts that wrote it; 0: each host has its own file. */
void psd_terms_add_start(struct psd_text *text, uint32_t first_iteration, uint64_t run_hash, unsigned from_hosts);
/* Adds the interval of checkpoints, since hosts resume from one that all have. every_iterations: 0: none are
 * written. */
void psd_terms_add_save(struct psd_text *text, uint32_t every_iterations);
/* Adds the number of restarts: all hosts must join again, or none. */
void psd_terms_add_restarts(struct psd_text *text, uint32_t n_restarts);
/* Adds the stall limit: a host with a shorter one would end a run that goes on. */
void psd_terms_add_stall(struct psd_text *text, double stall_sec);
/* Hash of the model that a checkpoint belongs to: layer kinds and tensor sizes, without names. Pure. */
uint64_t psd_terms_hash_model(const struct psd_graph *graph);
/* Adds a hash of the program, equal for equal scenarios unless versions differ. */
void psd_terms_add_program(struct psd_text *text, const struct psd_graph *graph, const struct psd_program *program);

#endif
