"""Pairing beyond names: calls of functions beside modules, fused operators, maps, steps and ranks.

  python3 tests/contract/test_pairing.py PATH_TO_NORMDIFF [unittest arguments]

A small model is computed here in plain Python, and its tensors are dumped under the names that
msprobe gives them at its levels L0 (modules) and L1 (calls of functions).
"""
import json
import math
import os
import random
import shutil
import subprocess
import sys
import tempfile
import unittest

from dumps import normdiff_dump, write

TOOL = ""
ROWS, WIDTH = 6, 8


def matrix(seed, rows=ROWS, width=WIDTH, scale=1.0):
    rng = random.Random(seed)
    return [[scale * rng.gauss(0, 1) for _ in range(width)] for _ in range(rows)]


def linear(x, weight, bias):
    return [[sum(a * b for a, b in zip(row, w)) + c for w, c in zip(weight, bias)] for row in x]


def elementwise(function, *tensors):
    return [[function(*values) for values in zip(*rows)] for rows in zip(*tensors)]


class Model:
    """embedding-free block: fc1, norm (RMS), fc2 with a residual, head; every tensor is kept."""

    def __init__(self, eps=1e-5):
        self.x = matrix(1, scale=0.01)
        self.w = [matrix(10 + k) for k in range(3)]
        self.b = [matrix(20 + k, 1)[0] for k in range(3)]
        self.gamma = [0.5 + 0.1 * k for k in range(WIDTH)]
        self.fc1 = linear(self.x, self.w[0], self.b[0])
        self.fc1 = elementwise(lambda v: v * 0.01, self.fc1)  # small: eps matters
        self.squares = elementwise(lambda v: v * v, self.fc1)
        self.mean = [[sum(row) / WIDTH] for row in self.squares]
        self.plus = [[row[0] + eps] for row in self.mean]
        self.rstd = [[1 / math.sqrt(row[0])] for row in self.plus]
        self.scaled = [[v * r[0] for v in row] for row, r in zip(self.fc1, self.rstd)]
        self.norm = [[v * g for v, g in zip(row, self.gamma)] for row in self.scaled]
        self.fc2 = linear(self.norm, self.w[1], self.b[1])
        self.sum = elementwise(lambda a, b: a + b, self.fc2, self.fc1)
        self.act = elementwise(lambda v: max(v, 0.0), self.sum)
        self.head = linear(self.act, self.w[2], self.b[2])


def tensor(rows):
    return ("F32", (len(rows), len(rows[0])), [v for row in rows for v in row])


def flat(values):
    return ("F32", (len(values),), list(values))


def call(name, number, **slots):
    return ("%s.%d.forward" % (name, number), name.split(".")[-1],
            {key.replace("_", ".", 1): value for key, value in slots.items()})


def module(path, kind, container=False, **slots):
    return ("Module.%s.%s.forward.0" % (path, kind), kind,
            {key.replace("_", ".", 1): value for key, value in slots.items()}, {},
            {"container": container})


def as_calls(m, fused=False):
    """Level L1; the norm written out, or as one call of the device's operator."""
    t = tensor
    layers = [call("Functional.linear", 0, input_0=t(m.x), output_0=t(m.fc1))]
    if fused:
        layers.append(call("NPU.npu_rms_norm", 0, input_0=t(m.fc1), output_0=t(m.norm), output_1=t(m.rstd)))
    else:
        layers += [call("Tensor.pow", 0, input_0=t(m.fc1), output_0=t(m.squares)),
                   call("Tensor.mean", 0, input_0=t(m.squares), output_0=t(m.mean)),
                   call("Tensor.__add__", 0, input_0=t(m.mean), output_0=t(m.plus)),
                   call("Torch.rsqrt", 0, input_0=t(m.plus), output_0=t(m.rstd)),
                   call("Tensor.__mul__", 0, input_0=t(m.fc1), input_1=t(m.rstd), output_0=t(m.scaled)),
                   call("Tensor.__mul__", 1, input_0=t(m.scaled), input_1=flat(m.gamma), output_0=t(m.norm))]
    layers += [call("Functional.linear", 1, input_0=t(m.norm), output_0=t(m.fc2)),
               call("Tensor.__add__", 0 if fused else 1, input_0=t(m.fc2), input_1=t(m.fc1), output_0=t(m.sum)),
               call("Functional.relu", 0, input_0=t(m.sum), output_0=t(m.act)),
               call("Functional.linear", 2, input_0=t(m.act), output_0=t(m.head))]
    return layers


