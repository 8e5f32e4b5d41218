"""Gradients of low rank by PyTorch's own powerSGD_hook, in double; shares nothing with psd.

    torch_low_rank.py PATH ROWS COLUMNS RANK WORKERS STEPS

PATH holds floats: what the right matrix starts from (RANK by COLUMNS); then of each step and worker the gradient of a
matrix (ROWS by COLUMNS) and of a vector (ROWS). Writes PATH.out: of each step what every worker then applies of both,
the mean over workers, as doubles.
"""
import os
import sys

import numpy
import torch
import torch.distributed as distributed
from torch.distributed.algorithms.ddp_comm_hooks import powerSGD_hook as power

path = sys.argv[1]
rows, columns, rank, workers, steps = (int(text) for text in sys.argv[2:7])
PLAIN_STEPS = 2  # DistributedDataParallel settles its buckets in these, and the hook is not to begin before


class Linear(torch.nn.Module):
    """Its gradients are what it is multiplied by."""

    def __init__(self):
        super().__init__()
        self.matrix = torch.nn.Parameter(torch.zeros(rows, columns, dtype=torch.double))
        self.vector = torch.nn.Parameter(torch.zeros(rows, dtype=torch.double))

    def forward(self, by_matrix, by_vector):
        return (self.matrix * by_matrix).sum() + (self.vector * by_vector).sum()


def work(worker):
    floats = numpy.fromfile(path, dtype=numpy.float32).astype(numpy.float64)
    start = torch.from_numpy(floats[: rank * columns].reshape(rank, columns).copy())
    gradients = torch.from_numpy(floats[rank * columns :].reshape(steps, workers, rows * (columns + 1)).copy())
    distributed.init_process_group("gloo", init_method="file://" + path + ".meet", rank=worker, world_size=workers)
    model = torch.nn.parallel.DistributedDataParallel(Linear())
    state = power.PowerSGDState(
        None, matrix_approximation_rank=rank, start_powerSGD_iter=PLAIN_STEPS, min_compression_rate=1
    )
    state.p_memory_dict[0] = torch.zeros(rows * rank, dtype=torch.double)
    state.q_memory_dict[0] = start.t().reshape(-1).clone()
    model.register_comm_hook(state, power.powerSGD_hook)
    out = []
    for step in range(-PLAIN_STEPS, steps):
        own = gradients[max(step, 0), worker] * (step >= 0)
        model.zero_grad()
        model(own[: rows * columns].view(rows, columns), own[rows * columns :]).backward()
        if step >= 0:
            out += [model.module.matrix.grad.reshape(-1).clone(), model.module.vector.grad.clone()]
    if worker == 0:
        torch.cat(out).numpy().tofile(path + ".out")
    distributed.barrier()


torch.set_num_threads(1)
children = []
for number in range(1, workers):
    child = os.fork()
    if child == 0:
        work(number)
        os._exit(0)
    children.append(child)
work(0)
sys.exit(any(os.waitpid(child, 0)[1] for child in children))
