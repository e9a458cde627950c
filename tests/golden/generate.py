#!/usr/bin/python3
"""Writes golden.hpp: what PyTorch computes for a small network, its losses, layers and SGD. See README.md beside this file."""

import itertools
import math
import pathlib

import numpy as np
import torch

SIZES = [5, 7, 6, 4, 3]  # Linear(5,7) ReLU Linear(7,6) Tanh Linear(6,4) Sigmoid Linear(4,3)
ROWS = 19
BATCHES = [(0, 8), (8, 16), (16, 19)]  # [first, last) rows; the last batch is short
STEPS = 10

LOSSES = {  # name: (ends the network with LogSoftmax, loss)
    "CrossEntropyLoss": (False, torch.nn.CrossEntropyLoss()),
    "LogSoftmax, NLLLoss": (True, torch.nn.NLLLoss()),
    "LogSoftmax, CrossEntropyLoss": (True, torch.nn.CrossEntropyLoss()),
    "MSELoss": (False, torch.nn.MSELoss()),
}

OPTIMIZERS = {  # name: options of torch.optim.SGD
    "plain": dict(lr=0.5, momentum=0.0, dampening=0.0, nesterov=False, weight_decay=0.0),
    "momentum": dict(lr=0.25, momentum=0.9, dampening=0.0, nesterov=False, weight_decay=0.0),
    "momentum, dampening": dict(lr=0.25, momentum=0.9, dampening=0.1, nesterov=False, weight_decay=0.0),
    "nesterov": dict(lr=0.25, momentum=0.9, dampening=0.0, nesterov=True, weight_decay=0.0),
    "weight decay": dict(lr=0.5, momentum=0.0, dampening=0.0, nesterov=False, weight_decay=0.01),
    "nesterov, weight decay": dict(lr=0.25, momentum=0.8, dampening=0.0, nesterov=True, weight_decay=0.05),
}


def numbers(count, state):
    """`count` numbers in [-1, 1), multiples of 2^-15 (exact in float32), from a linear congruential generator."""
    values = []
    for _ in range(count):
        state = (1103515245 * state + 12345) % 2**31
        values.append((state >> 15) / 2**15 - 1.0)
    return np.array(values)


def shapes():
    for inputs, outputs in zip(SIZES, SIZES[1:]):
        yield (outputs, inputs)
        yield (outputs,)


INPUTS = 2 * numbers(ROWS * SIZES[0], state=1).reshape(ROWS, SIZES[0])
TARGETS = numbers(ROWS * SIZES[-1], state=2).reshape(ROWS, SIZES[-1])
LABELS = np.floor((numbers(ROWS, state=4) + 1) / 2 * SIZES[-1]).astype(int)
PARAMETERS = numbers(sum(math.prod(shape) for shape in shapes()), state=3)


# --- PyTorch ---------------------------------------------------------------------------------------------------------


def network(log_softmax, dtype):
    layers = [torch.nn.Linear(5, 7), torch.nn.ReLU(), torch.nn.Linear(7, 6), torch.nn.Tanh()]
    layers += [torch.nn.Linear(6, 4), torch.nn.Sigmoid(), torch.nn.Linear(4, 3)]
    if log_softmax:
        layers.append(torch.nn.LogSoftmax(dim=1))
    model = torch.nn.Sequential(*layers).to(dtype)
    assert list(model.state_dict()) == [f"{i}.{kind}" for i in (0, 2, 4, 6) for kind in ("weight", "bias")]
    torch.nn.utils.vector_to_parameters(torch.tensor(PARAMETERS, dtype=dtype), model.parameters())
    return model


def flat(tensors):
    return torch.cat([tensor.detach().reshape(-1) for tensor in tensors]).double().numpy()


def train(loss_name, options, dtype):
    """The loss of every step, the gradients of the first one and the parameters after the last one."""
    log_softmax, loss_function = LOSSES[loss_name]
    model = network(log_softmax, dtype)
    optimizer = torch.optim.SGD(model.parameters(), **options)
    inputs = torch.tensor(INPUTS, dtype=dtype)
    targets = torch.tensor(TARGETS, dtype=dtype) if loss_name == "MSELoss" else torch.tensor(LABELS)
    losses, first_gradients = [], None
    for first, last in itertools.islice(itertools.cycle(BATCHES), STEPS):
        optimizer.zero_grad()
        loss = loss_function(model(inputs[first:last]), targets[first:last])
        loss.backward()
        losses.append(loss.item())
        if first_gradients is None:
            first_gradients = flat(parameter.grad for parameter in model.parameters())
        optimizer.step()
    return np.array(losses), first_gradients, flat(model.parameters())


