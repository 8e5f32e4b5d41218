"""tests/schema.py SCHEMA LIST WRONG.yaml...: the JSON schema accepts the scenarios whose paths the file LIST has, and
refuses each scenario that is wrong."""

import json
import re
import sys

import jsonschema
import yaml


class Loader(yaml.SafeLoader):
    """Plain values as psd reads them: only true and false are flags, and a time of day is a text."""


Loader.yaml_implicit_resolvers = {}
Loader.add_implicit_resolver("tag:yaml.org,2002:bool", re.compile("^(true|false)$"), "tf")
Loader.add_implicit_resolver("tag:yaml.org,2002:int", re.compile("^-?[0-9]+$"), "-0123456789")
Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float", re.compile(r"^-?[0-9]+([.][0-9]+)?([eE][+-]?[0-9]+)?$"), "-0123456789"
)

with open(sys.argv[1], encoding="utf-8") as file:
    schema = json.load(file)
jsonschema.Draft7Validator.check_schema(schema)
validator = jsonschema.Draft7Validator(schema)


def errors(path):
    with open(path, encoding="utf-8") as file:
        found = validator.iter_errors(yaml.load(file, Loader))
        return [f"{path}: {'.'.join(map(str, e.path))}: {e.message[:200]}" for e in found]


with open(sys.argv[2], encoding="utf-8") as file:
    wrong = [line for path in file.read().split() for line in errors(path)]
wrong += [f"{path} is wrong, and the schema accepts it" for path in sys.argv[3:] if not errors(path)]
print("\n".join(wrong), file=sys.stderr, end="\n" if wrong else "")
sys.exit(1 if wrong else 0)
