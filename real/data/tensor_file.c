/* Reader of safetensors. Whatever bytes a file has, every tensor found lies inside the file and shares no byte with
 * another. */
#include "real/data/tensor_file.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "engine/document/document.h"
#include "real/data/tensor_file_parts.h"

enum { LENGTH_BYTES = 8, MAX_HEADER_BYTES = 16 << 20 }; /* the header's limit is that of a document */

static const char notes_key[] = "__metadata__";

/* ---- the header's tree ---- */

static const char *keep(struct psd_tensor_file *file, const char *text)
{
	return psd_arena_copy(&file->arena, text, strlen(text));
}

static enum psd_status find_part(const struct psd_node *tensor, const char *key, enum psd_node_kind kind,
				 const struct psd_node **part, struct psd_error *err)
{
	const struct psd_node *found = psd_node_child(tensor, key);

	if (!found)
		return psd_error_set(err, PSD_EINVAL, tensor->at, "tensor '%.80s' has no '%s'", tensor->key, key);
	if (found->kind != kind)
		return psd_error_set(err, PSD_EINVAL, found->at, "'%s' of tensor '%.80s' must be %s", key, tensor->key,
				     kind == PSD_NODE_SEQUENCE ? "a list of whole numbers" : "a text");
	*part = found;
	return PSD_OK;
}

static enum psd_status read_type(struct psd_file_tensor *tensor, const struct psd_node *node, struct psd_error *err)
{
	const struct psd_node *name;
	unsigned type = 0;

	PSD_TRY(find_part(node, "dtype", PSD_NODE_SCALAR, &name, err));
	PSD_TRY(psd_node_choice(name, psd_tensor_type_names, &type, err));
	tensor->type = (enum psd_tensor_type)type;
	return PSD_OK;
}

static enum psd_status read_shape(struct psd_file_tensor *tensor, const struct psd_node *node, struct psd_error *err)
{
	const struct psd_node *shape;

	PSD_TRY(find_part(node, "shape", PSD_NODE_SEQUENCE, &shape, err));
	if (shape->n_children > PSD_FILE_TENSOR_DIMS)
		return psd_error_set(err, PSD_EINVAL, shape->at,
				     "tensor '%.80s' has %u dimensions, must have at most %d", node->key,
				     shape->n_children, PSD_FILE_TENSOR_DIMS);
	for (const struct psd_node *dim = shape->first; dim; dim = dim->next)
		PSD_TRY(psd_node_count(dim, 0, UINT64_MAX, &tensor->dims[tensor->n_dims++], err));
	return PSD_OK;
}

static enum psd_status read_offsets(struct psd_file_entry *entry, const struct psd_node *node, uint64_t n_data_bytes,
				    struct psd_error *err)
{
	const struct psd_node *offsets;
	uint64_t n_bytes;

	PSD_TRY(find_part(node, "data_offsets", PSD_NODE_SEQUENCE, &offsets, err));
	if (offsets->n_children != 2)
		return psd_error_set(err, PSD_EINVAL, offsets->at,
				     "'data_offsets' of tensor '%.80s' has %u numbers, must have 2", node->key,
				     offsets->n_children);
	PSD_TRY(psd_node_count(offsets->first, 0, n_data_bytes, &entry->begin, err));
	PSD_TRY(psd_node_count(offsets->first->next, entry->begin, n_data_bytes, &entry->end, err));
	entry->at = offsets->at;
	if (!psd_file_tensor_bytes(&entry->tensor, &n_bytes))
		return psd_error_set(err, PSD_EINVAL, node->at, "tensor '%.80s' has more values than can be counted",
				     node->key);
	if (n_bytes != entry->end - entry->begin)
		return psd_error_set(err, PSD_EINVAL, offsets->at,
				     "tensor '%.80s' has %" PRIu64
				     " bytes, by its type and shape it must have %" PRIu64,
				     node->key, entry->end - entry->begin, n_bytes);
	return PSD_OK;
}

static enum psd_status read_tensor(struct psd_tensor_file *file, const struct psd_node *node, uint64_t n_data_bytes,
				   struct psd_error *err)
{
	struct psd_file_entry *entry = &file->entries[file->n_entries++];

	if (node->kind != PSD_NODE_MAPPING)
		return psd_error_set(err, PSD_EINVAL, node->at,
				     "tensor '%.80s' must be an object with 'dtype', 'shape' and 'data_offsets'",
				     node->key);
	entry->tensor.name = keep(file, node->key);
	if (!entry->tensor.name)
		return psd_out_of_memory(err);
	PSD_TRY(read_type(&entry->tensor, node, err));
	PSD_TRY(read_shape(&entry->tensor, node, err));
	return read_offsets(entry, node, n_data_bytes, err);
}

