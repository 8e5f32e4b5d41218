/* Text for people, written to a FILE. */
#include "sim/output/grid.h"

#include <string.h>

#include "engine/base/view.h"
#include "sim/output/output.h"

enum psd_status psd_output_text(FILE *out, struct psd_text *text, struct psd_error *err)
{
	const bool is_complete = !text->is_out_of_memory;

	if (is_complete)
		fwrite(text->bytes ? text->bytes : "", 1, text->length, out);
	psd_text_release(text);
	return is_complete ? PSD_OK : psd_error_set(err, PSD_ENOMEM, PSD_NOWHERE, "out of memory for the output");
}

void psd_grid_write_text(FILE *out, const char *text)
{
	while (*text) {
		const unsigned n_bytes = psd_text_plain_bytes(text);

		fwrite(n_bytes ? text : "?", 1, n_bytes ? n_bytes : 1, out);
		text += n_bytes ? n_bytes : 1;
	}
}

void psd_sentence_write(FILE *out, struct psd_text *sentence, int indent)
{
	const int width = psd_view_width(PSD_GRID_WIDTH);
	char *word = sentence->bytes;
	int column = 0;

	while (word && *word) {
		const int n_blanks = (int)strspn(word, " ");
		char *const begin = word + n_blanks, *end = begin + strcspn(begin, " "), behind;

		if (!strncmp(end, " %", 2)) /* a line is not broken between a number and "%" */
			end += 1 + strcspn(end + 1, " ");
		behind = *end;
		*end = '\0';
		if (column && column + n_blanks + psd_text_places(begin) > width) {
			fprintf(out, "\n%*s", indent, "");
			column = indent;
		} else {
			fprintf(out, "%*s", n_blanks, "");
			column += n_blanks;
		}
		psd_grid_write_text(out, begin);
		column += psd_text_places(begin);
		*end = behind;
		word = end;
	}
	fputc('\n', out);
	psd_text_release(sentence);
}
