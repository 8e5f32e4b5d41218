/* One plain value of a table of keys: read from a node, written so that it reads back as it is. Private to the
 * document. */
#ifndef PSD_VALUE_H
#define PSD_VALUE_H

#include "engine/document/schema.h"

/* "false", "true": what a flag without names of its own is. */
extern const char *const psd_value_flag_names[];

size_t psd_value_bytes(enum psd_key_type type);
/* What may stand there, in words of Markdown: "rate", "1 to 64", "`ps`, `ring`"; of names
 * only these, a bit each. */
void psd_value_add_kind(struct psd_text *text, const struct psd_key *key);
void psd_value_add_names(struct psd_text *text, const struct psd_key *key, unsigned choices);
/* PSD_EINVAL with the place; *value is written on success only. A path stays as it stands. */
enum psd_status psd_value_read(void *value, const struct psd_node *node, const struct psd_key *key,
			       struct psd_error *err) PSD_MUST_CHECK;
/* Nothing that a text says stands there: see struct psd_key. */
bool psd_value_is_absent(const void *value, const struct psd_key *key, bool is_needed);
/* A quantity as it stands in the file, as long as it still has that value: in its unit, with its digits. node: may be
 * NULL. */
void psd_value_add_as_written(struct psd_text *text, const void *value, const struct psd_key *key,
			      const struct psd_node *node);

#endif
