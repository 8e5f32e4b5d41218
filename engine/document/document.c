/* Turns libyaml's events into a tree in one arena. Refuses more than a million values. */
#include "engine/document/document.h"

#include <stdlib.h>
#include <string.h>

#include <yaml.h>

#include "engine/base/arena.h"
#include "engine/base/file.h"
#include "engine/base/names.h"

#define DEPTH_MAX 32
#define NODES_MAX (1u << 20)

struct psd_document {
	struct psd_arena arena;
	const struct psd_node *root;
};

/* A sequence or mapping whose end is not reached yet. */
struct open_node {
	struct psd_node *node;
	struct psd_node *last; /* newest child */
	const char *key;       /* mapping: key read, its value awaited */
	struct psd_place key_at;
};

struct reader {
	yaml_parser_t parser;
	struct psd_document *document;
	const char *path; /* the document's copy */
	const char *text;
	size_t length;
	const char *format; /* its name in messages */
	struct open_node open[DEPTH_MAX];
	unsigned depth;
	unsigned n_nodes;
	struct psd_error *err;
};

static struct psd_place place_of(const struct reader *reader, yaml_mark_t mark)
{
	return (struct psd_place){
		.path = reader->path, .line = (unsigned)mark.line + 1, .column = (unsigned)mark.column + 1};
}

static enum psd_status out_of_memory(const struct reader *reader)
{
	return psd_error_set(reader->err, PSD_ENOMEM, (struct psd_place){.path = reader->path}, "out of memory");
}

static struct psd_place place_of_offset(const struct reader *reader, size_t offset)
{
	struct psd_place at = {.path = reader->path, .line = 1, .column = 1};

	for (size_t i = 0; i < offset && i < reader->length; i++) {
		const unsigned char byte = (unsigned char)reader->text[i];

		if (byte == '\n') {
			at.line++;
			at.column = 1;
		} else if ((byte & 0xc0) != 0x80) { /* columns count characters, as libyaml's do */
			at.column++;
		}
	}
	return at;
}

static enum psd_status parser_problem(const struct reader *reader)
{
	const yaml_parser_t *parser = &reader->parser;

	if (parser->error == YAML_MEMORY_ERROR)
		return out_of_memory(reader);
	if (parser->error == YAML_READER_ERROR)
		return psd_error_set(reader->err, PSD_EINVAL, place_of_offset(reader, parser->problem_offset),
				     "not UTF-8 text: %s", parser->problem);
	return psd_error_set(reader->err, PSD_EINVAL, place_of(reader, parser->problem_mark), "not valid %s: %s",
			     reader->format, parser->problem ? parser->problem : "unknown problem");
}

static enum psd_status check_duplicates(const struct reader *reader, const struct psd_node *mapping)
{
	struct psd_names lines = {.slots = NULL}; /* line of each key */
	enum psd_status status = PSD_OK;
	unsigned line;

	for (const struct psd_node *child = mapping->first; child && !status; child = child->next)
		if (psd_names_find(&lines, child->key, &line))
			status = psd_error_set(reader->err, PSD_EINVAL, child->key_at,
					       "key '%.80s' is already in line %u", child->key, line);
		else if (!psd_names_put(&lines, child->key, child->key_at.line))
			status = out_of_memory(reader);
	psd_names_release(&lines);
	return status;
}

static enum psd_status add_node(struct reader *reader, enum psd_node_kind kind, yaml_mark_t mark,
				struct psd_node **added)
{
	struct open_node *parent = reader->depth ? &reader->open[reader->depth - 1] : NULL;
	struct psd_node *node;

	if (parent && parent->node->kind == PSD_NODE_MAPPING && !parent->key)
		return psd_error_set(reader->err, PSD_EINVAL, place_of(reader, mark),
				     "a key must be plain text, not a list or mapping");
	if (++reader->n_nodes > NODES_MAX)
		return psd_error_set(reader->err, PSD_EINVAL, place_of(reader, mark),
				     "the file has more than %u values", NODES_MAX);
	node = psd_arena_take(&reader->document->arena, sizeof(*node));
	if (!node)
		return out_of_memory(reader);
	node->kind = kind;
	node->at = place_of(reader, mark);
	if (parent) {
		node->key = parent->key;
		node->key_at = parent->key_at;
		parent->key = NULL;
		psd_node_hang(parent->node, &parent->last, node);
	} else {
		reader->document->root = node;
	}
	*added = node;
	return PSD_OK;
}