static enum psd_status read_notes(struct psd_tensor_file *file, const struct psd_node *node, struct psd_error *err)
{
	if (node->kind != PSD_NODE_MAPPING)
		return psd_error_set(err, PSD_EINVAL, node->at, "'%s' must be an object of texts", notes_key);
	file->notes = psd_arena_take(&file->arena, (node->n_children + (size_t)1) * sizeof(*file->notes));
	if (!file->notes)
		return psd_out_of_memory(err);
	for (const struct psd_node *child = node->first; child; child = child->next) {
		struct psd_file_note *note = &file->notes[file->n_notes++];

		if (child->kind != PSD_NODE_SCALAR)
			return psd_error_set(err, PSD_EINVAL, child->at, "'%.80s' in '%s' must be a text", child->key,
					     notes_key);
		note->key = keep(file, child->key);
		note->value = keep(file, child->text);
		if (!note->key || !note->value)
			return psd_out_of_memory(err);
	}
	return PSD_OK;
}

/* Compares two tensors by their offset in the data, for sorting; at equal offsets tensors without values come first. */
static int by_offset(const void *left, const void *right)
{
	const struct psd_file_entry *a = left, *b = right;

	if (a->begin != b->begin)
		return a->begin < b->begin ? -1 : 1;
	if (a->end != b->end)
		return a->end < b->end ? -1 : 1;
	return strcmp(a->tensor.name, b->tensor.name); /* names differ */
}

static enum psd_status sort_entries(struct psd_tensor_file *file, struct psd_error *err)
{
	uint64_t expected = 0;

	qsort(file->entries, file->n_entries, sizeof(*file->entries), by_offset);
	for (unsigned i = 0; i < file->n_entries; i++) {
		const struct psd_file_entry *entry = &file->entries[i];

		if (entry->begin != expected)
			return psd_error_set(err, PSD_EINVAL, entry->at,
					     "tensor '%.80s' begins at byte %" PRIu64
					     " of the data, must begin at %" PRIu64 ", where the one before ends",
					     entry->tensor.name, entry->begin, expected);
		expected = entry->end;
		if (!psd_names_put(&file->numbers, entry->tensor.name, i))
			return psd_out_of_memory(err);
	}
	return PSD_OK;
}

static enum psd_status read_tree(struct psd_tensor_file *file, const struct psd_node *root, uint64_t n_data_bytes,
				 struct psd_error *err)
{
	if (root->kind != PSD_NODE_MAPPING)
		return psd_error_set(err, PSD_EINVAL, root->at, "the header must be a JSON object");
	file->entries = psd_arena_take(&file->arena, (root->n_children + (size_t)1) * sizeof(*file->entries));
	if (!file->entries)
		return psd_out_of_memory(err);
	for (const struct psd_node *child = root->first; child; child = child->next)
		PSD_TRY(!strcmp(child->key, notes_key) ? read_notes(file, child, err)
						       : read_tensor(file, child, n_data_bytes, err));
	return sort_entries(file, err);
}

static enum psd_status read_header(struct psd_tensor_file *file, const char *path, const char *text, uint64_t length,
				   uint64_t n_data_bytes, struct psd_error *err)
{
	struct psd_document *document;

	PSD_TRY(psd_document_parse_json(&document, path, text, (size_t)length, err));
	const enum psd_status status = read_tree(file, psd_document_root(document), n_data_bytes, err);
	psd_document_free(document);
	return status;
}

static void release_contents(struct psd_tensor_file *file)
{
	psd_names_release(&file->numbers);
	psd_arena_release(&file->arena);
}

enum psd_status psd_tensor_file_check_header(const char *path, const char *text, uint64_t length, uint64_t n_data_bytes,
					     struct psd_error *err)
{
	struct psd_tensor_file file = {.n_entries = 0};
	const enum psd_status status = read_header(&file, path, text, length, n_data_bytes, err);

	release_contents(&file);
	return status;
}

/* ---- the file ---- */

static enum psd_status read_front(void *context, struct psd_error *err)
{
	struct psd_tensor_file *file = context;
	const struct psd_mapping *mapping = &file->mapping;
	uint64_t n_header_bytes, n_data_bytes, n_used_bytes;

