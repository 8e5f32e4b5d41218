/* What hosts must have in common for what they run: keys of the scenario, and contents of the files they name. */
#ifndef PSD_REAL_AGREED_TERMS_H
#define PSD_REAL_AGREED_TERMS_H

#include "engine/base/text.h"
#include "engine/case/case.h"

/* Lines of psd_scenario_add_agreed(). Reads the graph's and the profile's file, opens the data set: errors as there. */
enum psd_status psd_terms_add(struct psd_text *text, const struct psd_case *made, const struct psd_train *train,
			      uint32_t n_iterations, struct psd_error *err) PSD_MUST_CHECK;
/* Lines: hosts that go on from other checkpoints than each other, by iterations, by the run that wrote them or by its
 * number of hosts, would wait for each other without end, or train with parameters of their own. from_hosts: 0: they
 * go on from their own. */
void psd_terms_add_start(struct psd_text *text, uint32_t first_iteration, uint64_t run_hash, unsigned from_hosts);
/* A line: hosts go on from checkpoints that all have. every_iterations: 0: none are written. */
void psd_terms_add_save(struct psd_text *text, uint32_t every_iterations);
/* A line: who does not join again leaves those waiting who do. */
void psd_terms_add_restarts(struct psd_text *text, uint32_t n_restarts);
/* A line: who takes a host for silent sooner than that host speaks ends a run that goes on. */
void psd_terms_add_stall(struct psd_text *text, double stall_sec);
/* The network whose parameters a checkpoint has: kinds of layers and sizes of tensors, whatever they are called. Pure.
 */
uint64_t psd_terms_hash_model(const struct psd_graph *graph);
/* A line of the program, which equal scenarios make equal unless the versions differ. */
void psd_terms_add_program(struct psd_text *text, const struct psd_graph *graph, const struct psd_program *program);

#endif
