/* Scenarios that lie beside the program: those of the tree from which it was built, or of the installation. */
#ifndef PSD_SIM_INSTALLED_H
#define PSD_SIM_INSTALLED_H

#include "engine/base/error.h"
#include "engine/base/text.h"

/* Appends the path of the folder share/psd, or of the tree, in which the program's scenarios lie. PSD_EFILE: there is
 * no such folder. PSD_ENOMEM. */
enum psd_status psd_installed_folder(struct psd_text *folder, struct psd_error *err) PSD_MUST_CHECK;
/* Appends a line for each scenario: its name and title. PSD_EFILE, PSD_ENOMEM. */
enum psd_status psd_installed_add_list(struct psd_text *text, struct psd_error *err) PSD_MUST_CHECK;
/* Appends the path of the scenario with that name. A name is the path in the folder without ".yaml", or the last part
 * of it if no other has the same. PSD_EINVAL: none or several have it; the text lists them. PSD_EFILE, PSD_ENOMEM. */
enum psd_status psd_installed_find(struct psd_text *path, const char *name, struct psd_error *err) PSD_MUST_CHECK;
/* Appends the path of the model with that name, such as "resnet50"; the same statuses. */
enum psd_status psd_installed_find_model(struct psd_text *path, const char *name, struct psd_error *err) PSD_MUST_CHECK;
/* Appends the text of the scenario at `path`, with whole paths in place of those that count from its folder.
 * PSD_EFILE, PSD_EINVAL, PSD_ENOMEM. */
enum psd_status psd_installed_add_copy(struct psd_text *text, const char *path, struct psd_error *err) PSD_MUST_CHECK;

#endif
