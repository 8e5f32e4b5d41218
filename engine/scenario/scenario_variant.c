/* Keys that a sweep sets beside nodes, workers, bandwidth and fuse. Each combination of their values is a variant of
 * the scenario: the tree of the file with these values in it, read again. Ranges in any list of the sweep are written
 * out here. */
#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/units.h"
#include "engine/document/overlay.h"
#include "engine/scenario/scenario.h"
#include "engine/scenario/scenario_keys.h"
#include "engine/scenario/scenario_variant.h"

enum { PATH_MAX_BYTES = 200 };

struct collector {
	struct psd_scenario *scenario;
	struct psd_arena *arena;
	struct psd_error *err;
};

/* ---- ranges ---- */

/* Quantities of a range, as numbers of the first one's unit. */
struct range {
	double first, last, step;
	bool is_product;
	char unit[16];
};

enum { RANGE_TEXT = 64 };
static const double rounding_ratio = 1e-9;

/* Reads a quantity of any kind in its base unit; *kind: a number for the kind. */
static bool read_quantity(const char *text, double *value, int *kind)
{
	uint64_t bytes;

	*kind = 0;
	if (psd_units_read_number(text, value))
		return true;
	*kind = 1;
	if (psd_units_read_rate(text, value))
		return true;
	*kind = 2;
	if (psd_units_read_bytes(text, &bytes)) {
		*value = (double)bytes;
		return true;
	}
	*kind = 3;
	if (psd_units_read_seconds(text, value))
		return true;
	*kind = 4;
	return strchr(text, '%') && psd_units_read_ratio(text, value);
}

/* Copies the text before `end` without blanks around it. */
static bool copy_part(char part[RANGE_TEXT], const char *text, const char *end)
{
	while (text < end && *text == ' ')
		text++;
	while (end > text && end[-1] == ' ')
		end--;
	if (end == text || end - text >= RANGE_TEXT)
		return false;
	memcpy(part, text, (size_t)(end - text));
	part[end - text] = '\0';
	return true;
}

/* True if the text begins as a range: a quantity and two dots. */
static bool begins_range(const char *text)
{
	const char *dots = strstr(text, "..");
	char first[RANGE_TEXT];
	double value;
	int kind;

	return dots && isdigit((unsigned char)*text) && copy_part(first, text, dots) &&
	       read_quantity(first, &value, &kind);
}

/* Reads the step behind the sign, in units of the first quantity. */
static bool read_step(const char *text, struct range *range, int kind, double unit)
{
	char part[RANGE_TEXT];
	int step_kind;

	range->is_product = *text == '*';
	if (!copy_part(part, text + 1, text + strlen(text)) || !read_quantity(part, &range->step, &step_kind))
		return false;
	if (range->is_product)
		return step_kind == 0 && range->step > 1.0 && range->first > 0.0;
	range->step /= unit;
	return step_kind == kind && range->step > 0.0;
}

/* Reads "1..8", "1..9+2", "1..128*2" or "1Gbit/s..64Gbit/s*2". */
static bool read_range(const char *text, struct range *range)
{
	const char *dots = strstr(text, ".."), *sign = dots + strcspn(dots, "*+");
	char first[RANGE_TEXT], last[RANGE_TEXT], number[RANGE_TEXT];
	double first_value, last_value, unit = 1.0;
	int first_kind, last_kind;

	*range = (struct range){.step = 1.0};
	if (!copy_part(first, text, dots) || !copy_part(last, dots + 2, sign) ||
	    !read_quantity(first, &first_value, &first_kind) || !read_quantity(last, &last_value, &last_kind) ||
	    first_kind != last_kind || last_value < first_value)
		return false;
	const size_t digits = strspn(first, "0123456789.");
	snprintf(number, sizeof(number), "%.*s", (int)digits, first);
	if (!psd_units_read_number(number, &range->first) || strlen(first + digits) >= sizeof(range->unit))
		return false;
	snprintf(range->unit, sizeof(range->unit), "%s", first + digits);
	if (first_kind != 0 && range->first <= 0.0)
		return false;
	unit = first_kind != 0 ? first_value / range->first : 1.0;
	range->last = last_value / unit * (1.0 + rounding_ratio);
	if (*sign)
		return read_step(sign, range, first_kind, unit);
	return first_kind == 0;
}

