"""--fusion: what a compiler made of the framework's operators, from outside.

  python3 tests/contract/test_fusion.py PATH_TO_NORMDIFF [unittest arguments]
"""
import json
import math
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

from dumps import normdiff_dump, npy, write

TOOL = ""
SHAPE = (2, 4, 3, 3)
COUNT = 72


def tensor(seed):
    return ("F32", SHAPE, [math.sin(seed + 0.37 * i) for i in range(COUNT)])


def op(number, name, kind, originals, origin=None, text_kind=False):
    attr = [{"key": "_datadump_original_op_names",
             "value": {"list": {"s": originals, "val_type": "VT_LIST_STRING" if text_kind else 1}}}]
    output = {"dtype": "DT_FLOAT16", "attr": []}
    if origin is not None:
        output["attr"] = [{"key": "_datadump_origin_name", "value": {"s": origin}},
                          {"key": "_datadump_origin_output_index", "value": {"i": 0}}]
    return {"name": name, "type": kind, "id": number, "input": ["data:0", "x:-1"], "attr": attr, "output_desc": [output]}


class Chain(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.mkdtemp(prefix="normdiff-fusion-")
        self.addCleanup(shutil.rmtree, self.dir)
        self.x, self.conv, self.bn, self.relu, self.fc = (tensor(k) for k in range(5))
        self.reference = [
            ("model/conv1", "Conv", {"input.0": self.x, "output.0": self.conv}),
            ("model/bn1", "BatchNormalization", {"input.0": self.conv, "output.0": self.bn}),
            ("model/relu1", "Relu", {"input.0": self.bn, "output.0": self.relu}),
            ("model/same", "Identity", {"input.0": self.relu, "output.0": self.relu}),
            ("model/fc", "Gemm", {"input.0": self.relu, "output.0": self.fc}),
        ]
        self.candidate = [
            ("model_conv1model_relu1", "Conv2D", {"input.0": self.x, "output.0": self.relu}),
            ("trans_TransData_1", "TransData", {"output.0": self.relu}),
            ("fc_renamed", "MatMulV2", {"input.0": self.relu, "output.0": self.fc}),
        ]
        self.graph = {"name": "m", "graph": [{"name": "g", "op": [
            op(0, "model/conv1model/relu1", "Conv2D", ["model/conv1", "model/bn1", "model/relu1"], "model/relu1"),
            op(1, "trans_TransData_1", "TransData", [], text_kind=True),
            op(2, "fc_renamed", "MatMulV2", ["model/fc"])]}]}


class Fusion(Chain):
    def run_tool(self, graph, reference=None, candidate=None):
        paths = [write(self.dir, "ref.bin", normdiff_dump(reference or self.reference)),
                 write(self.dir, "cand.bin", normdiff_dump(candidate or self.candidate))]
        text = graph if isinstance(graph, (str, bytes)) else json.dumps(graph)
        done = subprocess.run([TOOL, "-f", "json", "--fusion", write(self.dir, "model.json", text)] + paths,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=dict(os.environ, LC_ALL="C"))
        return done.returncode, json.loads(done.stdout)

    def test_a_folded_batchnorm_is_compared_at_the_folded_output_and_covered(self):
        status, report = self.run_tool(self.graph)
        layers = {layer["name"]: layer for layer in report["layers"]}
        self.assertEqual((status, report["verdict"]), (0, "agree"))
        self.assertEqual((layers["model/relu1"]["candidate_name"], layers["model/relu1"]["tier"],
                          layers["model/relu1"]["matched_by"]), ("model_conv1model_relu1", "exact", "map"))
        self.assertEqual(layers["model/fc"]["candidate_name"], "fc_renamed")
        covered = {row["name"]: row["by"] for row in report["coverage"]["covered_by"]}
        self.assertEqual(covered["model/conv1"], "model/conv1model/relu1")
        self.assertEqual(covered["model/bn1"], "model/conv1model/relu1")
        self.assertIn("model/same", covered)  # an Identity that the compiler dropped
        self.assertEqual(report["coverage"]["reference_only"], ["model/relu1.input.0"])
        self.assertIsNone(layers["model/bn1"]["fails"])

    def test_inputs_of_a_fused_operator_are_not_those_of_its_last_part(self):
        _, report = self.run_tool(self.graph)
        relu = [layer for layer in report["layers"] if layer["name"] == "model/relu1"][0]
        self.assertEqual([slot["slot"] for slot in relu["slots"]], ["output.0"])

    def test_outputs_beyond_the_first_stand_beside_the_operators_that_they_come_from(self):
        # one device operator gives relu1 as its output 1 and bn1 as its output 0
        graph = json.loads(json.dumps(self.graph))
        fused = graph["graph"][0]["op"][0]
        fused["output_desc"] = [dict(fused["output_desc"][0], attr=[
            {"key": "_datadump_origin_name", "value": {"s": name}},
            {"key": "_datadump_origin_output_index", "value": {"i": 0}}]) for name in ("model/bn1", "model/relu1")]
        candidate = list(self.candidate)
        candidate[0] = (candidate[0][0], candidate[0][1],
                        {"input.0": self.x, "output.0": self.bn, "output.1": self.relu})
        status, report = self.run_tool(graph, candidate=candidate)
        layers = {layer["name"]: layer for layer in report["layers"]}
        for name in ("model/bn1", "model/relu1"):
            self.assertEqual((layers[name]["candidate_name"], layers[name]["tier"]),
                             ("model_conv1model_relu1", "exact"), name)
            self.assertEqual([slot["slot"] for slot in layers[name]["slots"]][-1], "output.0")
        self.assertEqual((status, report["coverage"]["covered_by"][0]["name"]), (0, "model/conv1"))
        # outputs of one operator that changed places
        graph["graph"][0]["op"] = [op(2, "fc_renamed", "Split", ["model/fc"])]
        graph["graph"][0]["op"][0]["output_desc"] = [{"attr": [
            {"key": "_datadump_origin_name", "value": {"s": "model/fc"}},
            {"key": "_datadump_origin_output_index", "value": {"i": k}}]} for k in (1, 0)]
        a = [("model/fc", "Split", {"output.0": self.fc, "output.1": self.relu})]
        b = [("fc_renamed", "Split", {"output.0": self.relu, "output.1": self.fc})]
        status, report = self.run_tool(graph, reference=a, candidate=b)
        self.assertEqual((status, report["summary"]["exact"]), (0, 1))

    def test_an_operator_that_was_split_is_compared_where_it_ends(self):
        for ops in ([op(5, "fc_end", "Add", ["model/fc"]), op(3, "fc_begin", "MatMulV2", ["model/fc"])],
                    [op(5, "fc_begin", "MatMulV2", ["model/fc"]), op(3, "fc_end", "Add", ["model/fc"], "model/fc")]):
            graph = {"graph": [{"op": ops}]}
            candidate = [("fc_begin", "MatMulV2", {"output.0": self.x}), ("fc_end", "Add", {"output.0": self.fc})]
            status, report = self.run_tool(graph, reference=[("model/fc", "Gemm", {"output.0": self.fc})],
                                           candidate=candidate)
            self.assertEqual((status, report["layers"][0]["candidate_name"]), (0, "fc_end"))
            self.assertEqual(report["coverage"]["candidate_only"], ["fc_begin"])

    def test_ids_are_the_order_where_the_dumps_record_none(self):
        for folder, names in (("ref", ("model_conv1", "model_bn1", "model_relu1", "model_fc")),
                              ("cand", ("model_conv1model_relu1", "fc_renamed"))):
            for name in names:
                _, _, values = self.fc if "fc" in name else self.relu
                write(os.path.join(self.dir, folder), name + ".output.0.npy", npy("F32", SHAPE, values))
        graph = json.loads(json.dumps(self.graph))
        graph["graph"][0]["op"][0]["id"], graph["graph"][0]["op"][2]["id"] = 7, 3
        done = subprocess.run([TOOL, "-f", "json", "--fusion", write(self.dir, "model.json", json.dumps(graph)),
                               os.path.join(self.dir, "ref"), os.path.join(self.dir, "cand")],
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=dict(os.environ, LC_ALL="C"))
        report = json.loads(done.stdout)
        self.assertEqual((report["reference"]["order"], report["candidate"]["order"]), ("name", "recorded"))
        self.assertEqual([layer["name"] for layer in report["layers"]],
                         ["model_fc", "model_conv1", "model_bn1", "model_relu1"])
        self.assertEqual(done.returncode, 0)

    def test_the_model_is_found_beside_the_sides_of_an_offline_comparison(self):
        root = os.path.join(self.dir, "offline")
        sides = [write(os.path.join(root, "dump_data", side), name, normdiff_dump(layers))
                 for side, name, layers in (("onnx", "ref.bin", self.reference), ("npu", "cand.bin", self.candidate))]
        write(os.path.join(root, "model"), "a_fusion_result.json", json.dumps([{"graph_fusion": {}}]))
        write(os.path.join(root, "model"), "net.json", json.dumps(self.graph))
        done = subprocess.run([TOOL, "-f", "json"] + sides, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        report = json.loads(done.stdout)
        self.assertEqual((done.returncode, len(report["coverage"]["covered_by"])), (0, 3))

    def test_a_drift_inside_a_fused_operator_is_its_own(self):
        wrong = list(self.candidate)
        bad = ("F32", SHAPE, [v + 0.5 for v in self.relu[2]])
        wrong[0] = (wrong[0][0], wrong[0][1], {"input.0": self.x, "output.0": bad})
        status, report = self.run_tool(self.graph, candidate=wrong)
        self.assertEqual((status, report["first_divergence"]["layer"]), (1, "model/relu1"))

    def test_a_layer_that_no_operator_explains_is_missing(self):
        more = self.reference + [("model/lost", "Softmax", {"output.0": tensor(9)})]
        status, report = self.run_tool(self.graph, reference=more)
        self.assertEqual((status, report["verdict"]), (1, "incomplete"))
        self.assertIn("model/lost", report["coverage"]["reference_only"])

    def test_what_is_no_graph_is_trouble_by_name(self):
        for text in ("{", "[]", "{\"graph\": 3}", "{\"graph\": [{}]}", "{\"graph\": [{\"op\": [{\"type\": \"x\"}]}]}",
                     "{\"graph\": [{\"op\": [3]}]}", "[" * 100000):
            status, report = self.run_tool(text)
            self.assertEqual((status, report["schema"]), (2, "normdiff/error/1"), text[:40])
            self.assertTrue(report["error"]["file"].endswith("model.json"))
        for attr in (3, [3], [{"key": 3}], [{"key": "_datadump_original_op_names", "value": 3}],
                     [{"key": "_datadump_original_op_names", "value": {"list": {"s": [3, ""]}}}]):
            status, _ = self.run_tool({"graph": [{"op": [{"name": "a", "type": "b", "attr": attr, "output_desc": attr}]}]})
            self.assertIn(status, (0, 1, 2))


class Folded(Chain):
    """The same without a graph: only the values tell that an operator went into the one before it."""

    def run_pair(self, candidate, reference=None):
        paths = [write(self.dir, "ref.bin", normdiff_dump(reference or self.reference)),
                 write(self.dir, "cand.bin", normdiff_dump(candidate))]
        done = subprocess.run([TOOL, "-f", "json"] + paths, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              env=dict(os.environ, LC_ALL="C"))
        report = json.loads(done.stdout)
        return done.returncode, report, {row["name"]: row["by"] for row in report["coverage"]["covered_by"]}

    def test_a_norm_and_an_activation_in_a_convolution_are_found_by_their_output(self):
        conv = ("model/conv1", "Conv", {"input.0": self.x, "output.0": self.relu, "param.weight": tensor(9)})
        status, report, covered = self.run_pair([conv] + self.reference[3:])
        self.assertEqual((status, report["verdict"], report["first_divergence"]), (0, "agree", None))
        self.assertEqual(covered, {"model/conv1": "model/conv1", "model/bn1": "model/conv1"})
        relu = {layer["name"]: layer for layer in report["layers"]}["model/relu1"]
        self.assertEqual((relu["candidate_name"], relu["tier"]), ("model/conv1", "exact"))
        self.assertEqual([slot["slot"] for slot in relu["slots"]], ["output.0"])

    def test_weights_that_hold_a_folded_norm_are_neither_layer_s(self):
        reference = [(name, kind, dict(slots, **{"param.weight": ("F32", (4,), [1.0] * 4)} if name == "model/bn1" else {}))
                     for name, kind, slots in self.reference]
        candidate = [("model/conv1", "Conv", {"output.0": self.bn, "param.weight": tensor(9)})] + self.reference[2:]
        status, report, covered = self.run_pair(candidate, reference)
        self.assertEqual((status, covered), (0, {"model/conv1": "model/conv1"}))
        self.assertEqual(report["coverage"]["reference_only"], ["model/bn1.input.0", "model/bn1.param.weight"])

    def test_an_operator_that_was_left_out_is_missing(self):
        candidate = [self.reference[0]] + self.reference[2:]
        status, report, covered = self.run_pair(candidate)
        self.assertEqual((status, report["coverage"]["reference_only"], covered), (1, ["model/bn1"], {}))

    def test_where_the_layer_agrees_with_its_namesake_it_stays_its_partner(self):
        # a norm that changes nothing: both outputs would do
        reference = list(self.reference)
        reference[1] = ("model/bn1", "BatchNormalization", {"output.0": self.conv})
        status, report, covered = self.run_pair([reference[0]] + reference[2:], reference)
        self.assertEqual((status, report["coverage"]["reference_only"], covered), (1, ["model/bn1"], {}))


if __name__ == "__main__":
    TOOL = os.path.abspath(sys.argv.pop(1))
    unittest.main()
