"""Reads answers with the models of two generators; prints a line for each that was read.

Arguments: the folder of `models.py` (datamodel-codegen) and of the package `generated_client` (openapi-python-client), and a
JSON file with pairs of a schema's name and an answer.
"""

import importlib
import json
import sys

folder, answers_file = sys.argv[1:]
sys.path.insert(0, folder)
models = importlib.import_module("models")
generated = importlib.import_module("generated_client.models")

with open(answers_file, encoding="utf-8") as file:
    for name, answer in json.load(file):
        getattr(models, name).model_validate(answer)
        print("datamodel-codegen", name)
        getattr(generated, name).from_dict(answer)
        print("openapi-python-client", name)
