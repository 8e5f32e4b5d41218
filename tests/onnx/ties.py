"""python3 ties.py: makes tied-transposed and own-biases (.onnx and .csv) with numpy and onnx alone. Gradients are
worked out by hand in double: PyTorch writes such files, and sums the gradients of both uses of a matrix as here."""
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

random = np.random.default_rng(5)


def values(*shape):
    return random.normal(size=shape).astype(np.float32)


def save(name, inputs, nodes, tensors, rows):
    graph = helper.make_graph(
        nodes, name, [inputs], [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(np.ascontiguousarray(tensor), key) for key, tensor in tensors.items()])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)])
    model.ir_version = 8
    onnx.save(model, name + ".onnx")
    with open(name + ".csv", "w", encoding="ascii") as out:
        out.write("tensor,first element,values\n")
        for key, numbers in rows.items():
            flat = np.asarray(numbers).ravel()
            for first in range(0, len(flat), 8):
                out.write(f"{key},{first}," + ",".join(f"{x:.8g}" for x in flat[first:first + 8]) + "\n")


def cross_entropy(scores, labels):
    """Mean loss over all rows, and its gradient."""
    shifted = np.exp(scores - scores.max(axis=-1, keepdims=True))
    shares = shifted / shifted.sum(axis=-1, keepdims=True)
    hits = np.eye(scores.shape[-1])[labels]
    return -np.mean(np.log((shares * hits).sum(axis=-1))), (shares - hits) / labels.size


def tied_transposed():
    table, tokens, labels = values(11, 6), random.integers(0, 11, (3, 5)), random.integers(0, 11, (3, 5))
    t = table.astype(np.float64)
    looked_up = t[tokens]
    hidden = np.maximum(looked_up, 0)
    scores = hidden @ t.T
    loss, dscores = cross_entropy(scores, labels)
    dtable = np.einsum("bpv,bpd->vd", dscores, hidden)
    np.add.at(dtable, tokens, (dscores @ t) * (looked_up > 0))
    save("tied-transposed", helper.make_tensor_value_info("x", TensorProto.INT64, ["batch", 5]),
         [helper.make_node("Gather", ["table.weight", "x"], ["e"], name="/table/Gather"),
          helper.make_node("Relu", ["e"], ["r"], name="/Relu"),
          helper.make_node("MatMul", ["r", "onnx::MatMul_9"], ["y"], name="/head/MatMul")],
         {"table.weight": table, "onnx::MatMul_9": table.T},
         {"input": tokens, "output": scores, "label": labels, "loss": loss, "gradient table.weight": dtable})


def own_biases():
    weight, first, second = values(7, 7), values(7), values(7)
    x, labels = values(4, 7), random.integers(0, 7, 4)
    w = weight.astype(np.float64)
    below = x.astype(np.float64) @ w.T + first
    hidden = np.maximum(below, 0)
    scores = hidden @ w.T + second
    loss, dscores = cross_entropy(scores, labels)
    dbelow = (dscores @ w) * (below > 0)
    save("own-biases", helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", 7]),
         [helper.make_node("Gemm", ["x", "fc.weight", "fc.bias"], ["h"], name="/fc/Gemm", transB=1),
          helper.make_node("Relu", ["h"], ["r"], name="/Relu"),
          helper.make_node("Gemm", ["r", "fc.weight", "other.bias"], ["y"], name="/other/Gemm", transB=1)],
         {"fc.weight": weight, "fc.bias": first, "other.bias": second},
         {"input": x, "output": scores, "label": labels, "loss": loss,
          "gradient fc.weight": dscores.T @ hidden + dbelow.T @ x, "gradient fc.bias": dbelow.sum(axis=0),
          "gradient other.bias": dscores.sum(axis=0)})


tied_transposed()
own_biases()
