/* Terms of a run: a text of scenario keys, options and hashes of files that must be equal on all hosts. Hosts compare
 * their terms when they join. Each function psd_terms_add...() adds lines to that text. */
#ifndef PSD_REAL_AGREED_TERMS_H
#define PSD_REAL_AGREED_TERMS_H

#include "engine/base/text.h"
#include "engine/case/case.h"

struct psd_host;

/* Adds the scenario keys that must be equal, see psd_scenario_add_agreed(). If a key names a file, a hash of the file's
 * contents is added instead of its name: model graph, profile, data set, initial parameters. PSD_EFILE, PSD_EINVAL: a
 * file cannot be read; PSD_ENOMEM. */
enum psd_status psd_terms_add(struct psd_text *text, const struct psd_case *made, const struct psd_train *train,
			      uint32_t n_iterations, struct psd_error *err) PSD_MUST_CHECK;
/* Adds the host's options that must be equal. If hosts resumed from different checkpoints, they would wait for each
 * other for ever, or train with different parameters. Hosts can only resume from a checkpoint that all of them have, so
 * they write checkpoints after equally many iterations. After a lost host, either all hosts join again or none. A host
 * with a shorter time after which a silent host counts as stalled would end a run that the other hosts continue. */
void psd_terms_add_run(struct psd_text *text, const struct psd_host *host);
/* Returns a hash of the model: kinds of its layers and sizes of its tensors, without names. A checkpoint can be used
 * with any model that has an equal hash. Pure. */
uint64_t psd_terms_hash_model(const struct psd_graph *graph);
/* Adds a hash of the program, which is the list of the operations of one iteration. Equal scenarios have equal hashes
 * unless the versions of psd-run differ. */
void psd_terms_add_program(struct psd_text *text, const struct psd_graph *graph, const struct psd_program *program);

#endif
