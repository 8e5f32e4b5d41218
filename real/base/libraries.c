/* In a static program each function of a library is a jump through a slot, under the function's own name. Callers use
 * the library's header as usual. */
#define _GNU_SOURCE 1
#include "real/base/libraries.h"

#include <dlfcn.h>
#include <glob.h>
#include <limits.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- finding a file ---- */

struct search {
	const char *file_name;
	void *handle;	 /* NULL: not found yet */
	char words[512]; /* reason of the last file that does not open, else the system's reason */
};

/* pattern: a glob of folders */
static void try_folders(struct search *search, const char *pattern)
{
	char path[PATH_MAX];
	glob_t found;

	if (search->handle || snprintf(path, sizeof(path), "%s/%s", pattern, search->file_name) >= (int)sizeof(path))
		return;
	if (glob(path, 0, NULL, &found))
		return;
	for (size_t i = 0; i < found.gl_pathc && !search->handle; i++) {
		search->handle = dlopen(found.gl_pathv[i], RTLD_NOW | RTLD_LOCAL);
		if (!search->handle)
			snprintf(search->words, sizeof(search->words), "%s", dlerror());
	}
	globfree(&found);
}

/* list: folders between colons; more: a path below each of them */
static void try_list(struct search *search, const char *list, const char *more)
{
	while (list && *list) {
		const size_t length = strcspn(list, ":");
		char folder[PATH_MAX];

		if (length > 0 && snprintf(folder, sizeof(folder), "%.*s%s", (int)length, list, more) < PATH_MAX)
			try_folders(search, folder);
		list += length + (list[length] == ':');
	}
}

static void try_system(struct search *search)
{
	if (search->handle)
		return;
	search->handle = dlopen(search->file_name, RTLD_NOW | RTLD_LOCAL);
	if (!search->handle && !*search->words)
		snprintf(search->words, sizeof(search->words), "%s", dlerror());
}

/* Tries the packages of the Python in PREFIX/bin: nvidia/cudnn, nvidia/cu13 and so on. */
static void try_python(struct search *search, const char *prefix)
{
	try_list(search, prefix, "/lib/python3*/site-packages/nvidia/*/lib");
	try_list(search, prefix, "/lib/python3*/dist-packages/nvidia/*/lib");
}

/* Tries the packages of the first python3 on PATH. They are beside the link, whatever it links to. */
static void try_first_python(struct search *search)
{
	for (const char *list = getenv("PATH"); list && *list;) {
		const size_t length = strcspn(list, ":");
		char path[PATH_MAX];

		if (length > 0 && snprintf(path, sizeof(path), "%.*s/python3", (int)length, list) < PATH_MAX &&
		    access(path, X_OK) == 0) {
			snprintf(strrchr(path, '/'), sizeof("/.."), "/..");
			try_python(search, path);
			return;
		}
		list += length + (list[length] == ':');
	}
}

void *psd_libraries_open(const char *file_name, struct psd_error *err)
{
	struct search search = {.file_name = file_name};

	try_list(&search, getenv("PSD_LIBRARIES"), "");
	try_system(&search);
	try_list(&search, getenv("CUDA_PATH"), "/lib64");
	try_list(&search, getenv("CUDA_HOME"), "/lib64");
	try_list(&search, "/usr/local/cuda:/usr/local/cuda-1*:/opt/cuda", "/lib64");
	try_list(&search, getenv("PYTHONPATH"), "/nvidia/*/lib");
	try_python(&search, getenv("VIRTUAL_ENV"));
	try_python(&search, getenv("CONDA_PREFIX"));
	try_first_python(&search);
	try_list(&search, getenv("HOME"), "/.local/lib/python3*/site-packages/nvidia/*/lib");
	try_python(&search, "/usr/local:/usr");
	if (!search.handle)
		psd_error_set(err, PSD_ERUN, PSD_NOWHERE,
			      "cannot open %s (%s): install it, or name its folder in PSD_LIBRARIES", file_name,
			      search.words);
	return search.handle;
}

