/* A single value of a key (not a section): reading it from a node, and writing it in a form that reads back to an
 * equal value. Private to engine/document/. */
#ifndef PSD_VALUE_H
#define PSD_VALUE_H

#include "engine/document/schema.h"

/* Names of the two values of a flag whose key has no names: "false", "true"; NULL ends the array. */
extern const char *const psd_value_flag_names[];

size_t psd_value_bytes(enum psd_key_type type);
/* psd_value_add_kind() appends the values that a key accepts, in Markdown: "rate", "1 to 64", "`ps`, `ring`".
 * psd_value_add_names() appends only those names of a choice whose bits (1 << index) are set in `choices`. */
void psd_value_add_kind(struct psd_text *text, const struct psd_key *key);
void psd_value_add_names(struct psd_text *text, const struct psd_key *key, unsigned choices);
/* Reads *value from a node, by the type and the limits of the key; *value is unchanged on failure. A path is stored as
 * it is in the file. PSD_EINVAL with place. */
enum psd_status psd_value_read(void *value, const struct psd_node *node, const struct psd_key *key,
			       struct psd_error *err) PSD_MUST_CHECK;
/* True if *value means that the key was not given, see struct psd_key. is_needed: the key is required, so that 0 may
 * be a given value. */
bool psd_value_is_absent(const void *value, const struct psd_key *key, bool is_needed);
/* Appends a value. A rate, size or time is written with the unit and digits of `node`, its node in the file, if the
 * node still has that value. node may be NULL. */
void psd_value_add_as_written(struct psd_text *text, const void *value, const struct psd_key *key,
			      const struct psd_node *node);

#endif
