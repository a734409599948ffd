//! Attaching to a libvirt domain that runs: one with a shell and the guest agent, as a user's has them, that
//! knows nothing of tactus.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::rc::Rc;
use std::time::{Duration, Instant};

use tactus_environment::kernel::{self, Cpio};
use tactus_environment::{Environment, Usable, find};
use tactus_model::Evidence;
use tactus_model::message::{End, FromProbe};
use tactus_model::plan;
use tactus_system::Real;
use tactus_system::topology;

use super::libvirtd::Libvirtd;
use super::{Conversation, PATIENCE, beside_others, leftovers, skipped, victim};

/// The programs of the guest.
const PROGRAMS: [&str; 2] = ["busybox", "qemu-ga"];
/// Its first process: a shell that becomes the agent.
const INIT: &str = "#!BUSYBOX sh
BUSYBOX mkdir -p /bin /run /proc /sys /dev
BUSYBOX --install -s /bin
export PATH=/bin
mount -t devtmpfs d /dev; mount -t proc p /proc; mount -t sysfs s /sys; mount -t tmpfs t /run
for m in $(cat /modules/list); do insmod /modules/$m.ko; done
while :; do
  for p in /sys/class/virtio-ports/*; do [ \"$(cat $p/name)\" = org.qemu.guest_agent.0 ] && break 2; done
  sleep 0.1
done
exec AGENT -m virtio-serial -p /dev/${p##*/} -t /run
";

/// A domain that runs until this is dropped.
struct Domain {
    libvirtd: Rc<Libvirtd>,
    name: &'static str,
    spec: plan::Environment,
    _dir: tempfile::TempDir,
}

fn kind() -> &'static (dyn Environment + Sync) {
    find("libvirt").unwrap()
}

fn program(name: &str) -> Option<PathBuf> {
    ["/usr/bin", "/usr/sbin", "/bin", "/sbin"]
        .iter()
        .map(|dir| Path::new(dir).join(name))
        .find(|p| p.exists())
}

/// A program and its libraries.
fn with_libraries(path: &Path) -> BTreeSet<PathBuf> {
    let said = Command::new("ldd").arg(path).output().unwrap();
    let said = String::from_utf8_lossy(&said.stdout).into_owned();
    let words = said.split_whitespace().filter(|word| word.starts_with('/')).map(PathBuf::from);
    words.filter(|word| word.exists()).chain([path.to_owned()]).collect()
}

/// The initramfs of the guest.
fn initramfs(agent: &Path, busybox: &Path, modules: &[kernel::Module]) -> Vec<u8> {
    let mut files = BTreeMap::new();
    for path in with_libraries(agent).into_iter().chain(with_libraries(busybox)) {
        files.insert(path.clone(), fs::read(&path).unwrap());
    }
    for module in modules {
        files.insert(format!("/modules/{}.ko", module.name).into(), module.bytes.clone());
    }
    let list: Vec<&str> = modules.iter().map(|module| module.name.as_str()).collect();
    files.insert("/modules/list".into(), list.join("\n").into_bytes());
    let init = INIT.replace("BUSYBOX", busybox.to_str().unwrap()).replace("AGENT", agent.to_str().unwrap());
    files.insert("/init".into(), init.into_bytes());
    let mut archive = Cpio::new();
    let dirs: BTreeSet<&Path> = files.keys().flat_map(|path| path.ancestors().skip(1)).collect();
    for dir in dirs.into_iter().filter(|dir| dir.parent().is_some()) {
        archive.directory(dir.strip_prefix("/").unwrap().to_str().unwrap());
    }
    archive.directory("dev");
    archive.device("dev/console", 0o600, 5, 1);
    for (path, bytes) in &files {
        archive.file(path.strip_prefix("/").unwrap().to_str().unwrap(), 0o755, bytes);
    }
    archive.finish()
}

