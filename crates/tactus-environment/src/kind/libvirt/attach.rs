//! Attaching to a domain that runs. libvirt adds a virtio-serial port to it, its guest agent starts a shell on that
//! port, and the shell receives the probe over it. The domain's other devices, its placement and its guest stay as
//! they are. At the end the port is removed.

use std::io::{self, Read};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use quick_xml::escape::escape;
use tactus_model::facts::Facts;
use tactus_model::message::Note;
use tactus_model::text::quoted;
use tactus_model::topology::Topology;
use tactus_model::{CpuSet, Evidence, plan};
use tactus_system::System;
use tactus_system::guardian::Promise;
use tactus_tune::generate::libvirt::Tree;

use super::agent::{Agent, Ended};
use super::threads::{self, Thread};
use super::virsh::{Virsh, is_paused};
use crate::support::guest::{self, Accel};
use crate::support::shell::{self, Failure};
use crate::support::{self, cannot};
use crate::{Layout, Running, Setting, StartError, Stream};

/// How long the probe may take to end after it was told to quit, or after its stream has ended.
const STOP_TIMEOUT: Duration = Duration::from_secs(3);
/// How long nothing may be heard before the agent is asked whether the probe still runs: of a guest that
/// closes its end of a port this end hears nothing.
const SILENCE: Duration = Duration::from_secs(3);
/// The most letters of an environment's name in the name of its port: the path of its socket is bounded.
const LETTERS: usize = 12;

/// Finds the port by its name, for the guest's udev may be slow or not there, and puts a shell on it.
const ON_PORT: &str = "n=0; while [ $n -lt 100 ]; do for p in /sys/class/virtio-ports/*; do \
[ \"$(cat \"$p/name\" 2>/dev/null)\" = \"$1\" ] && [ -c \"/dev/${p##*/}\" ] && exec 3<>\"/dev/${p##*/}\" && break 2; \
done; n=$((n+1)); sleep 0.1; done; \
[ $n -lt 100 ] || { echo the port $1 does not appear in the guest >&2; exit 124; }; \
exec sh -c \"$2\" <&3 >&3 3>&-";

/// A domain that was there before, with the probe in it. Dropping it takes the probe out.
pub struct Attached {
    process: u32,
    inside: Arc<Inside>,
    measured: CpuSet,
    stream: Option<Stream>,
    promises: Vec<Promise>,
}

/// How the vCPUs of the domain that the plan names map to the machine's CPUs.
///
/// # Errors
/// When it does not run here, its agent does not answer, or none of its vCPUs has a CPU for itself.
pub fn layout(spec: &plan::Environment, system: &dyn System) -> Result<Layout, StartError> {
    let name = spec.attach.as_deref().unwrap_or_default();
    let virsh = Virsh::of(spec, system)?;
    let threads = threads::of(process(&virsh, name, system)?, system);
    Agent::of(&virsh, name).answers()?;
    let layout = placed(&threads);
    if layout.cpus.is_empty() {
        return Err(StartError {
            reason: format!("no vCPU of `{name}` is pinned to one CPU: its CPUs are unknown"),
            hint: Some(format!(
                "pin those to measure: `virsh vcpupin {} 1 2 --live` puts vCPU 1 on CPU 2",
                quoted(name)
            )),
        });
    }
    Ok(layout)
}

/// The vCPUs that have one CPU. Those with a real-time policy are measured, else all but the first.
fn placed(threads: &[Thread]) -> Layout {
    let mut vcpus: Vec<(u32, u32, bool)> = threads
        .iter()
        .filter(|thread| thread.allowed.len() == 1)
        .filter_map(|thread| Some((thread.vcpu?, thread.allowed.first()?, thread.priority > 0)))
        .collect();
    vcpus.sort_unstable();
    let realtime: CpuSet =
        vcpus.iter().filter(|(_, _, realtime)| *realtime).map(|(vcpu, ..)| *vcpu).collect();
    let others = vcpus.iter().skip(usize::from(vcpus.len() > 1)).map(|(vcpu, ..)| *vcpu);
    let measuring = if realtime.is_empty() { others.collect() } else { realtime };
    Layout { cpus: vcpus.iter().map(|(vcpu, cpu, _)| (*vcpu, *cpu)).collect(), measuring }
}

