/* Graphs inside nodes: a call becomes the nodes of its function, a loop of constant length the nodes of each turn,
 * and a condition the nodes of both branches, of which the conversion takes one. Names inside get a number. Refuses
 * graphs that are nested too deeply or make too many nodes; other loops stay nodes, which have no layer. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/model/onnx/parts.h"

enum { MOST_DEPTH = 16, MOST_NODES = 1 << 17, MOST_TURNS = 256, NAME_BYTES = 512 };
/* Bytes of inner graphs that may be unpacked: for each byte of the file, and more. */
enum { BYTES_EACH = 16, BYTES_MORE = 1 << 26 };

/* Names of an inner graph, and the names that they become. */
struct scope {
	const struct scope *outer; /* NULL: other names stay as they are */
	struct psd_names names;
	const char **becomes;
	unsigned n, room;
};

struct inliner {
	struct psd_onnx *onnx;
	Onnx__Model *model;
	Onnx__Node **nodes; /* nodes of the new graph */
	const struct psd_onnx_guard **guards, **choices;
	size_t n, room;
	unsigned n_scopes;	    /* number of the next inner graph */
	uint64_t bytes_left;	    /* bytes of inner graphs that may still be unpacked */
	struct psd_names functions; /* map from "DOMAIN NAME" to the number of a function */
	struct psd_names tensors;   /* map from names to numbers of constants that may be the length of a loop */
	const Onnx__Tensor **numbers;
	unsigned n_numbers, most_numbers;
	unsigned depth;
	const struct psd_onnx_guard *guard; /* guard of the nodes that are added */
};

static enum psd_status no_memory(const struct inliner *inliner)
{
	return psd_onnx_no_memory(inliner->onnx);
}

static enum psd_status refuse(const struct inliner *inliner, const Onnx__Node *node, const char *text)
{
	return psd_error_set(inliner->onnx->err, PSD_EINVAL, (struct psd_place){.path = inliner->onnx->path},
			     "node '%.100s' (%.40s) %s", node->name ? node->name : "",
			     node->op_type ? node->op_type : "", text);
}

/* Returns a copy that protobuf-c's messages own; NULL: out of memory. */
static char *copy_text(const char *text)
{
	const size_t length = strlen(text);
	char *copy = malloc(length + 1);

	if (copy)
		memcpy(copy, text, length + 1);
	return copy;
}

/* ---- names ---- */

static void release_scope(struct scope *scope)
{
	psd_names_release(&scope->names);
	free(scope->becomes);
}

/* Maps a name of the scope to another. Both are copied. */
static enum psd_status define(struct inliner *inliner, struct scope *scope, const char *name, const char *becomes)
{
	struct psd_arena *arena = &inliner->onnx->arena;
	const char *key = psd_arena_copy(arena, name, strlen(name));
	const char *kept = psd_arena_copy(arena, becomes, strlen(becomes));
	const char **grown;

	if (!key || !kept)
		return no_memory(inliner);
	if (scope->n == scope->room) {
		grown = realloc(scope->becomes, (2 * scope->room + 8) * sizeof(*grown));
		if (!grown)
			return no_memory(inliner);
		scope->becomes = grown;
		scope->room = 2 * scope->room + 8;
	}
	if (!psd_names_put(&scope->names, key, scope->n))
		return no_memory(inliner);
	scope->becomes[scope->n++] = kept;
	return PSD_OK;
}

/* Gives the name a number, unless it has another meaning in the scope already. */
static enum psd_status define_own(struct inliner *inliner, struct scope *scope, const char *name, unsigned number)
{
	char becomes[NAME_BYTES];
	unsigned known;

	if (!name || !*name || psd_names_find(&scope->names, name, &known))
		return PSD_OK;
	snprintf(becomes, sizeof(becomes), "%.480s@%u", name, number);
	return define(inliner, scope, name, becomes);
}

static const char *resolve(const struct scope *scope, const char *name)
{
	unsigned i;

	for (; scope; scope = scope->outer)
		if (psd_names_find(&scope->names, name, &i))
			return scope->becomes[i];
	return name;
}

