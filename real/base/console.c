#define _GNU_SOURCE
#include "real/base/console.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <string.h>
#include <unistd.h>

#include "engine/base/output.h"
#include "engine/base/view.h"
#include "real/base/machine.h"

enum { MOST_SAID = 2048 };

static const char plain_name[] = "psd-run: ";

volatile sig_atomic_t psd_console_stop_signal;

static char own_name[24] = "psd-run";
static bool has_rank;

void psd_console_name_rank(unsigned rank)
{
	snprintf(own_name, sizeof(own_name), "psd-run[%u]", rank);
	has_rank = true;
}

/* ---- signals ---- */

static void note_signal(int number)
{
	psd_console_stop_signal = number;
}

/* A hangup that is ignored, as under nohup, stays ignored. */
static void handle_ends(const struct sigaction *action)
{
	struct sigaction hangup;

	(void)sigaction(SIGINT, action, NULL);
	(void)sigaction(SIGTERM, action, NULL);
	if (sigaction(SIGHUP, NULL, &hangup) == 0 && hangup.sa_handler != SIG_IGN)
		(void)sigaction(SIGHUP, action, NULL);
}

static char last_words[SIGTERM + 1][128]; /* per signal, as a handler may not format */

static void end_at_once(int number)
{
	psd_outputs_remove();
	(void)!write(STDERR_FILENO, last_words[number], strlen(last_words[number]));
	signal(number, SIG_DFL);
	raise(number);
}

static void end_of_limit(int number)
{
	psd_outputs_remove();
	(void)!write(STDERR_FILENO, last_words[number], strlen(last_words[number]));
	_exit(1);
}

void psd_console_explain_crashes(void)
{
	static const int crashes[] = {SIGABRT, SIGBUS, SIGSEGV};

	for (size_t i = 0; i < sizeof(crashes) / sizeof(crashes[0]); i++) {
		const int number = crashes[i];

		if (!psd_machine_kill_is_limit(number))
			continue;
		snprintf(last_words[number], sizeof(last_words[number]), "%s: killed by signal %d%s\n", own_name,
			 number, psd_machine_kill_hint(number));
		(void)sigaction(number, &(struct sigaction){.sa_handler = end_of_limit}, NULL);
	}
}

void psd_console_let_signals_end(bool has_line)
{
	for (int number = 1; number <= SIGTERM && has_line; number++)
		snprintf(last_words[number], sizeof(last_words[number]), "%s: stopped by signal %d (%s)\n", own_name,
			 number, strsignal(number));
	handle_ends(&(struct sigaction){.sa_handler = end_at_once});
	if (psd_console_stop_signal)
		end_at_once(psd_console_stop_signal);
}

/* ---- streams ---- */

void psd_console_open(void)
{
	if (!psd_output_fill_streams())
		_exit(1);
	signal(SIGPIPE, SIG_IGN); /* a reader that went away is a failed write like any other */
	signal(SIGXFSZ, SIG_IGN); /* so is a limit on the size of files */
	signal(SIGCHLD, SIG_DFL); /* some parents ignore it, and then no process can be waited for */
	handle_ends(&(struct sigaction){.sa_handler = note_signal});
}

void psd_console_say(const char *format, ...)
{
	char line[MOST_SAID];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(line, sizeof(line), format, arguments);
	va_end(arguments);
	psd_text_make_plain(line);
	if (!strncmp(line, plain_name, strlen(plain_name)))
		fprintf(stderr, "%s: %s\n", own_name, line + strlen(plain_name));
	else
		fprintf(stderr, "%s\n", line);
}

void psd_console_complain(const char *text, bool has_place)
{
	psd_console_say("%s%s", has_place && !has_rank ? "" : plain_name, text);
}

bool psd_console_takes_more(void)
{
	struct pollfd standard_error = {.fd = STDERR_FILENO, .events = POLLOUT};

	return poll(&standard_error, 1, 0) > 0 && (standard_error.revents & POLLOUT);
}

bool psd_console_write(FILE *out, struct psd_text *text)
{
	const bool is_written = !text->is_out_of_memory &&
				fwrite(text->bytes ? text->bytes : "", 1, text->length, out) == text->length &&
				!fflush(out);
	const int reason = text->is_out_of_memory ? ENOMEM : errno;

	psd_text_release(text);
	errno = reason;
	return is_written;
}

enum psd_status psd_console_print(struct psd_text *text, struct psd_error *err)
{
	psd_view_fit(text);
	return psd_console_write(stdout, text) ? PSD_OK
					       : psd_error_set(err, PSD_ERUN, PSD_NOWHERE,
							       "cannot write to standard output: %s", strerror(errno));
}
