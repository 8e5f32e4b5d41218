/* psd-plot for commands of a shell: $PSD_PLOT is the program that was built beside the test. */
#ifndef PSD_TESTS_PLOT_HELPER_H
#define PSD_TESTS_PLOT_HELPER_H

#include "tests/cli_helper.h"

__attribute__((constructor)) static inline void name_plot_program(void)
{
	char path[PATH_MAX];
	const ssize_t length = readlink("/proc/self/exe", path, sizeof(path) - sizeof("psd-plot"));

	if (length <= 0)
		return;
	path[length] = '\0';
	snprintf(strrchr(path, '/') + 1, sizeof("psd-plot"), "psd-plot");
	setenv("PSD_PLOT", path, 1);
}

#endif
