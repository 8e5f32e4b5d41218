#include "engine/document/overlay.h"

#include <stdio.h>
#include <string.h>

#include "engine/base/spelling.h"

enum {
	MAX_STEPS = 32, /* the most levels of a document */
	MAX_NAMES = 32, /* entries of a list whose names are compared with a wrong one */
};

struct setting {
	struct psd_place at; /* "--set key.path" or "--sweep key.path", no line */
	const char *steps[MAX_STEPS];
	unsigned n_steps;
	const char *value;
	struct psd_arena *arena;
	struct psd_error *err;
};

static enum psd_status split_path(struct setting *setting, char *path)
{
	for (char *step = path; step;) {
		char *dot = strchr(step, '.');

		if (dot)
			*dot++ = '\0';
		if (!*step)
			return psd_error_set(setting->err, PSD_EINVAL, setting->at,
					     "empty key, must be key.path=value");
		if (setting->n_steps == MAX_STEPS)
			return psd_error_set(setting->err, PSD_EINVAL, setting->at, "the key has more than %d parts",
					     MAX_STEPS);
		setting->steps[setting->n_steps++] = step;
		step = dot;
	}
	return PSD_OK;
}

/* A setting that another option than --set made begins with its name and with the beginning of the path, a blank behind
 * each. Sets the lengths of both, 0 without them; returns the rest. */
static const char *skip_option(const char *text, size_t *option_length, size_t *prefix_length)
{
	const char *rest;

	*option_length = *prefix_length = 0;
	if (strncmp(text, "--", 2) != 0)
		return text;
	*option_length = strcspn(text, " ");
	rest = text + *option_length + strspn(text + *option_length, " ");
	*prefix_length = strcspn(rest, " ");
	return rest + *prefix_length + strspn(rest + *prefix_length, " ");
}

void psd_overlay_add_name(struct psd_text *text, const char *setting)
{
	size_t option_length, prefix_length;
	const char *rest = skip_option(setting, &option_length, &prefix_length);
	const size_t length = strcspn(rest, "=");

	psd_text_add(text, "%.*s%s", option_length ? (int)option_length : 5, option_length ? setting : "--set",
		     length > 0 ? " " : "");
	psd_text_add_bytes(text, rest, length);
}

/* at: place of the new nodes; NULL: the option, a blank and the key as it was given. */
static enum psd_status take_apart(struct setting *setting, const char *text, const struct psd_place *at)
{
	size_t option_length, prefix_length;
	const char *rest = skip_option(text, &option_length, &prefix_length), *equals = strchr(rest, '=');
	struct psd_text path = {.bytes = NULL}, shown = {.bytes = NULL};
	char *path_copy = NULL, *shown_copy = NULL;

	if (!equals)
		return psd_error_set(setting->err, PSD_EINVAL, (struct psd_place){.path = "--set"},
				     "'%.80s' has no '=', must be key.path=value", text);
	psd_overlay_add_name(&shown, text);
	if (prefix_length)
		psd_text_add_bytes(&path, rest - 1 - prefix_length, prefix_length);
	psd_text_add_bytes(&path, rest, (size_t)(equals - rest));
	if (!path.is_out_of_memory && !shown.is_out_of_memory) {
		path_copy = psd_arena_copy(setting->arena, path.bytes ? path.bytes : "", path.length);
		shown_copy = psd_arena_copy(setting->arena, shown.bytes, shown.length);
		setting->value = psd_arena_copy(setting->arena, equals + 1, strlen(equals + 1));
	}
	psd_text_release(&path);
	psd_text_release(&shown);
	if (!path_copy || !shown_copy || !setting->value)
		return psd_out_of_memory(setting->err);
	setting->at = at ? *at : (struct psd_place){.path = shown_copy};
	return split_path(setting, path_copy);
}

static bool is_step(const char *word, const char *step, size_t length)
{
	return strlen(word) == length && !memcmp(word, step, length);
}

bool psd_overlay_names(const struct psd_node *parent, const struct psd_node *child, unsigned position, const char *step,
		       size_t length)
{
	const struct psd_node *name = psd_node_child(child, "name");
	char digits[16];

	if (parent->kind == PSD_NODE_MAPPING)
		return is_step(child->key, step, length);
	snprintf(digits, sizeof(digits), "%u", position);
	return is_step(digits, step, length) ||
	       (name && name->kind == PSD_NODE_SCALAR && is_step(name->text, step, length));
}

