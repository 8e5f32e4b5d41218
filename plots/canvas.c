#define _GNU_SOURCE 1
#include "plots/canvas.h"

#include <ctype.h>
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "engine/base/spelling.h"

enum { NO_PROGRAM = 127, ERROR_ROOM = 4096, STACK_BYTES = 8 << 20 };

#define PT_PER_INCH 72.0
#define PX_PER_INCH 96.0 /* CSS's pixel */

static const struct {
	const char *end;
	double width_pt;
	double dots_per_inch;
} forms[PSD_FORMS] = {
	[PSD_FORM_SVG] = {".svg", 720, PX_PER_INCH},
	[PSD_FORM_PNG] = {".png", 720, 1.5 * PX_PER_INCH},
	[PSD_FORM_PDF] = {".pdf", 460, PT_PER_INCH}, /* the text of an A4 page */
	[PSD_FORM_EPS] = {".eps", 460, PT_PER_INCH},
};

/* ---- sizes ---- */

static const double narrowest_pt = 140, widest_pt = 7200, narrow_pt = 241, usual_pt = 720;
static const double paper_dots = 300;

/* Reads a length and returns the text behind it; NULL: it is not one. */
static const char *read_length(const char *text, double *pt, bool *is_px)
{
	static const struct {
		const char *name;
		double pt;
	} units[] = {{"mm", PT_PER_INCH / 25.4},
		     {"cm", PT_PER_INCH / 2.54},
		     {"in", PT_PER_INCH},
		     {"pt", 1},
		     {"px", PT_PER_INCH / PX_PER_INCH}};
	char *end;
	const double value = isdigit((unsigned char)*text) ? strtod(text, &end) : 0;

	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]) && value > 0; i++)
		if (!strncmp(end, units[i].name, 2)) {
			*pt = value * units[i].pt;
			*is_px = !strcmp(units[i].name, "px");
			return end + 2;
		}
	return NULL;
}

static bool read_size(struct psd_canvas *canvas, const char *size, bool *is_px)
{
	const char *rest = read_length(size, &canvas->width_pt, is_px);

	if (rest && (*rest == ',' || *rest == 'x'))
		rest = read_length(rest + 1, &canvas->height_pt, is_px);
	return rest && !*rest;
}

enum psd_status psd_canvas_read(struct psd_canvas *canvas, const char *path, const char *size, struct psd_error *err)
{
	const char *end = strrchr(path, '.');
	unsigned form = 0;
	bool is_px = true;

	while (form < PSD_FORMS && (!end || strcmp(end, forms[form].end) != 0))
		form++;
	if (form == PSD_FORMS)
		return psd_error_set(err, PSD_EINVAL, PSD_NOWHERE,
				     "'%.200s' must end in .svg, .png, .pdf or .eps, or .html for compare", path);
	*canvas = (struct psd_canvas){path, (enum psd_form)form,       forms[form].width_pt,
				      0,    forms[form].dots_per_inch, !size};
	if (size && !read_size(canvas, size, &is_px))
		return psd_error_set(err, PSD_EINVAL, PSD_NOWHERE,
				     "'--size' is '%.80s', must be a width or a width and a height such as 85mm, "
				     "85mm,60mm or 1440px",
				     size);
	if (canvas->width_pt < narrowest_pt || canvas->width_pt > widest_pt || canvas->height_pt > widest_pt)
		return psd_error_set(err, PSD_EINVAL, PSD_NOWHERE, "'--size' is '%.80s', must be from 50mm to 2500mm",
				     size);
	if (size)
		canvas->dots_per_inch = is_px ? PX_PER_INCH : paper_dots;
	return PSD_OK;
}

double psd_canvas_font_pt(const struct psd_canvas *canvas)
{
	/* 7 points on 85 mm, 11.25 (15 pixels) on 960 pixels. */
	const double pt = 7 + (canvas->width_pt - narrow_pt) * 4.25 / (usual_pt - narrow_pt);

	return pt < 6.5 ? 6.5 : pt;
}

/* ---- gnuplot's terminals ---- */

double psd_canvas_font(const struct psd_canvas *canvas, double pt)
{
	switch (canvas->form) {
	case PSD_FORM_SVG: return pt * PX_PER_INCH / PT_PER_INCH;
	case PSD_FORM_PNG: return pt * canvas->dots_per_inch / PX_PER_INCH;
	case PSD_FORM_PDF:
	case PSD_FORM_EPS:
	case PSD_FORMS: break;
	}
	return pt * PT_PER_INCH / PX_PER_INCH; /* these terminals count in pixels of 1/96 inch */
}

