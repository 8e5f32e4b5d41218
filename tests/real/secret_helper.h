/* Secrets for tests, each from a file that is gone again. Needs what scratch_folder.h does. */
#ifndef PSD_TESTS_REAL_SECRET_HELPER_H
#define PSD_TESTS_REAL_SECRET_HELPER_H

#include <string.h>

#include "real/net/secret.h"
#include "tests/scratch_folder.h"

/* The caller frees it. Skips the test where psd-run is built without OpenSSL. */
static inline struct psd_secret *make_secret(const char *bytes)
{
	const struct scratch_folder folder = scratch_folder_make();
	struct psd_secret *secret = NULL;
	struct psd_error err;
	bool is_exposed;

#ifndef PSD_HAS_TLS
	cr_skip_test("built without OpenSSL");
#endif
	scratch_folder_write(&folder, "secret", bytes, strlen(bytes));
	cr_assert_eq(psd_secret_load(scratch_folder_path(&folder, "secret").text, &secret, &is_exposed, &err), PSD_OK,
		     "%s", err.text);
	scratch_folder_remove(&folder);
	return secret;
}

#endif