/// The process of a domain that runs.
fn process(virsh: &Virsh<'_>, name: &str, system: &dyn System) -> Result<u32, StartError> {
    let uuid = virsh.uuid(name)?;
    let state = virsh.ask(&["domstate", "--", name])?;
    if state != "running" {
        return Err(StartError {
            reason: format!("the domain `{name}` is not running: it is {state}"),
            hint: Some(format!(
                "start it (`virsh start {0}`, `virsh resume {0}`), or leave out `attach`",
                quoted(name)
            )),
        });
    }
    let found = threads::process(name, &uuid, system).map_err(|several| {
        let several: Vec<String> = several.iter().map(u32::to_string).collect();
        StartError {
            reason: format!(
                "several processes name the domain `{name}` ({}), and libvirt has recorded none of them",
                several.join(", ")
            ),
            hint: Some(format!(
                "`ps -fp {}` shows their users: end those that are not libvirt's",
                several.join(",")
            )),
        }
    })?;
    found.ok_or_else(|| StartError {
        reason: format!("the process of the domain `{name}` is not visible here"),
        hint: Some("run tactus where libvirt's daemon runs, not in another PID namespace".into()),
    })
}

/// Puts the probe into the domain.
///
/// # Errors
/// When libvirt or the guest refuses, in their words.
pub fn enter(setting: &Setting<'_>, name: &str) -> Result<Attached, StartError> {
    let system = setting.system;
    let virsh = Virsh::of(setting.spec, system)?;
    let agent = Agent::of(&virsh, name);
    let process = process(&virsh, name, system)?;
    agent.answers()?;
    let made = support::container_name(setting);
    let letters: String = made.chars().skip("tactus-".len()).take(8 + 1 + LETTERS).collect();
    let port = format!("org.tactus.{}", letters.trim_end_matches('-'));
    let alias = format!("ua-{made}");
    let file = setting.workspace.join("channel.xml");
    let document = format!(
        "<channel type='unix'><source mode='bind'/><target type='virtio' name='{}'/><alias name='{}'/></channel>",
        escape(&port),
        escape(&alias)
    );
    system.write(&file, document.as_bytes()).map_err(|error| cannot(&file.display().to_string(), error))?;
    // Removing the port also ends a process that still waits at it in the guest.
    let removal = virsh.detachment(name, &alias);
    let mut attached = Attached {
        process,
        inside: Arc::new(Inside {
            system: system.share(),
            spec: setting.spec.clone(),
            number: OnceLock::new(),
            end: Mutex::new(None),
        }),
        measured: setting.measured.clone(),
        stream: None,
        promises: vec![support::promise(setting, removal)?],
    };
    virsh.ask(&["attach-device", "--live", "--", name, &file.display().to_string()])?;
    let document = virsh.ask(&["dumpxml", "--", name])?;
    let socket = socket(&document, &alias)
        .ok_or_else(|| cannot("the new port", "libvirt does not report where its socket is"))?;
    // As QEMU sees the file system.
    let stream = system
        .connect(Path::new(&format!("/proc/{process}/root{socket}")))
        .map_err(|error| cannot(&format!("the new port's socket {socket}"), error))?;
    let number = agent.script(ON_PORT, &[&port, &shell::run(setting.guardian.marker(), false)])?;
    let _ = attached.inside.number.set(number);
    let writer = stream.try_clone().map_err(|error| cannot("the new port", error))?;
    let reader = Listener { stream, inside: Arc::clone(&attached.inside) };
    let both = Stream { reader: Box::new(reader), writer: Box::new(writer) };
    attached.stream = Some(shell::deliver(both, setting.patience).map_err(|failure| match failure {
        Failure::Told(error) => StartError {
            reason: format!(
                "the guest does not accept the probe: {}; {}",
                error.reason,
                attached.inside.words()
            ),
            ..error
        },
        Failure::Ended => cannot("the guest does not accept the probe", attached.inside.words()),
    })?);
    Ok(attached)
}

