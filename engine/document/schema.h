/* Table of the keys of a file. Each key has a row (struct psd_key). By the rows, keys are read, checked, printed,
 * compared and explained. This module itself knows no keys. Rules that a row cannot express are functions of the key's
 * section. */
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
	PSD_KEY_SECTION, /* mapping with its own keys, see psd_key.section */
	PSD_KEY_OTHER,	 /* key that is accepted, and that other code reads */
	PSD_KEY_TEXT,	 /* text, stored as const char * */
	PSD_KEY_PATH,	 /* path relative to the folder of the file, stored as const char *; NULL: absent */
	PSD_KEY_NAME,	 /* one of psd_key.names, stored as const char * */
	/* One of psd_key.names. Its index is stored in an unsigned, or in an enum without negative constants. */
	PSD_KEY_CHOICE,
	/* one of two names, stored as bool; psd_key.names, or "false" and "true" if names is NULL */
	PSD_KEY_FLAG,
	PSD_KEY_RATE,	  /* rate, stored as double, bits per second */
	PSD_KEY_BYTES,	  /* number of bytes, stored as uint64_t */
	PSD_KEY_SECONDS,  /* time, stored as double, seconds */
	PSD_KEY_RATIO,	  /* ratio from psd_key.lowest to highest, stored as double */
	PSD_KEY_NUMBER,	  /* number from psd_key.lowest to highest, stored as double */
	PSD_KEY_UNSIGNED, /* whole number from psd_key.lowest to highest, stored as unsigned */
	/* two whole numbers from psd_key.lowest to highest, stored as two unsigned; the file has a list of two, or one
	 * number for both */
	PSD_KEY_PAIR,
	PSD_KEY_COUNT, /* whole number from psd_key.lowest to highest, stored as uint64_t */
};

enum { PSD_SECTION_TABLES = 4 };

struct psd_section;

/* Row of a key. A key without a default counts as absent if its value is 0, infinite, or UINT64_MAX. */
struct psd_key {
	const char *name;
	/* Name of the key in earlier versions. A file with it is refused, and the message names the new key. NULL:
	 * none. */
	const char *former;
	enum psd_key_type type;
	/* offset of the value (of a section: its struct) in the struct of the section around it, bytes */
	size_t offset;
	double lowest, highest; /* smallest and largest allowed value */
	const char *const *names;
	const char *fallback; /* default value, as text in a file; NULL: none */
	const char *help;
	bool is_required; /* the file must have this key, or its rival if the key has one */
	/* For a required text: value that an executor may ignore without a note to the user. NULL: any value. */
	const char *plain;
	/* other key of the section that must not be given together with this one; NULL: none */
	const char *rival;
	/* The key is allowed only if key `when.key` of this section (or "section.key" for a section in it) has one of
	 * some choices. `choices` has a bit for each of them, 1 << index. `needed` has the bits of choices for which
	 * the key is required. when.key NULL: no condition. */
	struct {
		const char *key;
		unsigned choices, needed;
	} when;
	/* Bits for the parts of the program that use the key; the caller defines the bits. 0: the bits of the section
	 * around it. */
	unsigned uses;
	/* Parts of the program that do not use the key refuse a file that has it, because results would be wrong. */
	bool is_refused;
	/* Word that is allowed instead of the number, and sets the flag at word_offset. NULL: none. */
	const char *word;
	size_t word_offset;
	/* Words that may stand behind the number, with a blank before them, such as "per node". NULL: none. */
	const char *per;
	const struct psd_section *section;
	size_t has_offset;     /* offset of a bool that is set if the file has the section; 0: no such bool */
	unsigned most_entries; /* largest number of entries if the value is a list; 0: it is not a list */
	/* The value is a mapping with names of any kind; each entry is stored as the text "name=value" in a list. */
	bool are_named;
	size_t n_entries_offset; /* offset of the number of entries of a list, an unsigned */
	size_t entry_bytes;	 /* size of the struct of one entry, in a list of sections */
	/* Path of the section from which entries of this list take their defaults, such as "cluster.host"; NULL:
	 * none. */
	const char *inherits;
	/* Path of a list whose entries may each have another value of this key, such as "cluster.groups": while it has
	 * entries, psd_schema_add_text() writes the key only where the file has it. NULL: none. */
	const char *varies_by;
};

struct psd_schema_reader {
	void *base;	  /* struct of the outermost section, whose members are set */
	const char *path; /* path of the file that is being read, for messages */
	struct psd_arena *arena;
	struct psd_error *err;
};

/* Functions of a section. base: struct of the section, or of a list's entry; mapping: its node in the file.
 * PSD_EINVAL, PSD_ENOMEM. */
typedef void (*psd_section_prepare_fn)(const struct psd_schema_reader *reader, void *base,
				       const struct psd_node *mapping);
