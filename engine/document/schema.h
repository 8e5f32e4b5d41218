/* The one table of a file's keys: a row for each, from which the keys are read, checked, printed, compared and
 * explained. Knows no key itself; what a row cannot say stands in the hooks of its section. */
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
	PSD_KEY_SECTION,  /* a mapping of further keys */
	PSD_KEY_OTHER,	  /* allowed here, read by somebody else */
	PSD_KEY_TEXT,	  /* const char * */
	PSD_KEY_PATH,	  /* const char *, in the file relative to its folder */
	PSD_KEY_NAME,	  /* const char *, one of names */
	PSD_KEY_CHOICE,	  /* unsigned or an enum without negative constants: position in names */
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

/* A value for which the row has no default is absent while it is 0, infinite or UINT64_MAX: what no text says. */
struct psd_key {
	const char *name;
	const char *former; /* its name in earlier versions, refused with the new one; NULL: none */
	enum psd_key_type type;
	size_t offset;		/* of the value, or of the section's values, in the section's struct */
	double lowest, highest; /* inclusive; whole numbers for counts */
	const char *const *names;
	const char *fallback; /* what holds where the key is absent, as it would be written; NULL: nothing does */
	const char *help;
	bool is_required;  /* this key or its rival */
	const char *plain; /* of a required text: the value of which nobody is told that it is not heeded; NULL: any */
	const char *rival; /* another key of the section, which cannot stand beside this one */
	/* Only where another key (of this section, or "section.key" below it) has one of these choices, a bit each;
	 * must stand where it has one of those in `needed`. */
	struct {
		const char *key;
		unsigned choices, needed;
	} when;
	unsigned uses;	  /* bits of what heeds the key, the caller's; 0: those of its section */
	bool is_refused;  /* by those who do not heed it, for their results would be others */
	const char *word; /* a word that may stand for the number: sets the flag at word_offset instead */
	size_t word_offset;
	const struct psd_section *section;
	size_t has_offset;	 /* of a flag that says whether the section stands there; 0: nobody asks */
	unsigned most_entries;	 /* of a list; 0: no list */
	size_t n_entries_offset; /* of their unsigned number */
	size_t entry_bytes;	 /* of a section's struct in a list */
	const char *inherits;	 /* of a section in a list: "cluster.host", whose values hold where it says nothing */
};

/* While a file is read. */
struct psd_schema_reader {
	void *base;	  /* the struct of the outermost section */
	const char *path; /* of the file */
	struct psd_arena *arena;
	struct psd_error *err;
};

/* base: the section's struct; mapping: what stands in the file for it. */
typedef void (*psd_section_prepare_fn)(const struct psd_schema_reader *reader, void *base,
				       const struct psd_node *mapping);
typedef enum psd_status (*psd_section_fn)(const struct psd_schema_reader *reader, void *base,
					  const struct psd_node *mapping);

struct psd_section {
	const struct psd_key *tables[PSD_SECTION_TABLES]; /* one behind the other, each up to a row without a name */
	psd_section_prepare_fn prepare; /* of an entry of a list, after its defaults and before its keys; may be NULL */
	psd_section_fn settle;		/* once the keys are read, what they say together; may be NULL */
	psd_section_fn check;		/* what the rows cannot say, when they found no fault; may be NULL */
};

/* Row i of a section, counted through its tables; NULL behind the last. */
const struct psd_key *psd_section_key(const struct psd_section *section, unsigned i);

/* The row of "key", or of "section.key" below; NULL: none. Adds to *offset where its value is in the section's struct.
 */
const struct psd_key *psd_section_find(const struct psd_section *section, const char *path, size_t *offset);

/* Reads mapping by root's section into the struct reader->base, in the order of the rows; values whose keys are absent
 * keep their defaults, which it sets. PSD_EINVAL with the place, PSD_ENOMEM; the struct may then be half filled. Texts
 * are borrowed from the document, or in the arena. */
enum psd_status psd_schema_read(const struct psd_schema_reader *reader, const struct psd_key *root,
				const struct psd_node *mapping) PSD_MUST_CHECK;

/* Whether the row's value says something in the struct at base: it is there, and another key lets it have an effect. */
bool psd_schema_is_said(const void *base, const struct psd_section *section, const struct psd_key *key);
/* Whether it says something else than where the key is absent. */
bool psd_schema_is_changed(const void *base, const struct psd_section *section, const struct psd_key *key);
/* One row's value, lists and sections in flow form; so that it reads back as it is. */
void psd_schema_add_value(struct psd_text *text, const void *base, const struct psd_key *key);
/* `hash` with the value at base of a key that is a number, choice, flag or pair. Pure. */
uint64_t psd_schema_hash_number(uint64_t hash, const void *base, const struct psd_key *key);
/* All that is said, as a file: the two outer levels in block form. Quantities as they stand in `mapping`, the file that
 * was read, where they still have that value. Without the sections in lists that say what they inherit. */
void psd_schema_add_text(struct psd_text *text, const void *base, const struct psd_section *section,
			 const struct psd_node *mapping);

/* A row on its way from the outermost section. */
struct psd_schema_spot {
	const char *path; /* "cluster.network.bandwidth"; entries of lists are not counted */
	const struct psd_section *section;
	const struct psd_key *key;
	const void *base;	     /* of the section; NULL where only rows are gone through */
	const struct psd_node *node; /* what stands in the file; NULL: nothing */
	unsigned uses;		     /* its own, or those of the section around it */
	void *context;
};

/* Returns whether to go on below it. */
typedef bool (*psd_schema_visit_fn)(const struct psd_schema_spot *spot);
/* Goes through all rows below root, sections before what is in them, each entry of their lists. base, mapping: may be
 * NULL, then the rows alone, as if each list had one entry. */
void psd_schema_walk(const struct psd_key *root, const void *base, const struct psd_node *mapping,
		     psd_schema_visit_fn visit, void *context);

#endif
