/* One plain value of a table of keys: read from a node, written in a form that reads back unchanged. Private to the
 * document. */
#ifndef PSD_VALUE_H
#define PSD_VALUE_H

#include "engine/document/schema.h"

/* "false", "true": the values of a flag without names of its own. */
extern const char *const psd_value_flag_names[];

size_t psd_value_bytes(enum psd_key_type type);
/* Add the accepted values in Markdown: "rate", "1 to 64", "`ps`, `ring`". choices: limits names, one bit each. */
void psd_value_add_kind(struct psd_text *text, const struct psd_key *key);
void psd_value_add_names(struct psd_text *text, const struct psd_key *key, unsigned choices);
/* PSD_EINVAL with the place; *value is written on success only. A path remains relative to the file. */
enum psd_status psd_value_read(void *value, const struct psd_node *node, const struct psd_key *key,
			       struct psd_error *err) PSD_MUST_CHECK;
/* True when no text gave the value: see struct psd_key. */
bool psd_value_is_absent(const void *value, const struct psd_key *key, bool is_needed);
/* Adds a value; a quantity in the unit and digits of its node in the file, if it still has that value. node: may be
 * NULL. */
void psd_value_add_as_written(struct psd_text *text, const void *value, const struct psd_key *key,
			      const struct psd_node *node);

#endif
