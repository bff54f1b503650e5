#!/usr/bin/env bash
# The manifests for Kubernetes are those of the chart and valid, and their containers run as they are written.
# shellcheck source=tests/deploy/machine.sh
source "$(dirname "$0")/machine.sh"
# shellcheck source=tests/deploy/image.sh
source tests/deploy/image.sh

python=$PWD/.cache/deploy/kubernetes/bin/python
of_kustomize=$work/manifests.yaml

step "the files for kustomize are those of the chart"
said=$("$python" deploy/kubernetes/render --check 2>&1) || fail "deploy/kubernetes/render: $said"

step "the manifests are valid"
# kubectl is not among Debian's packages in a version that knows components.
if command -v kubectl >/dev/null; then
    kubectl kustomize deploy/kubernetes/example >"$of_kustomize"
    replicas=$(python3 -c 'import sys, yaml
print([one["spec"].get("replicas") for one in yaml.safe_load_all(sys.stdin) if one["kind"] == "Deployment"])' <"$of_kustomize")
    [ "$replicas" = "[None]" ] || fail "with KEDA, the manifest has a number of supervisors: $replicas"
else
    echo "LEFT OUT: kubectl kustomize, because there is no kubectl" >&2
    cat deploy/kubernetes/{base/[!k]*,components/*/[!k]*}.yaml >"$of_kustomize"
fi
# Each file by itself, too: also the components that the example does not have.
"$python" tests/deploy/manifests.py "$of_kustomize" deploy/kubernetes/{base/[!k]*,components/*/[bm]*,components/keda/keda}.yaml
sed 's/pollingInterval/pollInterval/' deploy/kubernetes/components/keda/keda.yaml >"$work/faulty.yaml"
refused "unknown: ScaledObject.spec.pollInterval" "$python" tests/deploy/manifests.py "$work/faulty.yaml"

step "the containers run"
make_image
mkdir "$work/pods"
"$python" - "$work/settings.yaml" <<'END'
import json, sys, helm_python
mapping = {"name": "pages", "url_patterns": [{"type": "host", "pattern": "10.78.0.254"}],
           "fields": [{"name": "title", "processors": [{"type": "css", "parameters": {"selector": "title"}}]}]}
settings = "[politeness]\nallow_private_networks = true\ndelay = 0.1\n"
with helm_python.Chart.load("deploy/kubernetes/chart") as chart:
    rendered = chart.render({"settings": settings, "mappings": {"pages.json": json.dumps(mapping)}}, name="webfill")
open(sys.argv[1], "w").write("\n---\n".join(rendered.values()))
END
WEBFILL=$(realpath "${BINARY:-target/debug/webfill}") deploy/kubernetes/secrets "$work/keys" \
    'mongodb://10.78.0.254/webfill?replicaSet=rs' >"$work/secrets.yaml" 2>/dev/null
"$python" tests/deploy/manifests.py "$work/secrets.yaml"
timeout 300 unshare --net "$python" tests/deploy/pods.py "$root" "$work/pods" "$(deploy/install-mongod.sh)" \
    "$work/settings.yaml" "$work/secrets.yaml" || fail "the containers do not work as they should"
echo "kubernetes: passed after $SECONDS s"