	if (mapping->n_bytes < LENGTH_BYTES)
		return psd_mapping_refuse(mapping, mapping->n_bytes, err,
					  "the file ends before the length of its header, 8 bytes");
	n_header_bytes = psd_little_u64(mapping->bytes);
	if (n_header_bytes > mapping->n_bytes - LENGTH_BYTES)
		return psd_mapping_refuse(mapping, 0, err,
					  "not a safetensors file, or cut short: its header must have %" PRIu64
					  " bytes, %" PRIu64 " are there",
					  n_header_bytes, mapping->n_bytes - LENGTH_BYTES);
	if (n_header_bytes > MAX_HEADER_BYTES)
		return psd_mapping_refuse(mapping, 0, err, "the header has %" PRIu64 " bytes, must have at most %d",
					  n_header_bytes, MAX_HEADER_BYTES);
	if (n_header_bytes == 0 || mapping->bytes[LENGTH_BYTES] != '{')
		return psd_mapping_refuse(mapping, LENGTH_BYTES, err,
					  "not a safetensors file: its header must begin with '{'");
	file->data = mapping->bytes + LENGTH_BYTES + n_header_bytes;
	n_data_bytes = mapping->n_bytes - LENGTH_BYTES - n_header_bytes;
	PSD_TRY(read_header(file, mapping->path, (const char *)mapping->bytes + LENGTH_BYTES, n_header_bytes,
			    n_data_bytes, err));
	n_used_bytes = file->n_entries ? file->entries[file->n_entries - 1].end : 0;
	if (n_used_bytes != n_data_bytes)
		return psd_mapping_refuse(mapping, LENGTH_BYTES + n_header_bytes + n_used_bytes, err,
					  "the file has bytes behind its last tensor");
	return psd_tensor_file_read_checksums(file, psd_tensor_file_note(file, PSD_CHECKSUMS_KEY), err);
}

enum psd_status psd_tensor_file_open_mapped(struct psd_tensor_file **file, struct psd_mapping *mapping,
					    struct psd_error *err)
{
	struct psd_tensor_file *fresh = calloc(1, sizeof(*fresh));

	if (!fresh) {
		psd_mapping_close(mapping);
		return psd_out_of_memory(err);
	}
	fresh->mapping = *mapping;
	*mapping = (struct psd_mapping){.path = NULL};
	const enum psd_status status = psd_mapping_guard(&fresh->mapping, 1, read_front, fresh, err);
	if (status)
		psd_tensor_file_close(fresh);
	else
		*file = fresh;
	return status;
}

enum psd_status psd_tensor_file_open(struct psd_tensor_file **file, const char *path, struct psd_error *err)
{
	const char *ending = strrchr(path, '.');
	struct psd_mapping mapping;

	PSD_TRY(psd_mapping_open(&mapping, NULL, path, err));
	if (ending && !strcmp(ending, ".onnx")) {
		psd_mapping_close(&mapping);
		return psd_error_set(err, PSD_EINVAL, (struct psd_place){.path = path},
				     "is an ONNX network, must be a safetensors file: 'psd-run weights' converts it");
	}
	return psd_tensor_file_open_mapped(file, &mapping, err);
}

void psd_tensor_file_close(struct psd_tensor_file *file)
{
	if (!file)
		return;
	release_contents(file);
	psd_mapping_close(&file->mapping);
	free(file);
}

/* ---- contents ---- */

const struct psd_file_tensor *psd_tensor_file_at(const struct psd_tensor_file *file, unsigned number)
{
	return number < file->n_entries ? &file->entries[number].tensor : NULL;
}

const struct psd_file_tensor *psd_tensor_file_find(const struct psd_tensor_file *file, const char *name)
{
	unsigned number;

	return psd_names_find(&file->numbers, name, &number) ? &file->entries[number].tensor : NULL;
}

const char *psd_tensor_file_note(const struct psd_tensor_file *file, const char *key)
{
	for (unsigned i = 0; i < file->n_notes; i++)
		if (!strcmp(file->notes[i].key, key))
			return file->notes[i].value;
	return NULL;
}

struct copying {
	const uint8_t *from;
	uint64_t n_bytes;
	void *to;
};

static enum psd_status copy(void *context, struct psd_error *err)
{
	const struct copying *copying = context;

	(void)err;
	if (copying->n_bytes)
		memcpy(copying->to, copying->from, (size_t)copying->n_bytes);
	return PSD_OK;
}

enum psd_status psd_tensor_file_read(struct psd_tensor_file *file, const struct psd_file_tensor *tensor,
				     uint64_t first_byte, uint64_t n_bytes, void *to, struct psd_error *err)
{
	const struct psd_file_entry *entry = (const struct psd_file_entry *)tensor;
	struct copying copying = {file->data + entry->begin + first_byte, n_bytes, to};

	assert(first_byte <= entry->end - entry->begin && n_bytes <= entry->end - entry->begin - first_byte);
	return psd_mapping_guard(&file->mapping, 1, copy, &copying, err);
}
