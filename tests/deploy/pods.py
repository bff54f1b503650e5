#!/usr/bin/env python3
"""Runs the pods of manifests as they are written: command, variables, volumes, user, read-only root, probes, signals.

    unshare --net pods.py IMAGE WORK MONGOD MANIFESTS SECRETS

IMAGE is the folder of the image's files. Each container is a process with namespaces of its own, in a network with the
others. Not as on a cluster: names are in /etc/hosts, and the default seccomp profile, limits of memory and network
policies are not in force.
"""

import base64
import http.server
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request

import pymongo
import yaml

IMAGE, WORK, MONGOD = (pathlib.Path(argument) for argument in sys.argv[1:4])
HERE = "10.78.0.254"
PATIENCE_S = 90
# Prepares the files and the network of a container, and becomes it.
INIT = """
mount -t overlay overlay -o "lowerdir=$1,upperdir=$2/upper,workdir=$2/overlay" "$2/root"
mount --rbind /dev "$2/root/dev"
mount -t proc proc "$2/root/proc"
touch "$2/root/etc/hosts"
mount --bind "$2/hosts" "$2/root/etc/hosts"
while read -r from to flags; do
    mkdir -p "$2/root$to"
    mount --bind "$from" "$2/root$to"
    [ -z "$flags" ] || mount -o remount,bind,$flags "$2/root$to"
done <"$2/volumes"
[ "$3" = false ] || mount -o remount,ro "$2/root"
ip link set lo up
until ip link set eth0 up 2>/dev/null; do sleep 0.05; done
ip address add "$4/24" dev eth0
exec chroot "$2/root" setpriv --reuid "$5" --regid "$6" --groups "$7" --no-new-privs --bounding-set=-all --inh-caps=-all \\
    --ambient-caps=-all env --chdir=/data -i "${@:8}"
"""


def run(*command, **options):
    return subprocess.run([str(word) for word in command], check=True, text=True, **options)


def step(text):
    print(f"--- {text}", flush=True)


def wait_until(what, is_so, patience=PATIENCE_S):
    until = time.monotonic() + patience
    while True:
        found = is_so()
        if found:
            return found
        if time.monotonic() > until:
            raise SystemExit(f"waited in vain until {what}\n{Pod.report()}")
        time.sleep(0.1)


def write_volume(folder, files, mode):
    """A folder as the kubelet makes it: the files are in a hidden folder, so that all of them are replaced at once."""
    data = folder / "..2026"
    data.mkdir(parents=True)
    (folder / "..data").symlink_to("..2026")
    for name, content in files.items():
        (data / name).write_bytes(content)
        (data / name).chmod(mode)
        shutil.chown(data / name, 0, 10001)
        (folder / name).symlink_to(f"..data/{name}")
    return folder


def empty_folder(folder):
    folder.mkdir(parents=True, exist_ok=True)
    shutil.chown(folder, 0, 10001)
    folder.chmod(0o2775)
    return folder


