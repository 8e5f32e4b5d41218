/* The table of a file's keys: one row for each, by which the keys are read, checked, printed, compared and explained.
 * Knows no key itself. Rules that no row can express are hooks of its section. */
#ifndef PSD_SCHEMA_H
#define PSD_SCHEMA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/base/arena.h"
#include "engine/base/error.h"
#include "engine/base/text.h"
#include "engine/document/document.h"

enum psd_key_type {
	PSD_KEY_SECTION, /* a mapping of further keys */
	PSD_KEY_OTHER,	 /* accepted here, read elsewhere */
	PSD_KEY_TEXT,	 /* const char * */
	PSD_KEY_PATH,	 /* const char *; the file has it relative to its folder */
	PSD_KEY_NAME,	 /* const char *, one of names */
	/* a choice among names; the field (unsigned, or an enum without negative constants) gets the position in names
	 * */
	PSD_KEY_CHOICE,
	PSD_KEY_FLAG,	  /* bool: position in names */
	PSD_KEY_RATE,	  /* double, bits per second */
	PSD_KEY_BYTES,	  /* uint64_t */
	PSD_KEY_SECONDS,  /* double */
	PSD_KEY_RATIO,	  /* double in lowest..highest */
	PSD_KEY_NUMBER,	  /* double in lowest..highest */
	PSD_KEY_UNSIGNED, /* unsigned in lowest..highest */
	PSD_KEY_PAIR,	  /* two unsigned in lowest..highest: a list of two, or a number for both */
	PSD_KEY_COUNT,	  /* uint64_t in lowest..highest */
};

enum { PSD_SECTION_TABLES = 4 };

struct psd_section;

/* A value whose row has no default is absent while it is 0, infinite or UINT64_MAX, which no text becomes. */
struct psd_key {
	const char *name;
	const char *former; /* its name in earlier versions, refused with the new one; NULL: none */
	enum psd_key_type type;
	size_t offset;		/* position of the value, or of the section's values, in the section's struct */
	double lowest, highest; /* inclusive; whole numbers for counts */
	const char *const *names;
	const char *fallback; /* default value as a file would have it; NULL: none */
	const char *help;
	bool is_required;  /* this key or its rival must be present */
	const char *plain; /* value of a required text that may be ignored without a note; NULL: each one */
	const char *rival; /* another key of the section, which must not be present beside this one */
	/* Restricts the key to choices of another key (of this section, or "section.key" below it), one bit each; it is
	 * required for those in `needed`. */
	struct {
		const char *key;
		unsigned choices, needed;
	} when;
	unsigned uses;	  /* the caller's bits: parts of the program that use the key; 0: those of its section */
	bool is_refused;  /* parts that do not use the key refuse it, since their results would be wrong */
	const char *word; /* a word instead of the number; it sets the flag at word_offset */
	size_t word_offset;
	const struct psd_section *section;
	size_t has_offset;	 /* position of a flag that is set when the section is present; 0: none */
	unsigned most_entries;	 /* most entries of a list; 0: the key has no list */
	size_t n_entries_offset; /* position of their number, an unsigned */
	size_t entry_bytes;	 /* size of a section's struct in a list */
	const char *inherits;	 /* the section of the defaults for a section in a list: "cluster.host" */
};

struct psd_schema_reader {
	void *base;	  /* the struct of the outermost section */
	const char *path; /* the file that is read */
	struct psd_arena *arena;
	struct psd_error *err;
};

/* base: the section's struct; mapping: its node in the file. */
typedef void (*psd_section_prepare_fn)(const struct psd_schema_reader *reader, void *base,
				       const struct psd_node *mapping);
typedef enum psd_status (*psd_section_fn)(const struct psd_schema_reader *reader, void *base,
					  const struct psd_node *mapping);

struct psd_section {
	const struct psd_key *tables[PSD_SECTION_TABLES]; /* in their order; each ends with a row without a name */
	psd_section_prepare_fn prepare; /* called for a list's entry after its defaults, before its keys; may be NULL */
	psd_section_fn settle;		/* called after the keys: values that follow from several; may be NULL */
	psd_section_fn check;		/* called last: rules that no row can express; may be NULL */
};

/* Returns row i of a section, counted through its tables; NULL behind the last. */
const struct psd_key *psd_section_key(const struct psd_section *section, unsigned i);

/* Returns the row of "key", or of "section.key" below; NULL: none. Adds the value's position in the section's struct to
 * *offset. */
const struct psd_key *psd_section_find(const struct psd_section *section, const char *path, size_t *offset);

/* Reads mapping by root's section into the struct reader->base, in the order of the rows. Values of absent keys become
 * their defaults. PSD_EINVAL with the place, PSD_ENOMEM; the struct may then be half filled. Texts are borrowed from
 * the document, or in the arena. */
enum psd_status psd_schema_read(const struct psd_schema_reader *reader, const struct psd_key *root,
				const struct psd_node *mapping) PSD_MUST_CHECK;

/* True when the row's value is present in the struct at base and has an effect there. */
bool psd_schema_is_said(const void *base, const struct psd_section *section, const struct psd_key *key);
/* True when the value also differs from the key's default. */
bool psd_schema_is_changed(const void *base, const struct psd_section *section, const struct psd_key *key);
/* Adds one row's value, lists and sections in flow style, in a form that reads back unchanged. */
void psd_schema_add_value(struct psd_text *text, const void *base, const struct psd_key *key);
/* Returns `hash` extended by the value at base of a key that is a number, choice, flag or pair. Pure. */
uint64_t psd_schema_hash_number(uint64_t hash, const void *base, const struct psd_key *key);
/* Adds all present values as a file, the two outer levels in block style. Quantities are written like in `mapping`, the
 * file that was read, where they still have that value. Sections in lists that equal their defaults are left out. */
void psd_schema_add_text(struct psd_text *text, const void *base, const struct psd_section *section,
			 const struct psd_node *mapping);

/* A row that psd_schema_walk() visits. */
struct psd_schema_spot {
	const char *path; /* "cluster.network.bandwidth"; entries of lists are not counted */
	const struct psd_section *section;
	const struct psd_key *key;
	const void *base;	     /* the section's struct; NULL when only rows are visited */
	const struct psd_node *node; /* the key's value in the file; NULL: absent */
	unsigned uses;		     /* the key's own, or those of the section around it */
	void *context;
};

/* Returns true to visit the rows below as well. */
typedef bool (*psd_schema_visit_fn)(const struct psd_schema_spot *spot);
/* Visits all rows below root: a section before its keys, and each entry of a list. Without base and mapping, which may
 * be NULL, each list counts as one entry. */
void psd_schema_walk(const struct psd_key *root, const void *base, const struct psd_node *mapping,
		     psd_schema_visit_fn visit, void *context);

#endif
