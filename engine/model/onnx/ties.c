/* Layers that share a matrix. PyTorch counts a matrix once if two modules have it; exporters write equal matrices of
 * two modules once, and a shared one twice if one use is transposed. So values and modules decide, unless the user
 * does. Refuses to tie vectors. */
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "engine/model/layer.h"
#include "engine/model/onnx/parts.h"

enum { SAMPLES = 64, MOST_TABLES = 64, KEY_BYTES = 24 };

/* A layer with a whole matrix of the file as its weight. */
struct psd_onnx_matrix {
	unsigned layer;
	struct psd_onnx_value value; /* its view has the order of psd's tensor */
	const char *module;	     /* module or name of the node; "" if it has none */
	bool is_table;		     /* an embedding looks up its rows */
};

/* ---- values ---- */

/* Opens the numbers of a constant without reporting an error. False: they are not there. */
static bool open_numbers(const struct psd_onnx *onnx, const struct psd_onnx_value *value,
			 struct psd_onnx_source *source)
{
	struct psd_onnx quiet = *onnx;
	struct psd_error ignored;

	quiet.err = &ignored;
	return !psd_onnx_source_open(source, &quiet, value->origin);
}

enum equality { ARE_EQUAL, ARE_OTHER, IS_OPEN };

static bool are_equal_at(const struct psd_onnx_source sources[2], const struct psd_onnx_view *one,
			 const struct psd_onnx_view *other, uint64_t e)
{
	return psd_onnx_source_number(&sources[0], psd_onnx_offset(one, e)) ==
	       psd_onnx_source_number(&sources[1], psd_onnx_offset(other, e));
}

/* Compares a sample first: nearly all different matrices end there. */
static bool have_equal_numbers(const struct psd_onnx_source sources[2], const struct psd_onnx_value *one,
			       const struct psd_onnx_value *other)
{
	const uint64_t elements = psd_onnx_elements(one), step = elements / SAMPLES + 1;

	for (uint64_t e = 0; e < elements; e += step)
		if (!are_equal_at(sources, &one->view, &other->view, e))
			return false;
	for (uint64_t e = 0; e < elements; e++)
		if (!are_equal_at(sources, &one->view, &other->view, e))
			return false;
	return true;
}

static bool have_equal_dims(const struct psd_onnx_value *one, const struct psd_onnx_value *other)
{
	if (one->view.n_axes != other->view.n_axes)
		return false;
	for (unsigned a = 0; a < one->view.n_axes; a++)
		if (psd_onnx_view_dim(&one->view, a) != psd_onnx_view_dim(&other->view, a))
			return false;
	return true;
}

static enum equality compare(const struct psd_onnx *onnx, const struct psd_onnx_value *one,
			     const struct psd_onnx_value *other)
{
	struct psd_onnx_source sources[2];
	enum equality equality = IS_OPEN;

	if (!have_equal_dims(one, other))
		return ARE_OTHER;
	if (one->origin == other->origin)
		return psd_onnx_view_is_same_list(&one->view, &other->view) ? ARE_EQUAL : ARE_OTHER;
	if (!open_numbers(onnx, one, &sources[0]))
		return IS_OPEN;
	if (open_numbers(onnx, other, &sources[1])) {
		equality = have_equal_numbers(sources, one, other) ? ARE_EQUAL : ARE_OTHER;
		psd_onnx_source_close(&sources[1]);
	}
	psd_onnx_source_close(&sources[0]);
	return equality;
}

/* True if all numbers of the matrix are equal, as those that start at 0: then equal matrices mean nothing. */
static bool is_filled(const struct psd_onnx *onnx, const struct psd_onnx_value *value)
{
	const uint64_t elements = psd_onnx_elements(value);
	struct psd_onnx_source source;
	uint64_t e = 1;

	if (!open_numbers(onnx, value, &source))
		return false;
	const double first = psd_onnx_source_number(&source, psd_onnx_offset(&value->view, 0));
	while (e < elements && psd_onnx_source_number(&source, psd_onnx_offset(&value->view, e)) == first)
		e++;
	psd_onnx_source_close(&source);
	return e == elements;
}

