#include "engine/base/spelling.h"

#include <ctype.h>
#include <string.h>

enum { NAME_MAX_BYTES = 64, LEAST_CONTAINED = 3 }; /* longer names get no suggestion */

/* Writes the name without case and separators to `plain`; false: it is too long. */
static bool make_plain(const char *name, char plain[NAME_MAX_BYTES + 1])
{
	size_t length = 0;

	for (; *name; name++) {
		if (strchr(" -_./", *name))
			continue;
		if (length == NAME_MAX_BYTES)
			return false;
		plain[length++] = (char)tolower((unsigned char)*name);
	}
	plain[length] = '\0';
	return length > 0;
}

bool psd_spelling_is_same(const char *one, const char *other)
{
	char plain[NAME_MAX_BYTES + 1], same[NAME_MAX_BYTES + 1];

	return make_plain(one, plain) && make_plain(other, same) && !strcmp(plain, same);
}

bool psd_spelling_find(const char *text, const char *const names[], unsigned *index)
{
	char plain[NAME_MAX_BYTES + 1], other[NAME_MAX_BYTES + 1];
	unsigned n_found = 0, found = 0;

	for (unsigned i = 0; names[i]; i++)
		if (!strcmp(text, names[i])) {
			*index = i;
			return true;
		}
	if (!make_plain(text, plain))
		return false;
	for (unsigned i = 0; names[i]; i++)
		if (make_plain(names[i], other) && !strcmp(plain, other)) {
			found = i;
			n_found++;
		}
	if (n_found == 1)
		*index = found;
	return n_found == 1;
}

static unsigned least(unsigned a, unsigned b, unsigned c)
{
	const unsigned smaller = a < b ? a : b;

	return smaller < c ? smaller : c;
}

/* Edits (insert, delete, replace) that turn one name into the other (Levenshtein 1966); both at most NAME_MAX_BYTES
 * long. */
static unsigned distance(const char *from, const char *to)
{
	const size_t from_length = strlen(from), to_length = strlen(to);
	unsigned row[NAME_MAX_BYTES + 1];

	for (size_t j = 0; j <= to_length; j++)
		row[j] = (unsigned)j;
	for (size_t i = 1; i <= from_length; i++) {
		unsigned diagonal = row[0];

		row[0] = (unsigned)i;
		for (size_t j = 1; j <= to_length; j++) {
			const unsigned replaced = diagonal + (from[i - 1] != to[j - 1]);

			diagonal = row[j];
			row[j] = least(replaced, row[j] + 1, row[j - 1] + 1);
		}
	}
	return row[to_length];
}

/* The only name that begins with the text, without case and separators; NULL: there is none, or several. */
static const char *begun(const char *text, const char *const names[])
{
	char plain[NAME_MAX_BYTES + 1], other[NAME_MAX_BYTES + 1];
	const char *found = NULL;
	unsigned n_found = 0;

	if (!make_plain(text, plain) || strlen(plain) < LEAST_CONTAINED)
		return NULL;
	for (; *names; names++)
		if (make_plain(*names, other) && !strncmp(plain, other, strlen(plain))) {
			found = *names;
			n_found++;
		}
	return n_found == 1 ? found : NULL;
}

/* The longest name that is a part of the text, both without case and separators: v100 of "NVIDIA Tesla V100". */
static const char *contained(const char *text, const char *const names[])
{
	char plain[NAME_MAX_BYTES + 1], other[NAME_MAX_BYTES + 1];
	size_t best_length = LEAST_CONTAINED - 1;
	const char *best = NULL;

	if (!make_plain(text, plain))
		return NULL;
	for (; *names; names++)
		if (make_plain(*names, other) && strlen(other) > best_length && strstr(plain, other)) {
			best_length = strlen(other);
			best = *names;
		}
	return best;
}

/* Words of other software, without case and separators, and the names that do the same. */
static const struct {
	const char *word, *name;
} others[] = {
	{"allreduce", "ring"},	   {"ddp", "ring"},	    {"horovod", "ring"},  {"hierarchical", "two-level"},
	{"parameterserver", "ps"}, {"tree", "double-tree"}, {"amp", "mixed"},	  {"fp16", "mixed"},
	{"float16", "mixed"},	   {"half", "mixed"},	    {"bfloat16", "bf16"}, {"float32", "fp32"},
};

/* The name of the list that does what another program calls `text`; NULL: none. */
static const char *called_otherwise(const char *text, const char *const names[])
{
	char plain[NAME_MAX_BYTES + 1];

	if (!make_plain(text, plain))
		return NULL;
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		for (unsigned n = 0; !strcmp(plain, others[i].word) && names[n]; n++)
			if (!strcmp(names[n], others[i].name))
				return names[n];
	return NULL;
}

const char *psd_spelling_nearest(const char *text, const char *const names[])
{
	const char *other = called_otherwise(text, names), *best = other ? other : begun(text, names);
	unsigned best_distance = best ? 0 : ~0u;

	if (strlen(text) > NAME_MAX_BYTES)
		return NULL;
	for (const char *const *name = names; *name; name++) {
		const unsigned edits = strlen(*name) > NAME_MAX_BYTES ? ~0u : distance(text, *name);
		const unsigned accepted = strlen(*name) > 8 ? (unsigned)strlen(*name) / 3 : 2;

		if (edits <= accepted && 2 * edits <= strlen(*name) && edits < best_distance) {
			best_distance = edits;
			best = *name;
		}
	}
	return best ? best : contained(text, names);
}

bool psd_spelling_is_one_of(const char *text, const char *const list[])
{
	for (; *list; list++)
		if (!strcmp(text, *list))
			return true;
	return false;
}
