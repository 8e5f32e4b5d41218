/* A YAML file as a tree of nodes that know their place, so that every error names file:line:column. Uses libyaml's
 * parser. Refuses: anchors and aliases (bombs), duplicate keys, tags, directives, more than one document, nesting
 * deeper than 32, files over 16 MiB, bytes that are not UTF-8. Knows no key. */
#ifndef PSD_DOCUMENT_H
#define PSD_DOCUMENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/base/error.h"

enum psd_node_kind { PSD_NODE_SCALAR, PSD_NODE_SEQUENCE, PSD_NODE_MAPPING };

struct psd_node {
	enum psd_node_kind kind;
	struct psd_place at; /* place of the node in the file; path borrowed from the document */
	const char *key;     /* key of the node in its mapping; NULL: the parent is not a mapping */
	struct psd_place key_at;
	const char *text;	      /* text of a scalar; "" for an empty one */
	const struct psd_node *first; /* first child of a sequence or mapping; children are in file order */
	const struct psd_node *next;  /* next child of the same parent; NULL at the end */
	unsigned n_children;
};

struct psd_document; /* document, which owns every node and string of one file */

/* psd_document_load() reads the file `path`; psd_document_parse() reads length bytes of text, which messages call
 * `path`. The caller releases *document by psd_document_free(). PSD_EFILE, PSD_EINVAL with a place, PSD_ENOMEM. */
enum psd_status psd_document_load(struct psd_document **document, const char *path,
				  struct psd_error *err) PSD_MUST_CHECK;
enum psd_status psd_document_parse(struct psd_document **document, const char *path, const char *text, size_t length,
				   struct psd_error *err) PSD_MUST_CHECK;
/* The same for a text that must be JSON, as messages say then. It is read as YAML, of which JSON is nearly a part. */
enum psd_status psd_document_parse_json(struct psd_document **document, const char *path, const char *text,
					size_t length, struct psd_error *err) PSD_MUST_CHECK;
void psd_document_free(struct psd_document *document);
const struct psd_node *psd_document_root(const struct psd_document *document);

/* Appends a child to a node, for readers of other file formats. *last: the newest child, NULL without one. */
void psd_node_hang(struct psd_node *parent, struct psd_node **last, struct psd_node *child);

/* Returns the mapping's child with that key; NULL: none, or node is NULL or not a mapping. Takes linear time. */
const struct psd_node *psd_node_child(const struct psd_node *node, const char *key);

/* True if --set on the command line created the node, see overlay.h. */
bool psd_node_is_set(const struct psd_node *node);

/* Checks the keys of a mapping, called `name` in messages. PSD_EINVAL: the node is not a mapping, or has a key that is
 * not in the NULL-terminated list `known`. The message suggests the nearest known key: "a.yaml:4:3: unknown key
 * 'bandwith' in 'network', did you mean 'bandwidth'?". */
enum psd_status psd_node_check_keys(const struct psd_node *mapping, const char *name, const char *const known[],
				    struct psd_error *err) PSD_MUST_CHECK;

/* Read a scalar node of a type. Message form: "a.yaml:4:14: 'bandwidth' is '40', must be a rate such as 40Gbps or
 * 2.3GBps". Bounds are inclusive and named in the message. Outputs are written only on success. */
enum psd_status psd_node_rate(const struct psd_node *node, double *bits_per_sec,
			      struct psd_error *err) PSD_MUST_CHECK; /* value > 0 */
enum psd_status psd_node_bytes(const struct psd_node *node, uint64_t *bytes,
			       struct psd_error *err) PSD_MUST_CHECK; /* value > 0 */
enum psd_status psd_node_seconds(const struct psd_node *node, double *sec,
				 struct psd_error *err) PSD_MUST_CHECK; /* value >= 0 */
enum psd_status psd_node_ratio(const struct psd_node *node, double lowest, double highest, double *ratio,
			       struct psd_error *err) PSD_MUST_CHECK;
enum psd_status psd_node_count(const struct psd_node *node, uint64_t lowest, uint64_t highest, uint64_t *count,
			       struct psd_error *err) PSD_MUST_CHECK;
enum psd_status psd_node_number(const struct psd_node *node, double lowest, double highest, double *number,
				struct psd_error *err) PSD_MUST_CHECK;
enum psd_status psd_node_bool(const struct psd_node *node, bool *value,
			      struct psd_error *err) PSD_MUST_CHECK; /* text true or false */
/* Reads one of several names; *index: its index in the NULL-terminated list. The message lists all names. */
enum psd_status psd_node_choice(const struct psd_node *node, const char *const names[], unsigned *index,
				struct psd_error *err) PSD_MUST_CHECK;
/* Reads a scalar that is not empty; *text is borrowed from the document. */
enum psd_status psd_node_text(const struct psd_node *node, const char **text, struct psd_error *err) PSD_MUST_CHECK;

#endif
