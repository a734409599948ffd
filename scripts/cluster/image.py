"""Makes images of a few files for containerd, without a registry or a builder: archives in the format of `docker save`."""

import hashlib
import io
import json
import pathlib
import re
import subprocess
import tarfile


def libraries(program):
    """The libraries of a program, by the paths that its loader uses; empty for a static program."""
    said = subprocess.run(["ldd", program], capture_output=True, text=True, env={"LC_ALL": "C", "PATH": "/usr/bin:/bin"})
    return re.findall(r"(/\S+) \(0x", said.stdout)


def archive(path, name, files, entrypoint=(), env=()):
    """Writes an image: `files` maps paths in the image to files of this machine."""
    layer = io.BytesIO()
    with tarfile.open(fileobj=layer, mode="w") as tar:
        for directory in ["tmp", "dev", "proc", "sys"]:
            entry = tarfile.TarInfo(directory)
            entry.type, entry.mode = tarfile.DIRTYPE, 0o1777 if directory == "tmp" else 0o755
            tar.addfile(entry)
        for place, source in files.items():
            entry = tarfile.TarInfo(place.lstrip("/"))
            entry.size, entry.mode = pathlib.Path(source).stat().st_size, 0o755
            with open(source, "rb") as opened:
                tar.addfile(entry, opened)
    layer = layer.getvalue()
    config = json.dumps({
        "architecture": "amd64", "os": "linux", "config": {"Entrypoint": list(entrypoint), "Env": list(env)},
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{hashlib.sha256(layer).hexdigest()}"]},
    }).encode()
    sum_ = hashlib.sha256(config).hexdigest()
    manifest = json.dumps([{"Config": f"{sum_}.json", "RepoTags": [name], "Layers": ["layer.tar"]}]).encode()
    with tarfile.open(path, "w") as tar:
        for member, data in [("layer.tar", layer), (f"{sum_}.json", config), ("manifest.json", manifest)]:
            entry = tarfile.TarInfo(member)
            entry.size = len(data)
            tar.addfile(entry, io.BytesIO(data))


def pause(path, name, busybox):
    """The image that holds a pod's namespaces: it sleeps."""
    archive(path, name, {"/busybox": busybox}, ["/busybox", "sleep", "1000000"])


def tactus(path, name, program, env):
    """The image with tactus and its libraries."""
    files = {"/usr/bin/tactus": program, **{library: library for library in libraries(program)}}
    archive(path, name, files, env=env)
