/* Files that are installed beside a program: its manual page, and completion for shells. All of them are made from the
 * table by which the program reads its command line (arguments.h). */
#ifndef PSD_SHARE_H
#define PSD_SHARE_H

#include "engine/base/arguments.h"

struct psd_share {
	const char *kind;    /* "man", "bash", "zsh" or "fish" */
	const char *version; /* version of the program; a word behind the first one is left out */
	/* keys of a scenario that complete `KEY=VALUE`, with blanks between them; NULL: none */
	const char *keys;
};

/* Appends the file of that kind. PSD_EINVAL: there is no such kind. */
enum psd_status psd_command_table_add_share(struct psd_text *text, const struct psd_command_table *table,
					    const struct psd_share *share, struct psd_error *err) PSD_MUST_CHECK;

/* Appends the title line of a manual page. */
void psd_manual_add_title(struct psd_text *text, const char *name, unsigned section, const char *version);
/* Appends a line of text to a manual page: words between backquotes are bold, and no character has a meaning of roff's
 * own. */
void psd_manual_add_line(struct psd_text *text, const char *words);

#endif
