#!/usr/bin/env python3
"""Validates normdiff's JSON documents against docs/report.schema.json.

    validate.py SCHEMA FILE...        each file is one document ("-": standard input)

Uses python's jsonschema where it is installed; else the small validator below, which knows
the keywords that the schema uses and refuses any other.
"""
import json
import sys

KNOWN = {"$schema", "$id", "$defs", "$ref", "title", "description", "type", "enum", "const",
         "properties", "required", "additionalProperties", "items", "minItems", "maxItems",
         "minimum", "anyOf", "oneOf"}
TYPES = {"object": dict, "array": list, "string": str, "boolean": bool, "null": type(None)}


def is_type(value, name):
    if name == "integer":
        return isinstance(value, int) and not isinstance(value, bool)
    if name == "number":
        return isinstance(value, (int, float)) and not isinstance(value, bool)
    return isinstance(value, TYPES[name])


def same(a, b):
    return a == b and isinstance(a, bool) == isinstance(b, bool)


def errors(schema, value, root, at="$"):
    """Yields one text for each rule that the value breaks."""
    unknown = set(schema) - KNOWN
    if unknown:
        raise ValueError("the schema uses unknown keywords: %s" % sorted(unknown))
    if "$ref" in schema:
        target = root
        for part in schema["$ref"].lstrip("#/").split("/"):
            target = target[part]
        yield from errors(target, value, root, at)
    types = schema.get("type")
    if types is not None:
        types = types if isinstance(types, list) else [types]
        if not any(is_type(value, name) for name in types):
            yield "%s: %.60r is not of type %s" % (at, value, "/".join(types))
            return
    if "const" in schema and not same(schema["const"], value):
        yield "%s: %.60r is not %r" % (at, value, schema["const"])
    if "enum" in schema and not any(same(one, value) for one in schema["enum"]):
        yield "%s: %.60r is none of %s" % (at, value, schema["enum"])
    if "minimum" in schema and is_type(value, "number") and value < schema["minimum"]:
        yield "%s: %r is under %r" % (at, value, schema["minimum"])
    for keyword in ("anyOf", "oneOf"):
        if keyword in schema:
            tried = [list(errors(one, value, root, at)) for one in schema[keyword]]
            fits = sum(not one for one in tried)
            if fits == 0:
                # the alternative that was meant: the right schema first, then the fewest errors
                yield from min(tried, key=lambda one: (any(".schema:" in text for text in one),
                                                       len(one)))
            elif keyword == "oneOf" and fits != 1:
                yield "%s: fits %d of the alternatives" % (at, fits)
    if isinstance(value, dict):
        yield from object_errors(schema, value, root, at)
    if isinstance(value, list):
        most = schema.get("maxItems", len(value))
        if not schema.get("minItems", 0) <= len(value) <= most:
            yield "%s: has %d items" % (at, len(value))
        for i, one in enumerate(value):
            yield from errors(schema.get("items", {}), one, root, "%s[%d]" % (at, i))


def object_errors(schema, value, root, at):
    for key in schema.get("required", []):
        if key not in value:
            yield "%s: %s is missing" % (at, key)
    properties = schema.get("properties", {})
    more = schema.get("additionalProperties", True)
    for key, one in value.items():
        if key in properties:
            yield from errors(properties[key], one, root, "%s.%s" % (at, key))
        elif isinstance(more, dict):
            yield from errors(more, one, root, "%s.%s" % (at, key))
        elif not more:
            yield "%s: %s is not allowed" % (at, key)


def refuse_constant(word):
    raise ValueError("%s is not JSON" % word)


def refuse_duplicates(pairs):
    keys = [key for key, _ in pairs]
    if len(set(keys)) != len(keys):
        raise ValueError("a key stands twice in one object: %s" % keys)
    return dict(pairs)


def load(path):
    with (sys.stdin if path == "-" else open(path, encoding="utf-8")) as file:
        return json.load(file, parse_constant=refuse_constant,
                         object_pairs_hook=refuse_duplicates)


def main():
    root = load(sys.argv[1])
    try:
        import jsonschema
        validator = jsonschema.validators.validator_for(root)(root)
    except ImportError:
        validator = None
    status = 0
    for path in sys.argv[2:]:
        try:
            document = load(path)
        except ValueError as error:
            print("%s: %s" % (path, error))
            status = 1
            continue
        found = list(errors(root, document, root))
        if validator is not None:
            found += ["$: jsonschema: " + error.message[:200]
                      for error in validator.iter_errors(document)]
        for text in found[:20]:
            print("%s: %s" % (path, text))
            status = 1
    return status


if __name__ == "__main__":
    sys.exit(main())