def layer_values(layer, inputs, gradients):
    """What a layer makes of its inputs, and of the gradients by its outputs."""
    x = torch.tensor(inputs, requires_grad=True)
    y = layer(x)
    y.backward(torch.tensor(gradients))
    return y.detach().numpy(), x.grad.numpy()


def cross_entropy(logits, label, dtype):
    x = torch.tensor([logits], dtype=dtype, requires_grad=True)
    loss = torch.nn.CrossEntropyLoss()(x, torch.tensor([label]))
    loss.backward()
    return loss.item(), x.grad[0].double().numpy()


# --- The same once more without PyTorch, to catch a mistake in this script -----------------------------------------------


def log_softmax_of(z):
    z = z - z.max(axis=1, keepdims=True)
    return z - np.log(np.exp(z).sum(axis=1, keepdims=True))


def gradients_by_hand(theta, first, last, loss_name):
    """Loss and flat gradients by the chain rule written out; the smallest |input of the ReLU|, too."""
    ends = np.cumsum([math.prod(shape) for shape in shapes()])[:-1]
    w1, b1, w2, b2, w3, b3, w4, b4 = (part.reshape(shape) for part, shape in zip(np.split(theta, ends), shapes()))
    x, rows = INPUTS[first:last], last - first
    z1 = x @ w1.T + b1
    a1 = np.maximum(z1, 0)
    a2 = np.tanh(a1 @ w2.T + b2)
    a3 = 1 / (1 + np.exp(-(a2 @ w3.T + b3)))
    z4 = a3 @ w4.T + b4
    if loss_name == "MSELoss":  # the mean is over rows and outputs
        loss = np.mean((z4 - TARGETS[first:last]) ** 2)
        d4 = 2 * (z4 - TARGETS[first:last]) / (rows * SIZES[-1])
    else:  # LogSoftmax applied twice is LogSoftmax: the three others are one loss
        wanted = np.eye(SIZES[-1])[LABELS[first:last]]
        loss = -np.sum(wanted * log_softmax_of(z4)) / rows
        d4 = (np.exp(log_softmax_of(z4)) - wanted) / rows
    d3 = d4 @ w4 * a3 * (1 - a3)
    d2 = d3 @ w3 * (1 - a2**2)
    d1 = d2 @ w2 * (z1 > 0)
    gradients = [d1.T @ x, d1.sum(0), d2.T @ a1, d2.sum(0), d3.T @ a2, d3.sum(0), d4.T @ a3, d4.sum(0)]
    return loss, np.concatenate([gradient.reshape(-1) for gradient in gradients]), np.abs(z1).min()


def train_by_hand(loss_name, lr, momentum, dampening, nesterov, weight_decay):
    """`train` with the momentum's recurrence unrolled: b_t = m^(t-1) g_1 + (1 - dampening) * sum over s = 2..t of m^(t-s) g_s."""
    theta, losses, history, first_gradients = PARAMETERS.copy(), [], [], None
    for t, (first, last) in enumerate(itertools.islice(itertools.cycle(BATCHES), STEPS)):
        loss, gradient, kink = gradients_by_hand(theta, first, last, loss_name)
        assert kink > 1e-4, "an input of the ReLU is so close to 0 that rounding could decide its sign: change the numbers"
        losses.append(loss)
        first_gradients = gradient if t == 0 else first_gradients
        history.append(gradient + weight_decay * theta)
        buffer = sum((1 if s == 0 else 1 - dampening) * momentum ** (t - s) * g for s, g in enumerate(history))
        theta = theta - lr * (history[-1] + momentum * buffer if nesterov else buffer)
    return np.array(losses), first_gradients, theta


def close(values, expected, tolerance):
    np.testing.assert_allclose(values, expected, rtol=tolerance, atol=tolerance)


def check_case(loss_name, options, results64, results32):
    by_hand = train_by_hand(loss_name, **options)
    for value64, value32, expected in zip(results64, results32, by_hand):
        close(value64, expected, 1e-13)
        close(value32, expected, 3e-6)


def check_that_options_matter(loss_name, results):
    for (a, result_a), (b, result_b) in itertools.combinations(results.items(), 2):
        assert np.abs(result_a[2] - result_b[2]).max() > 1e-2, f"{loss_name}: {a} and {b} end alike"


