/* Says of each library that a program of `make STATIC=1` finds late whether this machine has it, with all functions
 * that are called. tests/static.sh runs it. */
#include <stdio.h>

#include "real/base/libraries.h"

int main(void)
{
	static const char *const names[] = {
		[PSD_LIBRARY_ONEDNN] = "oneDNN",
#ifdef PSD_HAS_CUDA
		[PSD_LIBRARY_CUBLAS] = "cuBLAS",
		[PSD_LIBRARY_CUBLASLT] = "cuBLASLt",
		[PSD_LIBRARY_CUDNN] = "cuDNN",
#endif
	};
	int exit_status = 0;

	for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		struct psd_error err;

		if (!psd_libraries_need((enum psd_shared_library)i, &err)) {
			printf("%s is there\n", names[i]);
			continue;
		}
		printf("%s: %s\n", names[i], err.text);
		exit_status = 1;
	}
	return exit_status;
}
