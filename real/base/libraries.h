/* Shared libraries that a psd-run built with `make STATIC=1` loads when it first needs them. So it starts on a machine
 * that has only the C library. A psd-run built without STATIC=1 is linked with these libraries. This module does not
 * call their functions. */
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

/* Loads the library if psd-run is not linked with it. Each process must call it before any function of the library.
 * PSD_ERUN: the library is not on the machine, or lacks a function; the text tells how to get it. Any thread. */
enum psd_status psd_libraries_need(enum psd_shared_library library, struct psd_error *err) PSD_MUST_CHECK;

/* Opens a shared library by its file name, such as "libcudnn.so.9". It stays open until the process ends. Returns NULL
 * if it was not found; then *err has the reason. Folders are searched in this order: those of the environment variable
 * PSD_LIBRARIES, of the system, of CUDA, and of the `nvidia` packages of Python (in PYTHONPATH, the active virtual
 * environment, the first Python in PATH, and the system's Python). */
void *psd_libraries_open(const char *file_name, struct psd_error *err) PSD_MUST_CHECK;

#endif
