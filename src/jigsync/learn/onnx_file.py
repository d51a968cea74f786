"""A network of torch as the bytes of an ONNX file: folded, stored in half precision if wanted, without traces.

Stored in half precision a weight w becomes float16(w) in the file and is cast to float32 when the file is loaded:
half the size, the same arithmetic, a relative error of at most 2^-11 of a weight.
"""

from __future__ import annotations

import contextlib
import logging
import tempfile
import warnings
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from jigsync.learn.lite0 import Lite0

Arrays = Mapping[str, NDArray[Any]]
SMALLEST_HALVED: Final = 64
"""Numbers of a constant that is stored in half precision; shapes and limits stay as they are."""
HALF: Final = ".half"
"""What its name ends in."""

NORMALISED: Final = (("_expand_conv", "_bn0"), ("_depthwise_conv", "_bn1"), ("_project_conv", "_bn2"))
"""Convolutions of a block of Lite0, where it has them, and what normalises them."""


def folded(conv: nn.Conv2d, norm: nn.BatchNorm2d) -> nn.Sequential:
    """A convolution with 'same' padding and its batch normalisation as padding and one convolution.

    TensorFlow's padding, for sides that the stride divides: k - s in all, the odd one after.
    """
    fused = torch.nn.utils.fusion.fuse_conv_bn_eval(conv.eval(), norm.eval())
    side, stride = conv.kernel_size[0], conv.stride[0]
    before = (side - stride) // 2 if side > stride else 0
    after = max(side - stride, 0) - before
    plain = nn.Conv2d(conv.in_channels, conv.out_channels, side, stride, groups=conv.groups)
    plain.load_state_dict(fused.state_dict())
    return nn.Sequential(nn.ZeroPad2d((before, after, before, after)), plain)


def fold(encoder: Lite0) -> None:
    """Folds every batch normalisation into the convolution before it, in place."""
    for part in (encoder.stem, encoder.head):
        conv, norm = part[0], part[1]
        assert isinstance(conv, nn.Conv2d) and isinstance(norm, nn.BatchNorm2d)
        part[0] = folded(conv, norm)
        part[1] = nn.Identity()
    for block in encoder.blocks:
        for before, after in NORMALISED:
            if hasattr(block, before):
                setattr(block, before, folded(getattr(block, before), getattr(block, after)))
                setattr(block, after, nn.Identity())


def unfold(encoder: Lite0, weights: dict[str, Tensor]) -> dict[str, Tensor]:
    """The weights of an encoder, from those of a folded one of the same names: the inverse of `fold`.

    The statistics m and v are frozen, so they are those of the encoder given, with ImageNet's weights; of scale g and
    weights w only the product is known, and g stays as it is there:

        w = w_folded sqrt(v + eps) / g,   b = b_folded + g m / sqrt(v + eps)
    """
    found = dict(encoder.state_dict())
    for conv, norm in _normalised(encoder):
        scale, mean = found[f"{norm}.weight"], found[f"{norm}.running_mean"]
        factor = scale / torch.sqrt(found[f"{norm}.running_var"] + encoder.get_submodule(norm).eps)
        found[f"{conv}.weight"] = weights[f"{conv}.1.weight"] / factor[:, None, None, None]
        found[f"{norm}.bias"] = weights[f"{conv}.1.bias"] + factor * mean
    return found


def _normalised(encoder: Lite0) -> Iterator[tuple[str, str]]:
    """Names of every convolution and the batch normalisation behind it."""
    for part in ("stem", "head"):
        yield f"{part}.0", f"{part}.1"
    for k, block in enumerate(encoder.blocks):
        for before, after in NORMALISED:
            if hasattr(block, before):
                yield f"blocks.{k}.{before}", f"blocks.{k}.{after}"


def rounded(network: nn.Module) -> nn.Module:
    """The network with its weights rounded to half precision, in place."""
    with torch.no_grad():
        for parameter in network.parameters():
            if parameter.numel() >= SMALLEST_HALVED:
                parameter.copy_(parameter.half().float())
    return network