/* ---- modules ---- */

/* Length of a component of "layers.0.fc@1"; PyTorch counts the calls of a module behind '@'. */
static size_t component(const char *module)
{
	return strcspn(module, ".@");
}

static bool is_number(const char *text, size_t length)
{
	return length > 0 && strspn(text, "0123456789") >= length;
}

/* Skips the component and the number of its call. */
static const char *skip(const char *module)
{
	module += strcspn(module, ".");
	return *module ? module + 1 : module;
}

/* True if the names differ in components that are numbers and in nothing else: "layers.0.fc" and "layers.1.fc".
 * *are_one: the names do not differ. */
static bool are_siblings(const char *one, const char *other, bool *are_one)
{
	bool differ = false;

	*are_one = false;
	if (!*one || !*other)
		return false;
	for (; *one && *other; one = skip(one), other = skip(other)) {
		const size_t length = component(one), other_length = component(other);

		if (length == other_length && !strncmp(one, other, length))
			continue;
		if (!is_number(one, length) || !is_number(other, other_length))
			return false;
		differ = true;
	}
	*are_one = !differ && !*one && !*other;
	return differ && !*one && !*other;
}

/* ---- decisions ---- */

static bool is_none(const struct psd_onnx *onnx)
{
	const struct psd_model_choices *choices = onnx->choices;

	return choices && choices->n_tied == 1 && !strcmp(choices->tied[0], "none");
}

/* The entry of `tied` for the layer that the node becomes, "head" or "head=table"; NULL: none. */
static const char *find_entry(struct psd_onnx *onnx, const char *weight)
{
	const struct psd_model_choices *choices = onnx->choices;
	char names[2][PSD_GRAPH_NAME_MAX + 1];

	psd_onnx_preview_name(onnx, weight, names[0]);
	psd_onnx_preview_name(onnx, NULL, names[1]);
	for (unsigned i = 0; choices && i < choices->n_tied; i++)
		for (unsigned n = 0; n < 2; n++) {
			const char *entry = choices->tied[i];
			const size_t length = strlen(names[n]);

			if (strncmp(entry, names[n], length) != 0 || (entry[length] && entry[length] != '='))
				continue;
			onnx->tied_used[i] = true;
			return entry[length] ? entry + length : "";
		}
	return NULL;
}

/* Ties as the user says. */
static enum psd_status obey(struct psd_onnx *onnx, const struct psd_onnx_matrix *matrix, const char *weight,
			    const struct psd_onnx_matrix **owner)
{
	const char *entry = find_entry(onnx, weight);

	*owner = NULL;
	if (!entry)
		return PSD_OK;
	for (unsigned m = 0; m < onnx->n_matrices && !*owner; m++) {
		const struct psd_onnx_matrix *other = onnx->matrices[m];
		const char *name = onnx->build.graph.layers[other->layer].name;

		if (*entry ? !strcmp(name, entry + 1) && have_equal_dims(&matrix->value, &other->value)
			   : compare(onnx, &matrix->value, &other->value) == ARE_EQUAL)
			*owner = other;
	}
	if (*owner)
		return PSD_OK;
	return psd_onnx_refuse(onnx, "is in 'tied', but no layer above it has %s",
			       *entry ? "that name and such a matrix" : "an equal matrix");
}

/* True if the layers are the copies that a module makes of another, which PyTorch's own layers do. Such copies have
 * equal biases as well. */
static bool are_copies(const struct psd_onnx *onnx, const struct psd_onnx_matrix *matrix,
		       const struct psd_onnx_matrix *other, const struct psd_onnx_value *bias)
{
	const bool has_other_bias = bias && onnx->build.graph.layers[other->layer].n_tensors > 1 &&
				    !psd_onnx_is_bound(onnx, other->layer, "bias", bias, NULL);
	bool are_one;

	return are_siblings(matrix->module, other->module, &are_one) && !has_other_bias;
}