static enum psd_status set_text(struct inliner *inliner, char **text, const char *to)
{
	char *copy = copy_text(to);

	if (!copy)
		return no_memory(inliner);
	free(*text);
	*text = copy;
	return PSD_OK;
}

static enum psd_status rename_all(struct inliner *inliner, const struct scope *scope, char **names, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (names[i] && *names[i] && resolve(scope, names[i]) != names[i])
			PSD_TRY(set_text(inliner, &names[i], resolve(scope, names[i])));
	return PSD_OK;
}

/* ---- the new graph ---- */

/* Keeps a single number, which may be the length of a loop, by its name. False: out of memory. */
static bool note_number(struct inliner *inliner, const char *name, const Onnx__Tensor *tensor)
{
	if (tensor->n_dims > 1 || tensor->data_type != PSD_ONNX_INT64 || !name || !*name)
		return true;
	if (inliner->n_numbers == inliner->most_numbers) {
		const unsigned most = 2 * inliner->most_numbers + 64;
		const Onnx__Tensor **grown = realloc(inliner->numbers, most * sizeof(*grown));

		if (!grown)
			return false;
		inliner->numbers = grown;
		inliner->most_numbers = most;
	}
	const char *kept = psd_arena_copy(&inliner->onnx->arena, name, strlen(name));
	if (!kept || !psd_names_put(&inliner->tensors, kept, inliner->n_numbers))
		return false;
	inliner->numbers[inliner->n_numbers++] = tensor;
	return true;
}

/* Appends the node, and frees it on an error. */
static enum psd_status add(struct inliner *inliner, Onnx__Node *node, const struct psd_onnx_guard *choice)
{
	const Onnx__Attribute *value = node->op_type && !strcmp(node->op_type, "Constant") && node->n_output
					       ? psd_onnx_attribute(node, "value")
					       : NULL;

	if (value && value->t && !note_number(inliner, node->output[0], value->t)) {
		onnx__node__free_unpacked(node, NULL);
		return no_memory(inliner);
	}
	if (inliner->n == inliner->room) {
		const size_t room = 2 * inliner->room + 64;
		Onnx__Node **nodes = realloc(inliner->nodes, room * sizeof(*nodes));
		const struct psd_onnx_guard **guards = nodes ? realloc(inliner->guards, room * sizeof(*guards)) : NULL;
		const struct psd_onnx_guard **choices =
			guards ? realloc(inliner->choices, room * sizeof(*choices)) : NULL;

		inliner->nodes = nodes ? nodes : inliner->nodes;
		inliner->guards = guards ? guards : inliner->guards;
		inliner->choices = choices ? choices : inliner->choices;
		if (!choices) {
			onnx__node__free_unpacked(node, NULL);
			return no_memory(inliner);
		}
		inliner->room = room;
	}
	inliner->guards[inliner->n] = inliner->guard;
	inliner->choices[inliner->n] = choice;
	inliner->nodes[inliner->n++] = node;
	return PSD_OK;
}

/* Makes a node of one output; NULL: out of memory. */
static Onnx__Node *new_node(const char *op, const char *output)
{
	Onnx__Node *node = malloc(sizeof(*node));

	if (!node)
		return NULL;
	onnx__node__init(node);
	node->op_type = copy_text(op);
	node->output = malloc(sizeof(*node->output));
	if (node->output) {
		node->n_output = 1;
		node->output[0] = copy_text(output);
	}
	if (node->op_type && node->output && node->output[0])
		return node;
	free(node->op_type);
	if (node->output)
		free(node->output[0]);
	free(node->output);
	free(node);
	return NULL;
}

static bool add_input(Onnx__Node *node, const char *name)
{
	char **grown = realloc(node->input, (node->n_input + 1) * sizeof(*grown));

	if (!grown)
		return false;
	node->input = grown;
	grown[node->n_input] = copy_text(name);
	if (!grown[node->n_input])
		return false;
	node->n_input++;
	return true;
}