typedef enum psd_status (*psd_section_fn)(const struct psd_schema_reader *reader, void *base,
					  const struct psd_node *mapping);

struct psd_section {
	/* NULL-terminated list of tables of keys, in order; each table ends with a key whose name is NULL */
	const struct psd_key *tables[PSD_SECTION_TABLES];
	/* Called for an entry of a list after its defaults were set, before its keys are read; may be NULL. */
	psd_section_prepare_fn prepare;
	/* Called after the keys were read, to set values that depend on several keys; may be NULL. */
	psd_section_fn settle;
	/* Called last, to check rules that the fields of struct psd_key cannot express; may be NULL. */
	psd_section_fn check;
};

/* Returns key i of a section, counted from 0 over all its tables; NULL: the section has i keys or fewer. */
const struct psd_key *psd_section_key(const struct psd_section *section, unsigned i);

/* Returns the key with the name `path` in the section, or with the path "section.key" in a section inside it; NULL:
 * there is none. Adds the offset of the key's value, in the struct of `section`, to *offset. */
const struct psd_key *psd_section_find(const struct psd_section *section, const char *path, size_t *offset);

/* Reads the mapping of a file into the struct reader->base, by the keys of root->section in their order. Keys that are
 * absent get their defaults. PSD_EINVAL with the place, PSD_ENOMEM; the struct may then be set only in part. Strings
 * belong to the document or the arena. */
enum psd_status psd_schema_read(const struct psd_schema_reader *reader, const struct psd_key *root,
				const struct psd_node *mapping) PSD_MUST_CHECK;

/* Checks that the text is a value of the key, which is not a section. name: name of the value in the message.
 * PSD_EINVAL. */
enum psd_status psd_schema_check_text(const struct psd_key *key, const char *name, const char *text,
				      struct psd_error *err) PSD_MUST_CHECK;
/* True if the key was given: it has a value in the struct at base, and the choices of other keys (psd_key.when) allow
 * it. */
bool psd_schema_is_said(const void *base, const struct psd_section *section, const struct psd_key *key);
/* True if psd_schema_is_said(), and the value differs from the default. */
bool psd_schema_is_changed(const void *base, const struct psd_section *section, const struct psd_key *key);
/* Appends the value of one key in a form that reads back to an equal value. Lists and sections are in YAML's flow
 * style, "[...]" and "{...}". */
void psd_schema_add_value(struct psd_text *text, const void *base, const struct psd_key *key);
/* Reads a quantity, number or count of the key from a node, in its basic unit (bit/s, byte, s). False: the node has
 * another form, such as a word. */
bool psd_schema_read_number(const struct psd_key *key, const struct psd_node *node, double *number);
/* Appends the value of a node for programs: the name of a choice as the key's row has it, any other text as it is. */
void psd_schema_add_plain(struct psd_text *text, const struct psd_key *key, const struct psd_node *node);
/* Copies values of the section from the struct `from` to the struct `base`: those of all keys that are in none of the
 * n mappings. A mapping may be NULL. */
void psd_schema_fill(void *base, const void *from, const struct psd_section *section,
		     const struct psd_node *const mappings[], unsigned n);
/* Returns `hash` extended by the value of the key in the struct at base. The key must be a number, choice, flag or
 * pair. Pure. */
uint64_t psd_schema_hash_number(uint64_t hash, const void *base, const struct psd_key *key);
/* Appends all values as a file, with the two outermost levels in YAML's block style. A rate, size or time is written
 * as in `mapping`, the file that was read, if it still has the value written there. Sections of a list's entry that
 * equal their defaults are omitted. */
void psd_schema_add_text(struct psd_text *text, const void *base, const struct psd_section *section,
			 const struct psd_node *mapping);

/* Place of a key that psd_schema_walk() visits. */
struct psd_schema_spot {
	const char *path; /* path of the key, "cluster.network.bandwidth", without numbers of list entries */
	const struct psd_section *section;
	const struct psd_key *key;
	const void *base; /* struct of the section; NULL: psd_schema_walk() was called without a struct */
	/* node of the key's value in the file; NULL: the file does not have the key */
	const struct psd_node *node;
	unsigned uses; /* psd_key.uses of the key; if it is 0, that of the section around it */
	void *context;
};

/* Function that psd_schema_walk() calls for a key. If it returns true, the keys inside this key's section are visited
 * as well. */
typedef bool (*psd_schema_visit_fn)(const struct psd_schema_spot *spot);
/* Calls visit() for all keys below root: for a section before the keys in it, and for the keys of a list once for each
 * entry. base: struct of the outermost section; mapping: its node in the file. Both may be NULL; if both are, each list
 * counts as one entry. context: value for psd_schema_spot.context. */
void psd_schema_walk(const struct psd_key *root, const void *base, const struct psd_node *mapping,
		     psd_schema_visit_fn visit, void *context);

#endif
