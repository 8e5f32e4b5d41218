/* Standard output on a terminal: text for people passes through a fitter (engine/base/view.h) before it is written. */
#ifndef PSD_SIM_TERMINAL_H
#define PSD_SIM_TERMINAL_H

#include <stdbool.h>

/* Puts a fitter in front of `stdout` if that is a terminal. Called once, before anything is printed. is_wide: tables
 * show all columns. False: memory ran out, and `stdout` is as before. */
bool psd_terminal_open(bool is_wide);
/* Writes what the fitter still holds, and restores `stdout`. */
void psd_terminal_close(void);

#endif