/* ---- a library's functions ---- */

#ifdef PSD_STATIC

/* Versions of the headers that this program was compiled with. */
#define ONEDNN_FILE   "libdnnl.so.2"
#define CUBLAS_FILE   "libcublas.so.13"
#define CUBLASLT_FILE "libcublasLt.so.13"
#define CUDNN_FILE    "libcudnn.so.9"

/* The functions that psd calls. A call of any other does not link. */
#define ONEDNN_FUNCTIONS(FUNCTION)                                                                                     \
	FUNCTION(dnnl_batch_normalization_backward_desc_init)                                                          \
	FUNCTION(dnnl_batch_normalization_forward_desc_init)                                                           \
	FUNCTION(dnnl_binary_desc_init)                                                                                \
	FUNCTION(dnnl_dilated_convolution_backward_data_desc_init)                                                     \
	FUNCTION(dnnl_dilated_convolution_backward_weights_desc_init)                                                  \
	FUNCTION(dnnl_dilated_convolution_forward_desc_init)                                                           \
	FUNCTION(dnnl_dilated_deconvolution_backward_data_desc_init)                                                   \
	FUNCTION(dnnl_dilated_deconvolution_backward_weights_desc_init)                                                \
	FUNCTION(dnnl_dilated_deconvolution_forward_desc_init)                                                         \
	FUNCTION(dnnl_eltwise_backward_desc_init)                                                                      \
	FUNCTION(dnnl_eltwise_forward_desc_init)                                                                       \
	FUNCTION(dnnl_engine_create)                                                                                   \
	FUNCTION(dnnl_engine_destroy)                                                                                  \
	FUNCTION(dnnl_layer_normalization_backward_desc_init)                                                          \
	FUNCTION(dnnl_layer_normalization_forward_desc_init)                                                           \
	FUNCTION(dnnl_lrn_backward_desc_init)                                                                          \
	FUNCTION(dnnl_lrn_forward_desc_init)                                                                           \
	FUNCTION(dnnl_memory_create)                                                                                   \
	FUNCTION(dnnl_memory_desc_equal)                                                                               \
	FUNCTION(dnnl_memory_desc_get_size)                                                                            \
	FUNCTION(dnnl_memory_desc_init_by_tag)                                                                         \
	FUNCTION(dnnl_memory_desc_init_submemory)                                                                      \
	FUNCTION(dnnl_memory_desc_permute_axes)                                                                        \
	FUNCTION(dnnl_memory_destroy)                                                                                  \
	FUNCTION(dnnl_memory_set_data_handle_v2)                                                                       \
	FUNCTION(dnnl_pooling_backward_desc_init)                                                                      \
	FUNCTION(dnnl_pooling_forward_desc_init)                                                                       \
	FUNCTION(dnnl_post_ops_append_eltwise)                                                                         \
	FUNCTION(dnnl_post_ops_create)                                                                                 \
	FUNCTION(dnnl_post_ops_destroy)                                                                                \
	FUNCTION(dnnl_prelu_backward_desc_init)                                                                        \
	FUNCTION(dnnl_prelu_forward_desc_init)                                                                         \
	FUNCTION(dnnl_primitive_attr_create)                                                                           \
	FUNCTION(dnnl_primitive_attr_destroy)                                                                          \
	FUNCTION(dnnl_primitive_attr_set_post_ops)                                                                     \
	FUNCTION(dnnl_primitive_attr_set_scratchpad_mode)                                                              \
	FUNCTION(dnnl_primitive_create)                                                                                \
	FUNCTION(dnnl_primitive_desc_create)                                                                           \
	FUNCTION(dnnl_primitive_desc_destroy)                                                                          \
	FUNCTION(dnnl_primitive_desc_query_md)                                                                         \
	FUNCTION(dnnl_primitive_destroy)                                                                               \
	FUNCTION(dnnl_primitive_execute)                                                                               \
	FUNCTION(dnnl_reduction_desc_init)                                                                             \
	FUNCTION(dnnl_reorder_primitive_desc_create)                                                                   \
	FUNCTION(dnnl_sgemm)                                                                                           \
	FUNCTION(dnnl_shuffle_backward_desc_init)                                                                      \
	FUNCTION(dnnl_shuffle_forward_desc_init)                                                                       \
	FUNCTION(dnnl_softmax_backward_desc_init)                                                                      \
	FUNCTION(dnnl_softmax_forward_desc_init)                                                                       \
	FUNCTION(dnnl_stream_create)                                                                                   \
	FUNCTION(dnnl_stream_destroy)                                                                                  \
	FUNCTION(dnnl_version)                                                                                         \
	FUNCTION(GOMP_parallel)                                                                                        \
	FUNCTION(omp_get_num_threads)                                                                                  \
	FUNCTION(omp_get_thread_num)                                                                                   \
	FUNCTION(omp_set_num_threads) /* with these above, in oneDNN's libgomp */

