/* Libraries that a program of `make STATIC=1` finds when it first needs them, so that it starts on a machine that has
 * only the C library. Other programs are linked with them and begin with all there. Refuses to know what they do. */
#ifndef PSD_REAL_LIBRARIES_H
#define PSD_REAL_LIBRARIES_H

#include "engine/base/error.h"

enum psd_shared_library {
	PSD_LIBRARY_ONEDNN,
	PSD_LIBRARY_CUBLAS,
	PSD_LIBRARY_CUBLASLT,
	PSD_LIBRARY_CUDNN,
	PSD_LIBRARIES
};

/* Before the first call of one of its functions, in each process. PSD_ERUN: it is not on this machine, or lacks one of
 * them; says what would help. Any thread. */
enum psd_status psd_libraries_need(enum psd_shared_library library, struct psd_error *err) PSD_MUST_CHECK;

/* Opens the shared library of that name, as in "libcudnn.so.9", for good; NULL: *err says why not. Looks in the folders
 * of the variable PSD_LIBRARIES, where the system looks, in CUDA's folders, and in the `nvidia` packages of Pythons: of
 * PYTHONPATH, the environment that is active, the first on PATH, and the system's. */
void *psd_libraries_open(const char *file_name, struct psd_error *err) PSD_MUST_CHECK;

#endif
