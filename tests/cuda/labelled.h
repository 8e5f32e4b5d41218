/* The CUDA device with a label for each call, so that a wait that the stand-in leaves out has a name. */
#ifndef PSD_TESTS_CUDA_LABELLED_H
#define PSD_TESTS_CUDA_LABELLED_H

#include "real/device/device.h"

struct psd_device_kind labelled_device(void);

/* Keeps the name of the next wait that is left out, also in processes that are forked later. The name is that of the
 * slot that waits. For wait() it is the slot that was begun last before the mark: "forward", "loss", "copy out", ... or
 * "nothing". */
void labelled_watch(void);
const char *labelled_left_out(void); /* "": none was; until the next labelled_watch() */

#endif