def check_layers(inputs, gradients, values):
    x, g = inputs, gradients
    exp = np.vectorize(lambda v: math.exp(v) if v < 709 else math.inf)
    sigmoid = 1 / (1 + exp(-x))
    tanh = np.vectorize(math.tanh)(x)
    log_softmax = log_softmax_of(x)
    by_hand = {
        "relu": (np.where(x > 0, x, 0.0), np.where(x > 0, g, 0.0)),
        "tanh": (tanh, g * (1 - tanh) * (1 + tanh)),
        "sigmoid": (sigmoid, g * sigmoid / (1 + exp(x))),
        "log_softmax": (log_softmax, g - np.exp(log_softmax) * g.sum(axis=1, keepdims=True)),
    }
    assert by_hand.keys() == values.keys()
    for name in values:
        for value, expected in zip(values[name], by_hand[name]):
            close(value, expected, 1e-14)


def check_extreme(logits, label, loss, gradient, tolerance):
    rest = [z - max(logits) for z in logits]
    total = sum(math.exp(z) for z in rest)
    close(loss, math.log(total) - rest[label], tolerance)
    close(gradient, [math.exp(z) / total - (k == label) for k, z in enumerate(rest)], tolerance)


# --- The header ------------------------------------------------------------------------------------------------------


def literal(value):
    """A C++ hex floating literal without needless zeros: every value is stored exactly."""
    assert math.isfinite(value)
    mantissa, exponent = float(value).hex().split("p")
    if "." in mantissa:
        mantissa = mantissa.rstrip("0").rstrip(".")
    return f"{mantissa}p{exponent}"


def braces(values, indent="    "):
    """{a, b, …} broken into lines of at most 130 characters."""
    lines, line = [], indent + "{"
    texts = [literal(value) for value in np.asarray(values).reshape(-1)]
    for i, text in enumerate(texts):
        piece = text + ("}" if i + 1 == len(texts) else ", ")
        if len(line) + len(piece) > 128:
            lines.append(line.rstrip())
            line = indent + " "
        line += piece
    return "\n".join(lines + [line])


def array(name, values, comment):
    return f"/// {comment}\ninline constexpr std::array<double, {np.size(values)}> {name}{{\n{braces(values)}}};\n"


def structs(kind, name, items, comment):
    """A constexpr array of `items`, each a list of lines between braces."""
    body = ",\n".join("    {" + ",\n".join(item).lstrip() + "}" for item in items)
    return f"/// {comment}\ninline constexpr std::array<{kind}, {len(items)}> {name}{{{{\n{body}}}}};\n"


def case_lines(loss_name, optimizer_name, options, results):
    nesterov = str(options["nesterov"]).lower()
    head = [f'"{loss_name}"', f'"{optimizer_name}"'] + [literal(options[key]) for key in ("lr", "momentum", "dampening")]
    head += [nesterov, literal(options["weight_decay"])]
    return [", ".join(head), braces(results[0], "     "), braces(results[2], "     ")]


def training_parts():
    cases, gradients = {64: [], 32: []}, {64: [], 32: []}
    for loss_name in LOSSES:
        results = {64: {}, 32: {}}
        for optimizer_name, options in OPTIMIZERS.items():
            for bits, dtype in ((64, torch.float64), (32, torch.float32)):
                result = train(loss_name, options, dtype)
                results[bits][optimizer_name] = result
                cases[bits].append(case_lines(loss_name, optimizer_name, options, result))
            check_case(loss_name, options, results[64][optimizer_name], results[32][optimizer_name])
        check_that_options_matter(loss_name, results[64])
        for bits in (64, 32):
            gradients[bits].append([f'"{loss_name}"', braces(results[bits]["plain"][1], "     ")])
    for bits in (64, 32):
        yield structs("Gradients", f"float{bits}_gradients", gradients[bits], f"Gradients of the first step in float{bits}.")
        yield structs("Case", f"float{bits}_cases", cases[bits], f"Trainings in float{bits}.")


def layer_parts():
    small = [0.0, 0.1, 1e-300, -1e-300]  # the rows of 4 that LogSoftmax sees
    pairs = [[s * v for v in pair for s in (1, -1)] for pair in ((1e-8, 1e-3), (0.5, 1), (3, 20), (40, 300), (700, 1e4))]
    inputs = np.array([small] + pairs)
    gradients = np.array([(i % 5 - 2) * 0.75 + 0.125 for i in range(inputs.size)]).reshape(inputs.shape)
    layers = {
        "relu": torch.nn.ReLU(),
        "tanh": torch.nn.Tanh(),
        "sigmoid": torch.nn.Sigmoid(),
        "log_softmax": torch.nn.LogSoftmax(dim=1),
    }
    values = {name: layer_values(layer, inputs, gradients) for name, layer in layers.items()}
    check_layers(inputs, gradients, values)
    yield array("layer_inputs", inputs, "What the layers below are given, in float64: (6, 4) row-major.")
    yield array("layer_output_gradients", gradients, "Gradients by the layer's outputs, where its backward pass starts.")
    for name, layer in layers.items():
        kind = type(layer).__name__
        yield array(f"{name}_outputs", values[name][0], f"{kind}: outputs.")
        yield array(f"{name}_input_gradients", values[name][1], f"{kind}: gradients by its inputs.")


