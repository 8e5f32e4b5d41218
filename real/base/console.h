/* psd-run's standard streams, and the signals that end it. */
#ifndef PSD_REAL_CONSOLE_H
#define PSD_REAL_CONSOLE_H

#include <signal.h>
#include <stdbool.h>
#include <stdio.h>

#include "engine/base/error.h"
#include "engine/base/text.h"

/* Number of the signal by which psd-run was asked to end; 0: none. */
extern volatile sig_atomic_t psd_console_stop_signal;

/* Opens /dev/null for closed standard streams, and records SIGINT, SIGTERM and SIGHUP from now on. Call it first. */
void psd_console_open(void);
/* Lets these signals end the process at once from now on. has_line: it prints a line about the signal. */
void psd_console_let_signals_end(bool has_line);

/* Begins lines with "psd-run[RANK]: " from now on, as hosts of a run do, whose lines may come together. */
void psd_console_name_rank(unsigned rank);
/* Prints a line to standard error, without control characters. The newline is added. A line that begins with "psd-run:
 * " begins with the name of this process. */
void psd_console_say(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Prints an error. has_place: it begins with file and line, and stands alone, as compilers print it, so that editors
 * find the place; a host names itself even so. */
void psd_console_complain(const char *text, bool has_place);
/* True if a line to standard error would not block, as on a stopped terminal or a full pipe. */
bool psd_console_takes_more(void);

/* Writes a text and releases it. False: writing failed, with the reason in errno. */
bool psd_console_write(FILE *out, struct psd_text *text);
/* Writes a text to standard output and releases it. PSD_ERUN: writing failed. */
enum psd_status psd_console_print(struct psd_text *text, struct psd_error *err) PSD_MUST_CHECK;

#endif