/* True if both ends are quantities of one kind with a unit. */
static bool is_quantity_range(const char *text)
{
	const char *dots = strstr(text, "..");
	char first[RANGE_TEXT], last[RANGE_TEXT];
	double first_value, last_value;
	int kind, last_kind;

	return copy_part(first, text, dots) && copy_part(last, dots + 2, text + strlen(text)) &&
	       read_quantity(first, &first_value, &kind) && read_quantity(last, &last_value, &last_kind) &&
	       kind == last_kind && kind != 0 && first_value <= last_value;
}

/* True of "1-16". */
static bool is_dashed(const char *text)
{
	const size_t digits = strspn(text, "0123456789");

	return digits > 0 && text[digits] == '-' && text[digits + 1] &&
	       strspn(text + digits + 1, "0123456789") == strlen(text + digits + 1);
}

static struct psd_node *copy_node(const struct collector *collector, const struct psd_node *node)
{
	struct psd_node *copy = psd_arena_take(collector->arena, sizeof(*copy));

	if (!copy)
		return NULL;
	*copy = *node;
	copy->next = NULL;
	return copy;
}

static enum psd_status hang_copy(const struct collector *collector, struct psd_node *list, struct psd_node **last,
				 const struct psd_node *value, const char *text)
{
	struct psd_node *copy = copy_node(collector, value);

	if (!copy)
		return psd_out_of_memory(collector->err);
	if (text)
		copy->text = psd_arena_copy(collector->arena, text, strlen(text));
	if (text && !copy->text)
		return psd_out_of_memory(collector->err);
	psd_node_hang(list, last, copy);
	return PSD_OK;
}

/* Appends the value, or the numbers of its range, to the list. */
static enum psd_status hang_values(const struct collector *collector, struct psd_node *list, struct psd_node **last,
				   const struct psd_node *value)
{
	struct range range;
	char text[RANGE_TEXT];

	if (value->kind == PSD_NODE_SCALAR && is_dashed(value->text))
		return psd_error_set(collector->err, PSD_EINVAL, value->at,
				     "'%.80s' is not a range, did you mean %.*s..%s?", value->text,
				     (int)strcspn(value->text, "-"), value->text, strchr(value->text, '-') + 1);
	if (value->kind != PSD_NODE_SCALAR || !begins_range(value->text))
		return hang_copy(collector, list, last, value, NULL);
	if (!read_range(value->text, &range))
		return !strpbrk(value->text, "*+") && is_quantity_range(value->text)
			       ? psd_error_set(collector->err, PSD_EINVAL, value->at,
					       "'%.80s' has no step, must be such as %.80s*2", value->text, value->text)
			       : psd_error_set(collector->err, PSD_EINVAL, value->at,
					       "'%.80s' is not a range, must be such as 1..8, 1..9+2, 1..128*2 or "
					       "1Gbps..64Gbps*2",
					       value->text);
	double number = range.first;
	for (unsigned i = 1; number <= range.last; i++) {
		if (list->n_children == PSD_MAX_SWEEP)
			return psd_error_set(collector->err, PSD_EINVAL, value->at, "'%.80s' has more than %d values",
					     value->text, PSD_MAX_SWEEP);
		snprintf(text, sizeof(text), "%.12g%s", number, range.unit);
		PSD_TRY(hang_copy(collector, list, last, value, text));
		number = range.is_product ? number * range.step : range.first + i * range.step;
	}
	return PSD_OK;
}

/* A list whose ranges are written out. A plain value stays one unless it is a range, or is_list. */
static enum psd_status write_out(const struct collector *collector, const struct psd_node *node, bool is_list,
				 struct psd_node **out)
{
	struct psd_node *last = NULL;

	*out = copy_node(collector, node);
	if (!*out)
		return psd_out_of_memory(collector->err);
	if (node->kind == PSD_NODE_SCALAR && !is_list && !begins_range(node->text) && !is_dashed(node->text))
		return PSD_OK;
	(*out)->kind = PSD_NODE_SEQUENCE;
	(*out)->first = NULL;
	(*out)->n_children = 0;
	if (node->kind == PSD_NODE_SCALAR)
		return hang_values(collector, *out, &last, node);
	for (const struct psd_node *value = node->first; value; value = value->next)
		PSD_TRY(hang_values(collector, *out, &last, value));
	return PSD_OK;
}

/* ---- swept keys ---- */

