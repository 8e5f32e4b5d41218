/* What psd-run has of the terminal and the shell: standard streams and the signals that end it. */
#ifndef PSD_REAL_CONSOLE_H
#define PSD_REAL_CONSOLE_H

#include <signal.h>
#include <stdbool.h>
#include <stdio.h>

#include "engine/base/error.h"
#include "engine/base/text.h"

/* The number of the signal that asked for an end, 0: none. */
extern volatile sig_atomic_t psd_console_stop_signal;

/* First of all: streams that are closed get a place, and SIGINT, SIGTERM and SIGHUP are noted from now on. */
void psd_console_open(void);
/* From now on these signals end the process at once. is_told: which says so. */
void psd_console_let_signals_end(bool is_told);

/* A plain line to standard error, which it ends itself. */
void psd_console_say(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Whether a line to standard error keeps nobody waiting: no terminal that is stopped, no reader that pauses. */
bool psd_console_takes_more(void);

/* Writes a text and releases it. False when the stream does not take it; then errno says why. */
bool psd_console_write(FILE *out, struct psd_text *text);
/* The same to standard output. PSD_ERUN. */
enum psd_status psd_console_print(struct psd_text *text, struct psd_error *err) PSD_MUST_CHECK;

#endif
