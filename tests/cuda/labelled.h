/* The CUDA device, of which each call says what it is, so that a wait that the stand-in leaves out has a name. */
#ifndef PSD_TESTS_CUDA_LABELLED_H
#define PSD_TESTS_CUDA_LABELLED_H

#include "real/device/device.h"

struct psd_device_kind labelled_device(void);

/* Of the next wait that is left out the name is kept, also in processes that are forked later: the slot that waits, or
 * for wait() what was begun last before the mark: "forward", "loss", "copy out", ... or "nothing". */
void labelled_watch(void);
const char *labelled_left_out(void); /* "": none was; until the next labelled_watch() */

#endif
