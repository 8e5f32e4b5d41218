/* Standard streams of psd-run, and the signals that end it. */
#ifndef PSD_REAL_CONSOLE_H
#define PSD_REAL_CONSOLE_H

#include <signal.h>
#include <stdbool.h>
#include <stdio.h>

#include "engine/base/error.h"
#include "engine/base/text.h"

/* Number of the signal that asked psd-run to end (SIGINT, SIGTERM, SIGHUP); 0: none so far. */
extern volatile sig_atomic_t psd_console_stop_signal;

/* Opens /dev/null for standard streams that are closed, and from now on stores SIGINT, SIGTERM and SIGHUP in
 * psd_console_stop_signal. Call it before anything else. */
void psd_console_open(void);
/* From now on SIGINT, SIGTERM and SIGHUP end the process at once. has_line: the process then prints a line about the
 * signal. */
void psd_console_let_signals_end(bool has_line);

/* Where this process's memory is limited (`ulimit -v`): a crash ends it with one line and status 1 from now on. */
void psd_console_explain_crashes(void);

/* From now on all lines begin with "psd-run[RANK]: ". Used by the hosts of a run, whose lines may appear on the same
 * screen. */
void psd_console_name_rank(unsigned rank);
/* Prints a line to standard error, without control characters; a newline is added. If the line begins with "psd-run: "
 * and psd_console_name_rank() was called, that is replaced by "psd-run[RANK]: ". */
void psd_console_say(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Prints an error. has_place: the text begins with file and line, and is printed without "psd-run: " in front, as
 * compilers print errors, so that editors find the file. With a rank, "psd-run[RANK]: " is always in front. */
void psd_console_complain(const char *text, bool has_place);
/* True if a line can be written to standard error without blocking. False on a stopped terminal or a full pipe. */
bool psd_console_takes_more(void);

/* Writes a text to `out` and releases it. Returns false if writing failed; errno has the reason. */
bool psd_console_write(FILE *out, struct psd_text *text);
/* Writes a text to standard output and releases it. PSD_ERUN: writing failed. */
enum psd_status psd_console_print(struct psd_text *text, struct psd_error *err) PSD_MUST_CHECK;

#endif