static bool add_integer(Onnx__Node *node, const char *name, int64_t integer, bool is_list)
{
	Onnx__Attribute *attribute = malloc(sizeof(*attribute)), **grown;

	if (!attribute)
		return false;
	onnx__attribute__init(attribute);
	attribute->name = copy_text(name);
	attribute->has_i = !is_list;
	attribute->i = integer;
	attribute->ints = is_list ? malloc(sizeof(*attribute->ints)) : NULL;
	grown = realloc(node->attribute, (node->n_attribute + 1) * sizeof(*grown));
	node->attribute = grown ? grown : node->attribute;
	if (!attribute->name || (is_list && !attribute->ints) || !grown) {
		onnx__attribute__free_unpacked(attribute, NULL);
		return false;
	}
	if (is_list) {
		attribute->n_ints = 1;
		attribute->ints[0] = integer;
	}
	grown[node->n_attribute++] = attribute;
	return true;
}

/* ---- inner graphs ---- */

static enum psd_status put(struct inliner *inliner, const struct scope *scope, Onnx__Node *node);

/* Moves the nodes of an inner graph to the new one; the graph keeps none. */
static enum psd_status put_all(struct inliner *inliner, const struct scope *scope, Onnx__Node **nodes, size_t *n)
{
	enum psd_status status = PSD_OK;

	for (size_t i = 0; i < *n; i++)
		if (status)
			onnx__node__free_unpacked(nodes[i], NULL);
		else
			status = put(inliner, scope, nodes[i]);
	*n = 0;
	return status;
}

/* Gives all outputs of nodes numbered names. */
static enum psd_status define_outputs(struct inliner *inliner, struct scope *scope, Onnx__Node *const nodes[], size_t n,
				      unsigned number)
{
	for (size_t i = 0; i < n; i++)
		for (size_t o = 0; o < nodes[i]->n_output; o++)
			PSD_TRY(define_own(inliner, scope, nodes[i]->output[o], number));
	return PSD_OK;
}

/* Moves the initializers of an inner graph to the outer one, by their new names. */
static enum psd_status move_initializers(struct inliner *inliner, const struct scope *scope, Onnx__Graph *inner)
{
	Onnx__Graph *graph = inliner->model->graph;
	Onnx__Tensor **grown;

	if (!inner->n_initializer)
		return PSD_OK;
	grown = realloc(graph->initializer, (graph->n_initializer + inner->n_initializer) * sizeof(*grown));
	if (!grown)
		return no_memory(inliner);
	graph->initializer = grown;
	while (inner->n_initializer) {
		Onnx__Tensor *tensor = inner->initializer[inner->n_initializer - 1];

		if (tensor->name)
			PSD_TRY(rename_all(inliner, scope, &tensor->name, 1));
		grown[graph->n_initializer++] = tensor;
		inner->n_initializer--;
		if (!note_number(inliner, tensor->name, tensor))
			return no_memory(inliner);
	}
	return PSD_OK;
}

/* Puts an inner graph, whose inputs have names in the scope. It is empty afterwards, apart from its outputs. */
static enum psd_status put_graph(struct inliner *inliner, struct scope *scope, Onnx__Graph *inner)
{
	const unsigned number = ++inliner->n_scopes;

	for (size_t i = 0; i < inner->n_initializer; i++)
		PSD_TRY(define_own(inliner, scope, inner->initializer[i]->name, number));
	PSD_TRY(define_outputs(inliner, scope, inner->node, inner->n_node, number));
	PSD_TRY(move_initializers(inliner, scope, inner));
	return put_all(inliner, scope, inner->node, &inner->n_node);
}

/* False: too many bytes were unpacked, as by functions that call each other again and again. */
static bool takes_bytes(struct inliner *inliner, size_t length)
{
	const bool fits = length <= inliner->bytes_left;

	inliner->bytes_left -= fits ? length : 0;
	return fits;
}

static Onnx__Graph *unpack(struct inliner *inliner, const Onnx__Node *node, const char *name)
{
	const Onnx__Attribute *attribute = psd_onnx_attribute(node, name);

	return attribute && attribute->has_g && takes_bytes(inliner, attribute->g.len)
		       ? onnx__graph__unpack(NULL, attribute->g.len, attribute->g.data)
		       : NULL;
}

