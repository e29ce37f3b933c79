"""Reads the text format on standard input as the public client library of Prometheus does, and prints what it found as
JSON: each family with its type, and each sample with its labels. Fails on anything the library does not take, and on a
sample that comes twice."""

import json
import sys

from prometheus_client.parser import text_string_to_metric_families

families, seen = [], set()
for family in text_string_to_metric_families(sys.stdin.read()):
    samples = []
    for sample in family.samples:
        key = (sample.name, tuple(sorted(sample.labels.items())))
        if key in seen:
            sys.exit(f"twice: {key}")
        seen.add(key)
        samples.append([sample.name, sample.labels, str(sample.value)])
    if not family.documentation:
        sys.exit(f"no help: {family.name}")
    families.append({"name": family.name, "type": family.type, "samples": samples})
json.dump(families, sys.stdout)