/* Row of the key at a path such as "systems.0.sync"; NULL: there is none, or names of any kind are below it. */
static const struct psd_key *row_of(const char *path)
{
	const struct psd_section *section = psd_scenario_root.section;
	const struct psd_key *key;

	for (;;) {
		const size_t length = strcspn(path, ".");
		unsigned i = 0;

		while ((key = psd_section_key(section, i)) &&
		       (strlen(key->name) != length || strncmp(key->name, path, length) != 0))
			i++;
		path += length;
		if (!key || !*path)
			return key;
		if (key->type == PSD_KEY_SECTION && key->most_entries && *path)
			path += 1 + strcspn(path + 1, "."); /* number or name of an entry */
		if (key->type != PSD_KEY_SECTION || !*path)
			return NULL;
		path++;
		section = key->section;
	}
}

/* Suffix of a column of programs' output, by the unit of its values. */
static const char *unit_suffix(const struct psd_key *key)
{
	const enum psd_key_type type = key && !key->word ? key->type : PSD_KEY_OTHER;

	return type == PSD_KEY_RATE ? "_bps" : type == PSD_KEY_BYTES ? "_bytes" : type == PSD_KEY_SECONDS ? "_sec" : "";
}

/* Node at a path of the tree; NULL: there is none. Two paths of one key have one node. */
static const struct psd_node *node_at(const struct psd_node *node, const char *path)
{
	while (node && *path) {
		const struct psd_node *child = node->first;
		const size_t length = strcspn(path, ".");
		unsigned position = 0;

		for (; child && !psd_overlay_names(node, child, position, path, length); child = child->next)
			position++;
		node = child;
		path += length + (path[length] == '.');
	}
	return node;
}

/* Tells whether two paths are of one key: by the tree up to the last word, which the tree may lack. */
static bool is_one_key(const struct collector *collector, const char *a, const char *b)
{
	const struct psd_node *root = collector->scenario->whole;
	char above[2][PATH_MAX_BYTES];
	const char *const paths[] = {a, b}, *last[2];
	const struct psd_node *nodes[2];

	for (unsigned i = 0; i < 2; i++) {
		last[i] = strrchr(paths[i], '.') ? strrchr(paths[i], '.') : paths[i];
		snprintf(above[i], sizeof(above[i]), "%.*s", (int)(last[i] - paths[i]), paths[i]);
		nodes[i] = node_at(root, above[i]);
	}
	return !strcmp(a, b) || (nodes[0] && nodes[0] == nodes[1] && !strcmp(last[0], last[1]));
}

/* Entry of a swept key. An option replaces the values of the file; other values beside it are refused. */
static enum psd_status find_entry(const struct collector *collector, const char *path, const struct psd_node *node,
				  struct psd_swept **entry)
{
	struct psd_scenario *scenario = collector->scenario;
	unsigned i = 0;

	while (i < scenario->n_swept && !is_one_key(collector, scenario->swept[i].path, path))
		i++;
	if (i == PSD_MAX_SWEPT)
		return psd_error_set(collector->err, PSD_EINVAL, node->key_at, "'sweep' has more than %d other keys",
				     PSD_MAX_SWEPT);
	*entry = &scenario->swept[i];
	if (i < scenario->n_swept && (node->at.line > 0 || (*entry)->values->at.line == 0))
		return psd_error_set(collector->err, PSD_EINVAL, node->key_at,
				     "'%s' is swept as '%s', too, must have all values in one list", path,
				     (*entry)->path);
	scenario->n_swept += i == scenario->n_swept;
	return PSD_OK;
}

/* The word of a path before its last one, or two words if that is the number of an entry: "slow.0" of
 * "cluster.slow.0.link". */
static const char *section_of(const char *path, const char *name)
{
	const char *section = name - 1;

	while (section > path && section[-1] != '.')
		section--;
	if (section == path || section[strspn(section, "0123456789")] != '.')
		return section;
	for (section--; section > path && section[-1] != '.';)
		section--;
	return section;
}

static enum psd_status refuse_twice(const struct collector *collector, const char *path, const struct psd_node *values)
{
	for (const struct psd_node *value = values->first; value; value = value->next)
		for (const struct psd_node *other = values->first; other != value; other = other->next)
			if (!strcmp(other->text, value->text))
				return psd_error_set(collector->err, PSD_EINVAL, value->at, "'%s' has '%.80s' twice",
						     path, value->text);
	return PSD_OK;
}

static enum psd_status add_swept(const struct collector *collector, const char *path, const struct psd_node *node)
{
	struct psd_swept *swept = NULL;
	struct psd_node *values;
	char column[PATH_MAX_BYTES + 16];
	const char *name, *section;