/// Where QEMU listens for the device with this alias.
fn socket(domain: &str, alias: &str) -> Option<String> {
    let tree = Tree::parse(domain).ok()?;
    let devices = tree.find(&["devices"])?;
    let mut channels = tree.children(devices, "channel");
    let channel = channels.find(|channel| {
        tree.children(channel, "alias").any(|element| element.attribute("name") == Some(alias))
    })?;
    tree.children(channel, "source").find_map(|source| source.attribute("path")).map(str::to_owned)
}

/// The probe in the guest, as the agent sees it.
struct Inside {
    system: Arc<dyn System>,
    spec: plan::Environment,
    /// The number by which the agent knows it.
    number: OnceLock<i64>,
    /// How it ended: the agent tells that once.
    end: Mutex<Option<Ended>>,
}

impl Inside {
    /// How it has ended; `None`: it has not.
    fn end(&self) -> Result<Option<Ended>, StartError> {
        let mut end = self.end.lock().unwrap_or_else(PoisonError::into_inner);
        if let (None, Some(number)) = (&*end, self.number.get()) {
            let virsh = Virsh::of(&self.spec, &*self.system)?;
            *end = Agent::of(&virsh, self.spec.attach.as_deref().unwrap_or_default()).ended(*number)?;
        }
        Ok(end.clone())
    }

    /// Waits for its end; what is known of it then.
    fn words(&self) -> String {
        let until = Instant::now() + STOP_TIMEOUT;
        loop {
            match self.end() {
                Ok(Some(end)) => return end.to_string(),
                Ok(None) if Instant::now() > until => return "it is still running in the guest".into(),
                Ok(None) => std::thread::sleep(Duration::from_millis(50)),
                Err(error) => return error.reason,
            }
        }
    }
}

/// The port's stream, with the end that a port does not have.
struct Listener {
    stream: UnixStream,
    inside: Arc<Inside>,
}

impl Read for Listener {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut ended = false;
        loop {
            // The last output before its end may still be on its way, but arrives soon.
            self.stream.set_read_timeout(Some(if ended { SILENCE / 30 } else { SILENCE }))?;
            match self.stream.read(buffer) {
                Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {
                    if ended {
                        return Ok(0);
                    }
                    // An agent that does not answer knows nothing.
                    ended = matches!(self.inside.end(), Ok(Some(_)));
                }
                read => return read,
            }
        }
    }
}

impl Attached {
    fn take_out(&mut self) {
        while let Some(promise) = self.promises.pop() {
            drop(promise);
        }
    }
}

impl Running for Attached {
    fn take_stream(&mut self) -> Option<Stream> {
        self.stream.take()
    }

    fn after_hello(&mut self) -> Result<Vec<Note>, StartError> {
        Ok(threads::stand(&threads::of(self.process, &*self.inside.system), &self.measured))
    }

    fn vcpus(&mut self) -> Vec<(u32, u32)> {
        threads::vcpus(&threads::of(self.process, &*self.inside.system))
    }

    fn evidence(&self, _facts: &Facts) -> Evidence {
        let emulated = threads::of(self.process, &*self.inside.system).iter().any(|thread| thread.emulated);
        guest::evidence(if emulated { Accel::Tcg } else { Accel::Kvm }, &*self.inside.system)
    }

    fn paused(&mut self) -> Option<&'static str> {
        let Inside { spec, system, .. } = &*self.inside;
        is_paused(spec, &**system, spec.attach.as_deref().unwrap_or_default()).then_some("libvirt")
    }

    fn last_words(&mut self) -> Option<String> {
        Some(self.inside.words())
    }

    fn stop(&mut self) {
        if !self.promises.is_empty() {
            // Its own end is the better one.
            self.inside.words();
        }
        self.take_out();
    }
}