/* ---- conditions ---- */

static const struct psd_onnx_guard *new_guard(struct inliner *inliner, const char *condition, bool is_then,
					      bool is_preferred)
{
	struct psd_onnx_guard *guard = psd_arena_take(&inliner->onnx->arena, sizeof(*guard));

	if (!guard)
		return NULL;
	*guard = (struct psd_onnx_guard){.outer = inliner->guard,
					 .condition =
						 psd_arena_copy(&inliner->onnx->arena, condition, strlen(condition)),
					 .is_then = is_then,
					 .is_preferred = is_preferred};
	return guard->condition ? guard : NULL;
}

/* Puts a branch, and appends the names of its results to the condition's inputs. */
static enum psd_status put_branch(struct inliner *inliner, const struct scope *outer, Onnx__Node *node,
				  Onnx__Graph *branch, const struct psd_onnx_guard *guard)
{
	const struct psd_onnx_guard *const before = inliner->guard;
	struct scope scope = {.outer = outer};

	if (!guard)
		return no_memory(inliner);
	inliner->guard = guard;
	enum psd_status status = put_graph(inliner, &scope, branch);
	inliner->guard = before;
	for (size_t o = 0; o < branch->n_output && !status; o++) {
		const char *name = branch->output[o]->name ? branch->output[o]->name : "";

		status = add_input(node, resolve(&scope, name)) ? PSD_OK : no_memory(inliner);
	}
	release_scope(&scope);
	return status;
}

/* The branch with more nodes is taken where the condition depends on samples. Owns the node. */
static enum psd_status put_condition(struct inliner *inliner, const struct scope *scope, Onnx__Node *node)
{
	Onnx__Graph *branches[2] = {unpack(inliner, node, "then_branch"), unpack(inliner, node, "else_branch")};
	const bool are_there = branches[0] && branches[1] && branches[0]->n_output == node->n_output &&
			       branches[1]->n_output == node->n_output && node->n_input == 1;
	const bool is_larger = are_there && branches[0]->n_node >= branches[1]->n_node;
	const struct psd_onnx_guard *guards[2] = {NULL, NULL};
	enum psd_status status =
		are_there ? PSD_OK : refuse(inliner, node, "must have a condition and two branches with its outputs");

	for (unsigned b = 0; b < 2 && !status; b++) {
		guards[b] = new_guard(inliner, node->input[0], b == 0, is_larger == (b == 0));
		status = put_branch(inliner, scope, node, branches[b], guards[b]);
	}
	for (unsigned b = 0; b < 2; b++)
		if (branches[b])
			onnx__graph__free_unpacked(branches[b], NULL);
	if (!status)
		return add(inliner, node, guards[0]);
	onnx__node__free_unpacked(node, NULL);
	return status;
}

/* ---- loops ---- */

/* Finds the number of turns: a whole number that an initializer or a node above has. False: it is computed. */
static bool find_turns(const struct inliner *inliner, const char *name, int64_t *turns)
{
	const Onnx__Tensor *tensor = NULL;
	struct psd_onnx quiet = *inliner->onnx;
	struct psd_error ignored;
	struct psd_onnx_source source;
	unsigned number;

	if (psd_names_find(&inliner->tensors, name, &number))
		tensor = inliner->numbers[number];
	quiet.err = &ignored;
	if (!tensor || tensor->data_type != PSD_ONNX_INT64 || tensor->n_dims > 1 ||
	    (tensor->n_dims == 1 && tensor->dims[0] != 1) || psd_onnx_source_open(&source, &quiet, tensor))
		return false;
	*turns = (int64_t)psd_onnx_source_number(&source, 0);
	psd_onnx_source_close(&source);
	return true;
}

/* Adds a node that makes `output` from one input. */
static enum psd_status add_simple(struct inliner *inliner, const char *op, const char *input, const char *output,
				  const char *name, int64_t integer, bool is_list)
{
	Onnx__Node *node = new_node(op, output);

	if (node && (!input || add_input(node, input)) && (!name || add_integer(node, name, integer, is_list)))
		return add(inliner, node, NULL);
	if (node)
		onnx__node__free_unpacked(node, NULL);
	return no_memory(inliner);
}

