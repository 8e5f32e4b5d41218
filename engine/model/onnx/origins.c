/* Origins of constants: which of them PyTorch trains. PyTorch's newer exporter lists parameters and buffers by name,
 * and says from which values it computed a constant. Elsewhere the numbers decide: a mask of attention has 0 and one
 * other number; a table of relative positions, written out for each pair of positions, repeats its rows. Refuses to
 * guess: other constants count as before. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/hash.h"
#include "engine/model/onnx/parts.h"

#define LETTERS "_0123456789abcdefghijklmnopqrstuvwxyz"

enum { NAME_BYTES = 1024, MOST_PAIRS = 1 << 24 };

/* ---- the exporter's list ---- */

static const char *metadata_of(Onnx__Entry *const entries[], size_t n, const char *key)
{
	for (size_t i = 0; i < n; i++)
		if (entries[i]->key && entries[i]->value && !strcmp(entries[i]->key, key))
			return entries[i]->value;
	return NULL;
}

bool psd_onnx_is_listed(const struct psd_onnx *onnx, const char *name, enum psd_onnx_listed kind)
{
	unsigned found;

	return name && psd_names_find(&onnx->listed, name, &found) && found == (unsigned)kind;
}

/* Number of the value that names a parameter: its alias or the file's tensor. 0: it has no name. */
static unsigned identity_of(const struct psd_onnx *onnx, const struct psd_onnx_value *value)
{
	const Onnx__Tensor *tensor = value->origin ? value->origin : value->derived_from;

	return value->alias ? value->alias : tensor && tensor->name ? psd_onnx_number_of(onnx, tensor->name) : 0;
}

/* True if only one axis has several positions. */
static bool is_vector(const struct psd_onnx_value *value)
{
	unsigned n = 0;

	for (unsigned d = 0; d < value->n_dims; d++)
		n += value->dims[d] > 1;
	return n <= 1;
}

/* Writes a key for a computed constant in the node's module. An exporter computes it for each call of the module, and
 * numbers the calls, as in "conv.1_2". */
static void write_key(const struct psd_onnx *onnx, const struct psd_onnx_value *value,
		      char key[PSD_GRAPH_NAME_MAX + 40])
{
	char module[PSD_GRAPH_NAME_MAX + 1];
	size_t n = 0;

	psd_onnx_module_of(onnx, module);
	for (const char *at = module; *at; at++) {
		const size_t digits = *at == '_' ? strspn(at + 1, "0123456789") : 0;

		if (digits && (!at[digits + 1] || at[digits + 1] == '.'))
			at += digits;
		else
			module[n++] = *at;
	}
	module[n] = '\0';
	snprintf(key, PSD_GRAPH_NAME_MAX + 40, "computed %p %s", (const void *)value->origin, module);
}

bool psd_onnx_is_counted(const struct psd_onnx *onnx, const struct psd_onnx_value *value)
{
	char key[PSD_GRAPH_NAME_MAX + 40];
	unsigned number;

	if (!psd_onnx_allows_other(onnx))
		return false;
	if (value->is_computed && value->origin && onnx->has_aliases) {
		write_key(onnx, value, key);
		return psd_names_find(&onnx->modules, key, &number);
	}
	return onnx->is_counted[identity_of(onnx, value)] && (onnx->has_aliases || !is_vector(value));
}

enum psd_status psd_onnx_note_counted(struct psd_onnx *onnx, const struct psd_onnx_value *value)
{
	const unsigned identity = identity_of(onnx, value);
	char key[PSD_GRAPH_NAME_MAX + 40];

	onnx->is_counted[identity] = identity != 0;
	if (!value->is_computed || !value->origin || !onnx->has_aliases)
		return PSD_OK;
	write_key(onnx, value, key);
	const char *kept = psd_arena_copy(&onnx->arena, key, strlen(key));
	return kept && psd_names_put(&onnx->modules, kept, 0) ? PSD_OK : psd_onnx_no_memory(onnx);
}

