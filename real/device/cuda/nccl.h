/* Declarations of the functions of NCCL that psd-run calls; they have not changed since NCCL 2.0. They replace NCCL's
 * header, because the library is loaded at run time, and only if a system of the scenario uses it. Private to
 * real/device/cuda/ and its tests. */
#ifndef PSD_REAL_CUDA_NCCL_H
#define PSD_REAL_CUDA_NCCL_H

#include <stddef.h>

struct CUstream_st;
struct ncclComm;

enum { PSD_NCCL_SUCCESS = 0, PSD_NCCL_FLOAT32 = 7, PSD_NCCL_SUM = 0, PSD_NCCL_ID_BYTES = 128 };

struct psd_nccl_id { /* NCCL's type ncclUniqueId */
	char bytes[PSD_NCCL_ID_BYTES];
};

/* NCCL's functions: the name without the prefix "nccl", and the parameters. All return ncclResult_t, an int. */
#define PSD_NCCL_CALLS(ROW)                                                                                            \
	ROW(GetUniqueId, (struct psd_nccl_id * id))                                                                    \
	ROW(CommInitRank, (struct ncclComm * *comm, int n_ranks, struct psd_nccl_id id, int rank))                     \
	ROW(AllReduce, (const void *from, void *to, size_t count, int type, int op, struct ncclComm *comm,             \
			struct CUstream_st *stream))                                                                   \
	ROW(Broadcast, (const void *from, void *to, size_t count, int type, int root, struct ncclComm *comm,           \
			struct CUstream_st *stream))                                                                   \
	ROW(GroupStart, (void))                                                                                        \
	ROW(GroupEnd, (void))                                                                                          \
	ROW(CommAbort, (struct ncclComm * comm))                                                                       \
	ROW(CommDestroy, (struct ncclComm * comm))

typedef const char *psd_nccl_get_error_string_fn(int result);

#endif