static void note_copy(struct psd_onnx *onnx, const struct psd_onnx_matrix *matrix)
{
	if (!onnx->n_copies++)
		snprintf(onnx->first_copy, sizeof(onnx->first_copy), "%s", matrix->module);
	onnx->copied_parameters += psd_onnx_elements(&matrix->value);
}

static void write_key(char key[KEY_BYTES], const Onnx__Tensor *origin)
{
	snprintf(key, KEY_BYTES, "%p", (const void *)origin);
}

/* The first layer whose weight is the same tensor of the file; NULL: none. */
static const struct psd_onnx_matrix *find_same(const struct psd_onnx *onnx, const struct psd_onnx_matrix *matrix)
{
	char key[KEY_BYTES];
	unsigned number;

	write_key(key, matrix->value.origin);
	return psd_names_find(&onnx->owners, key, &number) ? onnx->matrices[number] : NULL;
}

/* The first embedding with a table of the same values; NULL: none. */
static const struct psd_onnx_matrix *find_table(struct psd_onnx *onnx, const struct psd_onnx_matrix *matrix)
{
	for (unsigned m = 0, n_tables = 0; m < onnx->n_matrices && n_tables < MOST_TABLES; m++) {
		const struct psd_onnx_matrix *other = onnx->matrices[m];
		enum equality equality;

		if (!other->is_table)
			continue;
		n_tables++;
		equality = compare(onnx, &matrix->value, &other->value);
		if (equality == IS_OPEN && !onnx->n_open++)
			onnx->first_open = other->layer;
		if (equality == ARE_EQUAL)
			return other;
	}
	return NULL;
}

/* The first layer of the same module with equal values: a module that is called twice, whose transposed matrix an
 * exporter wrote for each call. NULL: none. */
static const struct psd_onnx_matrix *find_call(struct psd_onnx *onnx, const struct psd_onnx_matrix *matrix)
{
	for (unsigned m = 0; *matrix->module && m < onnx->n_matrices; m++)
		if (!strcmp(onnx->matrices[m]->module, matrix->module) &&
		    compare(onnx, &matrix->value, &onnx->matrices[m]->value) == ARE_EQUAL)
			return onnx->matrices[m];
	return NULL;
}

bool psd_onnx_is_kept(struct psd_onnx *onnx, const struct psd_onnx_value *value)
{
	static const unsigned turned[] = {1, 0};
	struct psd_onnx_matrix matrix = {.value = *value};

	if (find_same(onnx, &matrix) || find_table(onnx, &matrix))
		return true;
	return value->view.n_axes == 2 && psd_onnx_view_transpose(&matrix.value.view, turned) &&
	       find_table(onnx, &matrix);
}

/* Ties as the values and modules suggest: matrices that the file has once, and a table with an equal matrix. */
static enum psd_status choose(struct psd_onnx *onnx, const struct psd_onnx_matrix *matrix,
			      const struct psd_onnx_value *bias, const struct psd_onnx_matrix **owner)
{
	const struct psd_onnx_matrix *same = find_same(onnx, matrix), *found = same;
	bool are_one;

	*owner = NULL;
	if (!found && !matrix->is_table)
		found = find_table(onnx, matrix);
	if (!found)
		found = find_call(onnx, matrix);
	if (!found)
		return PSD_OK;
	(void)are_siblings(matrix->module, found->module, &are_one);
	if (!are_one && is_filled(onnx, &matrix->value))
		return PSD_OK;
	if (same && compare(onnx, &matrix->value, &same->value) != ARE_EQUAL)
		return psd_onnx_refuse(onnx, "multiplies by '%.100s' in another order than '%.100s' does",
				       matrix->value.origin->name ? matrix->value.origin->name : "",
				       onnx->build.graph.layers[same->layer].name);
	if (matrix->is_table == found->is_table && are_copies(onnx, matrix, found, bias))
		note_copy(onnx, matrix);
	else
		*owner = found;
	return PSD_OK;
}