static const char *folded_from(const Onnx__ValueInfo *info)
{
	return metadata_of(info->metadata, info->n_metadata, "pkg.onnxscript.optimizer.folded_from");
}

static const char *call_of(const Onnx__Node *node)
{
	const char *call = metadata_of(node->metadata, node->n_metadata, "pkg.torch.onnx.fx_node");

	return call ? call : "";
}

/* Adds the word to a map; its number means nothing. False: out of memory. */
static bool add_word(struct psd_onnx *onnx, struct psd_names *words, const char *word, size_t length)
{
	const char *kept = psd_arena_copy(&onnx->arena, word, length);

	return kept && psd_names_put(words, kept, 0);
}

/* Collects words that begin with "p_" behind '%', and names in quotes. False: out of memory. */
static bool collect_words(struct psd_onnx *onnx, struct psd_names *words)
{
	const Onnx__Graph *graph = onnx->graph;
	bool fits = true;

	for (size_t i = 0; i < graph->n_node; i++)
		for (const char *at = strstr(call_of(graph->node[i]), "%p_"); at && fits; at = strstr(at + 1, "%p_"))
			fits = add_word(onnx, words, at + 1, strspn(at + 1, LETTERS));
	for (size_t i = 0; i < graph->n_value_info; i++) {
		const char *from = folded_from(graph->value_info[i]);

		for (const char *at = from ? strchr(from, '\'') : NULL; at && fits; at = strchr(at, '\'')) {
			const size_t length = strcspn(++at, "'");

			fits = add_word(onnx, words, at, length);
			at += length;
			at += *at == '\'';
		}
	}
	return fits;
}

/* Counts the parameter as missing if neither a tensor, nor a node, nor a computed constant names it. */
static void name_parameter(struct psd_onnx *onnx, const struct psd_names *words, const char *line, const char *name)
{
	const size_t length = strcspn(line, ":");
	char word[NAME_BYTES];
	unsigned number;
	const bool is_named = length < sizeof(word) && snprintf(word, sizeof(word), "%.*s", (int)length, line) > 0 &&
			      psd_names_find(words, word, &number);

	if (!is_named && !psd_names_find(words, name, &number) && !psd_onnx_number_of(onnx, name) && !onnx->n_missing++)
		onnx->first_missing = name;
}

/* Reads lines such as "p_fc_weight: PARAMETER target='fc.weight'". */
static enum psd_status read_list(struct psd_onnx *onnx, const struct psd_names *words)
{
	static const char *const kinds[] = {": PARAMETER target='", ": BUFFER target='", ": CONSTANT_TENSOR target='"};
	const Onnx__Graph *graph = onnx->graph;
	const char *list =
		metadata_of(graph->metadata, graph->n_metadata, "pkg.torch.export.ExportedProgram.graph_signature");

	for (const char *line = list; line && *line; line += strcspn(line, "\n"), line += *line == '\n')
		for (unsigned k = 0; k < sizeof(kinds) / sizeof(kinds[0]); k++) {
			const char *at = line + strcspn(line, ":\n");
			const char *name;

			if (strncmp(at, kinds[k], strlen(kinds[k])) != 0)
				continue;
			at += strlen(kinds[k]);
			name = psd_arena_copy(&onnx->arena, at, strcspn(at, "'\n"));
			if (!name || !psd_names_put(&onnx->listed, name, k + 1))
				return psd_onnx_no_memory(onnx);
			onnx->n_listed++;
			if (k)
				continue;
			onnx->n_parameters++;
			name_parameter(onnx, words, line, name);
		}
	return PSD_OK;
}

/* True if one of the quoted names is of a parameter. */
static bool names_parameter(const struct psd_onnx *onnx, const char *names)
{
	char name[NAME_BYTES];

	for (const char *at = strchr(names, '\''); at; at = strchr(at, '\'')) {
		const size_t length = strcspn(++at, "'");

		if (length < sizeof(name)) {
			memcpy(name, at, length);
			name[length] = '\0';
			if (psd_onnx_is_listed(onnx, name, PSD_ONNX_LISTED_PARAMETER))
				return true;
		}
		at += length;
		at += *at == '\'';
	}
	return false;
}