/* The position of the child that one step of the path names; n_children when there is none. */
static unsigned find_child(const struct psd_node *parent, const char *step)
{
	unsigned position = 0;

	for (const struct psd_node *child = parent->first; child; child = child->next) {
		if (psd_overlay_names(parent, child, position, step, strlen(step)))
			break;
		position++;
	}
	return position;
}

/* Returns a copy of parent whose child at `position`, *down, may still be changed. It is a new child if `position` is
 * behind the last one. Grandchildren are shared with the original. NULL: out of memory. */
static struct psd_node *open_at(const struct psd_node *parent, unsigned position, struct psd_arena *arena,
				struct psd_node **down)
{
	struct psd_node *copy = psd_arena_take(arena, sizeof(*copy)), *last = NULL;
	const struct psd_node *child = parent->first;

	if (!copy)
		return NULL;
	*copy = *parent;
	copy->first = NULL;
	copy->n_children = 0;
	for (unsigned i = 0; i < parent->n_children || i <= position; i++) {
		struct psd_node *twin = psd_arena_take(arena, sizeof(*twin));

		if (!twin)
			return NULL;
		if (child) {
			*twin = *child;
			twin->next = NULL;
			child = child->next;
		}
		if (i == position)
			*down = twin;
		psd_node_hang(copy, &last, twin);
	}
	return copy;
}

/* Returns the name of the entry that the step nearly spells; NULL: no name is near. */
static const char *nearest_name(const struct psd_node *list, const char *step)
{
	const char *names[MAX_NAMES + 1] = {NULL};
	unsigned n = 0;

	for (const struct psd_node *entry = list->first; entry && n < MAX_NAMES; entry = entry->next) {
		const struct psd_node *name = psd_node_child(entry, "name");

		if (name && name->kind == PSD_NODE_SCALAR)
			names[n++] = name->text;
	}
	return psd_spelling_find(step, names, &n) ? names[n] : psd_spelling_nearest(step, names);
}

static enum psd_status refuse_step(const struct setting *setting, const struct psd_node *parent, unsigned i)
{
	const char *step = setting->steps[i], *list = i > 0 ? setting->steps[i - 1] : "the file";
	const unsigned n = parent->n_children;

	if (parent->kind != PSD_NODE_SEQUENCE)
		return psd_error_set(setting->err, PSD_EINVAL, setting->at,
				     "'%s' is below a plain value, must be below a mapping or list", step);
	if (n == 0)
		return psd_error_set(setting->err, PSD_EINVAL, setting->at, "'%s' is empty, there is no entry '%s'",
				     list, step);
	const char *near = nearest_name(parent, step);

	return psd_error_set(setting->err, PSD_EINVAL, setting->at,
			     "'%s' has %u %s (0 to %u), there is no entry '%s'%s%s%s", list, n,
			     n > 1 ? "entries" : "entry", n - 1, step, near ? ", did you mean '" : "", near ? near : "",
			     near ? "'?" : "");
}

/* Adds step i to *node, a private copy, if it is missing, and moves *node to that child. */
static enum psd_status go_down(const struct setting *setting, unsigned i, struct psd_node **node)
{
	const unsigned position = find_child(*node, setting->steps[i]);
	const bool is_new = position == (*node)->n_children;
	struct psd_node *opened, *down = NULL;

	if ((*node)->kind == PSD_NODE_SCALAR || (is_new && (*node)->kind == PSD_NODE_SEQUENCE))
		return refuse_step(setting, *node, i);
	opened = open_at(*node, position, setting->arena, &down);
	if (!opened)
		return psd_out_of_memory(setting->err);
	**node = *opened;
	if (is_new) {
		down->kind = PSD_NODE_MAPPING;
		down->key = setting->steps[i];
		down->key_at = down->at = setting->at;
		down->text = "";
	}
	*node = down;
	return PSD_OK;
}

/* Refuses a key that another option gives, whose value would be lost. */
static enum psd_status refuse_other(const struct setting *setting, const struct psd_node *node)
{
	const size_t option_length = strcspn(setting->at.path, " ") + 1;

