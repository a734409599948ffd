//! The requirements of each kind of environment on this machine before it can be tried: a private daemon, a server on
//! the loopback, a stand-in. Most need nothing.

use std::any::Any;
use std::sync::Arc;

use tactus_model::plan;
use tactus_system::{Real, System};

use super::docker::Daemon;
use super::jailhouse;
use super::libvirtd::Libvirtd;

/// A place to try a kind of environment in.
pub struct Place {
    /// The plan's table for it.
    pub spec: plan::Environment,
    /// Values that must live during the test; dropping one removes its part.
    pub _held: Vec<Box<dyn Any>>,
}

/// The place for a kind.
pub fn of(kind: &str) -> Place {
    match kind {
        "jailhouse" => return jailhouse::place(),
        "libvirt" => return libvirt(),
        _ => {}
    }
    if kind == "ssh" {
        match super::sshd::Sshd::start() {
            Ok(server) => return Place { spec: server.spec(), _held: vec![Box::new(server)] },
            Err(why) => super::skipped(&why),
        }
    }
    if kind == "serial" {
        // The simplest line: a probe on a command's stdin and stdout. Others are in `serial.rs`.
        let probe = tactus_system::probe::installed(&Real).unwrap();
        let command = format!("exec {}", probe.display());
        let spec = super::spec(kind, &[("command", &command), ("format", "probe")]);
        return Place { spec, _held: Vec::new() };
    }
    if kind == "docker"
        && let Some(daemon) = Daemon::start()
    {
        let host = daemon.host();
        return Place { spec: super::spec(kind, &[("host", &host)]), _held: vec![Box::new(daemon)] };
    }
    if kind == "pod" {
        return pod();
    }
    Place { spec: super::spec(kind, &[]), _held: Vec::new() }
}

/// A libvirt of our own, where its daemon is installed.
fn libvirt() -> Place {
    match Libvirtd::start() {
        Some(libvirtd) => Place {
            spec: super::spec("libvirt", &[("uri", &libvirtd.uri())]),
            _held: vec![Box::new(libvirtd)],
        },
        None => Place { spec: super::spec("libvirt", &[]), _held: Vec::new() },
    }
}

/// The machine that a place is on: this one, or one that seems to have what this one has not.
pub fn system(spec: &plan::Environment) -> Arc<dyn System> {
    match spec.kind.as_str() {
        "jailhouse" => jailhouse::system(spec),
        _ => Arc::new(Real),
    }
}

/// A stand-in for kubectl, written after its documentation: it executes a command for the pod here.
const KUBECTL: &str = "#!/bin/sh
while [ $# -gt 0 ] && [ \"$1\" != -- ]; do shift; done
shift
exec \"$@\"
";

fn pod() -> Place {
    let dir = tempfile::tempdir().expect("a directory");
    let client = dir.path().join("kubectl");
    Real.install(&client, KUBECTL.as_bytes(), 0o755).expect("a stand-in");
    let spec = super::spec("pod", &[("client", &client.display().to_string())]);
    Place { spec: plan::Environment { attach: Some("plc-0".into()), ..spec }, _held: vec![Box::new(dir)] }
}