static enum psd_status refuse_decoration(const struct reader *reader, yaml_mark_t mark, const yaml_char_t *anchor,
					 const yaml_char_t *tag)
{
	if (anchor)
		return psd_error_set(reader->err, PSD_EINVAL, place_of(reader, mark),
				     "anchors ('&%.80s') are not accepted", (const char *)anchor);
	if (tag)
		return psd_error_set(reader->err, PSD_EINVAL, place_of(reader, mark), "tags ('%.80s') are not accepted",
				     (const char *)tag);
	return PSD_OK;
}

static enum psd_status take_scalar(struct reader *reader, const yaml_event_t *event)
{
	struct open_node *parent = reader->depth ? &reader->open[reader->depth - 1] : NULL;
	const char *value = (const char *)event->data.scalar.value;
	const size_t length = event->data.scalar.length;
	struct psd_node *node;

	PSD_TRY(refuse_decoration(reader, event->start_mark, event->data.scalar.anchor, event->data.scalar.tag));
	if (memchr(value, '\0', length))
		return psd_error_set(reader->err, PSD_EINVAL, place_of(reader, event->start_mark),
				     "text contains a zero byte");
	char *text = psd_arena_copy(&reader->document->arena, value, length);
	if (!text)
		return out_of_memory(reader);
	if (parent && parent->node->kind == PSD_NODE_MAPPING && !parent->key) {
		parent->key = text;
		parent->key_at = place_of(reader, event->start_mark);
		return PSD_OK;
	}
	PSD_TRY(add_node(reader, PSD_NODE_SCALAR, event->start_mark, &node));
	node->text = text;
	return PSD_OK;
}

static enum psd_status open_node(struct reader *reader, enum psd_node_kind kind, const yaml_event_t *event)
{
	const bool is_mapping = kind == PSD_NODE_MAPPING;
	struct psd_node *node;

	PSD_TRY(refuse_decoration(reader, event->start_mark,
				  is_mapping ? event->data.mapping_start.anchor : event->data.sequence_start.anchor,
				  is_mapping ? event->data.mapping_start.tag : event->data.sequence_start.tag));
	if (reader->depth == DEPTH_MAX)
		return psd_error_set(reader->err, PSD_EINVAL, place_of(reader, event->start_mark),
				     "the value is nested deeper than %d levels", DEPTH_MAX);
	PSD_TRY(add_node(reader, kind, event->start_mark, &node));
	reader->open[reader->depth++] = (struct open_node){.node = node};
	return PSD_OK;
}

static enum psd_status close_node(struct reader *reader)
{
	const struct psd_node *node = reader->open[--reader->depth].node;

	return node->kind == PSD_NODE_MAPPING ? check_duplicates(reader, node) : PSD_OK;
}

static enum psd_status take_event(struct reader *reader, const yaml_event_t *event)
{
	switch (event->type) {
	case YAML_SCALAR_EVENT: return take_scalar(reader, event);
	case YAML_SEQUENCE_START_EVENT: return open_node(reader, PSD_NODE_SEQUENCE, event);
	case YAML_MAPPING_START_EVENT: return open_node(reader, PSD_NODE_MAPPING, event);
	case YAML_SEQUENCE_END_EVENT:
	case YAML_MAPPING_END_EVENT: return close_node(reader);
	case YAML_ALIAS_EVENT:
		return psd_error_set(reader->err, PSD_EINVAL, place_of(reader, event->start_mark),
				     "aliases ('*%.80s') are not accepted", (const char *)event->data.alias.anchor);
	case YAML_DOCUMENT_START_EVENT:
		if (reader->document->root)
			return psd_error_set(reader->err, PSD_EINVAL, place_of(reader, event->start_mark),
					     "a second document begins here, a file must have one");
		return PSD_OK;
	default: return PSD_OK;
	}
}