	if (!strncmp(path, "sweep.", strlen("sweep.")))
		return psd_error_set(collector->err, PSD_EINVAL, node->key_at, "'sweep' cannot sweep itself");
	PSD_TRY(write_out(collector, node, true, &values));
	if (values->n_children < 1 || values->n_children > PSD_MAX_SWEEP)
		return psd_error_set(collector->err, PSD_EINVAL, node->at, "'%s' has %u values, must have 1 to %d",
				     path, values->n_children, PSD_MAX_SWEEP);
	for (const struct psd_node *value = values->first; value; value = value->next)
		if (value->kind != PSD_NODE_SCALAR)
			return psd_error_set(collector->err, PSD_EINVAL, value->at,
					     "'%s' must be a list of plain values such as [A, B]", path);
	PSD_TRY(refuse_twice(collector, path, values));
	PSD_TRY(find_entry(collector, path, node, &swept));
	snprintf(column, sizeof(column), "%s%s", path, unit_suffix(row_of(path)));
	name = strrchr(path, '.') ? strrchr(path, '.') + 1 : path;
	section = name > path ? section_of(path, name) : path;
	*swept = (struct psd_swept){
		.section = psd_arena_copy(collector->arena, section, name > path ? (size_t)(name - 1 - section) : 0),
		.name = psd_arena_copy(collector->arena, name, strlen(name)),
		.path = psd_arena_copy(collector->arena, path, strlen(path)),
		.column = psd_arena_copy(collector->arena, column, strlen(column)),
		.values = values,
	};
	return swept->path && swept->column && swept->section && swept->name ? PSD_OK
									     : psd_out_of_memory(collector->err);
}

/* True if the child of `sweep` is no row of its section but a key of the scenario, or the beginning of its path. */
static bool is_path(const struct psd_node *child)
{
	const struct psd_key *key;

	if (child->kind == PSD_NODE_MAPPING || strchr(child->key, '.'))
		return true;
	for (unsigned i = 0; (key = psd_section_key(&psd_scenario_sweep, i)); i++)
		if (!strcmp(key->name, child->key))
			return false;
	key = row_of(child->key);
	return key && key->type != PSD_KEY_SECTION;
}

/* Adds the key at the path, or those below it. */
static enum psd_status add_below(const struct collector *collector, const char *path, const struct psd_node *node)
{
	char below[PATH_MAX_BYTES];

	if (node->kind != PSD_NODE_MAPPING)
		return add_swept(collector, path, node);
	for (const struct psd_node *child = node->first; child; child = child->next) {
		if (snprintf(below, sizeof(below), "%s.%s", path, child->key) >= (int)sizeof(below))
			return psd_error_set(collector->err, PSD_EINVAL, child->key_at, "the key is too long");
		PSD_TRY(add_below(collector, below, child));
	}
	return PSD_OK;
}

/* A sweep of all systems' buckets has sizes. */
static enum psd_status refuse_auto(const struct collector *collector, const struct psd_node *child)
{
	const struct psd_node *value = child->kind == PSD_NODE_SEQUENCE ? child->first : child;

	for (; !strcmp(child->key, "fuse") && value; value = child->kind == PSD_NODE_SEQUENCE ? value->next : NULL)
		if (value->kind == PSD_NODE_SCALAR && !strcmp(value->text, "auto"))
			return psd_error_set(collector->err, PSD_EINVAL, value->at,
					     "'fuse' is 'auto', must be a size in a sweep of all systems; a sweep of "
					     "systems.NAME.fuse takes auto, too");
	return PSD_OK;
}

/* Replaces `sweep` in a copy of the tree by one without the swept keys. */
static enum psd_status collect(const struct collector *collector, const struct psd_node **root)
{
	struct psd_node *top = copy_node(collector, *root), *last = NULL, *last_swept = NULL, *copy;

	if (!top)
		return psd_out_of_memory(collector->err);
	top->first = NULL;
	top->n_children = 0;
	for (const struct psd_node *section = (*root)->first; section; section = section->next) {
		copy = copy_node(collector, section);
		if (!copy)
			return psd_out_of_memory(collector->err);
		psd_node_hang(top, &last, copy);
		if (strcmp(section->key, "sweep") != 0 || section->kind != PSD_NODE_MAPPING)
			continue;
		copy->first = NULL;
		copy->n_children = 0;
		for (const struct psd_node *child = section->first; child; child = child->next) {
			struct psd_node *written;

			if (is_path(child)) {
				PSD_TRY(add_below(collector, child->key, child));
				continue;
			}
			PSD_TRY(refuse_auto(collector, child));
			PSD_TRY(write_out(collector, child, false, &written));
			psd_node_hang(copy, &last_swept, written);
		}
	}
	*root = top;
	return PSD_OK;
}