/* Number of quoted names. */
static unsigned count_names(const char *names)
{
	unsigned n = 0;

	for (const char *at = strchr(names, '\''); at; at = strchr(at + 1, '\''))
		n++;
	return n / 2;
}

/* Marks constants that the exporter computed from other values than parameters. */
static void mark_computed(struct psd_onnx *onnx)
{
	const Onnx__Graph *graph = onnx->graph;

	for (size_t i = 0; i < graph->n_value_info && onnx->n_listed; i++) {
		const Onnx__ValueInfo *info = graph->value_info[i];
		const char *from = folded_from(info);
		struct psd_onnx_value *value = psd_onnx_named(onnx, info->name ? info->name : "");

		if (!from || !value->origin || !value->is_real)
			continue;
		value->is_fixed = !names_parameter(onnx, from);
		value->is_computed = !value->is_fixed && count_names(from) > 1;
	}
}

/* The older exporter names constants that it computed after their readers, as "onnx::Add_12"; those of matrices are
 * only transposed, and those of convolutions have a norm. */
static void mark_scripted(struct psd_onnx *onnx)
{
	static const char *const prefixes[] = {"onnx::Add_",	"onnx::Concat_", "onnx::Expand_",
					       "onnx::Gather_", "onnx::Mul_",	 "onnx::Sub_"};

	for (size_t i = 0; i < onnx->graph->n_initializer; i++) {
		const char *name = onnx->graph->initializer[i]->name ? onnx->graph->initializer[i]->name : "";
		struct psd_onnx_value *value = psd_onnx_named(onnx, name);

		for (unsigned p = 0; p < sizeof(prefixes) / sizeof(prefixes[0]); p++)
			value->is_computed = value->is_computed || !strncmp(name, prefixes[p], strlen(prefixes[p]));
	}
}

/* True if the exporter chose the tensor's name, so the tensor is not simply a module's. */
static bool is_made_name(const char *name)
{
	const char *dot = name ? strrchr(name, '.') : NULL;

	return !dot || strstr(name, "::") || strchr(name, '/') || strstr(dot, "lifted_tensor");
}

/* ---- biases of scores ---- */

/* True if the operator hands scores on to a softmax. */
static bool passes_scores(const char *op)
{
	static const char *const ops[] = {"Add",     "Cast",	  "Identity",  "Reshape",
					  "Squeeze", "Transpose", "Unsqueeze", "Where"};
	bool is = false;

	for (unsigned i = 0; i < sizeof(ops) / sizeof(ops[0]); i++)
		is = is || !strcmp(op, ops[i]);
	return is;
}

/* Sets is_score[v] for each value that a softmax reads, through sums, masks and reshapes at most. */
static void find_scores(const struct psd_onnx *onnx, bool is_score[])
{
	for (size_t i = onnx->graph->n_node; i-- > 0;) {
		const Onnx__Node *node = onnx->graph->node[i];
		bool is = !strcmp(node->op_type, "Softmax");

		for (size_t o = 0; o < node->n_output && passes_scores(node->op_type); o++)
			is = is || (*node->output[o] && is_score[psd_onnx_number_of(onnx, node->output[o])]);
		for (size_t k = 0; is && k < node->n_input; k++)
			is_score[psd_onnx_number_of(onnx, node->input[k])] = true;
	}
	is_score[0] = false;
}

/* ---- numbers ---- */

enum numbers { VARIOUS, ARE_EQUAL, IS_MASK };

/* A mask has 0 and one other number, and infinity may be one of them. */
static enum numbers look_at(const struct psd_onnx_source *source, uint64_t elements)
{
	const double first = psd_onnx_source_number(source, 0);
	bool has_second = false;
	double second = 0;

