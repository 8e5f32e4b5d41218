#define _GNU_SOURCE 1
#include "sim/output/terminal.h"

#include <stdio.h>

#include "engine/base/view.h"

static FILE *plain; /* standard output without the fitter; NULL: no fitter is in use */
static struct psd_fitter fitter;

static bool write_text(struct psd_text *text)
{
	const bool is_whole = !text->is_out_of_memory;

	if (text->length)
		fwrite(text->bytes, 1, text->length, plain);
	psd_text_release(text);
	return is_whole && !fflush(plain) && !ferror(plain);
}

static ssize_t write_fitted(void *cookie, const char *bytes, size_t length)
{
	struct psd_text text = {.bytes = NULL};

	(void)cookie;
	psd_fitter_add(&fitter, &text, bytes, length);
	return write_text(&text) ? (ssize_t)length : 0;
}

bool psd_terminal_open(bool is_wide)
{
	psd_view_find(is_wide);
	if (!psd_view_get().is_terminal)
		return true;
	FILE *fitted = fopencookie(NULL, "w", (cookie_io_functions_t){.write = write_fitted});
	if (!fitted)
		return false;
	fflush(stdout);
	plain = stdout;
	stdout = fitted;
	return true;
}

void psd_terminal_close(void)
{
	struct psd_text text = {.bytes = NULL};

	if (!plain)
		return;
	fflush(stdout);
	psd_fitter_end(&fitter, &text);
	write_text(&text);
	if (!ferror(stdout))
		fclose(stdout);
	stdout = plain;
	plain = NULL;
}