/* ---- variants ---- */

unsigned psd_scenario_variants(const struct psd_scenario *scenario)
{
	unsigned n = 1;

	for (unsigned i = 0; i < scenario->n_swept && n <= PSD_MAX_VARIANTS; i++)
		n *= scenario->swept[i].values->n_children;
	return n;
}

/* Sets the value of a swept key in the tree, and its forms for people and programs. */
static enum psd_status set_value(const struct collector *collector, struct psd_swept *swept, unsigned index,
				 const struct psd_node **root)
{
	const struct psd_node *value = swept->values->first;
	const struct psd_key *key = row_of(swept->path);
	char setting[PATH_MAX_BYTES + 1024];
	struct psd_text text = {.bytes = NULL};
	enum psd_status status = PSD_OK;

	while (index-- > 0)
		value = value->next;
	if (snprintf(setting, sizeof(setting), "%s=%s", swept->path, value->text) >= (int)sizeof(setting))
		return psd_error_set(collector->err, PSD_EINVAL, value->at, "the value is too long");
	const struct psd_node *base = node_at(collector->scenario->whole, swept->path);
	if (base && psd_node_is_set(base))
		return psd_error_set(collector->err, PSD_EINVAL, base->at,
				     "'%s' has no effect beside 'sweep', which has '%s': set other values by --sweep",
				     swept->name, swept->path);
	PSD_TRY(psd_scenario_check_setting(setting, collector->err));
	PSD_TRY(psd_overlay_set(root, setting, &value->at, collector->arena, collector->err));
	swept->text = value->text;
	swept->has_number = key && psd_schema_read_number(key, value, &swept->number);
	if (key)
		psd_schema_add_plain(&text, key, value);
	else
		psd_text_add(&text, "%s", value->text);
	swept->value = text.bytes ? psd_arena_copy(collector->arena, text.bytes, text.length) : "";
	if (text.is_out_of_memory || !swept->value)
		status = psd_out_of_memory(collector->err);
	psd_text_release(&text);
	return status;
}

enum psd_status psd_scenario_take_variant(struct psd_scenario *scenario, const struct psd_node **root, unsigned variant,
					  struct psd_arena *arena, struct psd_error *err)
{
	const struct collector collector = {scenario, arena, err};
	const struct psd_node *sweep = psd_node_child(*root, "sweep");

	if (!sweep)
		return PSD_OK;
	PSD_TRY(collect(&collector, root));
	if (psd_scenario_variants(scenario) > PSD_MAX_VARIANTS)
		return psd_error_set(
			err, PSD_EINVAL, sweep->key_at,
			"'sweep' has more than %d combinations of values of keys other than nodes, workers, "
			"bandwidth and fuse",
			PSD_MAX_VARIANTS);
	for (unsigned i = scenario->n_swept; i-- > 0;) { /* the last one changes fastest */
		struct psd_swept *swept = &scenario->swept[i];

		PSD_TRY(set_value(&collector, swept, variant % swept->values->n_children, root));
		variant /= swept->values->n_children;
	}
	return PSD_OK;
}

unsigned psd_scenario_swept_system(const struct psd_scenario *scenario, unsigned key)
{
	const char *entry = scenario->swept[key].path + strlen("systems.");

	if (strncmp(scenario->swept[key].path, "systems.", strlen("systems.")) != 0)
		return scenario->n_systems;
	for (unsigned s = 0; s < scenario->n_systems; s++) {
		const size_t length = strlen(scenario->systems[s].name);
		char *end;

		if (!strncmp(entry, scenario->systems[s].name, length) && entry[length] == '.')
			return s;
		if (isdigit((unsigned char)*entry) && strtoul(entry, &end, 10) == s && *end == '.')
			return s;
	}
	return scenario->n_systems;
}

bool psd_scenario_sweeps(const struct psd_scenario *scenario, const char *path)
{
	for (unsigned i = 0; i < scenario->n_swept; i++)
		if (!strcmp(scenario->swept[i].path, path))
			return true;
	return false;
}