class Pod:
    all = {}
    # The address of each name. Both dispatchers have theirs before they start.
    addresses = {}

    def __init__(self, manifests, workload, name):
        self.manifests, self.name = manifests, name
        self.template = workload["spec"]["template"]["spec"]
        (self.container,) = self.template["containers"]
        self.service = workload["spec"].get("serviceName")
        number = len(Pod.addresses) + 1
        self.address = Pod.addresses.setdefault(name, f"10.78.0.{number}")
        self.starts = 0
        Pod.all[name] = self

    def value(self, variable):
        if "value" in variable:
            return variable["value"]
        origin = variable["valueFrom"]
        if "fieldRef" in origin:
            return {"metadata.name": self.name, "status.podIP": self.address}[origin["fieldRef"]["fieldPath"]]
        reference = origin["secretKeyRef"]
        return self.data("Secret", reference["name"])[reference["key"]].decode()

    def data(self, kind, name):
        found = self.manifests[kind, name].get("data") or {}
        decode = base64.b64decode if kind == "Secret" else str.encode
        return {key: decode(value) for key, value in found.items()}

    def environment(self):
        found = {}
        for variable in self.container["env"]:
            value = self.value(variable)
            for name, earlier in found.items():
                value = value.replace(f"$({name})", earlier)
            found[variable["name"]] = value
        return ["PATH=/usr/local/bin:/usr/bin:/bin"] + [f"{name}={value}" for name, value in found.items()]

    def volume(self, folder, name):
        for volume in self.template["volumes"]:
            if volume["name"] != name:
                continue
            if "secret" in volume:
                source = volume["secret"]
                return write_volume(folder / name, self.data("Secret", source["secretName"]), source["defaultMode"])
            if "configMap" in volume:
                return write_volume(folder / name, self.data("ConfigMap", volume["configMap"]["name"]), 0o644)
            return empty_folder(folder / name)
        # A claim outlives the pod.
        return empty_folder(WORK / "claims" / f"{name}-{self.name}")

    def start(self):
        self.starts += 1
        folder = WORK / "pods" / f"{self.name}.{self.starts}"
        for part in ("upper", "overlay", "root"):
            (folder / part).mkdir(parents=True)
        names = [f"{address} {name}.{Pod.all[name].service}\n" for name, address in Pod.addresses.items()
                 if name in Pod.all and Pod.all[name].service]
        (folder / "hosts").write_text("127.0.0.1 localhost\n" + "".join(names))
        mounts = [f"{self.volume(folder / 'volumes.d', mount['name'])} {mount['mountPath']}"
                  f"{' ro' if mount.get('readOnly') else ''}\n" for mount in self.container["volumeMounts"]]
        (folder / "volumes").write_text("".join(mounts))
        user, own = self.template["securityContext"], self.container["securityContext"]
        assert own["capabilities"]["drop"] == ["ALL"] and not own["allowPrivilegeEscalation"] and user["runAsNonRoot"]
        command = self.container["command"] + self.container.get("args", [])
        words = ["unshare", "--net", "--mount", "--pid", "--fork", "--kill-child", "bash", "-ec", INIT, "init", IMAGE, folder,
                 str(own["readOnlyRootFilesystem"]).lower(), self.address, user["runAsUser"], user["runAsGroup"],
                 user["fsGroup"], *self.environment(), *command]
        self.output = folder / "output"
        with open(self.output, "w", encoding="utf-8") as output:
            self.process = subprocess.Popen([str(word) for word in words], stdout=output, stderr=output,
                                            stdin=subprocess.DEVNULL)
        children = pathlib.Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children")
        self.pid = int(wait_until(f"{self.name} has a process", lambda: children.read_text().split(), 10)[0])
        port = f"p{self.address.rsplit('.', 1)[1]}s{self.starts}"
        # One command, because a pod that ends at once takes its link away.
        run("ip", "link", "add", port, "master", "pods", "up", "type", "veth", "peer", "name", "eth0", "netns", self.pid)
        return self

    def probe(self, kind):
        """Whether a probe of the manifest is positive."""
        get = self.container[kind]["httpGet"]
        (port,) = [port["containerPort"] for port in self.container["ports"] if port["name"] == get["port"]]
        return fetch(f"http://{self.address}:{port}{get['path']}") is not None

    def readyz(self):
        return fetch(f"http://{self.address}:8181/readyz") is not None

    def exec(self, *command):
        """What `kubectl exec` would do."""
        user = self.template["securityContext"]
        inside = ["nsenter", "--target", self.pid, "--mount", "--net", "--pid", "--root", "setpriv", "--reuid",
                  user["runAsUser"], "--regid", user["runAsGroup"], "--clear-groups", "env", "--chdir=/data", "-i", *self.environment()]
        done = subprocess.run([str(word) for word in (*inside, *command)], text=True, capture_output=True)
        assert done.returncode == 0, f"{self.name}: {command}: {done.stderr}"
        return done.stdout

    def end(self):
        """Ends it as the kubelet does, and returns the exit code."""
        run("kill", "-TERM", self.pid)
        return self.process.wait(self.template["terminationGracePeriodSeconds"])

    def kill(self):
        """Kills all of its processes, by the first one. It loses `--kill-child` when it becomes another user."""
        if self.process.poll() is None:
            os.kill(self.pid, signal.SIGKILL)
            self.process.wait(10)

    @staticmethod
    def report():
        return "\n".join(f"=== {pod.name}\n{pod.output.read_text()[-2000:]}" for pod in Pod.all.values() if pod.starts)


def fetch(url):
    try:
        with urllib.request.urlopen(url, timeout=3) as answer:
            return answer.read().decode()
    except (urllib.error.URLError, OSError):
        return None


class Web(http.server.BaseHTTPRequestHandler):
    """Pages; those below /slow last until they are let go."""

    go = threading.Event()
    slow = []

    def do_GET(self):
        body = b"" if self.path == "/robots.txt" else b"<!doctype html><title>A page</title>"
        if self.path.startswith("/slow"):
            Web.slow.append(self.path)
            Web.go.wait(60)
        self.send_response(200 if body else 404)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


