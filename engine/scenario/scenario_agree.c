/* Causes come first: the method comes before the costs that only it uses, the cluster's host before a system's that
 * inherits from it. */
#include "engine/scenario/scenario_agree.h"

#include <string.h>

#include "engine/scenario/scenario_heed.h"

struct agreement {
	struct psd_text *text;
	const struct psd_system *system;
	const struct psd_agreed_value *instead;
	unsigned n_instead;
	enum { OF_SYSTEM, OF_ALL_ELSE, OF_ITS_SECTIONS, PARTS } part; /* part that this pass appends */
};

static const struct psd_agreed_value *find_instead(const struct agreement *agreement, const char *path)
{
	for (unsigned i = 0; i < agreement->n_instead; i++)
		if (!strcmp(agreement->instead[i].path, path))
			return &agreement->instead[i];
	return NULL;
}

static void add_line(const struct agreement *agreement, const struct psd_schema_spot *spot)
{
	const struct psd_agreed_value *instead = find_instead(agreement, spot->path);
	const bool is_heeded = spot->uses & PSD_AGREED || psd_scenario_chooses_by_seconds(agreement->system);

	psd_text_add(agreement->text, "%s: ", spot->path);
	if (instead && instead->text && is_heeded)
		psd_text_add(agreement->text, "%s", instead->text);
	else if (is_heeded && !instead && spot->key->type != PSD_KEY_PATH &&
		 psd_schema_is_said(spot->base, spot->section, spot->key))
		psd_schema_add_value(agreement->text, spot->base, spot->key);
	else
		psd_text_add(agreement->text, "-");
	psd_text_add(agreement->text, "\n");
}

static bool visit(const struct psd_schema_spot *spot)
{
	const struct agreement *agreement = spot->context;
	const struct psd_system *system = spot->section == &psd_scenario_system ? spot->base : NULL;
	const struct psd_key *key = spot->key;
	const bool is_section = key->type == PSD_KEY_SECTION && !key->most_entries;

	if (spot->section == psd_scenario_root.section && key->section == &psd_scenario_system)
		return agreement->part != OF_ALL_ELSE;
	if (spot->section == psd_scenario_root.section && agreement->part != OF_ALL_ELSE)
		return false;
	if (system &&
	    (system->number != agreement->system->number || is_section != (agreement->part == OF_ITS_SECTIONS)))
		return false;
	if (!is_section && spot->uses & (PSD_AGREED | PSD_BY_CHOICE))
		add_line(agreement, spot);
	return is_section;
}

void psd_scenario_add_agreed(struct psd_text *text, const struct psd_scenario *scenario,
			     const struct psd_system *system, const struct psd_agreed_value instead[],
			     unsigned n_instead)
{
	struct agreement agreement = {text, system, instead, n_instead, OF_SYSTEM};

	for (; agreement.part < PARTS; agreement.part++)
		psd_schema_walk(&psd_scenario_root, scenario, NULL, visit, &agreement);
}

/* ---- comparing ---- */

/* Parts of a line "key: value"; the lengths are cut to fit into a message. */
struct line {
	int key_length, value_length;
	const char *value;
};

static struct line take_apart(const char *text)
{
	const size_t length = strcspn(text, "\n");
	const char *colon = memchr(text, ':', length);
	const size_t key_length = colon ? (size_t)(colon - text) : length;
	const size_t before = key_length + 2 < length ? key_length + 2 : length, rest = length - before;

	return (struct line){key_length < 80 ? (int)key_length : 80, rest < 160 ? (int)rest : 160, text + before};
}

bool psd_agreed_find_difference(const char *here, const char *there, struct psd_text *words)
{
	while (*here && *there) {
		const size_t length = strcspn(here, "\n");
		const struct line own = take_apart(here), other = take_apart(there);

		if (length == strcspn(there, "\n") && !memcmp(here, there, length)) {
			here += length + (here[length] != '\0');
			there += length + (there[length] != '\0');
			continue;
		}
		if (own.key_length == other.key_length && !memcmp(here, there, (size_t)own.key_length))
			psd_text_add(words, "'%.*s' is %.*s here, %.*s there", own.key_length, here, own.value_length,
				     own.value, other.value_length, other.value);
		else
			psd_text_add(words, "'%.*s' is to be agreed on here, '%.*s' there", own.key_length, here,
				     other.key_length, there);
		return true;
	}
	if (*here || *there)
		psd_text_add(words, "'%.*s' is to be agreed on only %s", take_apart(*here ? here : there).key_length,
			     *here ? here : there, *here ? "here" : "there");
	return *here || *there;
}
