/* Visits the keys of a file, row by row. Required keys are not reported, since nobody could leave them out, unless
 * their row names a value that counts as a default. */
#include "engine/scenario/scenario_heed.h"

#include <stdio.h>
#include <string.h>

struct search {
	unsigned uses; /* bits of the executor */
	struct psd_error *err;
	enum psd_status status;
	struct psd_text *text;
	unsigned users; /* bits that a line is for */
	bool has_line;
};

char *psd_scenario_write_users(unsigned uses, char text[PSD_USERS_TEXT_MAX])
{
	const char *names[2];
	unsigned n = 0;

	if (uses & PSD_BY_SIM)
		names[n++] = uses & PSD_BY_ESTIMATE ? "psd-sim" : "psd-sim's simulation";
	if ((uses & PSD_BY_PSD_RUN) == PSD_BY_PSD_RUN)
		names[n++] = "psd-run";
	else if (uses & PSD_BY_PSD_RUN)
		names[n++] = uses & PSD_BY_RUN ? "training" : "replays";
	snprintf(text, PSD_USERS_TEXT_MAX, "%s%s%s", n ? names[0] : "nobody", n > 1 ? " and " : "",
		 n > 1 ? names[1] : "");
	return text;
}

bool psd_scenario_chooses_by_seconds(const struct psd_system *system)
{
	if (system->finds_fuse || system->finds_early)
		return true;
	return system->rule == PSD_RULE_SECONDS &&
	       (system->sync == PSD_SYNC_HYBRID || system->sync == PSD_SYNC_SACP || system->sync == PSD_SYNC_AUTO);
}

static bool is_text(const struct psd_schema_spot *spot, const char *text)
{
	return !strcmp(*(const char *const *)((const char *)spot->base + spot->key->offset), text);
}

/* The file sets a key here that is not used. *goes_on: keys below may be unused, too. */
static bool is_unheeded(const struct psd_schema_spot *spot, unsigned uses, bool *goes_on)
{
	const bool is_said = spot->node && psd_schema_is_changed(spot->base, spot->section, spot->key);

	const bool is_plain =
		spot->key->is_required && !(spot->key->plain && is_said && !is_text(spot, spot->key->plain));

	*goes_on = is_said && (spot->uses & uses || is_plain);
	return is_said && !*goes_on;
}

static bool visit_refused(const struct psd_schema_spot *spot)
{
	struct search *search = spot->context;
	char users[PSD_USERS_TEXT_MAX];
	bool goes_on;

	if (search->status || !is_unheeded(spot, search->uses, &goes_on) || !spot->key->is_refused)
		return !search->status && goes_on;
	psd_scenario_write_users(spot->uses, users);
	if (spot->key->fallback)
		search->status = psd_error_set(search->err, PSD_EINVAL, spot->node->at,
					       "'%s' is '%.80s', used only by %s: must be '%s' here", spot->path,
					       spot->node->text, users, spot->key->fallback);
	else
		search->status = psd_error_set(search->err, PSD_EINVAL, spot->node->key_at,
					       "'%s' is used only by %s: must be left out here", spot->path, users);
	return false;
}

static bool visit_unheeded(const struct psd_schema_spot *spot)
{
	struct search *search = spot->context;
	bool goes_on;

	if (is_unheeded(spot, search->uses, &goes_on) && (spot->uses & PSD_BY_ALL) == search->users) {
		char users[PSD_USERS_TEXT_MAX];

		if (!search->has_line)
			psd_text_add(search->text, "used only by %s:", psd_scenario_write_users(spot->uses, users));
		psd_text_add(search->text, " '%s'", spot->path);
		search->has_line = true;
	}
	return goes_on;
}

static unsigned uses_of(const struct psd_scenario *scenario, enum psd_use executor)
{
	unsigned uses = executor;

	for (unsigned s = 0; s < scenario->n_systems; s++)
		uses |= psd_scenario_chooses_by_seconds(&scenario->systems[s]) ? PSD_BY_CHOICE : 0;
	return uses;
}

enum psd_status psd_scenario_check_heeded(const struct psd_scenario *scenario, enum psd_use executor,
					  struct psd_error *err)
{
	struct search search = {.uses = uses_of(scenario, executor), .err = err};

	if (scenario->n_swept && !(executor & PSD_BY_SIM))
		return psd_error_set(err, PSD_EINVAL, scenario->swept[0].values->at,
				     "'%s' in 'sweep' is used only by psd-sim: must be left out here",
				     scenario->swept[0].path);
	psd_schema_walk(&psd_scenario_root, scenario, scenario->root, visit_refused, &search);
	return search.status;
}

void psd_scenario_add_unheeded(struct psd_text *text, const struct psd_scenario *scenario, enum psd_use executor,
			       enum psd_use others)
{
	struct search search = {.uses = uses_of(scenario, executor), .text = text};

	for (search.users = 1; search.users <= PSD_BY_ALL; search.users++) {
		if (!(search.users & others))
			continue;
		search.has_line = false;
		psd_schema_walk(&psd_scenario_root, scenario, scenario->root, visit_unheeded, &search);
		if (search.has_line)
			psd_text_add(text, "\n");
	}
}