def start_store():
    data = WORK / "mongod"
    data.mkdir()
    server = subprocess.Popen([MONGOD, "--dbpath", data, "--bind_ip", HERE, "--replSet", "rs", "--oplogSize", "64",
                               "--nounixsocket", "--quiet"], stdout=subprocess.DEVNULL)
    client = pymongo.MongoClient(HERE, directConnection=True, serverSelectionTimeoutMS=60_000)
    client.admin.command("replSetInitiate", {"_id": "rs", "members": [{"_id": 0, "host": f"{HERE}:27017"}]})
    wait_until("the store has a primary", lambda: client.admin.command("hello")["isWritablePrimary"])
    return server, client


def load_manifests():
    found = {}
    for path in sys.argv[4:]:
        for document in filter(None, yaml.safe_load_all(pathlib.Path(path).read_text())):
            found[document["kind"], document["metadata"]["name"]] = document
    return found


def feed(pod, path, crawl):
    request = {"url": f"http://{HERE}:8000{path}", "appid": "tests", "crawlid": crawl}
    pod.exec("webfill", "feed", json.dumps(request))


def wait_for_page(store, crawl):
    return wait_until(f"the page of {crawl} is stored",
                      lambda: store.webfill.pages.find_one({"crawl_id": crawl, "outcome": "ok"}))


def judge(manifests, store):
    dispatchers = [Pod(manifests, manifests["StatefulSet", "webfill-dispatcher"], f"webfill-dispatcher-{n}") for n in (0, 1)]
    supervisors = [Pod(manifests, manifests["Deployment", "webfill-supervisor"], f"webfill-supervisor-{n}") for n in "ab"]

    step("a fleet begins by itself, with pods in any order")
    for pod in supervisors + dispatchers[::-1]:
        pod.start()
    for pod in dispatchers:
        wait_until(f"{pod.name} has started", lambda: pod.probe("startupProbe") and pod.probe("readinessProbe"))
    wait_until("the first one serves", dispatchers[0].readyz)
    assert not dispatchers[1].readyz(), "both serve"
    for pod in supervisors:
        wait_until(f"{pod.name} is ready", lambda: pod.probe("readinessProbe") and pod.probe("livenessProbe"))

    step("pages are fetched and mapped, and the figure for the number of supervisors is served")
    feed(dispatchers[1], "/page", "first")
    assert wait_for_page(store, "first")["fields"] == {"title": "A page"}, "the mapping is not in force"
    status = json.loads(dispatchers[0].exec("webfill", "status", "--json"))
    names = sorted(one["id"] for one in status["supervisors"])
    assert names == ["swarm:webfill-supervisor-a", "swarm:webfill-supervisor-b"], names
    figure = 'webfill_sites_due{lane="http"} 0'
    wait_until("no site is due", lambda: figure in (fetch(f"http://{dispatchers[0].address}:9464/metrics") or ""))
    assert "webfill_workers{" in fetch(f"http://{supervisors[0].address}:9465/metrics")

    step("a supervisor that is ended drains")
    feed(dispatchers[0], "/slow", "slow")
    wait_until("a page is being fetched", lambda: Web.slow)
    wait_until("the site is due", lambda: 'webfill_sites_due{lane="http"} 1'
               in (fetch(f"http://{dispatchers[0].address}:9464/metrics") or ""))
    threading.Timer(2, Web.go.set).start()
    for pod in supervisors:
        assert pod.end() == 0, f"{pod.name} has not drained"
    assert wait_for_page(store, "slow")["attempts"] == 1, "it was fetched twice"
    supervisors[0].start()

    step("when the dispatcher that serves is ended, the other one continues, and it stands by when it is back")
    assert dispatchers[0].end() == 0
    wait_until("the other one serves", dispatchers[1].readyz)
    dispatchers[0].start()
    wait_until("it is back", lambda: dispatchers[0].probe("readinessProbe"))
    feed(dispatchers[0], "/third", "third")
    wait_for_page(store, "third")
    assert not dispatchers[0].readyz(), "both serve"


def main():
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended from outside"))
    run("ip", "link", "set", "lo", "up")
    run("ip", "link", "add", "pods", "type", "bridge")
    run("ip", "address", "add", f"{HERE}/24", "dev", "pods")
    run("ip", "link", "set", "pods", "up")
    web = http.server.ThreadingHTTPServer((HERE, 8000), Web)
    threading.Thread(target=web.serve_forever, daemon=True).start()
    server, store = start_store()
    try:
        judge(load_manifests(), store)
    except AssertionError as error:
        raise SystemExit(f"{error}\n{Pod.report()}") from error
    finally:
        for pod in filter(lambda pod: pod.starts, Pod.all.values()):
            pod.kill()
        server.kill()


if __name__ == "__main__":
    main()