static void say_tie(struct psd_onnx *onnx, unsigned owner, const char *name, const struct psd_onnx_value *value)
{
	if (onnx->n_ties++ < PSD_ONNX_TIES_SAID) {
		psd_text_add(&onnx->remarks, "tied: ");
		psd_text_add_plain(&onnx->remarks, name);
		psd_text_add(&onnx->remarks, " has the matrix of ");
		psd_text_add_plain(&onnx->remarks, onnx->build.graph.layers[owner].name);
		psd_text_add(&onnx->remarks, ", %llu parameters\n", (unsigned long long)psd_onnx_elements(value));
	}
}

enum psd_status psd_onnx_find_tie(struct psd_onnx *onnx, struct psd_onnx_tie *tie)
{
	struct psd_onnx_matrix *matrix = psd_arena_take(&onnx->arena, sizeof(*matrix));
	const struct psd_onnx_matrix *owner = NULL;
	const struct psd_model_choices *choices = onnx->choices;
	char module[PSD_GRAPH_NAME_MAX + 1], name[PSD_GRAPH_NAME_MAX + 1];

	if (!matrix)
		return psd_onnx_no_memory(onnx);
	tie->is_tied = false;
	tie->matrix = NULL;
	*matrix = (struct psd_onnx_matrix){.value = *tie->weight, .is_table = tie->is_table};
	if (tie->order && !psd_onnx_view_transpose(&matrix->value.view, tie->order))
		return PSD_OK;
	psd_onnx_module_of(onnx, module);
	matrix->module = psd_arena_copy(&onnx->arena, module, strlen(module));
	if (!matrix->module)
		return psd_onnx_no_memory(onnx);
	tie->matrix = matrix;
	tie->is_copy = find_same(onnx, matrix) != NULL;
	if (choices && choices->n_tied && !is_none(onnx))
		PSD_TRY(obey(onnx, matrix, tie->name, &owner));
	else if (!is_none(onnx))
		PSD_TRY(choose(onnx, matrix, tie->bias, &owner));
	if (owner) {
		tie->is_tied = true;
		tie->is_copy = false;
		tie->owner = owner->layer;
		psd_onnx_preview_name(onnx, tie->name, name);
		say_tie(onnx, owner->layer, name, tie->weight);
	}
	return PSD_OK;
}

enum psd_status psd_onnx_keep_matrix(struct psd_onnx *onnx, struct psd_onnx_matrix *matrix, unsigned layer)
{
	char key[KEY_BYTES];

	matrix->layer = layer;
	if (!onnx->matrices)
		onnx->matrices = psd_arena_take(&onnx->arena, (onnx->graph->n_node + 1) * sizeof(*onnx->matrices));
	write_key(key, matrix->value.origin);
	const char *kept = psd_arena_copy(&onnx->arena, key, strlen(key));
	if (!onnx->matrices || !kept ||
	    (!find_same(onnx, matrix) && !psd_names_put(&onnx->owners, kept, onnx->n_matrices)))
		return psd_onnx_no_memory(onnx);
	assert(onnx->n_matrices <= onnx->graph->n_node); /* a node multiplies once */
	onnx->matrices[onnx->n_matrices++] = matrix;
	return PSD_OK;
}

enum psd_status psd_onnx_check_ties(const struct psd_onnx *onnx)
{
	const struct psd_model_choices *choices = onnx->choices;

	for (unsigned i = 0; choices && i < choices->n_tied && !is_none(onnx); i++)
		if (!onnx->tied_used[i])
			return psd_error_set(onnx->err, PSD_EINVAL, (struct psd_place){.path = onnx->path},
					     "'tied' has '%.100s', the file has no layer with a matrix and that name",
					     choices->tied[i]);
	return PSD_OK;
}
