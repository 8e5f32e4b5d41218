/* Reads the SQLite export of Nsight Systems (`nsys export --type sqlite`) as a trace. Operators are the NVTX ranges of
 * PyTorch's emit_nvtx(). Steps are NVTX ranges with names such as "step 3". */
#ifndef PSD_IMPORT_NSIGHT_H
#define PSD_IMPORT_NSIGHT_H

#include "sim/import/trace.h"

/* True if a file that begins with these bytes is a database of SQLite. */
bool psd_nsight_is_one(const void *bytes, size_t length);
/* Fills *trace, which must be empty. Afterwards psd_trace_settle() must be called. The caller releases *trace, also
 * after a failure. PSD_EINVAL: the file is not an export of Nsight Systems, or has no operators. PSD_EFILE, PSD_ENOMEM.
 * */
enum psd_status psd_nsight_read(struct psd_trace *trace, const char *path, struct psd_error *err) PSD_MUST_CHECK;

#endif