	if (!psd_node_is_option(node) || !strncmp(node->at.path, setting->at.path, option_length))
		return PSD_OK;
	return psd_error_set(setting->err, PSD_EINVAL, setting->at,
			     "'%s' is also given by %.80s, must be given by one of them",
			     setting->steps[setting->n_steps - 1], node->at.path);
}

/* Removes the child that the last step names from the mapping *node, a private copy. */
static enum psd_status remove_key(const struct setting *setting, struct psd_node *node)
{
	const char *step = setting->steps[setting->n_steps - 1];
	const struct psd_node *child = node->first;
	struct psd_node *last = NULL;

	if (node->kind != PSD_NODE_MAPPING || !psd_node_child(node, step))
		return psd_error_set(setting->err, PSD_EINVAL, setting->at,
				     "an empty value removes a key, but there is no key '%s' here", step);
	PSD_TRY(refuse_other(setting, psd_node_child(node, step)));
	node->first = NULL;
	node->n_children = 0;
	for (; child; child = child->next) {
		struct psd_node *twin;

		if (!strcmp(child->key, step))
			continue;
		twin = psd_arena_take(setting->arena, sizeof(*twin));
		if (!twin)
			return psd_out_of_memory(setting->err);
		*twin = *child;
		twin->next = NULL;
		psd_node_hang(node, &last, twin);
	}
	return PSD_OK;
}

/* Adds the text from first to end, without blanks around it, to the list. */
static enum psd_status add_entry(const struct setting *setting, struct psd_node *list, struct psd_node **last,
				 const char *first, const char *end)
{
	struct psd_node *entry = psd_arena_take(setting->arena, sizeof(*entry));

	first += strspn(first, " ");
	while (end > first && end[-1] == ' ')
		end--;
	if (!entry)
		return psd_out_of_memory(setting->err);
	entry->kind = PSD_NODE_SCALAR;
	entry->at = setting->at;
	entry->key = setting->steps[setting->n_steps - 1]; /* for messages */
	entry->text = psd_arena_copy(setting->arena, first, end > first ? (size_t)(end - first) : 0);
	if (!entry->text)
		return psd_out_of_memory(setting->err);
	psd_node_hang(list, last, entry);
	return PSD_OK;
}

/* "[a, b]" becomes a list of plain values, any other text a plain value. */
static enum psd_status become_value(struct psd_node *node, const struct setting *setting)
{
	const char *text = setting->value, *end = text + strlen(text), *comma;
	struct psd_node *last = NULL;

	node->kind = PSD_NODE_SCALAR;
	node->at = node->key_at = setting->at;
	node->text = text;
	node->first = NULL;
	node->n_children = 0;
	if (end - text < 2 || text[0] != '[' || end[-1] != ']')
		return PSD_OK;
	node->kind = PSD_NODE_SEQUENCE;
	node->text = NULL;
	if (strcspn(text + 1, "[]") + 2 < (size_t)(end - text))
		return psd_error_set(
			setting->err, PSD_EINVAL, setting->at,
			"'%.80s' has brackets within brackets, must be a list of plain values such as [A, B]", text);
	for (text++, end--; (comma = memchr(text, ',', (size_t)(end - text))); text = comma + 1)
		PSD_TRY(add_entry(setting, node, &last, text, comma));
	return add_entry(setting, node, &last, text, end);
}

enum psd_status psd_overlay_set(const struct psd_node **root, const char *text, const struct psd_place *at,
				struct psd_arena *arena, struct psd_error *err)
{
	struct setting setting = {.arena = arena, .err = err};
	struct psd_node *top, *node;
	bool is_removal;

	PSD_TRY(take_apart(&setting, text, at));
	top = node = psd_arena_take(arena, sizeof(*top));
	if (!top)
		return psd_out_of_memory(err);
	*top = **root;
	is_removal = !at && !*setting.value;
	for (unsigned i = 0; i + is_removal < setting.n_steps; i++)
		PSD_TRY(go_down(&setting, i, &node));
	if (!at && !is_removal)
		PSD_TRY(refuse_other(&setting, node));
	PSD_TRY(is_removal ? remove_key(&setting, node) : become_value(node, &setting));
	*root = top;
	return PSD_OK;
}