	for (uint64_t e = 1; e < elements; e++) {
		const double number = psd_onnx_source_number(source, e);

		if (number == first || (has_second && number == second))
			continue;
		if (has_second)
			return VARIOUS;
		has_second = true;
		second = number;
	}
	return !has_second ? ARE_EQUAL : first == 0 || second == 0 ? IS_MASK : VARIOUS;
}

/* Numbers of a table that was written out: for each pair of positions, a row of numbers along one axis. */
struct written {
	uint64_t pairs, length; /* number of pairs, and of numbers in a row */
	uint64_t inner;		/* distance between neighbours of a row */
};

static struct written layout_along(const struct psd_onnx_value *value, unsigned axis)
{
	struct written written = {.length = value->dims[axis], .inner = 1};

	for (unsigned d = axis + 1; d < value->n_dims; d++)
		written.inner *= value->dims[d];
	written.pairs = psd_onnx_elements(value) / written.length;
	return written;
}

/* Rows of heads are along the first axis, as in [heads, N, N], or the last, as in [N x N, heads]. */
static struct written layout_of(const struct psd_onnx_value *value)
{
	const unsigned n = value->n_dims;
	const uint64_t last = value->dims[n - 1], pairs = last * value->dims[n - 2],
		       elements = psd_onnx_elements(value);
	const bool is_by_pairs = last != value->dims[n - 2] && (n == 2 || value->dims[n - 2] == value->dims[n - 3]);

	return is_by_pairs ? layout_along(value, n - 1)
			   : (struct written){.pairs = pairs, .length = elements / pairs, .inner = pairs};
}

/* Hash of the row of a pair of positions. */
static uint64_t hash_pair(const struct psd_onnx_source *source, struct written written, uint64_t pair)
{
	uint64_t hash = PSD_HASH_START;

	for (uint64_t r = 0; r < written.length; r++) {
		const uint64_t block = pair / written.inner * written.length + r;
		const double number = psd_onnx_source_number(source, block * written.inner + pair % written.inner);

		hash = psd_hash_bytes(hash, &number, sizeof(number));
	}
	return hash;
}

static int compare_hashes(const void *one, const void *other)
{
	const uint64_t a = *(const uint64_t *)one, b = *(const uint64_t *)other;

	return a < b ? -1 : a > b;
}

/* Counts pairs of positions that differ. Sets *hash to a hash of all numbers. */
static enum psd_status count_rows(const struct psd_onnx *onnx, const struct psd_onnx_source *source,
				  struct written written, uint64_t *rows, uint64_t *hash)
{
	const uint64_t pairs = written.pairs;
	uint64_t *hashes = malloc((size_t)pairs * sizeof(*hashes));

	if (!hashes)
		return psd_onnx_no_memory(onnx);
	for (uint64_t p = 0; p < pairs; p++)
		hashes[p] = hash_pair(source, written, p);
	*hash = psd_hash_bytes(PSD_HASH_START, hashes, (size_t)pairs * sizeof(*hashes));
	qsort(hashes, (size_t)pairs, sizeof(*hashes), compare_hashes);
	*rows = 1;
	for (uint64_t p = 1; p < pairs; p++)
		*rows += hashes[p] != hashes[p - 1];
	free(hashes);
	return PSD_OK;
}

/* Numbers that are so low that a softmax makes them 0 are a mask, beside the numbers of the table. */
static bool has_mask(const struct psd_onnx_source *source, uint64_t elements)
{
	for (uint64_t e = 0; e < elements; e++)
		if (psd_onnx_source_number(source, e) <= -1e4)
			return true;
	return false;
}

/* ---- marks ---- */

/* Tables that were counted, by a hash of their numbers. */
struct seen {
	uint64_t *hashes;
	unsigned n;
};

static bool is_seen(struct seen *seen, uint64_t hash)
{
	for (unsigned i = 0; i < seen->n; i++)
		if (seen->hashes[i] == hash)
			return true;
	seen->hashes[seen->n++] = hash;
	return false;
}

