"""hta.py BUILD: HolisticTraceAnalysis must find psd's own columns in traces of psd-sim and psd-run, within 1 %.

Needs `pip install HolisticTraceAnalysis`. Its computation time is compute and other work, its other busy time exposed
communication, its idle time other waiting. Overlap is the share of communication beside computation.
"""
import csv
import io
import logging
import os
import statistics
import subprocess
import sys
import tempfile
import warnings

os.environ["HTA_DISABLE_NS_ROUNDING"] = "1"  # else each kernel loses up to 2 us
warnings.filterwarnings("ignore")
del sys.path[0]  # this file has the package's name

from hta.trace_analysis import TraceAnalysis  # noqa: E402

logging.disable(logging.WARNING)

MOST_OFF = 0.01  # of an iteration
PREDICTED = {
    "ring in buckets": ["--system", "Ring", "--set", "sweep.nodes=4", "--set", "sweep.fuse=4MiB",
                        "scenarios/fusion.yaml"],
    "servers": ["--system", "PS", "--set", "sweep.nodes=4", "--set", "systems.1.servers=2",
                "scenarios/quickstart.yaml"],
    "shards on workers": ["--system", "PS", "--set", "sweep.nodes=4", "scenarios/quickstart.yaml"],
}
# two threads: the time of one is that of the processor, which a busy machine gives to others meanwhile
EXECUTED = {
    "ring": ["--system", "Ring", "--nodes", "2", "--set", "train.threads=2", "scenarios/execute/mlp.yaml"],
    "shards": ["--system", "PS", "--nodes", "3", "--set", "train.threads=2", "scenarios/execute/mlp.yaml"],
    "hybrid in sequence": ["--system", "Hybrid in sequence", "--nodes", "4", "--set", "train.threads=2",
                           "scenarios/execute/mlp.yaml"],
}


def run(program, arguments, folder):
    """Row of the program's CSV; the trace is in the folder."""
    command = [program, "--csv", "--quiet", "--trace", folder + "/rank-%r.json", *arguments]
    table = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    row = list(csv.DictReader(io.StringIO(table)))[-1]
    return {name: float(row[name]) for name in
            ("iteration_sec", "compute_sec", "other_work_sec", "exposed_comm_sec", "other_waiting_sec")}


def steps_of(analysis, rank):
    """Begin and end of each ProfilerStep, us."""
    frame = analysis.t.traces[rank]
    names = analysis.t.symbol_table.get_sym_table()
    steps = frame[frame["name"].map(lambda name: names[name].startswith("ProfilerStep"))].sort_values("ts")
    return [(row.ts, row.ts + row.dur) for row in steps.itertuples()]


def clip(analysis, rank, begin, end):
    """Keeps what is between two times, of this rank alone."""
    frame = analysis.t.traces[rank]
    frame = frame[(frame["ts"] < end) & (frame["ts"] + frame["dur"] > begin)].copy()
    ends = (frame["ts"] + frame["dur"]).clip(upper=end)
    frame["ts"] = frame["ts"].clip(lower=begin)
    frame["dur"] = ends - frame["ts"]
    frame["end"] = ends
    analysis.t.traces = {rank: frame}


def parts(analysis, rank, begin, end):
    """Seconds of computation, other busy time, idle time, and what of the communication is not overlapped."""
    clip(analysis, rank, begin, end)
    row = analysis.get_temporal_breakdown(visualize=False).iloc[0]
    overlap = analysis.get_comm_comp_overlap(visualize=False).iloc[0]["comp_comm_overlap_pctg"] / 100
    waits = analysis.get_idle_time_breakdown(ranks=[rank], streams=[7], visualize=False)[0]["idle_time"].sum()
    kernels = analysis.t.traces[rank]
    device = kernels[kernels["stream"] == 7]
    waits += device["ts"].min() - begin + end - (device["ts"] + device["dur"]).max()
    names = analysis.t.symbol_table.get_sym_table()
    comm = kernels[kernels["name"].map(lambda name: names[name].startswith("nccl"))]
    busy, until = 0.0, begin
    for kernel in comm.sort_values("ts").itertuples():
        busy += max(0.0, kernel.ts + kernel.dur - max(until, kernel.ts))
        until = max(until, kernel.ts + kernel.dur)
    idle = row["idle_time(us)"] + (end - begin) - row["kernel_time(us)"]  # before the first kernel, after the last
    return [row["compute_time(us)"], row["non_compute_time(us)"], idle, (1 - overlap) * busy, waits]


def compare(title, row, measured, sec):
    expected = [row["compute_sec"] + row["other_work_sec"], row["exposed_comm_sec"], row["other_waiting_sec"],
                row["exposed_comm_sec"], row["exposed_comm_sec"] + row["other_waiting_sec"]]
    off = [abs(m / 1e6 - e) / row["iteration_sec"] for m, e in zip(measured, expected)]
    off.append(abs(sec / 1e6 / row["iteration_sec"] - 1))
    verdict = "ok" if max(off) <= MOST_OFF else "OFF"
    print(f"{title:32} {row['iteration_sec']:10.6f} s  " + " ".join(f"{100 * o:8.3f}" for o in off) + f"  {verdict}",
          flush=True)
    return verdict == "ok"


def predicted(build, title, arguments):
    """Means over the measured iterations, of the worker that waits least."""
    with tempfile.TemporaryDirectory() as folder:
        row = run(build + "/psd-sim", ["--set", "iterations=20", *arguments], folder)
        best = None
        for rank in range(len(os.listdir(folder))):
            analysis = TraceAnalysis(trace_dir=folder, include_last_profiler_step=True)
            steps = steps_of(analysis, rank)[-11:-1]  # the last one ends with its last kernel
            found = parts(analysis, rank, steps[0][0], steps[-1][1])
            if best is None or found[0] > best[0][0]:
                best = found, steps
    found, steps = best
    return compare("predicted, " + title, row, [f / len(steps) for f in found],
                   (steps[-1][1] - steps[0][0]) / len(steps))


def executed(build, title, arguments):
    """Worker 0, its iteration of median length."""
    with tempfile.TemporaryDirectory() as folder:
        row = run(build + "/psd-run", ["--iterations", "9", *arguments], folder)
        analysis = TraceAnalysis(trace_dir=folder, include_last_profiler_step=True)
        steps = steps_of(analysis, 0)[2:]  # two warm up
        begin, end = min(steps, key=lambda step: abs((step[1] - step[0]) / 1e6 - row["iteration_sec"]))
        found = parts(analysis, 0, begin, end)
    return compare("executed, " + title, row, found, end - begin)


def main():
    build = sys.argv[1]
    print(f"{'':32} {'iteration':>12}  compute  exposed     idle  overlap    waits  iteration, % of an iteration off")
    right = [predicted(build, *case) for case in PREDICTED.items()]
    right += [executed(build, *case) for case in EXECUTED.items()]
    sys.exit(not all(right))


if __name__ == "__main__":
    main()
