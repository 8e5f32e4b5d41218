/* One plain value of a table of keys: read from a node, written in a form that reads back unchanged. Private to the
 * document. */
#ifndef PSD_VALUE_H
#define PSD_VALUE_H

#include "engine/document/schema.h"

/* Values of a flag without names of its own: "false", "true". */
extern const char *const psd_value_flag_names[];

size_t psd_value_bytes(enum psd_key_type type);
/* Add a key's accepted values in Markdown: "rate", "1 to 64", "`ps`, `ring`". choices: bits that limit names. */
void psd_value_add_kind(struct psd_text *text, const struct psd_key *key);
void psd_value_add_names(struct psd_text *text, const struct psd_key *key, unsigned choices);
/* Reads a value by its key's row, on success only. A path stays relative to the file. PSD_EINVAL with place. */
enum psd_status psd_value_read(void *value, const struct psd_node *node, const struct psd_key *key,
			       struct psd_error *err) PSD_MUST_CHECK;
/* True if the value was not given by any text, see struct psd_key. */
bool psd_value_is_absent(const void *value, const struct psd_key *key, bool is_needed);
/* Adds a value; a quantity in the unit and digits of its node in the file, if it still has that value. node: may be
 * NULL. */
void psd_value_add_as_written(struct psd_text *text, const void *value, const struct psd_key *key,
			      const struct psd_node *node);

#endif