/* Puts one turn. Inputs of the body are its number, the condition, and the values that the last turn left. */
static enum psd_status put_turn(struct inliner *inliner, struct scope *scope, const Onnx__Node *node, int64_t turn,
				const char *carried[], Onnx__Node *const joints[])
{
	Onnx__Graph *body = unpack(inliner, node, "body");
	const size_t n_carried = node->n_input - 2;
	char name[NAME_BYTES];
	enum psd_status status = PSD_OK;

	if (!body || body->n_input != node->n_input || body->n_output != node->n_output + 1)
		status = refuse(inliner, node, "must have a body with its inputs and outputs");
	snprintf(name, sizeof(name), "turn@%u", inliner->n_scopes + 1);
	for (size_t i = 0; i < n_carried + 2 && !status; i++)
		status = define(inliner, scope, body->input[i]->name ? body->input[i]->name : "",
				i == 0	 ? name
				: i == 1 ? node->input[1]
					 : carried[i - 2]);
	if (!status)
		status = add_simple(inliner, "Constant", NULL, name, "value_int", turn, false);
	if (!status)
		status = put_graph(inliner, scope, body);
	for (size_t o = 1; !status && o < body->n_output; o++) {
		const char *output = resolve(scope, body->output[o]->name ? body->output[o]->name : "");

		if (o <= n_carried) {
			carried[o - 1] = psd_arena_copy(&inliner->onnx->arena, output, strlen(output));
			status = carried[o - 1] ? PSD_OK : no_memory(inliner);
			continue;
		}
		snprintf(name, sizeof(name), "%.480s@%u.%zu", node->output[o - 1], inliner->n_scopes, o);
		status = add_simple(inliner, "Unsqueeze", output, name, "axes", 0, true);
		if (!status && !add_input(joints[o - 1 - n_carried], name))
			status = no_memory(inliner);
	}
	if (body)
		onnx__graph__free_unpacked(body, NULL);
	return status;
}

/* Puts all turns, and joins what each turn adds to a list. */
static enum psd_status put_turns(struct inliner *inliner, const struct scope *outer, const Onnx__Node *node,
				 int64_t turns, const char *carried[], Onnx__Node *joints[])
{
	const size_t n_carried = node->n_input - 2;
	enum psd_status status = PSD_OK;

	for (size_t i = 0; i < n_carried; i++)
		carried[i] = node->input[i + 2];
	for (size_t j = n_carried; j < node->n_output; j++) {
		joints[j - n_carried] = new_node("Concat", node->output[j]);
		if (!joints[j - n_carried] || !add_integer(joints[j - n_carried], "axis", 0, false))
			return no_memory(inliner);
	}
	for (int64_t turn = 0; turn < turns && !status; turn++) {
		struct scope scope = {.outer = outer};

		status = put_turn(inliner, &scope, node, turn, carried, joints);
		release_scope(&scope);
	}
	for (size_t i = 0; i < n_carried && i < node->n_output && !status; i++)
		status = *node->output[i] ? add_simple(inliner, "Identity", carried[i], node->output[i], NULL, 0, false)
					  : PSD_OK;
	for (size_t j = n_carried; j < node->n_output && !status; j++) {
		Onnx__Node *joint = joints[j - n_carried];

		joints[j - n_carried] = NULL;
		status = add(inliner, joint, NULL);
	}
	return status;
}

/* A loop of few turns, whose number is constant, becomes its turns. Owns the node. */
static enum psd_status put_loop(struct inliner *inliner, const struct scope *scope, Onnx__Node *node)
{
	const char **carried = calloc(node->n_input + 1, sizeof(*carried));
	Onnx__Node **joints = calloc(node->n_output + 1, sizeof(*joints));
	int64_t turns = 0;
	enum psd_status status = carried && joints ? PSD_OK : no_memory(inliner);
	const bool is_known = node->n_input >= 2 && node->n_output + 2 >= node->n_input &&
			      find_turns(inliner, node->input[0], &turns) && turns > 0 && turns <= MOST_TURNS;

