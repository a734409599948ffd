"""A control plane of Kubernetes for this machine alone: etcd, the server of the API, the controllers, the scheduler."""

import contextlib
import json
import os
import secrets
import signal
import socket
import ssl
import subprocess
import time
import urllib.error
import urllib.request

# How long a node may be silent until it is NotReady.
GRACE = "20s"


class Broken(Exception):
    """The cluster does not reach the expected state."""


def free_ports(count):
    """Ports that no program listens on now."""
    with contextlib.ExitStack() as stack:
        taken = [stack.enter_context(socket.socket()) for _ in range(count)]
        for one in taken:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in taken]


def until(what, holds, seconds=120.0, pause=0.2):
    """Waits until `holds` returns something true, and returns it."""
    end = time.monotonic() + seconds
    while True:
        found = holds()
        if found:
            return found
        if time.monotonic() > end:
            raise Broken(f"not within {seconds:.0f} s: {what}")
        time.sleep(pause)


class Control:
    """A running control plane. All its files are in one directory."""

    def __init__(self, home, programs, nodes):
        self.home, self.programs, self.nodes = home, programs, nodes
        self.processes = {}
        self.etcd, self.etcd_peer, self.port = free_ports(3)
        self.tokens = {name: secrets.token_hex(24) for name in ["admin", "controllers", "scheduler", *nodes]}
        for name in ["keys", "log"]:
            (home / name).mkdir()

    def start(self, name, argv, **more):
        """Starts a program of it; its output goes to `log`."""
        with open(self.home / "log" / f"{name}.log", "ab") as log:
            self.processes[name] = subprocess.Popen([str(word) for word in argv], stdin=subprocess.DEVNULL, stdout=log,
                                                    stderr=log, **more)
        return self.processes[name]

    def stop(self, name, how=signal.SIGTERM):
        """Ends a program of it."""
        process = self.processes.pop(name, None)
        if process is None:
            return
        process.send_signal(how)
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def log(self, name, most=2000):
        """The end of a program's output."""
        return (self.home / "log" / f"{name}.log").read_text(errors="replace")[-most:]

    def keys(self):
        """Makes a private authority, and one certificate for all clients, with all rights."""
        keys = self.home / "keys"

        def openssl(*words):
            done = subprocess.run(["openssl", *words], cwd=keys, capture_output=True, text=True)
            if done.returncode:
                raise Broken(f"openssl {words[0]}: {done.stderr}")

        openssl("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=cluster", "-keyout", "ca.key", "-out", "ca.crt")
        openssl("req", "-newkey", "rsa:2048", "-nodes", "-subj", "/O=system:masters/CN=cluster", "-keyout", "all.key", "-out", "all.csr")
        names = ",".join(f"DNS:{name}" for name in ["localhost", "kubernetes", *self.nodes])
        (keys / "all.ext").write_text(f"subjectAltName=IP:127.0.0.1,IP:10.96.0.1,{names}\n")
        openssl("x509", "-req", "-in", "all.csr", "-CA", "ca.crt", "-CAkey", "ca.key", "-CAcreateserial", "-days", "2",
                "-extfile", "all.ext", "-out", "all.crt")
        openssl("genrsa", "-out", "accounts.key", "2048")
        users = [("admin", "admin", "system:masters"), ("controllers", "system:kube-controller-manager", "system:masters"),
                 ("scheduler", "system:kube-scheduler", "")]
        users += [(node, f"system:node:{node}", "system:nodes") for node in self.nodes]
        (keys / "tokens.csv").write_text("".join(f'{self.tokens[who]},{user},{who},"{group}"\n' for who, user, group in users))
        for who, _, _ in users:
            (keys / f"{who}.conf").write_text(json.dumps({
                "apiVersion": "v1", "kind": "Config", "current-context": "it",
                "clusters": [{"name": "it", "cluster": {"server": f"https://127.0.0.1:{self.port}", "certificate-authority": str(keys / "ca.crt")}}],
                "users": [{"name": "it", "user": {"token": self.tokens[who]}}],
                "contexts": [{"name": "it", "context": {"cluster": "it", "user": "it"}}],
            }))

    def begin(self):
        """Starts it, and waits until the API answers."""
        self.keys()
        keys = self.home / "keys"
        ours = [f"https://127.0.0.1:{port}" for port in (self.etcd, self.etcd_peer)]
        self.start("etcd", [
            "etcd", "--name=it", f"--data-dir={self.home}/etcd", f"--listen-client-urls={ours[0]}", f"--advertise-client-urls={ours[0]}",
            f"--listen-peer-urls={ours[1]}", f"--initial-advertise-peer-urls={ours[1]}", f"--initial-cluster=it={ours[1]}",
            f"--cert-file={keys}/all.crt", f"--key-file={keys}/all.key", "--client-cert-auth", f"--trusted-ca-file={keys}/ca.crt",
            f"--peer-cert-file={keys}/all.crt", f"--peer-key-file={keys}/all.key", "--peer-client-cert-auth",
            f"--peer-trusted-ca-file={keys}/ca.crt", "--unsafe-no-fsync"])
        self.start("apiserver", [
            self.programs / "kube-apiserver", f"--etcd-servers={ours[0]}", f"--etcd-cafile={keys}/ca.crt", f"--etcd-certfile={keys}/all.crt",
            f"--etcd-keyfile={keys}/all.key", "--bind-address=127.0.0.1", "--advertise-address=127.0.0.1", f"--secure-port={self.port}",
            f"--tls-cert-file={keys}/all.crt", f"--tls-private-key-file={keys}/all.key", f"--client-ca-file={keys}/ca.crt",
            f"--token-auth-file={keys}/tokens.csv", "--authorization-mode=Node,RBAC", "--service-cluster-ip-range=10.96.0.0/24",
            "--service-account-issuer=https://kubernetes.default.svc", f"--service-account-key-file={keys}/accounts.key",
            f"--service-account-signing-key-file={keys}/accounts.key", f"--kubelet-client-certificate={keys}/all.crt",
            f"--kubelet-client-key={keys}/all.key", "--kubelet-preferred-address-types=Hostname", "--endpoint-reconciler-type=none",
            "--allow-privileged=true", "--max-requests-inflight=1000", "--max-mutating-requests-inflight=500"])
        until("the API answers", self.answers, 120)
        self.start("controllers", [
            self.programs / "kube-controller-manager", f"--kubeconfig={keys}/controllers.conf", "--secure-port=0", "--leader-elect=false",
            f"--service-account-private-key-file={keys}/accounts.key", f"--root-ca-file={keys}/ca.crt",
            f"--node-monitor-grace-period={GRACE}", "--kube-api-qps=300", "--kube-api-burst=600", "--concurrent-job-syncs=20"])
        self.start("scheduler", [
            self.programs / "kube-scheduler", f"--kubeconfig={keys}/scheduler.conf", "--secure-port=0", "--leader-elect=false",
            "--kube-api-qps=300", "--kube-api-burst=600"])
        until("the default service account exists", lambda: self.ask("GET", "/api/v1/namespaces/default/serviceaccounts/default"))

    def answers(self):
        """Whether the API is ready; fails if its server has ended."""
        for name in ["etcd", "apiserver"]:
            if self.processes[name].poll() is not None:
                raise Broken(f"{name} has ended:\n{self.log(name)}")
        try:
            return self.raw("GET", "/readyz") == b"ok"
        except OSError:
            return False

    def raw(self, method, path, body=None):
        """Sends a request to the API, as the administrator."""
        context = ssl.create_default_context(cafile=self.home / "keys/ca.crt")
        kind = "application/strategic-merge-patch+json" if method == "PATCH" else "application/json"
        headers = {"Authorization": f"Bearer {self.tokens['admin']}", "Content-Type": kind}
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"https://127.0.0.1:{self.port}{path}", data, headers, method=method)
        with urllib.request.urlopen(request, context=context, timeout=30) as answer:
            return answer.read()

    def ask(self, method, path, body=None):
        """The answer as an object; None if the object does not exist."""
        try:
            return json.loads(self.raw(method, path, body))
        except urllib.error.HTTPError as error:
            if error.code == 404:
                return None
            raise Broken(f"{method} {path}: {error.read().decode(errors='replace')[:500]}") from error

    def environment(self):
        """The environment of a user: kubectl and kubeconfig."""
        return {**os.environ, "PATH": f"{self.home}/bin:{self.programs}:{os.environ['PATH']}",
                "KUBECONFIG": f"{self.home}/keys/admin.conf", "HOME": str(self.home)}

    def kubectl(self, *words):
        """The output of kubectl."""
        done = subprocess.run(["kubectl", *words], env=self.environment(), capture_output=True, text=True, stdin=subprocess.DEVNULL)
        if done.returncode:
            raise Broken(f"kubectl {' '.join(words)}: {done.stderr}")
        return done.stdout

    def end(self):
        """Ends all of it."""
        for name in reversed(list(self.processes)):
            self.stop(name)
