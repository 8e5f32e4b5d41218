/* Text for people into a stream. */
#include "sim/output/grid.h"

#include <stdarg.h>
#include <string.h>

#include "sim/output/output.h"

enum psd_status psd_output_text(FILE *out, struct psd_text *text, struct psd_error *err)
{
	const bool is_complete = !text->is_out_of_memory;

	if (is_complete)
		fwrite(text->bytes ? text->bytes : "", 1, text->length, out);
	psd_text_release(text);
	return is_complete ? PSD_OK : psd_error_set(err, PSD_ENOMEM, PSD_NOWHERE, "out of memory for the output");
}

enum psd_status psd_grid_write(FILE *out, const struct psd_grid *grid, struct psd_error *err)
{
	struct psd_text text = {.bytes = NULL};

	psd_grid_add(&text, grid);
	return psd_output_text(out, &text, err);
}

void psd_grid_write_text(FILE *out, const char *text)
{
	while (*text) {
		const unsigned n_bytes = psd_text_plain_bytes(text);

		fwrite(n_bytes ? text : "?", 1, n_bytes ? n_bytes : 1, out);
		text += n_bytes ? n_bytes : 1;
	}
}

void psd_sentence_add(struct psd_sentence *sentence, const char *format, ...)
{
	const size_t room = sizeof(sentence->text) - sentence->length;
	va_list values;
	int n_bytes;

	va_start(values, format);
	n_bytes = vsnprintf(sentence->text + sentence->length, room, format, values);
	va_end(values);
	if (n_bytes < 0)
		return;
	sentence->length += (size_t)n_bytes < room ? (size_t)n_bytes : room - 1;
}

void psd_sentence_write(FILE *out, const struct psd_sentence *sentence, int indent)
{
	const char *word = sentence->text;
	int column = 0;

	while (*word) {
		const size_t n_blanks = strspn(word, " ");
		size_t n_bytes = strcspn(word + n_blanks, " ");
		char text[sizeof(sentence->text)];

		if (!strncmp(word + n_blanks + n_bytes, " %", 2)) /* stays with its figure */
			n_bytes += 1 + strcspn(word + n_blanks + n_bytes + 1, " ");
		snprintf(text, sizeof(text), "%.*s", (int)n_bytes, word + n_blanks);
		if (column && column + (int)n_blanks + psd_text_places(text) > PSD_GRID_WIDTH) {
			fprintf(out, "\n%*s", indent, "");
			column = indent;
		} else {
			fprintf(out, "%*s", (int)n_blanks, "");
			column += (int)n_blanks;
		}
		psd_grid_write_text(out, text);
		column += psd_text_places(text);
		word += n_blanks + n_bytes;
	}
	fputc('\n', out);
}