void psd_canvas_add_terminal(struct psd_text *script, const struct psd_canvas *canvas, double height_pt)
{
	const double font = psd_canvas_font(canvas, psd_canvas_font_pt(canvas)), dots = canvas->dots_per_inch;

	switch (canvas->form) {
	case PSD_FORM_SVG:
		psd_text_add(script,
			     "set terminal svg size %.0f,%.0f %s background rgb 'white' font "
			     "'Helvetica,Arial,sans-serif,%.2f' noenhanced\n",
			     canvas->width_pt * PX_PER_INCH / PT_PER_INCH, height_pt * PX_PER_INCH / PT_PER_INCH,
			     canvas->is_scalable ? "dynamic" : "fixed", font);
		break;
	case PSD_FORM_PNG:
		psd_text_add(script,
			     "set terminal pngcairo size %.0f,%.0f background rgb 'white' font 'DejaVu Sans,%.2f' "
			     "linewidth %.3f pointscale %.3f noenhanced\n",
			     canvas->width_pt * dots / PT_PER_INCH, height_pt * dots / PT_PER_INCH, font,
			     dots / PX_PER_INCH, dots / PX_PER_INCH);
		break;
	case PSD_FORM_PDF:
	case PSD_FORM_EPS:
		psd_text_add(
			script,
			"set terminal %s size %.4fin,%.4fin background rgb 'white' font 'DejaVu Sans,%.2f' fontscale 1 "
			"linewidth 1.5 pointscale 0.85 noenhanced\n",
			canvas->form == PSD_FORM_PDF ? "pdfcairo" : "epscairo", canvas->width_pt / PT_PER_INCH,
			height_pt / PT_PER_INCH, font);
		break;
	case PSD_FORMS: break;
	}
}

/* ---- running gnuplot ---- */

struct streams {
	int in, out, error; /* files in memory */
};

static bool write_all(int fd, const char *bytes, size_t length)
{
	while (length) {
		const ssize_t n = write(fd, bytes, length);

		if (n < 0)
			return false;
		bytes += n;
		length -= (size_t)n;
	}
	return lseek(fd, 0, SEEK_SET) == 0;
}

/* gnuplot dies without a word of a small stack: gets 8 MiB of it, or all that it may have. */
static void enlarge_stack(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_STACK, &limit) || limit.rlim_cur >= STACK_BYTES)
		return;
	limit.rlim_cur = limit.rlim_max < STACK_BYTES ? limit.rlim_max : STACK_BYTES;
	(void)setrlimit(RLIMIT_STACK, &limit);
}

static void run_child(const struct streams *streams)
{
	static char *const arguments[] = {"gnuplot", "-d", "-", NULL};

	enlarge_stack();
	if (dup2(streams->in, STDIN_FILENO) >= 0 && dup2(streams->out, STDOUT_FILENO) >= 0 &&
	    dup2(streams->error, STDERR_FILENO) >= 0)
		execvp(arguments[0], arguments);
	_exit(NO_PROGRAM);
}

static void take_all(struct psd_text *text, int fd)
{
	char piece[ERROR_ROOM];
	ssize_t n;

	if (lseek(fd, 0, SEEK_SET) == 0)
		while ((n = read(fd, piece, sizeof(piece))) > 0)
			psd_text_add_bytes(text, piece, (size_t)n);
}

/* The last line of gnuplot's words that says something: lines with ^ point at the place of an error. */
static const char *last_words(struct psd_text *text)
{
	const char *found = "";
	char *line = text->bytes ? text->bytes : (char *)"", *next;

	for (; *line; line = next) {
		char *end = line + strcspn(line, "\n");

		next = *end ? end + 1 : end;
		*end = '\0';
		if (line[strspn(line, " ^")])
			found = line + strspn(line, " ");
	}
	return found;
}

/* gnuplot does not report a failed write: a whole picture has its end. */
static bool is_whole(const struct psd_text *picture, enum psd_form form)
{
	static const struct {
		const char *bytes;
		size_t length;
	} ends[PSD_FORMS] = {[PSD_FORM_SVG] = {"</svg>", 6},
			     [PSD_FORM_PNG] = {"IEND\256\102\140\202", 8},
			     [PSD_FORM_PDF] = {"%%EOF", 5},
			     [PSD_FORM_EPS] = {"%%EOF", 5}};
	size_t length = picture->length;

	while (length && picture->bytes[length - 1] == '\n')
		length--;
	return length >= ends[form].length &&
	       !memcmp(picture->bytes + length - ends[form].length, ends[form].bytes, ends[form].length);
}

static enum psd_status wait_for(pid_t child, const struct streams *streams, struct psd_place at, struct psd_error *err)
{
	struct psd_text words = {.bytes = NULL};
	int how = 0;
	enum psd_status status = PSD_OK;

	while (waitpid(child, &how, 0) < 0 && errno == EINTR)
		;
	take_all(&words, streams->error);
	if (WIFEXITED(how) && WEXITSTATUS(how) == NO_PROGRAM)
		status = psd_error_set(err, PSD_EINVAL, PSD_NOWHERE,
				       "gnuplot is not installed, run: apt-get install gnuplot-nox");
	else if (how)
		status = psd_error_set(err, PSD_ERUN, at, "gnuplot: %s", last_words(&words));
	psd_text_release(&words);
	return status;
}

