/* Terms of a run: a text of scenario keys, options and hashes of files that must be equal on all hosts. Hosts compare
 * their terms when they join. Each function psd_terms_add...() adds lines to that text. */
#ifndef PSD_REAL_AGREED_TERMS_H
#define PSD_REAL_AGREED_TERMS_H

#include "engine/base/text.h"
#include "engine/case/case.h"

/* Adds the scenario keys that must be equal, see psd_scenario_add_agreed(). If a key names a file, a hash of the file's
 * contents is added instead of its name: model graph, profile, data set, initial parameters. PSD_EFILE, PSD_EINVAL: a
 * file cannot be read; PSD_ENOMEM. */
enum psd_status psd_terms_add(struct psd_text *text, const struct psd_case *made, const struct psd_train *train,
			      uint32_t n_iterations, struct psd_error *err) PSD_MUST_CHECK;
/* Adds the checkpoint from which the run resumes. If hosts resumed from different checkpoints, they would wait for each
 * other for ever, or train with different parameters. run_hash: hash of the terms of the run that wrote the checkpoint;
 * from_hosts: number of hosts that wrote it, if they were another cluster; 0: the same cluster wrote it, and each host
 * reads its own file. */
void psd_terms_add_start(struct psd_text *text, uint32_t first_iteration, uint64_t run_hash, unsigned from_hosts);
/* Adds the number of iterations between two checkpoints, because hosts can only resume from a checkpoint that all of
 * them have. every_iterations 0: no checkpoints are written. */
void psd_terms_add_save(struct psd_text *text, uint32_t every_iterations);
/* Adds the largest number of restarts after a lost host; 0: the run never restarts. It must be equal because either all
 * hosts join again or none. */
void psd_terms_add_restarts(struct psd_text *text, uint32_t n_restarts);
/* Adds the time after which a silent host counts as stalled, seconds. A host with a shorter time would end a run that
 * the other hosts continue. */
void psd_terms_add_stall(struct psd_text *text, double stall_sec);
/* Returns a hash of the model: kinds of its layers and sizes of its tensors, without names. A checkpoint can be used
 * with any model that has an equal hash. Pure. */
uint64_t psd_terms_hash_model(const struct psd_graph *graph);
/* Adds a hash of the program, which is the list of the operations of one iteration. Equal scenarios have equal hashes
 * unless the versions of psd-run differ. */
void psd_terms_add_program(struct psd_text *text, const struct psd_graph *graph, const struct psd_program *program);

#endif
