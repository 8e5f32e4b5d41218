/* Standard streams of psd-run, and the signals by which a user ends psd-run. */
#ifndef PSD_REAL_CONSOLE_H
#define PSD_REAL_CONSOLE_H

#include <signal.h>
#include <stdbool.h>
#include <stdio.h>

#include "engine/base/error.h"
#include "engine/base/text.h"

/* Number of the last signal that asked psd-run to end (SIGINT, SIGTERM or SIGHUP); 0: none so far. */
extern volatile sig_atomic_t psd_console_stop_signal;

/* Opens /dev/null for each standard stream that is closed. From now on SIGINT, SIGTERM and SIGHUP do not end the
 * process, but are stored in psd_console_stop_signal. Call it first in main(). */
void psd_console_open(void);
/* From now on SIGINT, SIGTERM and SIGHUP end the process immediately. has_line: before it ends, the process prints a
 * line about the signal. */
void psd_console_let_signals_end(bool has_line);

/* If the memory of this process is limited (`ulimit -v`), a crash from now on prints one line with the likely reason
 * and ends the process with status 1. Without a limit, this function does nothing. */
void psd_console_explain_crashes(void);

/* From now on all printed lines begin with "psd-run[RANK]: ". For a run with several hosts, whose lines may appear on
 * the same screen. */
void psd_console_name_rank(unsigned rank);
/* Prints a line to standard error, without control characters, and adds a newline. If psd_console_name_rank() was
 * called and the line begins with "psd-run: ", this beginning is replaced by "psd-run[RANK]: ". */
void psd_console_say(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Prints an error. has_place: the text begins with file and line. Then it is printed without "psd-run: " before it, as
 * compilers print errors, so that editors find the file. After psd_console_name_rank(), all errors begin with
 * "psd-run[RANK]: ". */
void psd_console_complain(const char *text, bool has_place);
/* True if a line can be written to standard error without waiting. False if the terminal is stopped or the pipe is
 * full. */
bool psd_console_takes_more(void);

/* Writes a text to `out` and releases it. Returns false if writing failed; errno has the reason. */
bool psd_console_write(FILE *out, struct psd_text *text);
/* Writes a text to standard output and releases it. PSD_ERUN: writing failed. */
enum psd_status psd_console_print(struct psd_text *text, struct psd_error *err) PSD_MUST_CHECK;

#endif