#define CUBLAS_FUNCTIONS(FUNCTION)                                                                                     \
	FUNCTION(cublasCreate_v2)                                                                                      \
	FUNCTION(cublasDestroy_v2)                                                                                     \
	FUNCTION(cublasGemmEx)                                                                                         \
	FUNCTION(cublasGemmStridedBatchedEx)                                                                           \
	FUNCTION(cublasGetStatusName)                                                                                  \
	FUNCTION(cublasSetMathMode)                                                                                    \
	FUNCTION(cublasSetStream_v2)                                                                                   \
	FUNCTION(cublasSetWorkspace_v2)

#define CUBLASLT_FUNCTIONS(FUNCTION)                                                                                   \
	FUNCTION(cublasLtCreate)                                                                                       \
	FUNCTION(cublasLtDestroy)                                                                                      \
	FUNCTION(cublasLtMatmul)                                                                                       \
	FUNCTION(cublasLtMatmulAlgoConfigGetAttribute)                                                                 \
	FUNCTION(cublasLtMatmulAlgoGetHeuristic)                                                                       \
	FUNCTION(cublasLtMatmulDescCreate)                                                                             \
	FUNCTION(cublasLtMatmulDescDestroy)                                                                            \
	FUNCTION(cublasLtMatmulDescSetAttribute)                                                                       \
	FUNCTION(cublasLtMatmulPreferenceCreate)                                                                       \
	FUNCTION(cublasLtMatmulPreferenceDestroy)                                                                      \
	FUNCTION(cublasLtMatmulPreferenceSetAttribute)                                                                 \
	FUNCTION(cublasLtMatrixLayoutCreate)                                                                           \
	FUNCTION(cublasLtMatrixLayoutDestroy)

#define CUDNN_FUNCTIONS(FUNCTION)                                                                                      \
	FUNCTION(cudnnBackendCreateDescriptor)                                                                         \
	FUNCTION(cudnnBackendDestroyDescriptor)                                                                        \
	FUNCTION(cudnnBackendExecute)                                                                                  \
	FUNCTION(cudnnBackendFinalize)                                                                                 \
	FUNCTION(cudnnBackendGetAttribute)                                                                             \
	FUNCTION(cudnnBackendSetAttribute)                                                                             \
	FUNCTION(cudnnBatchNormalizationBackwardEx)                                                                    \
	FUNCTION(cudnnBatchNormalizationForwardTrainingEx)                                                             \
	FUNCTION(cudnnCreate)                                                                                          \
	FUNCTION(cudnnCreateTensorDescriptor)                                                                          \
	FUNCTION(cudnnDestroy)                                                                                         \
	FUNCTION(cudnnDestroyTensorDescriptor)                                                                         \
	FUNCTION(cudnnGetBatchNormalizationBackwardExWorkspaceSize)                                                    \
	FUNCTION(cudnnGetBatchNormalizationForwardTrainingExWorkspaceSize)                                             \
	FUNCTION(cudnnGetBatchNormalizationTrainingExReserveSpaceSize)                                                 \
	FUNCTION(cudnnGetErrorString)                                                                                  \
	FUNCTION(cudnnGetLastErrorString)                                                                              \
	FUNCTION(cudnnSetStream)                                                                                       \
	FUNCTION(cudnnSetTensor4dDescriptor)