def to_onnx(
    network: nn.Module,
    inputs: Mapping[str, Tensor],
    outputs: Sequence[str],
    dynamic: Mapping[str, Mapping[int, Any]],
    properties: Mapping[str, str],
    half: bool = False,
) -> bytes:
    """The bytes of the ONNX file.

    Args:
        inputs: name -> an example; the network takes them in this order, by position.
        dynamic: input -> its axes of any length, each a `torch.export.Dim`.
        properties: what the file says about itself.
        half: store the weights in half precision.
    """
    import onnx

    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings(), _quiet():
        warnings.simplefilter("ignore")  # torch's own, about its own insides
        path = Path(folder) / "network.onnx"
        torch.onnx.export(
            network,
            tuple(inputs.values()),
            path,
            input_names=list(inputs),
            output_names=list(outputs),
            dynamic_shapes=tuple(dict(dynamic.get(name, {})) for name in inputs),
            dynamo=True,
            external_data=False,
            verbose=False,
        )
        model = onnx.load(path)
    onnx.helper.set_model_props(model, dict(properties))
    for node in model.graph.node:  # where the exporter was called from is nobody's business
        del node.metadata_props[:]
        node.doc_string = ""
    if half:
        halve(model)
    data: bytes = model.SerializeToString(deterministic=True)
    return data


def properties_of(data: bytes) -> dict[str, str]:
    """What an ONNX file says about itself."""
    import onnx

    return {entry.key: entry.value for entry in onnx.load_from_string(data).metadata_props}


def constants_of(data: bytes) -> dict[str, Tensor]:
    """The large float constants of an ONNX file by name, those in half precision as what they were halved from."""
    import onnx

    found = {}
    for tensor in onnx.load_from_string(data).graph.initializer:
        value = onnx.numpy_helper.to_array(tensor)
        if value.dtype in (np.float16, np.float32):
            found[tensor.name.removesuffix(HALF)] = torch.from_numpy(value.astype(np.float32))
    return found


def run_onnx(data: bytes, feed: Arrays) -> dict[str, NDArray[Any]]:
    """What an ONNX file makes of its inputs, by name."""
    import onnxruntime

    session = onnxruntime.InferenceSession(data, providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    taken = {put.name: feed[put.name] for put in session.get_inputs()}
    return dict(zip(names, session.run(names, taken), strict=True))


@torch.no_grad()
def run_torch(network: nn.Module, inputs: Arrays, outputs: Sequence[str]) -> dict[str, NDArray[Any]]:
    """What the network makes of its inputs, by name."""
    out = network(*(torch.from_numpy(value) for value in inputs.values()))
    values = out if isinstance(out, tuple) else (out,)
    return {name: value.numpy() for name, value in zip(outputs, values, strict=True)}


def largest_difference(found: Arrays, want: Arrays) -> float:
    """Of all values that both name."""
    return max(float(np.abs(found[name] - want[name]).max()) for name in found if name in want)


def halve(model: Any) -> None:
    """Stores every large float32 constant as float16 behind a cast, which onnxruntime undoes when it loads."""
    from onnx import TensorProto, helper, numpy_helper

    casts = []
    for tensor in model.graph.initializer:
        if tensor.data_type != TensorProto.FLOAT or np.prod(tensor.dims) < SMALLEST_HALVED:
            continue
        name = tensor.name
        tensor.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(tensor).astype(np.float16), f"{name}{HALF}"))
        casts.append(helper.make_node("Cast", [f"{name}{HALF}"], [name], to=TensorProto.FLOAT))
    nodes = [*casts, *model.graph.node]
    del model.graph.node[:]
    model.graph.node.extend(nodes)
    # Types of inner values are worked out again when the file is loaded.
    del model.graph.value_info[:]


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """torch.onnx logs that torchvision is not installed."""
    logger = logging.getLogger("torch.onnx")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(level)
