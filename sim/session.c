/* Loads a scenario and what it names, in that order. */
#include "sim/session.h"

static enum psd_status load_matter(struct psd_session *session, struct psd_error *err)
{
	const char *published_path = session->scenario.published_path;
	enum psd_status status = psd_subject_matter_load(&session->matter, &session->scenario, err);

	session->has_matter = status == PSD_OK;
	if (status || !published_path)
		return status;
	status = psd_published_load(&session->published, published_path, err);
	session->has_published = status == PSD_OK;
	return status;
}

enum psd_status psd_session_load(struct psd_session *session, const char *path, const char *const settings[],
				 bool with_matter, struct psd_error *err)
{
	enum psd_status status;

	*session = (struct psd_session){.has_scenario = false};
	status = psd_scenario_load(&session->scenario, path, settings, err);
	session->has_scenario = status == PSD_OK;
	if (!status)
		status = psd_scenario_load_solver(&session->scenario, err);
	return !status && with_matter ? load_matter(session, err) : status;
}

void psd_session_release(struct psd_session *session)
{
	if (session->has_published)
		psd_published_release(&session->published);
	if (session->has_matter)
		psd_subject_matter_release(&session->matter);
	if (session->has_scenario)
		psd_scenario_release(&session->scenario);
	*session = (struct psd_session){.has_scenario = false};
}

const struct psd_published *psd_session_published(const struct psd_session *session)
{
	return session->has_published ? &session->published : NULL;
}