/* The jump leaves registers and stack as the caller set them, so it works for any arguments. */
#if defined(__x86_64__)
#define JUMP(name) "\tjmp *psd_slot_" #name "(%rip)\n"
#elif defined(__aarch64__)
#define JUMP(name)                                                                                                     \
	"\tadrp x16, psd_slot_" #name "\n\tldr x16, [x16, :lo12:psd_slot_" #name "]\n"                                 \
	"\tbr x16\n"
#else
#error "STATIC=1 is for the processors that CUDA has: x86-64 and 64-bit Arm"
#endif

#define SLOT(name)                                                                                                     \
	extern void *psd_slot_##name __attribute__((visibility("hidden")));                                            \
	void *psd_slot_##name;                                                                                         \
	__asm__(".text\n.globl " #name "\n.type " #name ", %function\n" #name ":\n" JUMP(name) ".size " #name          \
											       ", .-" #name "\n");
#define ROW(name) {#name, &psd_slot_##name},

struct function {
	const char *name;
	void **slot;
};

ONEDNN_FUNCTIONS(SLOT)
static const struct function onednn[] = {ONEDNN_FUNCTIONS(ROW){NULL, NULL}};
#ifdef PSD_HAS_CUDA
CUBLAS_FUNCTIONS(SLOT)
CUBLASLT_FUNCTIONS(SLOT)
CUDNN_FUNCTIONS(SLOT)
static const struct function cublas[] = {CUBLAS_FUNCTIONS(ROW){NULL, NULL}};
static const struct function cublas_lt[] = {CUBLASLT_FUNCTIONS(ROW){NULL, NULL}};
static const struct function cudnn[] = {CUDNN_FUNCTIONS(ROW){NULL, NULL}};
#endif

static const struct {
	const char *file_name;
	const struct function *functions; /* the last has no name */
} rows[PSD_LIBRARIES] = {
	[PSD_LIBRARY_ONEDNN] = {ONEDNN_FILE, onednn},
#ifdef PSD_HAS_CUDA
	[PSD_LIBRARY_CUBLAS] = {CUBLAS_FILE, cublas},
	[PSD_LIBRARY_CUBLASLT] = {CUBLASLT_FILE, cublas_lt},
	[PSD_LIBRARY_CUDNN] = {CUDNN_FILE, cudnn},
#endif
};

static enum psd_status fill_slots(enum psd_shared_library library, struct psd_error *err)
{
	void *handle = psd_libraries_open(rows[library].file_name, err);

	if (!handle)
		return PSD_ERUN;
	for (const struct function *function = rows[library].functions; function->name; function++) {
		*function->slot = dlsym(handle, function->name);
		if (!*function->slot)
			return psd_error_set(err, PSD_ERUN, PSD_NOWHERE, "%s on this machine has no '%s'",
					     rows[library].file_name, function->name);
	}
	return PSD_OK;
}

enum psd_status psd_libraries_need(enum psd_shared_library library, struct psd_error *err)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	static bool is_found[PSD_LIBRARIES];
	enum psd_status status = PSD_OK;

	pthread_mutex_lock(&lock);
	if (!is_found[library])
		status = fill_slots(library, err);
	is_found[library] = !status;
	pthread_mutex_unlock(&lock);
	return status;
}

#else

enum psd_status psd_libraries_need(enum psd_shared_library library, struct psd_error *err)
{
	(void)library, (void)err;
	return PSD_OK;
}

#endif
