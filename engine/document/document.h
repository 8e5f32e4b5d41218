/* A YAML file as a tree of nodes. Each node knows its place, so that every error names file:line:column. The parser is
 * libyaml's. These are errors: anchors and aliases, duplicate keys, tags, directives, more than one document, nesting
 * deeper than 32, files over 16 MiB, bytes that are not UTF-8. This module knows no keys. */
#ifndef PSD_DOCUMENT_H
#define PSD_DOCUMENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/base/error.h"

enum psd_node_kind { PSD_NODE_SCALAR, PSD_NODE_SEQUENCE, PSD_NODE_MAPPING };

struct psd_node {
	enum psd_node_kind kind;
	struct psd_place at; /* place of the node in the file; its path is borrowed from the document */
	const char *key;     /* key of the node in its parent; NULL: the parent is not a mapping */
	struct psd_place key_at;
	const char *text;	      /* text of a scalar; "" if it is empty */
	const struct psd_node *first; /* first child of a sequence or mapping; children are in file order */
	const struct psd_node *next;  /* next child of the same parent; NULL: this is the last */
	unsigned n_children;
};

struct psd_document; /* a document owns all nodes and strings of one file */

/* psd_document_load() reads the file `path`; psd_document_parse() reads length bytes of text, which messages call
 * `path`. The caller releases *document by psd_document_free(). PSD_EFILE, PSD_EINVAL with a place, PSD_ENOMEM. */
enum psd_status psd_document_load(struct psd_document **document, const char *path,
				  struct psd_error *err) PSD_MUST_CHECK;
enum psd_status psd_document_parse(struct psd_document **document, const char *path, const char *text, size_t length,
				   struct psd_error *err) PSD_MUST_CHECK;
/* The same as psd_document_parse(), for a text that must be JSON; messages then say "JSON". The text is parsed as
 * YAML, of which JSON is nearly a subset. */
enum psd_status psd_document_parse_json(struct psd_document **document, const char *path, const char *text,
					size_t length, struct psd_error *err) PSD_MUST_CHECK;
void psd_document_free(struct psd_document *document);
const struct psd_node *psd_document_root(const struct psd_document *document);

/* Appends a child to a node, for readers of other file formats. *last: newest child of the parent, NULL if it has
 * none; becomes `child`. */
void psd_node_hang(struct psd_node *parent, struct psd_node **last, struct psd_node *child);

/* Returns the child of a mapping with that key. NULL: it has no such child, or `node` is NULL or not a mapping. The
 * time grows with the number of children. */
const struct psd_node *psd_node_child(const struct psd_node *node, const char *key);

/* True if the node was created by --set on the command line, see overlay.h. */
bool psd_node_is_set(const struct psd_node *node);
/* True if an option on the command line gave the node, such as --set or --sweep. */
bool psd_node_is_option(const struct psd_node *node);
/* Returns the place of the child with this name if an option gave its value, such as "--set wire"; otherwise
 * `otherwise`. mapping: may be NULL. */
struct psd_place psd_node_option_at(const struct psd_node *mapping, const char *name, struct psd_place otherwise);

/* Checks that a mapping has only keys in the NULL-terminated list `known`. name: name of the mapping in messages.
 * PSD_EINVAL: the node is not a mapping, or has another key. The message suggests the most similar known key:
 * "a.yaml:4:3: unknown key 'bandwith' in 'network', did you mean 'bandwidth'?". */
enum psd_status psd_node_check_keys(const struct psd_node *mapping, const char *name, const char *const known[],
				    struct psd_error *err) PSD_MUST_CHECK;

/* Fills err: the node is a value, a list, a mapping or empty, and must be what `accepted` says. Returns PSD_EINVAL. */
enum psd_status psd_node_refuse(const struct psd_node *node, const char *accepted, struct psd_error *err);

/* Read a scalar as a value of a type. Form of messages: "a.yaml:4:14: 'bandwidth' is '40', must be a rate such as
 * 40Gbps or 2.3GBps". lowest and highest are the smallest and largest allowed value; messages name them. Outputs are
 * written only on success. PSD_EINVAL. */
enum psd_status psd_node_rate(const struct psd_node *node, double *bits_per_sec,
			      struct psd_error *err) PSD_MUST_CHECK; /* the value must be > 0 */
enum psd_status psd_node_bytes(const struct psd_node *node, uint64_t *bytes,
			       struct psd_error *err) PSD_MUST_CHECK; /* the value must be > 0 */
enum psd_status psd_node_seconds(const struct psd_node *node, double highest, double *sec,
				 struct psd_error *err) PSD_MUST_CHECK; /* from 0 to highest; highest 0: 1e6 */
enum psd_status psd_node_ratio(const struct psd_node *node, double lowest, double highest, double *ratio,
			       struct psd_error *err) PSD_MUST_CHECK;
enum psd_status psd_node_count(const struct psd_node *node, uint64_t lowest, uint64_t highest, uint64_t *count,
			       struct psd_error *err) PSD_MUST_CHECK;
enum psd_status psd_node_number(const struct psd_node *node, double lowest, double highest, double *number,
				struct psd_error *err) PSD_MUST_CHECK;
enum psd_status psd_node_bool(const struct psd_node *node, bool *value,
			      struct psd_error *err) PSD_MUST_CHECK; /* the text must be true or false */
/* Reads a scalar that must be one of the NULL-terminated list `names`; *index: its index in the list. The message of
 * an error lists all names. PSD_EINVAL. */
enum psd_status psd_node_choice(const struct psd_node *node, const char *const names[], unsigned *index,
				struct psd_error *err) PSD_MUST_CHECK;
/* Reads a scalar that must not be empty; *text is borrowed from the document. PSD_EINVAL. */
enum psd_status psd_node_text(const struct psd_node *node, const char **text, struct psd_error *err) PSD_MUST_CHECK;

#endif
