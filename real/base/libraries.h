/* Libraries that a program of `make STATIC=1` loads at first use, so that it starts on a machine that has only the C
 * library. Other programs are linked with them. Refuses to know what they do. */
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

/* Loads the library. Call it in each process before any function of the library. PSD_ERUN: the machine does not have
 * it, or it lacks a function; the text says what would help. Any thread. */
enum psd_status psd_libraries_need(enum psd_shared_library library, struct psd_error *err) PSD_MUST_CHECK;

/* Opens a shared library by name, as in "libcudnn.so.9", and keeps it open. NULL: *err has the reason. Searches the
 * folders of the variable PSD_LIBRARIES, the system's, CUDA's, and the `nvidia` packages of Python: of PYTHONPATH, the
 * active environment, the first Python on PATH, and the system's. */
void *psd_libraries_open(const char *file_name, struct psd_error *err) PSD_MUST_CHECK;

#endif