impl Domain {
    /// One with an agent; `None`, and says so, where there cannot be one.
    fn start() -> Option<Self> {
        let programs = PROGRAMS.map(program);
        let [Some(busybox), Some(agent)] = programs else {
            skipped("attach to libvirt: busybox or qemu-ga (the package qemu-guest-agent) is not installed");
            return None;
        };
        let Some(libvirtd) = Libvirtd::start() else {
            skipped("attach to libvirt: libvirtd is not installed, or this is not root");
            return None;
        };
        let Ok(kernel) = kernel::chosen(kernel::OWN, &Real) else {
            skipped("attach to libvirt: there is no kernel for a guest");
            return None;
        };
        let modules =
            kernel::needed(kernel.modules_dir.as_deref(), &["virtio_pci", "virtio_console"], &Real).unwrap();
        let bootable = kernel::bootable(&kernel.path, &Real).unwrap();
        let dir = tempfile::tempdir().unwrap();
        let initrd = dir.path().join("initrd");
        fs::write(&initrd, initramfs(&agent, &busybox, &modules)).unwrap();
        let boots = format!(
            "<kernel>{}</kernel><initrd>{}</initrd><cmdline>console=ttyS0 panic=-1 tsc=reliable clocksource=tsc</cmdline>",
            bootable.path.display(),
            initrd.display()
        );
        let agent = "<channel type='unix'><target type='virtio' name='org.qemu.guest_agent.0'/></channel>";
        let domain = Self::create(&Rc::new(libvirtd), dir, "plc", &boots, agent);
        let until = Instant::now() + PATIENCE;
        while !domain.asks("{\"execute\":\"guest-ping\"}").0 {
            assert!(Instant::now() < until, "the guest's agent does not come up");
            std::thread::sleep(Duration::from_millis(200));
        }
        Some(domain)
    }

    fn create(
        libvirtd: &Rc<Libvirtd>,
        dir: tempfile::TempDir,
        name: &'static str,
        boots: &str,
        devices: &str,
    ) -> Self {
        let cpus: Vec<u32> = topology(&Real).allowed.iter().collect();
        let pins: String = (0..2)
            .map(|vcpu| format!("<vcpupin vcpu='{vcpu}' cpuset='{}'/>", cpus[vcpu % cpus.len()]))
            .collect();
        let text = format!(
            "<domain type='qemu'><name>{name}</name><memory unit='MiB'>256</memory><vcpu>2</vcpu>
<os><type arch='{}' machine='q35'>hvm</type>{boots}</os><cputune>{pins}</cputune><features><acpi/><apic/></features>
<devices>{devices}</devices></domain>",
            kernel::OWN
        );
        let file = dir.path().join("domain.xml");
        fs::write(&file, text).unwrap();
        let (created, said) = libvirtd.virsh(&["create", file.to_str().unwrap()]);
        assert!(created, "{said}");
        let spec = super::spec("libvirt", &[("uri", &libvirtd.uri())]);
        let spec = plan::Environment { attach: Some(name.into()), ..spec };
        Self { libvirtd: Rc::clone(libvirtd), name, spec, _dir: dir }
    }

    fn asks(&self, text: &str) -> (bool, String) {
        self.libvirtd.virsh(&["qemu-agent-command", self.name, text])
    }