impl Drop for Attached {
    fn drop(&mut self) {
        self.take_out();
    }
}

/// The CPUs of a running domain are those that it has, whatever the machine is like.
///
/// # Errors
/// See [`layout`].
pub fn attached(
    spec: &plan::Environment,
    system: &dyn System,
    machine: &Topology,
) -> Result<Layout, StartError> {
    let found = layout(spec, system)?;
    let beyond = found.outside().minus(&machine.online);
    if beyond.is_empty() {
        Ok(found)
    } else {
        Err(cannot("a vCPU is pinned to a CPU that is not online", beyond))
    }
}

#[cfg(test)]
mod tests {
    use tactus_system::Memory;

    use super::*;

    fn thread(vcpu: u32, allowed: &str, priority: u32) -> Thread {
        let allowed = allowed.parse().unwrap();
        Thread {
            id: 7 + vcpu,
            vcpu: Some(vcpu),
            emulated: true,
            allowed,
            policy: u32::from(priority > 0),
            priority,
        }
    }

    #[test]
    fn vcpus_that_float_have_no_place_and_those_with_priority_are_measured_first() {
        let floating = placed(&[thread(0, "0-3", 0), thread(1, "2", 0), thread(2, "3", 0)]);
        assert_eq!((floating.cpus, floating.measuring.to_string()), (vec![(1, 2), (2, 3)], "2".into()));
        let one = placed(&[thread(0, "0-3", 0), thread(1, "2", 0)]);
        assert_eq!((one.cpus, one.measuring.to_string()), (vec![(1, 2)], "1".into()));
        let prior = placed(&[thread(2, "2", 1), thread(1, "1", 0), thread(0, "0", 0)]);
        assert_eq!((prior.cpus, prior.measuring.to_string()), (vec![(0, 0), (1, 1), (2, 2)], "2".into()));
        assert!(placed(&[thread(0, "0-3", 0)]).cpus.is_empty());
    }

    #[test]
    fn only_a_domain_that_runs_is_attached_to() {
        let call = |word| ["virsh", "-q", "-c", "qemu:///system", word];
        let spec = plan::Environment { attach: Some("plc".into()), ..plan::Environment::default() };
        let unknown = Memory::new().answer(&call("domuuid"), 1, "", "error: failed to get domain 'plc'\n");
        let error = layout(&spec, &unknown).unwrap_err();
        assert!(
            error.reason.contains("`plc`") && error.hint.unwrap().contains("list --all"),
            "{}",
            error.reason
        );
        let known = || Memory::new().answer(&call("domuuid"), 0, "aa-bb\n", "");
        let error = layout(&spec, &known().answer(&call("domstate"), 0, "shut off\n", "")).unwrap_err();
        assert!(error.reason.contains("it is shut off") && error.hint.is_some(), "{error}");
        let error = layout(&spec, &known().answer(&call("domstate"), 0, "running\n", "")).unwrap_err();
        assert!(error.reason.contains("not visible"), "{error}");
    }

    #[test]
    fn the_socket_of_a_port_is_found_by_its_alias() {
        // The output of libvirt 9.0.
        let domain = "<domain type='qemu' id='2'><devices>
<channel type='unix'><source mode='bind' path='/var/lib/libvirt/qemu/channel/target/domain-2-plc/org.qemu.guest_agent.0'/>
<target type='virtio' name='org.qemu.guest_agent.0' state='connected'/><alias name='channel0'/></channel>
<channel type='unix'><source mode='bind' path='/var/lib/libvirt/qemu/channel/target/domain-2-plc/org.tactus.1-abc'/>
<target type='virtio' name='org.tactus.1-abc'/><alias name='ua-tactus-1-abc'/></channel></devices></domain>";
        let found = socket(domain, "ua-tactus-1-abc").unwrap();
        assert!(found.ends_with("domain-2-plc/org.tactus.1-abc"), "{found}");
        assert_eq!(socket(domain, "ua-other"), None);
        assert_eq!(socket("<domain", "x"), None);
    }
}