/* Decides about a constant that is added to scores. */
static enum psd_status mark_bias(struct psd_onnx *onnx, struct psd_onnx_value *value, struct seen *seen)
{
	const uint64_t elements = psd_onnx_elements(value);
	const struct written written = layout_of(value);
	struct psd_onnx_source source;
	uint64_t rows = 0, hash = 0;

	if (written.pairs > MOST_PAIRS || written.pairs < 4)
		return PSD_OK;
	PSD_TRY(psd_onnx_source_open(&source, onnx, value->origin));
	const enum numbers numbers = look_at(&source, elements);
	const bool is_masked = has_mask(&source, elements);
	const enum psd_status status = count_rows(onnx, &source, written, &rows, &hash);
	psd_onnx_source_close(&source);
	if (status)
		return status;
	if (numbers == ARE_EQUAL && !is_made_name(value->origin->name))
		return PSD_OK; /* a parameter that begins with one number */
	value->is_fixed = numbers != VARIOUS;
	onnx->n_equal_tables += numbers == ARE_EQUAL && written.length > 1;
	if (value->is_fixed || 4 * (rows - is_masked) > 3 * written.pairs)
		return PSD_OK;
	value->is_table = true;
	if (!is_seen(seen, hash)) {
		onnx->table_values[value - onnx->values] = (rows - is_masked) * written.length;
		onnx->n_tables++;
	}
	return PSD_OK;
}

/* ---- products of coordinates ---- */

enum { MOST_RANK = 8 };

/* Takes from the row its parts along the basis. Returns the length that is left. */
static double reduce(double row[], double basis[], unsigned rank, uint64_t columns)
{
	double length = 0;

	for (unsigned r = 0; r < rank; r++) {
		double part = 0;

		for (uint64_t c = 0; c < columns; c++)
			part += row[c] * basis[r * columns + c];
		for (uint64_t c = 0; c < columns; c++)
			row[c] -= part * basis[r * columns + c];
	}
	for (uint64_t c = 0; c < columns; c++)
		length += row[c] * row[c];
	return sqrt(length);
}

/* Returns the rank of the rows up to rounding; 0: it is more than MOST_RANK. work: (MOST_RANK + 1) * columns. */
static unsigned find_rank(const struct psd_onnx_source *source, uint64_t rows, uint64_t columns, double work[])
{
	unsigned rank = 0;
	double longest = 0;

	for (uint64_t r = 0; r < rows; r++) {
		double *row = work + rank * columns, length;

		for (uint64_t c = 0; c < columns; c++)
			row[c] = psd_onnx_source_number(source, r * columns + c);
		longest = fmax(longest, reduce(row, work, 0, columns));
		length = reduce(row, work, rank, columns);
		if (length <= 1e-5 * longest)
			continue;
		if (rank == MOST_RANK)
			return 0;
		rank++;
		for (uint64_t c = 0; c < columns; c++)
			row[c] /= length;
	}
	return rank;
}

/* A computed matrix of low rank is the product of coordinates and a parameter, which has a row for each coordinate. */
static enum psd_status mark_product(struct psd_onnx *onnx, struct psd_onnx_value *value)
{
	const uint64_t columns = value->dims[value->n_dims - 1], elements = psd_onnx_elements(value);
	const uint64_t rows = elements / columns;
	struct psd_onnx_source source;
	double *work;

	if (rows < 8 || columns < 8 || elements > MOST_PAIRS)
		return PSD_OK;
	work = malloc((size_t)((MOST_RANK + 1) * columns) * sizeof(*work));
	if (!work)
		return psd_onnx_no_memory(onnx);
	if (psd_onnx_source_open(&source, onnx, value->origin)) {
		free(work);
		return PSD_OK;
	}
	const unsigned rank = find_rank(&source, rows, columns, work);
	psd_onnx_source_close(&source);
	free(work);
	if (rank > 1 && MOST_RANK * rank <= rows && MOST_RANK * rank <= columns) {
		value->is_table = true;
		onnx->table_values[value - onnx->values] = rank * columns;
		onnx->n_tables++;
	}
	return PSD_OK;
}