    /// The output of a script in the guest, by the agent.
    fn says(&self, script: &str) -> String {
        let words = serde_json::json!({"path": "/bin/sh", "arg": ["-c", script], "capture-output": true});
        let call = serde_json::json!({"execute": "guest-exec", "arguments": words});
        let (good, answer) = self.asks(&call.to_string());
        assert!(good, "{answer}");
        let answer: serde_json::Value = serde_json::from_str(&answer).unwrap();
        let call = serde_json::json!({"execute": "guest-exec-status", "arguments": {"pid": answer["return"]["pid"]}});
        loop {
            let answer: serde_json::Value = serde_json::from_str(&self.asks(&call.to_string()).1).unwrap();
            if answer["return"]["exited"] == true {
                use base64::Engine;
                let text = answer["return"]["out-data"].as_str().unwrap_or_default();
                let text = base64::engine::general_purpose::STANDARD.decode(text).unwrap();
                return String::from_utf8(text).unwrap();
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Everything in the guest and in the domain that may be ours.
    fn holds(&self) -> Vec<String> {
        let said = self.says(
            "ls -d /run/tactus* /tmp/tactus* /dev/shm/tactus* 2>/dev/null; cat /sys/class/virtio-ports/*/name; \
for f in $(grep -l TACTUS_RUN= /proc/[0-9]*/environ 2>/dev/null); do echo tactus runs: $f; done",
        );
        let (_, document) = self.libvirtd.virsh(&["dumpxml", self.name]);
        let devices =
            document.lines().filter(|line| line.contains("org.tactus") || line.contains("ua-tactus"));
        let lines = said.lines().filter(|line| line.to_lowercase().contains("tactus")).chain(devices);
        lines.map(str::to_owned).collect()
    }

    /// Waits until nothing of ours is left in it; the container or guest itself runs as before.
    fn is_as_it_was(&self, when: &str) {
        let until = Instant::now() + Duration::from_secs(20);
        while let left @ [_, ..] = &self.holds()[..] {
            assert!(Instant::now() < until, "{when}: {left:?}");
            std::thread::sleep(Duration::from_millis(200));
        }
        assert_eq!(self.libvirtd.virsh(&["domstate", self.name]).1, "running", "{when}");
    }
}

#[test]
fn a_running_domain_is_measured_by_way_of_its_agent_and_left_as_it_was() {
    let _turn = beside_others();
    let Some(domain) = Domain::start() else { return };
    refusals(&domain.libvirtd);
    let environment = kind();
    assert!(environment.can_attach());
    assert_eq!(environment.usable_as(&domain.spec, &Real), Usable::Yes { remark: None });
    let layout = environment.attached(&domain.spec, &Real, &topology(&Real)).unwrap();
    assert_eq!((layout.inside().to_string(), layout.measuring.to_string()), ("0,1".into(), "1".into()));
    let mut talk = Conversation::begin(environment, &domain.spec).unwrap_or_else(|error| panic!("{error}"));
    let facts = talk.greet();
    assert_eq!(talk.running.evidence(&facts), Evidence::Emulated);
    let version = domain.says("cat /proc/version");
    assert_eq!(
        facts.text("/proc/version").map(str::trim),
        Some(version.trim()),
        "the probe is in that guest"
    );
    let notes: Vec<String> = talk.running.after_hello().unwrap().into_iter().map(|note| note.text).collect();
    assert!(notes[0].contains("vCPU 0 on CPU ") && notes[0].contains("vCPU 1 on CPU "), "{notes:?}");
    assert!(
        notes.iter().any(|note| note.contains("vCPU 1 is measured but has no real-time priority")),
        "{notes:?}"
    );
    for (vcpu, thread) in talk.running.vcpus() {
        let name = fs::read_to_string(format!("/proc/{thread}/comm")).unwrap();
        assert!(name.starts_with(&format!("CPU {vcpu}/")), "{name}");
    }
    assert_eq!(talk.running.vcpus().len(), 2);
    assert!(!domain.holds().is_empty(), "what is looked for can be seen");
    talk.measure_for(Duration::from_millis(500));
    let mut cycles = 0;
    loop {
        match talk.hear(PATIENCE) {
            FromProbe::Tick(tick) => cycles += tick.now.cycles,
            FromProbe::Done(done) => break assert_eq!(done.end, End::Complete, "{:?}", done.reason),
            _ => {}
        }
    }
    assert!(cycles >= 10, "{cycles} cycles");
    let id = talk.id().to_owned();
    talk.end();
    leftovers::none_within(&id, Duration::from_secs(5))
        .unwrap_or_else(|left| panic!("libvirt leaves {left}"));
    domain.is_as_it_was("after its end");

    // The stream may end before the first word.
    let talk = Conversation::begin(environment, &domain.spec).unwrap_or_else(|error| panic!("{error}"));
    drop(talk);
    domain.is_as_it_was("before the first word");

    // Its probe dies.
    let mut talk = Conversation::begin(environment, &domain.spec).unwrap_or_else(|error| panic!("{error}"));
    talk.greet();
    domain.says("for p in /proc/[0-9]*; do readlink $p/exe | grep -q tactus && kill -9 ${p##*/}; done");
    assert!(talk.hears_the_end(), "the stream goes on");
    let words = talk.running.last_words().unwrap_or_default();
    assert!(words.contains("signal 9"), "{words}");
    talk.end();
    domain.is_as_it_was("after its probe's death");

    // The run is killed.
    let id = victim::is_killed("libvirt", &domain.spec, |_| !domain.holds().is_empty());
    leftovers::none_within(&id, Duration::from_secs(25))
        .unwrap_or_else(|left| panic!("libvirt leaves {left}"));
    domain.is_as_it_was("after kill -9");
}

/// A domain without an agent and one that is not there are refused with the remedy.
fn refusals(libvirtd: &Rc<Libvirtd>) {
    let domain = Domain::create(libvirtd, tempfile::tempdir().unwrap(), "mute", "", "");
    let refused = |spec: &plan::Environment| kind().attached(spec, &Real, &topology(&Real)).unwrap_err();
    let error = refused(&domain.spec);
    assert!(
        error.reason.contains("`mute`") && error.hint.unwrap().contains("org.qemu.guest_agent.0"),
        "{}",
        error.reason
    );
    domain.libvirtd.virsh(&["suspend", "mute"]);
    assert!(refused(&domain.spec).reason.contains("it is paused"));
    let error = refused(&plan::Environment { attach: Some("nobody".into()), ..domain.spec.clone() });
    assert!(error.reason.contains("`nobody`") && error.hint.is_some(), "{error}");
    let mut both = domain.spec.clone();
    both.options.insert("memory".into(), "1GiB".into());
    assert_eq!(kind().check(&both, &Real).unwrap_err().key, "memory");
    domain.libvirtd.virsh(&["destroy", "mute"]);
}