def extreme_parts():
    rows = [[1e4, 0.0, 0.0], [-1e4, -1e4, -1e4], [0.5, 0.5, 0.5]]
    for bits, dtype in ((64, torch.float64), (32, torch.float32)):
        items = []
        for logits, label in itertools.product(rows, range(3)):
            loss, gradient = cross_entropy(logits, label, dtype)
            check_extreme(logits, label, loss, gradient, 1e-13 if bits == 64 else 3e-6)
            items.append([f"{braces(logits)}, {label}, {literal(loss)}", braces(gradient, "     ")])
        yield structs("CrossEntropyRow", f"float{bits}_extreme_rows", items, f"Cross entropy of extreme rows in float{bits}.")


PROLOGUE = """\
#pragma once

// Made by tests/golden/generate.py with PyTorch {version}; do not edit. Hex floating literals keep every value exact.

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <type_traits>

// clang-format off
namespace lockstep::golden {{

/// The network: Linear(5,7) ReLU Linear(7,6) Tanh Linear(6,4) Sigmoid Linear(4,3), and LogSoftmax where `loss` begins with it.
inline constexpr std::size_t inputs_per_row = {inputs}, outputs_per_row = {outputs}, rows = {rows}, steps = {steps};
inline constexpr std::size_t parameter_count = {parameters};

/// Rows [first, last) of one step.
struct Batch {{
    std::size_t first, last;
}};

/// One training: step i sees batches[i % 3]. Flat parameters are in the order of PyTorch's state_dict, without gaps:
/// 0.weight (out, in) row-major, 0.bias, 2.weight, … Losses are means over the batch's rows (MSELoss: over rows and outputs),
/// before the step's update.
struct Case {{
    std::string_view loss, optimizer;
    double lr, momentum, dampening;
    bool nesterov;
    double weight_decay;
    std::array<double, steps> losses;
    std::array<double, parameter_count> parameters; // after the last step
}};

/// The flat gradients of the mean loss over batches[0] by `initial_parameters`.
struct Gradients {{
    std::string_view loss;
    std::array<double, parameter_count> gradients;
}};

/// Cross entropy of one row, and its gradients by the logits.
struct CrossEntropyRow {{
    std::array<double, outputs_per_row> logits;
    std::int32_t label;
    double loss;
    std::array<double, outputs_per_row> gradients;
}};

inline constexpr std::array<Batch, {batch_count}> batches{{{{{batches}}}}};

/// Labels for all losses but MSELoss.
inline constexpr std::array<std::int32_t, rows> labels{{{{{labels}}}}};

"""

EPILOGUE = """
/// The values for a scalar type, float or double (all are stored as double).
template <class T> constexpr auto const& cases() {
    if constexpr (std::is_same_v<T, float>) return float32_cases; else return float64_cases;
}
template <class T> constexpr auto const& first_gradients() {
    if constexpr (std::is_same_v<T, float>) return float32_gradients; else return float64_gradients;
}
template <class T> constexpr auto const& extreme_rows() {
    if constexpr (std::is_same_v<T, float>) return float32_extreme_rows; else return float64_extreme_rows;
}

} // namespace lockstep::golden
// clang-format on
"""


def main():
    torch.set_num_threads(1)
    prologue = PROLOGUE.format(
        version=torch.__version__,  # Debian 12's 1.13.1 calls itself 1.13.0a0
        inputs=SIZES[0],
        outputs=SIZES[-1],
        rows=ROWS,
        steps=STEPS,
        parameters=PARAMETERS.size,
        batch_count=len(BATCHES),
        batches=", ".join(f"{{{first}, {last}}}" for first, last in BATCHES),
        labels=", ".join(str(label) for label in LABELS),
    )
    parts = [
        array("inputs", INPUTS, "(19, 5) row-major; like targets and initial_parameters exact in float, too."),
        array("targets", TARGETS, "(19, 3) row-major, for MSELoss."),
        array("initial_parameters", PARAMETERS, "Flat, as in Case."),
        *training_parts(),
        *layer_parts(),
        *extreme_parts(),
    ]
    header = pathlib.Path(__file__).with_name("golden.hpp")
    header.write_text(prologue + "\n".join(parts) + EPILOGUE, encoding="utf-8")


if __name__ == "__main__":
    main()
