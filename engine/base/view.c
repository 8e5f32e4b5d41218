#include "engine/base/view.h"

#include <stdlib.h>
#include <string.h>

#include "engine/base/output.h"

enum { HANG = 2, LEAST_WORDS = 20 };

#define NOTE  "note: "
#define DIM   "\033[2m"
#define PLAIN "\033[0m"

static struct psd_view current;

void psd_view_set(struct psd_view view)
{
	current = view;
}

void psd_view_find(bool is_wide)
{
	const char *no_color = getenv("NO_COLOR"), *terminal = getenv("TERM");
	const bool is_terminal = psd_output_is_terminal();

	current = (struct psd_view){
		.is_terminal = is_terminal,
		.has_styles = is_terminal && !(no_color && *no_color) && terminal && strcmp(terminal, "dumb") != 0,
		.is_wide = is_wide,
		.width = psd_output_terminal_width(),
	};
}

struct psd_view psd_view_get(void)
{
	return current;
}

int psd_view_width(int most)
{
	return current.is_terminal && current.width < most ? current.width : most;
}

/* ---- a line ---- */

/* Characters of a line; a style has none. */
static int places(const char *line)
{
	int n = 0;

	for (; *line; line++) {
		if (*line == '\033')
			line += strcspn(line, "m");
		else
			n += ((unsigned char)*line & 0xc0) != 0x80;
		if (!*line)
			break;
	}
	return n;
}

/* The indent of the lines that continue one: below its first words, if two blanks or more stand before them. */
static int hang_of(const char *line)
{
	const size_t indent = strspn(line, " "), word = strcspn(line + indent, " "),
		     gap = strspn(line + indent + word, " ");
	size_t hang = indent + HANG;

	if (!strncmp(line, NOTE, strlen(NOTE)))
		hang = strlen(NOTE);
	else if (!indent && gap >= 2)
		hang = word + gap;
	return (int)hang <= current.width - LEAST_WORDS ? (int)hang : HANG;
}

/* Bytes of the line's first `width` characters, or of the words that fit. */
static size_t head_bytes(const char *line, int width)
{
	size_t at = 0, end = 0;
	int n = 0;

	for (; line[at] && n <= width; at++) {
		if (line[at] == ' ' && strncmp(line + at, " %", 2) != 0 && strspn(line, " ") < at)
			end = at;
		if (n == width && ((unsigned char)line[at] & 0xc0) != 0x80)
			break;
		n += ((unsigned char)line[at] & 0xc0) != 0x80;
	}
	return end ? end : at;
}

static void add_folded(struct psd_text *out, const char *line)
{
	const int hang = hang_of(line);
	int width = current.width;

	while (places(line) > width && !current.is_wide) {
		const size_t n = head_bytes(line, width);

		psd_text_add(out, "%.*s\n%*s", (int)n, line, hang, "");
		line += n + strspn(line + n, " ");
		width = current.width - hang;
	}
	psd_text_add(out, "%s\n", line);
}

/* ---- notes ---- */

static bool is_told(const struct psd_text *notes, const char *note)
{
	const size_t length = strlen(note);

	for (size_t at = 0; at < notes->length; at += strlen(notes->bytes + at) + 1)
		if (!strncmp(notes->bytes + at, note, length + 1))
			return true;
	return false;
}

static void end_note(struct psd_fitter *fitter, struct psd_text *out)
{
	const char *line = fitter->note.bytes;

	if (!fitter->note.length)
		return;
	if (!is_told(&fitter->notes, line)) {
		psd_text_add_bytes(&fitter->notes, line, fitter->note.length + 1);
		for (; *line; line += strcspn(line, "\n") + 1)
			psd_text_add(out, current.has_styles ? DIM "%.*s" PLAIN "\n" : "%.*s\n",
				     (int)strcspn(line, "\n"), line);
	}
	psd_text_clear(&fitter->note);
}

static void end_line(struct psd_fitter *fitter, struct psd_text *out)
{
	const char *line = fitter->line.bytes ? fitter->line.bytes : "";

	if (!strncmp(line, NOTE, strlen(NOTE))) {
		end_note(fitter, out);
		add_folded(&fitter->note, line);
	} else if (fitter->note.length && *line == ' ') {
		add_folded(&fitter->note, line);
	} else {
		end_note(fitter, out);
		add_folded(out, line);
	}
	psd_text_clear(&fitter->line);
}

/* ---- the text ---- */

void psd_fitter_add(struct psd_fitter *fitter, struct psd_text *out, const char *bytes, size_t length)
{
	for (size_t i = 0; i < length; i++) {
		const char *end = memchr(bytes + i, '\n', length - i);
		const size_t n = end ? (size_t)(end - bytes) - i : length - i;

		psd_text_add_bytes(&fitter->line, bytes + i, n);
		if (end)
			end_line(fitter, out);
		i += n;
	}
	out->is_out_of_memory = out->is_out_of_memory || fitter->line.is_out_of_memory ||
				fitter->note.is_out_of_memory || fitter->notes.is_out_of_memory;
}

void psd_fitter_end(struct psd_fitter *fitter, struct psd_text *out)
{
	if (fitter->line.length)
		end_line(fitter, out);
	end_note(fitter, out);
	psd_text_release(&fitter->line);
	psd_text_release(&fitter->note);
	psd_text_release(&fitter->notes);
}

void psd_view_fit(struct psd_text *text)
{
	struct psd_text fitted = {.is_out_of_memory = text->is_out_of_memory};
	struct psd_fitter fitter = {.line = {NULL}};

	if (!current.is_terminal)
		return;
	psd_fitter_add(&fitter, &fitted, text->bytes ? text->bytes : "", text->length);
	psd_fitter_end(&fitter, &fitted);
	psd_text_release(text);
	*text = fitted;
}