	if (!status && is_known)
		status = put_turns(inliner, scope, node, turns, carried, joints);
	for (size_t j = 0; joints && j <= node->n_output; j++)
		if (joints[j])
			onnx__node__free_unpacked(joints[j], NULL);
	free(carried);
	free(joints);
	if (!status && !is_known)
		return add(inliner, node, NULL);
	onnx__node__free_unpacked(node, NULL);
	return status;
}

/* ---- functions ---- */

static bool is_text(const char *one, const char *other)
{
	return !strcmp(one ? one : "", other ? other : "");
}

static void write_function(char key[NAME_BYTES], const char *domain, const char *name)
{
	snprintf(key, NAME_BYTES, "%.200s %.200s", domain ? domain : "", name ? name : "");
}

/* Numbers the functions by their names. */
static enum psd_status name_functions(struct inliner *inliner)
{
	for (size_t i = 0; i < inliner->model->n_functions; i++) {
		const ProtobufCBinaryData bytes = inliner->model->functions[i];
		Onnx__Function *function = onnx__function__unpack(NULL, bytes.len, bytes.data);
		char key[NAME_BYTES];
		const char *kept;

		if (!function)
			continue;
		write_function(key, function->domain, function->name);
		onnx__function__free_unpacked(function, NULL);
		kept = psd_arena_copy(&inliner->onnx->arena, key, strlen(key));
		if (!kept || !psd_names_put(&inliner->functions, kept, (unsigned)i))
			return no_memory(inliner);
	}
	return PSD_OK;
}

/* Unpacks the function that the node calls; NULL: it calls none. */
static Onnx__Function *find_function(struct inliner *inliner, const Onnx__Node *node)
{
	char key[NAME_BYTES];
	unsigned i;

	write_function(key, node->domain, node->op_type);
	if (!psd_names_find(&inliner->functions, key, &i))
		return NULL;
	const ProtobufCBinaryData bytes = inliner->model->functions[i];
	return takes_bytes(inliner, bytes.len) ? onnx__function__unpack(NULL, bytes.len, bytes.data) : NULL;
}

/* Replaces an attribute that refers to one of the call: by the call's, or by the default. */
static enum psd_status set_attribute(struct inliner *inliner, Onnx__Attribute **attribute, const Onnx__Node *call,
				     const Onnx__Function *function)
{
	const Onnx__Attribute *from = psd_onnx_attribute(call, (*attribute)->ref);

	for (size_t i = 0; i < function->n_attribute_default && !from; i++)
		if (is_text(function->attribute_default[i]->name, (*attribute)->ref))
			from = function->attribute_default[i];
	if (!from)
		return PSD_OK; /* the operator's default */
	const size_t length = onnx__attribute__get_packed_size(from);
	uint8_t *bytes = malloc(length + 1);
	if (!bytes)
		return no_memory(inliner);
	onnx__attribute__pack(from, bytes);
	Onnx__Attribute *copy = onnx__attribute__unpack(NULL, length, bytes);
	free(bytes);
	if (!copy || !(*attribute)->name || set_text(inliner, &copy->name, (*attribute)->name)) {
		onnx__attribute__free_unpacked(copy, NULL);
		return no_memory(inliner);
	}
	onnx__attribute__free_unpacked(*attribute, NULL);
	*attribute = copy;
	return PSD_OK;
}

/* Puts the nodes of the function that the node calls. Owns both. */
static enum psd_status put_call(struct inliner *inliner, Onnx__Node *node, Onnx__Function *function)
{
	struct scope scope = {.outer = NULL};
	enum psd_status status = PSD_OK;

