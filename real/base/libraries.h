/* Libraries that psd-run, if built with `make STATIC=1`, loads when it first needs them, so that it starts on a machine
 * that has only the C library. A psd-run built without STATIC=1 is linked with them. Does not know their functions. */
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

/* Loads the library, unless psd-run is linked with it. Each process must call it before any function of the library.
 * PSD_ERUN: the library is not on the machine, or lacks a function; the text says how to get it. Any thread. */
enum psd_status psd_libraries_need(enum psd_shared_library library, struct psd_error *err) PSD_MUST_CHECK;

/* Opens a shared library by its file name, as in "libcudnn.so.9". It stays open until the process ends. NULL: it was
 * not found; *err has the reason. It searches the folders of the environment variable PSD_LIBRARIES, of the system, of
 * CUDA, and of the `nvidia` packages of Python (in PYTHONPATH, the active virtual environment, the first Python in
 * PATH, and the system's). */
void *psd_libraries_open(const char *file_name, struct psd_error *err) PSD_MUST_CHECK;

#endif
