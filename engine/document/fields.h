/* Tables that say which keys a mapping of a scenario may hold and where each value goes: one row a key, one reader for
 * all. Knows nothing about what a key means beyond its type and bounds. */
#ifndef PSD_FIELDS_H
#define PSD_FIELDS_H

#include <stdbool.h>
#include <stddef.h>

#include "engine/base/error.h"
#include "engine/document/document.h"

enum psd_field_kind {
	PSD_FIELD_SECTION,  /* allowed here, read by somebody else */
	PSD_FIELD_TEXT,	    /* const char * */
	PSD_FIELD_RATE,	    /* double, bits per second */
	PSD_FIELD_BYTES,    /* uint64_t */
	PSD_FIELD_SECONDS,  /* double */
	PSD_FIELD_RATIO,    /* double in lowest..highest */
	PSD_FIELD_NUMBER,   /* double in lowest..highest */
	PSD_FIELD_UNSIGNED, /* unsigned in lowest..highest */
	PSD_FIELD_COUNT,    /* uint64_t in lowest..highest */
	PSD_FIELD_CHOICE,   /* unsigned or an enum without negative constants: position in names */
};

struct psd_field {
	const char *key;
	enum psd_field_kind kind;
	size_t offset; /* of the value in the caller's struct */
	bool is_required;
	double lowest, highest; /* inclusive; whole numbers for counts */
	const char *const *names;
};

/* Reads every key of mapping into the struct at base, by the rows of fields up to the one without key; a value whose
 * key is absent keeps what it was. what: the mapping's name in messages. Unknown, misplaced and missing keys and bad
 * values are PSD_EINVAL with their place; base may then be half filled. Texts are borrowed from the document. */
enum psd_status psd_fields_read(void *base, const struct psd_node *mapping, const char *what,
				const struct psd_field *fields, struct psd_error *err) PSD_MUST_CHECK;

/* Complains unless node is a sequence with 1 to highest entries. what: its key, in messages. */
enum psd_status psd_fields_check_list(const struct psd_node *node, const char *what, unsigned highest,
				      struct psd_error *err) PSD_MUST_CHECK;

#endif
