#!/usr/bin/env python3
"""Validates manifests against schemas: those of Kubernetes, and of the resources of KEDA and the Prometheus operator.

    manifests.py FILE...        also refuses keys that the schemas do not know
"""

import sys

import kubernetes_validate
import yaml
from cloudcoil.models.keda.v1alpha1 import ScaledObject
from cloudcoil.models.prometheus_operator.v1 import PrometheusRule, ServiceMonitor

# The oldest and the newest version that the chart is for.
VERSIONS = ("1.27", "1.37")
MODELS = {"ScaledObject": ScaledObject, "PrometheusRule": PrometheusRule, "ServiceMonitor": ServiceMonitor}


def lost(given, read, path):
    """Where a model has dropped something: it ignores keys that it does not know."""
    if isinstance(given, dict) and isinstance(read, dict):
        for key, value in given.items():
            if key not in read:
                yield f"{path}.{key}"
            else:
                yield from lost(value, read[key], f"{path}.{key}")
    elif isinstance(given, list) and isinstance(read, list):
        for number, (one, other) in enumerate(zip(given, read)):
            yield from lost(one, other, f"{path}[{number}]")


def validate(document):
    model = MODELS.get(document["kind"])
    if model is None:
        for version in VERSIONS:
            kubernetes_validate.validate(document, version, strict=True)
        return
    read = model.model_validate(document).model_dump(by_alias=True, exclude_none=True, mode="json")
    unknown = list(lost(document, read, document["kind"]))
    if unknown:
        raise ValueError(f"unknown: {', '.join(unknown)}")


def check_pods(document):
    """Faults that no schema knows."""
    pod = document.get("spec", {}).get("template", {}).get("spec")
    if pod is None:
        return
    if pod.get("enableServiceLinks") is not False:
        raise ValueError("variables of services would begin with WEBFILL_, which are settings")
    mounted = {mount["name"] for one in pod["containers"] for mount in one["volumeMounts"]}
    claims = {claim["metadata"]["name"] for claim in document["spec"].get("volumeClaimTemplates", [])}
    if mounted != {volume["name"] for volume in pod["volumes"]} | claims:
        raise ValueError(f"volumes and mounts differ: {mounted}")


kinds = []
for path in sys.argv[1:]:
    with open(path, encoding="utf-8") as file:
        for document in filter(None, yaml.safe_load_all(file)):
            try:
                validate(document)
                check_pods(document)
            except Exception as error:
                sys.exit(f"{path}: {document['kind']} {document['metadata']['name']}: {error}")
            kinds.append(document["kind"])
print(f"{len(kinds)} manifests are valid: {', '.join(sorted(set(kinds)))}")
