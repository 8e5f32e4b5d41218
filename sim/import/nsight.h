/* The SQLite export of Nsight Systems (`nsys export --type sqlite`) as a trace. Operators are NVTX ranges of PyTorch's
 * emit_nvtx(), steps are NVTX ranges such as "step 3". */
#ifndef PSD_IMPORT_NSIGHT_H
#define PSD_IMPORT_NSIGHT_H

#include "sim/import/trace.h"

/* Whether a file that begins with these bytes is a database of SQLite. */
bool psd_nsight_is_one(const void *bytes, size_t length);
/* Fills the empty trace, which is not settled yet; the caller releases it, also after a failure. PSD_EINVAL: the file
 * is no export of Nsight Systems, or lacks operators; PSD_EFILE, PSD_ENOMEM. */
enum psd_status psd_nsight_read(struct psd_trace *trace, const char *path, struct psd_error *err) PSD_MUST_CHECK;

#endif