def as_modules(m, norm="LlamaRMSNorm"):
    """Level L0: modules stand behind what is in them, blocks too."""
    t = tensor
    return [module("block.fc1", "Linear", input_0=t(m.x), output_0=t(m.fc1)),
            module("block.norm", norm, input_0=t(m.fc1), output_0=t(m.norm)),
            module("block.fc2", "Linear", input_0=t(m.norm), output_0=t(m.fc2)),
            module("block.act", "ReLU", input_0=t(m.sum), output_0=t(m.act)),
            module("block", "Block", True, input_0=t(m.x), output_0=t(m.act)),
            module("head", "Linear", input_0=t(m.act), output_0=t(m.head))]


def statistics(rows):
    values = [v for row in rows for v in row]
    return {"type": "torch.Tensor", "dtype": "torch.float32", "shape": [len(rows), len(rows[0])],
            "Max": max(values), "Min": min(values), "Mean": sum(values) / len(values),
            "Norm": math.sqrt(sum(v * v for v in values)), "requires_grad": True}


class Pairing(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.mkdtemp(prefix="normdiff-pairing-")
        self.addCleanup(shutil.rmtree, self.dir)

    def run_tool(self, reference, candidate, *options):
        """Status, report and standard error."""
        paths = [layers if isinstance(layers, str) else write(self.dir, name, normdiff_dump(layers))
                 for name, layers in (("ref.dump", reference), ("cand.dump", candidate))]
        done = subprocess.run([TOOL, *paths, "-f", "json", *options], stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, env=dict(os.environ, LC_ALL="C"), check=False)
        return done.returncode, json.loads(done.stdout), done.stderr.decode()

    def text(self, reference, candidate, *options):
        done = subprocess.run([TOOL, reference, candidate, *options], stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, env=dict(os.environ, LC_ALL="C", COLUMNS="200"), check=False)
        return done.stdout.decode()

    @staticmethod
    def pairs(report):
        return {layer["name"]: layer["candidate_name"] for layer in report["layers"] if layer["candidate_name"]}

    # --- calls beside modules ---------------------------------------------------------------

    def test_modules_meet_calls_of_their_kind_in_order(self):
        status, report, _ = self.run_tool(as_modules(Model()), as_calls(Model(), fused=True))
        self.assertEqual(self.pairs(report), {
            "Module.block.fc1.Linear.forward.0": "Functional.linear.0.forward",
            "Module.block.norm.LlamaRMSNorm.forward.0": "NPU.npu_rms_norm.0.forward",
            "Module.block.fc2.Linear.forward.0": "Functional.linear.1.forward",
            "Module.block.act.ReLU.forward.0": "Functional.relu.0.forward",
            "Module.head.Linear.forward.0": "Functional.linear.2.forward"})
        self.assertEqual({layer["matched_by"] for layer in report["layers"] if layer["candidate_name"]}, {"order"})
        self.assertEqual((status, report["summary"]["exact"]), (0, 5))
        roles = {layer["name"]: layer["role"] for layer in report["layers"]}
        self.assertEqual(roles["Module.block.Block.forward.0"], "container")

    def test_calls_meet_modules_and_what_has_none_is_missing(self):
        status, report, _ = self.run_tool(as_calls(Model(), fused=True), as_modules(Model()))
        self.assertEqual(len(self.pairs(report)), 5)
        self.assertEqual([layer["name"] for layer in report["layers"] if layer["fails"]],
                         ["NPU.npu_rms_norm.0.forward", "Tensor.__add__.0.forward"])
        self.assertIn("NPU.npu_rms_norm.0.forward.output.1", report["coverage"]["reference_only"])
        self.assertEqual((status, report["verdict"]), (1, "incomplete"))
        self.assertIn("1 call has no counterpart", report["warnings"][0])

    def test_a_drift_is_found_across_levels(self):
        status, report, _ = self.run_tool(as_modules(Model(1e-5)), as_calls(Model(1e-3), fused=True))
        first = report["first_divergence"]
        self.assertEqual((status, first["layer"], first["role"]),
                         (1, "Module.block.norm.LlamaRMSNorm.forward.0", "origin"))
        self.assertIsNone(first["span"])  # its own input agrees: it is the place

    def test_dtypes_take_no_part(self):
        half = [(name, kind, {slot: ("BF16", value[1], value[2]) for slot, value in slots.items()}, *rest)
                for name, kind, slots, *rest in as_calls(Model(), fused=True)]
        self.assertEqual(len(self.pairs(self.run_tool(as_modules(Model()), half)[1])), 5)

    def test_construct_json_says_which_module_a_call_ran_in(self):
        model = Model()
        data = {"Functional.linear.%d.forward" % k: {"input_args": [statistics(i)], "output": [statistics(o)]}
                for k, i, o in ((0, model.x, model.fc1), (1, model.norm, model.fc2))}
        # two linears of one shape: order alone would take the first for fc2 and leave the other
        frames = {"Functional.linear.0.forward": "Module.block.fc1.Linear.forward.0",
                  "Functional.linear.1.forward": "Module.block.fc2.Linear.forward.0",
                  "Module.block.fc1.Linear.forward.0": None, "Module.block.fc2.Linear.forward.0": None}
        calls = os.path.join(self.dir, "calls")
        write(calls, "dump.json", json.dumps({"task": "statistics", "level": "L1", "data": data}))
        write(calls, "construct.json", json.dumps(frames))
        only = [layer for layer in as_modules(model) if "fc2" in layer[0]]
        status, report, _ = self.run_tool(only, os.path.join(calls, "dump.json"))
        self.assertEqual(self.pairs(report), {"Module.block.fc2.Linear.forward.0": "Functional.linear.1.forward"})
        self.assertEqual((status, report["layers"][0]["tier"]), (0, "noise"))

    def test_the_last_call_in_a_module_gives_its_output_and_the_others_are_covered(self):
        model = Model()
        names = ["Tensor.pow", "Tensor.mean", "Tensor.__add__", "Torch.rsqrt", "Tensor.__mul__", "Tensor.__mul__"]
        outputs = [model.squares, model.mean, model.plus, model.rstd, model.scaled, model.norm]
        counts, data, frames = {}, {}, {}
        for name, output in zip(names, outputs):
            key = "%s.%d.forward" % (name, counts.get(name, 0))
            counts[name] = counts.get(name, 0) + 1
            data[key] = {"input_args": [statistics(model.fc1)], "output": [statistics(output)]}
            frames[key] = "Module.block.norm.RMS.forward.0"
        calls = os.path.join(self.dir, "calls")
        write(calls, "dump.json", json.dumps({"task": "statistics", "level": "L1", "data": data}))
        write(calls, "construct.json", json.dumps(frames))
        only = [layer for layer in as_modules(model, norm="RMS") if "norm" in layer[0]]
        status, report, _ = self.run_tool(os.path.join(calls, "dump.json"), only)
        self.assertEqual(self.pairs(report), {"Tensor.__mul__.1.forward": "Module.block.norm.RMS.forward.0"})
        self.assertEqual(len(report["coverage"]["covered_by"]), 5)
        self.assertEqual((status, report["verdict"]), (0, "agree"))
        pair = next(layer for layer in report["layers"] if layer["candidate_name"])
        self.assertEqual([slot["slot"] for slot in pair["slots"]], ["output.0"])

    def test_blocks_by_construct_json_are_frames(self):
        model = Model()
        data = {"Module.block.fc1.Linear.forward.0": {"input_args": [statistics(model.x)], "output": [statistics(model.fc1)]},
                "Module.block.Block.forward.0": {"input_args": [statistics(model.x)], "output": [statistics(model.fc1)]}}
        paths = []
        for name, change in (("a", 1.0), ("b", 2.0)):
            changed = json.loads(json.dumps(data))
            for record in changed.values():
                for key in ("Max", "Min", "Mean", "Norm"):
                    record["output"][0][key] *= change
            write(os.path.join(self.dir, name), "construct.json",
                  json.dumps({"Module.block.fc1.Linear.forward.0": "Module.block.Block.forward.0",
                              "Module.block.Block.forward.0": None}))
            paths.append(write(os.path.join(self.dir, name), "dump.json",
                               json.dumps({"task": "statistics", "level": "L0", "data": changed})))
        _, report, _ = self.run_tool(*paths)
        self.assertEqual([layer["role"] for layer in report["layers"]][1], "container")
        self.assertEqual(sum(report["summary"].values()), 1)
        self.assertEqual(report["first_divergence"]["layer"], "Module.block.fc1.Linear.forward.0")

    def test_gradients_of_parameters_make_no_block_of_their_module(self):
        m = Model()
        layers = as_modules(m) + [("Module.head.Linear.parameters_grad.0", "Linear", {"grad.weight": tensor(m.w[2])},
                                   {}, {"direction": "backward"})]
        layers[-2] = module("head", "Linear", True, input_0=tensor(m.act), output_0=tensor(m.head))
        _, report, _ = self.run_tool(layers, layers)
        roles = {layer["name"]: layer["role"] for layer in report["layers"]}
        self.assertEqual(roles["Module.head.Linear.forward.0"], "clean")
        self.assertEqual(report["result"]["layer"], "Module.head.Linear.forward.0")

    def test_what_runs_forward_behind_the_backward_pass_is_not_the_result(self):
        m = Model()
        layers = as_calls(m) + [("Functional.linear.2.backward", "linear", {"output.0": tensor(m.act)}, {},
                                 {"direction": "backward"}),
                                call("Tensor.add_", 0, output_0=tensor(m.w[0]))]
        self.assertEqual(self.run_tool(layers, layers)[1]["result"]["layer"], "Functional.linear.2.forward")

    # --- calls beside calls -------------------------------------------------------------------

    def test_call_numbers_that_moved_do_not_mislead(self):
        """The written-out norm adds once more: the residual is addition 1 there and 0 here."""
        _, report, _ = self.run_tool(as_calls(Model()), as_calls(Model(), fused=True))
        self.assertEqual(self.pairs(report), {
            "Functional.linear.0.forward": "Functional.linear.0.forward",
            "Functional.linear.1.forward": "Functional.linear.1.forward",
            "Tensor.__add__.1.forward": "Tensor.__add__.0.forward",
            "Functional.relu.0.forward": "Functional.relu.0.forward",
            "Functional.linear.2.forward": "Functional.linear.2.forward"})
        by = {layer["name"]: layer["matched_by"] for layer in report["layers"]}
        self.assertEqual((by["Functional.linear.1.forward"], by["Tensor.__add__.1.forward"]), ("exact", "order"))

    def test_attention_pairs_whatever_the_order_of_its_heads(self):
        values = [random.Random(7).gauss(0, 1) for _ in range(48)]  # [B=1, N=2, S=6, D=4] as [B, S, N * D]
        together = [values[(n * 6 + s) * 4 + d] for s in range(6) for n in range(2) for d in range(4)]
        a = [call("Functional.scaled_dot_product_attention", 0, output_0=("F32", (1, 2, 6, 4), values))]
        b = [call("NPU.npu_fusion_attention", 0, output_0=("F32", (1, 6, 8), together))]
        extra = [call("Functional.relu", 0, output_0=tensor(matrix(1)))]  # or each would be a lone layer
        status, report, _ = self.run_tool(extra + a, extra + b)
        self.assertEqual(report["layers"][1]["candidate_name"], "NPU.npu_fusion_attention.0.forward")
        self.assertEqual((status, report["layers"][1]["tier"]), (0, "exact"))

    def test_a_call_that_was_not_dumped_leaves_the_numbers_right(self):
        model = Model()
        rows = [call("Functional.relu", k, output_0=tensor(elementwise(lambda v, k=k: v + k, model.act)))
                for k in range(4)]
        _, report, _ = self.run_tool(rows, rows[:1] + rows[2:])
        self.assertEqual(self.pairs(report), {row[0]: row[0] for row in rows[:1] + rows[2:]})

    def test_calls_that_return_nothing_pair_by_what_they_take(self):
        rows = [call("Distributed.all_reduce", k, input_0=tensor(matrix(k))) for k in range(4)]
        _, report, _ = self.run_tool(rows, rows[:3])  # a run that died, or one call less
        self.assertEqual(self.pairs(report), {row[0]: row[0] for row in rows[:3]})

    def test_equal_names_with_another_shape_are_compared_and_fail(self):
        model = Model()
        other = [call("Functional.relu", 0, output_0=tensor([row[:4] for row in model.act]))]
        status, report, _ = self.run_tool([call("Functional.relu", 0, output_0=tensor(model.act))], other)
        self.assertEqual((status, report["layers"][0]["fails"]), (1, "shape"))

    def test_renamed_modules_pair_between_those_that_kept_their_names(self):
        one = [("b.norm1", "LayerNorm"), ("b.fc", "Linear"), ("b.norm2", "LayerNorm"), ("c.norm", "LayerNorm")]
        two = [("b.fc", "Linear"), ("b.ln", "LayerNorm"), ("d.norm", "LayerNorm")]
        values = tensor(matrix(1))
        a, b = ([(name, kind, {"output.0": values}) for name, kind in names] for names in (one, two))
        # ln stands behind fc as norm2 does, and d is another parent than c
        self.assertEqual(self.pairs(self.run_tool(a, b)[1]), {"b.fc": "b.fc", "b.norm2": "b.ln"})

    def test_plain_module_names_meet_calls_too(self):
        m = Model()
        plain = [(name.split(".", 1)[1].rsplit(".", 3)[0], *rest) for name, *rest in as_modules(m)]
        self.assertEqual(plain[0][0], "block.fc1")
        self.assertEqual(len(self.pairs(self.run_tool(plain, as_calls(m, fused=True))[1])), 5)

    def test_micro_batches_pair_by_their_number(self):
        values = [tensor(matrix(k)) for k in range(3)]
        def calls(numbers):  # (call, micro-batch)
            return [("Module.fc.Linear.forward.%d" % k, "Linear", {"output.0": values[micro]}, {},
                     {"call": k, "micro_step": micro}) for k, micro in numbers]
        status, report, _ = self.run_tool(calls([(0, 0), (1, 1), (2, 2)]), calls([(0, 1), (1, 2)]), "--allow-unmatched")
        self.assertEqual(self.pairs(report), {"Module.fc.Linear.forward.1": "Module.fc.Linear.forward.0",
                                              "Module.fc.Linear.forward.2": "Module.fc.Linear.forward.1"})
        self.assertEqual((status, report["summary"]["exact"]), (0, 2))

    # --- operators without a partner ------------------------------------------------------------

    def test_a_fused_operator_is_passed_over_and_the_span_is_named(self):
        status, report, _ = self.run_tool(as_calls(Model(1e-5)), as_calls(Model(1e-3), fused=True))
        first = report["first_divergence"]
        self.assertEqual((status, first["layer"], first["role"]), (1, "Functional.linear.1.forward", "gap"))
        self.assertEqual((first["span"]["points"], first["span"]["from"], first["span"]["to"]),
                         (5, "Functional.linear.0.forward", "Functional.linear.1.forward"))
        self.assertEqual(first["span"]["skipped"]["reference"],
                         ["Tensor.pow.0.forward", "Tensor.mean.0.forward", "Tensor.__add__.0.forward",
                          "Torch.rsqrt.0.forward", "Tensor.__mul__.0.forward", "Tensor.__mul__.1.forward"])
        self.assertEqual(first["span"]["skipped"]["candidate"], ["NPU.npu_rms_norm.0.forward"])
        text = self.text(os.path.join(self.dir, "ref.dump"), os.path.join(self.dir, "cand.dump"))
        self.assertIn("5 common points; the drift entered between Functional.linear.0.forward and "
                      "Functional.linear.1.forward", text)

    def test_without_inputs_the_span_is_all_that_is_known(self):
        outputs = [[(name, kind, {slot: value for slot, value in slots.items() if slot == "output.0"})
                    for name, kind, slots in layers]
                   for layers in (as_calls(Model(1e-5)), as_calls(Model(1e-3), fused=True))]
        _, report, _ = self.run_tool(*outputs)
        self.assertEqual(report["first_divergence"]["span"]["from"], "Functional.linear.0.forward")
        self.assertIn("the first common point that shows the drift",
                      self.text(os.path.join(self.dir, "ref.dump"), os.path.join(self.dir, "cand.dump")))

    def test_operators_before_the_first_common_point_are_no_input_of_the_model(self):
        m = Model()
        wrong = elementwise(lambda v: 1.3 * v, m.act)
        a = [("conv1", "Conv2d", {"input.0": tensor(m.x), "output.0": tensor(m.fc1)}),
             ("relu1", "ReLU", {"input.0": tensor(m.fc1), "output.0": tensor(m.act)}),
             ("fc", "Linear", {"input.0": tensor(m.act), "output.0": tensor(m.head)})]
        b = [("fused", "FusedConvRelu", {"input.0": tensor(m.x), "output.0": tensor(wrong)}),
             ("fc", "Linear", {"input.0": tensor(wrong), "output.0": tensor(linear(wrong, m.w[2], m.b[2]))})]
        _, report, _ = self.run_tool(a, b)
        first = report["first_divergence"]
        self.assertEqual((first["layer"], first["role"], first["span"]["from"]), ("fc", "gap", None))
        self.assertEqual(first["span"]["skipped"], {"reference": ["conv1", "relu1"], "candidate": ["fused"]})
        self.assertNotIn("different_input", [cause["id"] for cause in report["causes"]])

    def test_a_skipped_reference_operator_does_not_pass(self):
        status, report, _ = self.run_tool(as_calls(Model()), as_calls(Model(), fused=True))
        self.assertEqual((status, report["verdict"]), (1, "incomplete"))
        self.assertEqual(len(report["coverage"]["reference_only"]), 6)
        self.assertEqual([layer["fails"] for layer in report["layers"]].count("missing"), 6)
        status, report, _ = self.run_tool(as_calls(Model()), as_calls(Model(), fused=True), "--allow-unmatched")
        self.assertEqual((status, report["verdict"]), (0, "agree"))

    def test_the_place_of_the_call_is_shown(self):
        lines = ["File /opt/lib/site-packages/torch/nn/modules/linear.py, line 125, in forward, \n return F.linear(x)",
                 "File /app/model.py, line 42, in forward, \n y = self.fc(x)",
                 "File /app/train.py, line 7, in <module>, \n model(x)"]
        model, paths = Model(), []
        for name, output in (("a", model.fc1), ("b", model.fc2)):
            data = {"Functional.linear.0.forward": {"input_args": [statistics(model.x)], "output": [statistics(output)]}}
            write(os.path.join(self.dir, name), "stack.json", json.dumps({"0": [["Functional.linear.0.forward"], lines]}))
            paths.append(write(os.path.join(self.dir, name), "dump.json",
                               json.dumps({"task": "statistics", "level": "L1", "data": data})))
        _, report, _ = self.run_tool(*paths)
        stack = report["first_divergence"]["stack"]
        self.assertEqual(len(stack["reference"]), 3)
        self.assertTrue(stack["candidate"][1].startswith("File /app/model.py, line 42, in forward"))
        self.assertIn("called at model.py:42 in forward: y = self.fc(x)", self.text(*paths))
        self.assertNotIn("train.py", self.text(*paths))
        self.assertIn("train.py", self.text(*paths, "-v"))

    def test_a_stack_may_be_that_of_a_traceback(self):
        for line, words in (('  File "/app/model.py", line 3, in forward', "called at model.py:3 in forward"),
                            ("File model.py, line 3", "called at model.py:3"),
                            ("somewhere in the model", "called at somewhere in the model"), ("File , line x", "File , line x")):
            paths = [write(self.dir, name, normdiff_dump([
                ("fc", "Linear", {"output.0": tensor(matrix(seed))}, {}, {"stack": [line]})]))
                     for name, seed in (("a", 1), ("b", 2))]
            self.assertIn(words + "\n", self.text(*paths) + "\n", line)

    def test_long_names_lose_what_all_of_them_have(self):
        values = tensor(matrix(1))
        names = ["Module.model.layers.%d.self_attn.query_projection.Linear.forward.0" % k for k in range(3)]
        paths = [write(self.dir, name, normdiff_dump([
            (layer, "Linear", {"output.0": values if k < first else tensor(matrix(9))}) for k, layer in enumerate(names)]))
                 for name, first in (("a", 3), ("b", 1))]
        done = subprocess.run([TOOL, *paths, "--lang", "en"], stdout=subprocess.PIPE,
                              env=dict(os.environ, LC_ALL="C.UTF-8", COLUMNS="100"), check=False).stdout.decode()
        self.assertIn("FIRST DIVERGING LAYER  #1  " + names[1], done)
        self.assertRegex(done, r">  1  model\.layers\.1\.self_attn\.query_projection +Linear ")

    # --- maps -----------------------------------------------------------------------------------

    def test_a_line_of_the_map_that_pairs_nothing_is_named(self):
        a = [("enc.%d" % k, "Linear", {"output.0": tensor(matrix(k))}) for k in range(3)]
        b = [("blk.%d" % k, "Linear", {"output.0": tensor(matrix(k))}) for k in range(3)]
        rules = write(self.dir, "map.txt", "enc.0 = blk.0\n# a remark\nenc.7 = blk.7\nenc.* = blk.*\n"
                                           "enc.9 = concat(x, y; axis=0)\n")
        status, report, stderr = self.run_tool(a, b, "--map", rules)
        self.assertEqual((status, report["coverage"]["pairs"]), (0, 3))
        self.assertIn("map.txt: line 3 pairs nothing: enc.7 = blk.7", stderr)
        self.assertIn("line 5 pairs nothing", stderr)
        self.assertEqual(len(report["warnings"]), 2)

    def test_a_concat_with_a_missing_part_leaves_the_others_free(self):
        a = [("qkv", "Linear", {"output.0": tensor(matrix(1))}), ("k", "Linear", {"output.0": tensor(matrix(2))})]
        b = [("k", "Linear", {"output.0": tensor(matrix(2))})]
        rules = write(self.dir, "map.txt", "qkv = concat(k, v; axis=-1)\n")
        _, report, stderr = self.run_tool(a, b, "--map", rules)
        self.assertEqual(self.pairs(report), {"k": "k"})
        self.assertIn("line 1 pairs nothing", stderr)

    def test_an_unused_line_of_a_yaml_map_is_named(self):
        a = [("Module.first.fc.Linear.forward.0", "Linear", {"output.0": tensor(matrix(1))})]
        b = [("Cell.part.fc.Dense.forward.0", "Dense", {"output.0": tensor(matrix(1))})]
        rules = write(self.dir, "map.yaml", "part.fc.Dense: first.fc.Linear\nother.fc.Dense: second.fc.Linear\n")
        status, report, stderr = self.run_tool(a, b, "--map", rules)
        self.assertEqual((status, report["layers"][0]["matched_by"]), (0, "map"))
        self.assertIn("line 2 pairs nothing", stderr)
        self.assertNotIn("line 1 pairs", stderr)

    # --- steps and ranks --------------------------------------------------------------------------

    def tree(self, name, places, broken=()):
        for step, rank in places:
            layers = [("fc", "Linear", {"output.0": tensor(matrix(3, scale=2.0 if (step, rank) in broken else 1.0))}),
                      ("act", "ReLU", {"output.0": tensor(matrix(4))})]
            write(os.path.join(self.dir, name, "step%d" % step), "rank%d.dump" % rank,
                  normdiff_dump(layers, step=step, rank=rank))
        return os.path.join(self.dir, name)

    def test_steps_and_ranks_pair_by_number_and_the_first_diverging_is_named(self):
        a = self.tree("a", [(0, 0), (0, 1), (2, 0), (2, 1)])
        b = self.tree("b", [(0, 0), (0, 1), (2, 0), (2, 1)], broken=[(2, 1)])
        status, report, _ = self.run_tool(a, b)
        first = report["first_divergence"]
        self.assertEqual((status, first["layer"], first["step"], first["rank"]), (1, "fc", 2, 1))
        self.assertEqual((report["coverage"]["pairs"], report["warnings"]), (8, []))

    def test_an_earlier_step_comes_before_an_earlier_layer(self):
        a = self.tree("a", [(0, 0), (1, 0)])
        b = self.tree("b", [(0, 0), (1, 0)], broken=[(0, 0), (1, 0)])
        self.assertEqual(self.run_tool(a, b)[1]["first_divergence"]["step"], 0)

    def test_steps_and_ranks_without_counterpart_are_named(self):
        a = self.tree("a", [(0, 0), (0, 1), (1, 0)])
        b = self.tree("b", [(0, 0), (3, 0)])
        status, report, stderr = self.run_tool(a, b)
        self.assertEqual((status, report["coverage"]["pairs"]), (1, 2))
        self.assertIn("step 0, rank 1 is only in the reference", stderr)
        self.assertIn("step 1, rank 0 is only in the reference", stderr)
        self.assertIn("step 3, rank 0 is only in the candidate", stderr)
        self.assertEqual(self.run_tool(a, b, "--step", "0", "--rank", "0")[1]["warnings"], [])

    def test_no_step_in_common_is_trouble_that_says_so(self):
        status, report, _ = self.run_tool(self.tree("a", [(0, 0)]), self.tree("b", [(5, 0)]))
        self.assertEqual((status, report["schema"]), (2, "normdiff/error/1"))
        self.assertIn("step 0 rank 0 in the reference and step 5 rank 0", report["error"]["found"])
        report = self.run_tool(os.path.join(self.dir, "a", "step0"), os.path.join(self.dir, "b", "step5"))[1]
        self.assertEqual(report["coverage"]["pairs"], 2)

    def test_lone_files_of_different_steps_are_paired_with_a_warning(self):
        layers = [("fc", "Linear", {"output.0": tensor(matrix(3))})]
        paths = [write(self.dir, name, normdiff_dump(layers, step=step)) for name, step in (("a", 1), ("b", 4))]
        status, report, stderr = self.run_tool(*paths)
        self.assertEqual((status, report["coverage"]["pairs"]), (0, 1))
        self.assertIn("step 1 of the reference is compared with step 4 of the candidate", stderr)


if __name__ == "__main__":
    TOOL = os.path.abspath(sys.argv.pop(1))
    unittest.main()