/* A computed constant that repeats its rows along some axis was looked up in a table, whose rows count. */
static enum psd_status mark_rows(struct psd_onnx *onnx, struct psd_onnx_value *value)
{
	struct psd_onnx_source source;
	uint64_t least = UINT64_MAX, rows, hash;
	enum psd_status status = PSD_OK;

	if (value->n_dims < 3 || psd_onnx_elements(value) > MOST_PAIRS ||
	    psd_onnx_source_open(&source, onnx, value->origin))
		return PSD_OK;
	for (unsigned a = 0; a < value->n_dims && !status; a++) {
		const struct written written = layout_along(value, a);

		if (written.length < 2 || written.pairs < 4)
			continue;
		status = count_rows(onnx, &source, written, &rows, &hash);
		if (!status && rows > 1 && 4 * rows <= 3 * written.pairs && rows * written.length < least)
			least = rows * written.length;
	}
	psd_onnx_source_close(&source);
	if (!status && least < UINT64_MAX) {
		value->is_table = true;
		onnx->table_values[value - onnx->values] = least;
		onnx->n_tables++;
	}
	return status;
}

/* Decides about an initializer. A file without its numbers is no error here. */
static enum psd_status mark(struct psd_onnx *onnx, struct psd_onnx_value *value, bool is_score, struct seen *seen)
{
	struct psd_error *const err = onnx->err;
	struct psd_error ignored;
	enum psd_status status = PSD_OK;

	if (!value->origin || !value->is_real || value->is_fixed || value->n_dims < 2 || psd_onnx_elements(value) < 2)
		return PSD_OK;
	onnx->err = &ignored;
	if (is_score)
		status = mark_bias(onnx, value, seen);
	else if (value->is_computed)
		status = mark_product(onnx, value);
	if (!status && !is_score && value->is_computed && !value->is_table)
		status = mark_rows(onnx, value);
	onnx->err = err;
	return status == PSD_ENOMEM ? psd_onnx_no_memory(onnx) : PSD_OK;
}

enum psd_status psd_onnx_find_origins(struct psd_onnx *onnx)
{
	const Onnx__Graph *graph = onnx->graph;
	struct psd_names words = {.n_used = 0};
	struct seen seen = {.n = 0};
	bool *is_score, fits;

	fits = collect_words(onnx, &words);
	const enum psd_status status = fits ? read_list(onnx, &words) : psd_onnx_no_memory(onnx);
	psd_names_release(&words);
	if (status)
		return status;
	if (!psd_onnx_allows_other(onnx))
		return PSD_OK;
	for (size_t i = 0; i < graph->n_node; i++)
		onnx->has_aliases =
			onnx->has_aliases || (!strcmp(graph->node[i]->op_type, "Identity") && graph->node[i]->n_input &&
					      psd_onnx_named(onnx, graph->node[i]->input[0])->origin);
	for (size_t i = 0; i < graph->n_initializer; i++)
		onnx->has_weights = onnx->has_weights ||
				    psd_onnx_is_learned(psd_onnx_named(
					    onnx, graph->initializer[i]->name ? graph->initializer[i]->name : ""));
	mark_computed(onnx);
	is_score = psd_arena_take(&onnx->arena, onnx->n_values * sizeof(*is_score));
	onnx->table_values = psd_arena_take(&onnx->arena, onnx->n_values * sizeof(*onnx->table_values));
	seen.hashes = psd_arena_take(&onnx->arena, (graph->n_initializer + 1) * sizeof(*seen.hashes));
	if (!is_score || !onnx->table_values || !seen.hashes)
		return psd_onnx_no_memory(onnx);
	find_scores(onnx, is_score);
	mark_scripted(onnx);
	for (size_t i = 0; i < graph->n_initializer; i++) {
		struct psd_onnx_value *value =
			psd_onnx_named(onnx, graph->initializer[i]->name ? graph->initializer[i]->name : "");

		PSD_TRY(mark(onnx, value, is_score[value - onnx->values], &seen));
	}
	return PSD_OK;
}