	for (size_t i = 0; i < function->n_input && !status; i++)
		status = define(inliner, &scope, function->input[i], i < node->n_input ? node->input[i] : "");
	for (size_t o = 0; o < function->n_output && o < node->n_output && !status; o++)
		if (*node->output[o])
			status = define(inliner, &scope, function->output[o], node->output[o]);
	if (!status)
		status = define_outputs(inliner, &scope, function->node, function->n_node, ++inliner->n_scopes);
	for (size_t i = 0; i < function->n_node && !status; i++)
		for (size_t a = 0; a < function->node[i]->n_attribute && !status; a++)
			if (function->node[i]->attribute[a]->ref && *function->node[i]->attribute[a]->ref)
				status = set_attribute(inliner, &function->node[i]->attribute[a], node, function);
	if (!status)
		status = put_all(inliner, &scope, function->node, &function->n_node);
	release_scope(&scope);
	onnx__function__free_unpacked(function, NULL);
	onnx__node__free_unpacked(node, NULL);
	return status;
}

/* ---- nodes ---- */

/* Appends the node, with the names of its scope, or the nodes that it stands for. Owns the node. */
static enum psd_status put(struct inliner *inliner, const struct scope *scope, Onnx__Node *node)
{
	Onnx__Function *function = NULL;
	enum psd_status status = rename_all(inliner, scope, node->input, node->n_input);

	if (!status)
		status = rename_all(inliner, scope, node->output, node->n_output);
	if (!status && (inliner->depth >= MOST_DEPTH || inliner->n >= MOST_NODES))
		status = refuse(inliner, node, "is in graphs that are nested too deeply, or make too many nodes");
	if (status || !node->op_type) {
		if (!status)
			return add(inliner, node, NULL); /* refused later */
		onnx__node__free_unpacked(node, NULL);
		return status;
	}
	inliner->depth++;
	if (!strcmp(node->op_type, "If") && !psd_onnx_is_foreign(node))
		status = put_condition(inliner, scope, node);
	else if (!strcmp(node->op_type, "Loop") && !psd_onnx_is_foreign(node))
		status = put_loop(inliner, scope, node);
	else if ((function = find_function(inliner, node)) != NULL)
		status = put_call(inliner, node, function);
	else
		status = add(inliner, node, NULL);
	inliner->depth--;
	return status;
}

static bool has_inner(const Onnx__Model *model)
{
	bool has = model->n_functions > 0;

	for (size_t i = 0; i < model->graph->n_node && !has; i++)
		for (size_t a = 0; a < model->graph->node[i]->n_attribute && !has; a++)
			has = model->graph->node[i]->attribute[a]->has_g;
	return has;
}

/* Copies an array of guards to the arena; NULL: out of memory. */
static const struct psd_onnx_guard **keep(struct inliner *inliner, const struct psd_onnx_guard **guards)
{
	const struct psd_onnx_guard **kept = psd_arena_take(&inliner->onnx->arena, (inliner->n + 1) * sizeof(*kept));

	if (kept && inliner->n)
		memcpy(kept, guards, inliner->n * sizeof(*kept));
	return kept;
}

/* Prepares the maps of functions and of numbers. */
static enum psd_status prepare(struct inliner *inliner)
{
	const Onnx__Graph *graph = inliner->model->graph;

	for (size_t i = 0; i < graph->n_initializer; i++)
		if (!note_number(inliner, graph->initializer[i]->name, graph->initializer[i]))
			return no_memory(inliner);
	return name_functions(inliner);
}

enum psd_status psd_onnx_inline(struct psd_onnx *onnx, Onnx__Model *model, size_t length)
{
	struct inliner inliner = {
		.onnx = onnx, .model = model, .bytes_left = BYTES_EACH * (uint64_t)length + BYTES_MORE};
	Onnx__Graph *graph = model->graph;

	if (!has_inner(model))
		return PSD_OK;
	enum psd_status status = prepare(&inliner);
	if (!status) {
		status = put_all(&inliner, NULL, graph->node, &graph->n_node);
		free(graph->node);
		graph->node = inliner.nodes;
		graph->n_node = inliner.n;
	}
	onnx->guards = keep(&inliner, inliner.guards);
	onnx->choices_of = keep(&inliner, inliner.choices);
	if (!status && (!onnx->guards || !onnx->choices_of))
		status = psd_onnx_no_memory(onnx);
	psd_names_release(&inliner.functions);
	psd_names_release(&inliner.tensors);
	free(inliner.numbers);
	free(inliner.guards);
	free(inliner.choices);
	return status;
}