/* True when a line begins at text[at]: behind one of YAML's line breaks (LF, CR, NEL, LS, PS) or the byte order mark.
 * */
static bool begins_line(const char *text, size_t at)
{
	if (at == 0 || text[at - 1] == '\n' || text[at - 1] == '\r')
		return true;
	if (at >= 2 && !memcmp(text + at - 2, "\xc2\x85", 2))
		return true;
	return at >= 3 && (!memcmp(text + at - 3, "\xe2\x80\xa8", 3) || !memcmp(text + at - 3, "\xe2\x80\xa9", 3) ||
			   !memcmp(text + at - 3, "\xef\xbb\xbf", 3));
}

/* libyaml compares every %TAG with all earlier ones, so that a long file of them takes minutes. No scenario needs a
 * directive. */
static enum psd_status refuse_directives(const struct reader *reader)
{
	for (size_t at = 0; at < reader->length; at++) {
		const char *found = memchr(reader->text + at, '%', reader->length - at);

		if (!found)
			return PSD_OK;
		at = (size_t)(found - reader->text);
		if (begins_line(reader->text, at))
			return psd_error_set(reader->err, PSD_EINVAL, place_of_offset(reader, at),
					     "directives (lines that begin with '%%') are not accepted");
	}
	return PSD_OK;
}

static enum psd_status read_events(struct reader *reader)
{
	for (;;) {
		yaml_event_t event;
		enum psd_status status;
		bool is_end;

		if (!yaml_parser_parse(&reader->parser, &event))
			return parser_problem(reader);
		is_end = event.type == YAML_STREAM_END_EVENT;
		status = take_event(reader, &event);
		yaml_event_delete(&event);
		if (status || is_end)
			return status;
	}
}

static enum psd_status read_document(struct reader *reader)
{
	PSD_TRY(refuse_directives(reader));
	if (!yaml_parser_initialize(&reader->parser))
		return out_of_memory(reader);
	yaml_parser_set_encoding(&reader->parser, YAML_UTF8_ENCODING);
	yaml_parser_set_input_string(&reader->parser, (const unsigned char *)reader->text, reader->length);
	const enum psd_status status = read_events(reader);
	yaml_parser_delete(&reader->parser);
	if (!status && !reader->document->root)
		return psd_error_set(reader->err, PSD_EINVAL, (struct psd_place){.path = reader->path},
				     "the file is empty");
	return status;
}

static enum psd_status parse(struct psd_document **document, const char *path, const char *text, size_t length,
			     const char *format, struct psd_error *err)
{
	const struct psd_place at = {.path = path};
	struct reader reader = {.text = text, .length = length, .format = format, .err = err};

	if (length > PSD_FILE_BYTES_MAX)
		return psd_error_set(err, PSD_EINVAL, at, "is longer than 16 MiB, too long for an input file");
	reader.document = calloc(1, sizeof(*reader.document));
	if (!reader.document)
		return psd_error_set(err, PSD_ENOMEM, at, "out of memory");
	reader.path = psd_arena_copy(&reader.document->arena, path, strlen(path));
	const enum psd_status status =
		reader.path ? read_document(&reader) : psd_error_set(err, PSD_ENOMEM, at, "out of memory");
	if (status)
		psd_document_free(reader.document);
	else
		*document = reader.document;
	return status;
}

enum psd_status psd_document_parse(struct psd_document **document, const char *path, const char *text, size_t length,
				   struct psd_error *err)
{
	return parse(document, path, text, length, "YAML", err);
}

enum psd_status psd_document_parse_json(struct psd_document **document, const char *path, const char *text,
					size_t length, struct psd_error *err)
{
	return parse(document, path, text, length, "JSON", err);
}

enum psd_status psd_document_load(struct psd_document **document, const char *path, struct psd_error *err)
{
	size_t length;
	char *text;

	PSD_TRY(psd_file_read(&text, &length, path, err));
	const enum psd_status status = psd_document_parse(document, path, text, length, err);
	free(text);
	return status;
}

void psd_document_free(struct psd_document *document)
{
	if (!document)
		return;
	psd_arena_release(&document->arena);
	free(document);
}

const struct psd_node *psd_document_root(const struct psd_document *document)
{
	return document->root;
}
