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
	PSD_KEY_SECTION, /* mapping with keys of its own */
	PSD_KEY_OTHER,	 /* key that is accepted here and read by other code */
	PSD_KEY_TEXT,	 /* text, stored as const char * */
	PSD_KEY_PATH,	 /* path relative to the file's folder, stored as const char * */
	PSD_KEY_NAME,	 /* one of names, stored as const char * */
	/* One of names; the field (unsigned, or an enum without negative constants) is set to its index. */
	PSD_KEY_CHOICE,
	PSD_KEY_FLAG,	  /* bool: index in names, false or true */
	PSD_KEY_RATE,	  /* rate, stored as double, bits per second */
	PSD_KEY_BYTES,	  /* size, stored as uint64_t */
	PSD_KEY_SECONDS,  /* time, stored as double, seconds */
	PSD_KEY_RATIO,	  /* ratio, stored as double; lowest..highest */
	PSD_KEY_NUMBER,	  /* number, stored as double; lowest..highest */
	PSD_KEY_UNSIGNED, /* whole number, stored as unsigned; lowest..highest */
	PSD_KEY_PAIR,	  /* two unsigned in lowest..highest: a list of two, or a number for both */
	PSD_KEY_COUNT,	  /* whole number, stored as uint64_t; lowest..highest */
};

enum { PSD_SECTION_TABLES = 4 };

struct psd_section;

/* Row of a key. A value without a default is absent while it is 0, infinite or UINT64_MAX, which no text can give. */
struct psd_key {
	const char *name;
	const char *former; /* name of the key in earlier versions, refused with a hint to the new one; NULL: none */
	enum psd_key_type type;
	size_t offset;		/* offset of the value, or of the section's values, in the section's struct */
	double lowest, highest; /* bounds of the value, inclusive; whole numbers for counts */
	const char *const *names;
	const char *fallback; /* default value as text in a file; NULL: none */
	const char *help;
	bool is_required;  /* the file must have this key or its rival */
	const char *plain; /* required text: value that an executor may ignore without a note; NULL: every value */
	const char *rival; /* other key of the section, which excludes this one; NULL: none */
	/* Condition: the key is allowed only for some choices of another key (of this section, or "section.key" below
	 * it), one bit each. It is required for those in `needed`. */
	struct {
		const char *key;
		unsigned choices, needed;
	} when;
	unsigned uses;	 /* bits set by the caller for parts of the program that use the key; 0: those of its section */
	bool is_refused; /* parts of the program without a use for the key refuse it: results would be wrong */
	const char *word; /* word allowed in place of the number; it sets the flag at word_offset */
	size_t word_offset;
	const struct psd_section *section;
	size_t has_offset;	 /* offset of a flag that is set if the file has the section; 0: none */
	unsigned most_entries;	 /* largest number of entries in a list; 0: the key has no list */
	bool are_named;		 /* list of texts: a mapping of any names, each entry is stored as "name=value" */
	size_t n_entries_offset; /* offset of the number of entries, an unsigned */
	size_t entry_bytes;	 /* size of one entry's struct in a list of sections */
	const char *inherits;	 /* path of the section that gives the defaults of a list's entry: "cluster.host" */
};

struct psd_schema_reader {
	void *base;	  /* struct of the outermost section, into which values are read */
	const char *path; /* path of the file that is read, for messages */
	struct psd_arena *arena;
	struct psd_error *err;
};

/* Called for a list's entry before its keys are read. base: the section's struct; mapping: the entry's node. */
typedef void (*psd_section_prepare_fn)(const struct psd_schema_reader *reader, void *base,
				       const struct psd_node *mapping);
typedef enum psd_status (*psd_section_fn)(const struct psd_schema_reader *reader, void *base,
					  const struct psd_node *mapping);

struct psd_section {
	const struct psd_key *tables[PSD_SECTION_TABLES]; /* in order; each ends with a row without a name */
	psd_section_prepare_fn prepare; /* called for a list's entry after its defaults, before its keys; may be NULL */
	psd_section_fn settle;		/* called after the keys: sets values that depend on several; may be NULL */
	psd_section_fn check;		/* called last: checks rules that no row can express; may be NULL */
};

/* Returns row i of a section, counted through its tables; NULL behind the last. */
const struct psd_key *psd_section_key(const struct psd_section *section, unsigned i);

/* Finds the row of "key", or of "section.key" below; NULL: none. Adds the value's offset in the section's struct to
 * *offset. */
const struct psd_key *psd_section_find(const struct psd_section *section, const char *path, size_t *offset);

/* Reads mapping by root's section into the struct reader->base, in the order of the rows. Values of absent keys become
 * their defaults. PSD_EINVAL with the place, PSD_ENOMEM; the struct may then be half filled. Texts are borrowed from
 * the document, or in the arena. */
enum psd_status psd_schema_read(const struct psd_schema_reader *reader, const struct psd_key *root,
				const struct psd_node *mapping) PSD_MUST_CHECK;

/* True if the key's value is present in the struct at base and has an effect there. */
bool psd_schema_is_said(const void *base, const struct psd_section *section, const struct psd_key *key);
/* True if the key's value is present, has an effect and differs from the default. */
bool psd_schema_is_changed(const void *base, const struct psd_section *section, const struct psd_key *key);
/* Adds the value of one key in a form that reads back unchanged; lists and sections are in flow style. */
void psd_schema_add_value(struct psd_text *text, const void *base, const struct psd_key *key);
/* Copies the values of all rows that none of n mappings names from one struct of the section to another. A mapping may
 * be NULL. */
void psd_schema_fill(void *base, const void *from, const struct psd_section *section,
		     const struct psd_node *const mappings[], unsigned n);
/* Returns `hash` extended by the value of a key at base; the key is a number, choice, flag or pair. Pure. */
uint64_t psd_schema_hash_number(uint64_t hash, const void *base, const struct psd_key *key);
/* Adds all present values as a file, the two outer levels in block style. Quantities are written like in `mapping`, the
 * file that was read, where they still have that value. Sections in lists that equal their defaults are left out. */
void psd_schema_add_text(struct psd_text *text, const void *base, const struct psd_section *section,
			 const struct psd_node *mapping);

/* A key that psd_schema_walk() visits. */
struct psd_schema_spot {
	const char *path; /* path of the key, "cluster.network.bandwidth", without numbers of list entries */
	const struct psd_section *section;
	const struct psd_key *key;
	const void *base;	     /* struct of the key's section; NULL: only rows are visited */
	const struct psd_node *node; /* node of the key's value in the file; NULL: absent */
	unsigned uses;		     /* bits of psd_key.uses: the key's own, or those of the section around it */
	void *context;
};

/* Function called for a key; it returns true to visit the keys below as well. */
typedef bool (*psd_schema_visit_fn)(const struct psd_schema_spot *spot);
/* Visits all rows below root: a section before its keys, and each entry of a list. Without base and mapping, which may
 * be NULL, each list counts as one entry. */
void psd_schema_walk(const struct psd_key *root, const void *base, const struct psd_node *mapping,
		     psd_schema_visit_fn visit, void *context);

#endif