static enum psd_status run(const struct streams *streams, struct psd_place at, struct psd_error *err)
{
	const pid_t child = fork();

	if (child == 0)
		run_child(streams);
	return child < 0 ? psd_error_set(err, PSD_ERUN, at, "gnuplot cannot be started: %s", strerror(errno))
			 : wait_for(child, streams, at, err);
}

/* gnuplot leaves an end of CDATA in texts as it is, which XML excludes. */
static void add_plain_xml(struct psd_text *picture, const char *svg)
{
	for (const char *at; (at = strstr(svg, "]]>")); svg = at + 3) {
		const char *line = at;

		while (line > svg && line[-1] != '\n')
			line--;
		psd_text_add_bytes(picture, svg, (size_t)(at - svg));
		psd_text_add(picture, memmem(line, (size_t)(at - line), "<text>", 6) ? "]]&gt;" : "]]>");
	}
	psd_text_add_bytes(picture, svg, strlen(svg));
}

enum psd_status psd_canvas_draw(struct psd_text *picture, const struct psd_canvas *canvas,
				const struct psd_text *script, struct psd_error *err)
{
	const struct streams streams = {memfd_create("script", MFD_CLOEXEC), memfd_create("picture", MFD_CLOEXEC),
					memfd_create("words", MFD_CLOEXEC)};
	const struct psd_place at = {.path = canvas->path};
	struct psd_text drawn = {.bytes = NULL};
	enum psd_status status = PSD_OK;

	if (script->is_out_of_memory)
		status = psd_out_of_memory(err);
	else if (streams.in < 0 || streams.out < 0 || streams.error < 0 ||
		 !write_all(streams.in, script->bytes, script->length))
		status = psd_error_set(err, PSD_ERUN, at, "gnuplot's input cannot be written: %s", strerror(errno));
	if (!status)
		status = run(&streams, at, err);
	if (!status)
		take_all(&drawn, streams.out);
	close(streams.in);
	close(streams.out);
	close(streams.error);
	if (!status && !is_whole(&drawn, canvas->form))
		status = psd_error_set(err, PSD_ERUN, at, "gnuplot could not write all of the picture");
	if (!status && canvas->form == PSD_FORM_SVG)
		add_plain_xml(picture, drawn.bytes);
	else if (!status)
		psd_text_add_bytes(picture, drawn.bytes, drawn.length);
	psd_text_release(&drawn);
	return status;
}

/* ---- on a page ---- */

static bool begins(const char *text, const char *with)
{
	return !strncmp(text, with, strlen(with));
}

/* Appends a line with the prefix before identifiers and without name spaces and names of curves, which a browser would
 * show. */
static void embed_line(struct psd_text *page, const char *line, const char *end, const char *prefix)
{
	static const char *const ids[] = {" id=\"", " id='", "xlink:href=\"#", "xlink:href='#", "url(#"};

	while (line < end) {
		const char *behind = line;

		if (begins(line, "<title>"))
			behind = memmem(line, (size_t)(end - line), "</title>", 8);
		if (behind != line && behind) {
			line = behind + 8;
			continue;
		}
		for (size_t i = 0; i < sizeof(ids) / sizeof(ids[0]); i++)
			if (begins(line, ids[i])) {
				psd_text_add(page, "%s%s", ids[i], prefix);
				line += strlen(ids[i]);
				break;
			}
		const char *space = line + strspn(line, " ");

		if (begins(space, "xmlns=\"") || begins(space, "xmlns:xlink=\"")) {
			line = strchr(strchr(space, '"') + 1, '"') + 1;
			continue;
		}
		if (line < end)
			psd_text_add_bytes(page, line++, 1);
	}
}

void psd_canvas_embed(struct psd_text *page, const struct psd_text *svg, const char *prefix, const char *label)
{
	static const char *const dropped[] = {"<?xml ", "<title>Gnuplot", "<desc>"};

	for (const char *line = svg->bytes, *next; *line; line = next) {
		const char *end = line + strcspn(line, "\n"), *text = line + strspn(line, " \t");
		bool is_dropped = text >= end;

		next = *end ? end + 1 : end;
		for (size_t i = 0; i < sizeof(dropped) / sizeof(dropped[0]); i++)
			is_dropped = is_dropped || begins(line, dropped[i]);
		if (is_dropped)
			continue;
		if (begins(line, "<svg")) {
			psd_text_add(page, "<svg role=\"img\" aria-label=\"%s\"", label);
			line += 4;
		}
		if (begins(text, "<text>"))
			psd_text_add_bytes(page, line, (size_t)(end - line));
		else
			embed_line(page, line, end, prefix);
		psd_text_add(page, "\n");
	}
}
