//! A container of a Kubernetes pod that runs.

use std::io::ErrorKind;
use std::time::Duration;

use tactus_model::facts::Facts;
use tactus_model::message::Note;
use tactus_model::plan;
use tactus_model::topology::Topology;
use tactus_model::{CpuSet, Evidence};
use tactus_system::probe;
use tactus_system::{Invocation, System, boot_id, last_lines};

use crate::support::write_within::write_within;
use crate::support::{self, Piped, cannot, container_name};
use crate::{Environment, Layout, OptionError, OptionKey, Running, Setting, StartError, Stream, Usable};

/// See [`Environment::about`].
pub struct Pod;

/// The entry of the table.
pub static ENTRY: Pod = Pod;

const CLIENT: &str = "kubectl";
/// How long the cluster may take to answer.
const ANSWER: Duration = Duration::from_secs(30);
/// CAP_SYS_NICE, without which a container's threads get no real-time priority.
const CAP_SYS_NICE: u32 = 23;
/// The questions to a container: which machine it is on, and the rights of a process that is executed in it.
const ASKED: &str = "uname -m; cat /proc/sys/kernel/random/boot_id; cat /proc/self/status";
/// Takes the probe in and becomes it: into the first directory that can hold a program, whose name is
/// removed before the program begins.
/// Some shells say only `sh` when asked where they are (busybox): then it is the usual place.
const TAKE_IN: &str = "s=$(command -v sh); case $s in /*) ;; *) s=/bin/sh;; esac; for d in /dev/shm /run /tmp /var/tmp \"$HOME\" /; do f=$d/$1; \
{ printf '#!%s\\n' \"$s\" >\"$f\" && chmod 700 \"$f\" && \"$f\"; } 2>/dev/null && break; \
rm -f \"$f\" 2>/dev/null; f=; done; \
[ -n \"$f\" ] || { echo 'no directory of the container can hold a program' >&2; exit 126; }; \
head -c \"$2\" >\"$f\"; exec 3<\"$f\"; rm -f \"$f\"; export \"$3\"; exec /proc/self/fd/3";

impl Environment for Pod {
    fn kind(&self) -> &'static str {
        "pod"
    }

    fn about(&self) -> &'static str {
        "A container of a running Kubernetes pod, named by `attach`. The probe is sent in and executed as \
`kubectl exec` does, on the CPUs of its cpuset, and leaves no file there. The container needs `sh`, and \
SYS_NICE and IPC_LOCK among its capabilities (`tactus tune files kubernetes` writes such a pod). Run tactus \
on the pod's node."
    }

    fn options(&self) -> &'static [OptionKey] {
        const OPTIONS: [OptionKey; 4] = [
            OptionKey { name: "namespace", about: "the pod's namespace; default: that of kubectl's context" },
            OptionKey {
                name: "container",
                about: "which container of the pod; default: its default, else the first",
            },
            OptionKey {
                name: "context",
                about: "the context of kubectl's configuration; default: the current one",
            },
            OptionKey { name: "client", about: "the client, as `oc` or a path; default: kubectl" },
        ];
        &OPTIONS
    }

    fn check(&self, spec: &plan::Environment, _system: &dyn System) -> Result<(), OptionError> {
        for option in self.options() {
            support::text(spec, option.name, "a name")?;
        }
        Ok(())
    }

    fn can_attach(&self) -> bool {
        true
    }

    fn usable(&self, system: &dyn System) -> Usable {
        if system.find_program(CLIENT).is_none() {
            return Usable::No {
                reason: "kubectl is not installed".into(),
                remedy: "install it (https://kubernetes.io/docs/tasks/tools), or name another client: `client = \"oc\"`".into(),
            };
        }
        Usable::Yes { remark: Some("for a pod that `attach` names in a plan".into()) }
    }

    fn usable_as(&self, spec: &plan::Environment, system: &dyn System) -> Usable {
        let client = option(spec, "client").unwrap_or(CLIENT);
        if system.find_program(client).is_none() {
            return match self.usable(system) {
                no @ Usable::No { .. } if client == CLIENT => no,
                _ => Usable::No {
                    reason: format!("{client} is not installed"),
                    remedy: "install it, or leave out `client` for kubectl".into(),
                },
            };
        }
        if spec.attach.is_none() {
            return Usable::No {
                reason: "the plan does not name a pod: tactus starts none".into(),
                remedy: "add the name of a running one: `attach = \"NAME\"`".into(),
            };
        }
        Usable::Yes { remark: None }
    }

    fn attached(
        &self,
        spec: &plan::Environment,
        system: &dyn System,
        machine: &Topology,
    ) -> Result<Layout, StartError> {
        let name = spec.attach.as_deref().unwrap_or_default();
        let asked = Invocation::new(executing(spec, ["-c", ASKED])).within(ANSWER);
        let answer = system.run(&asked).map_err(|error| cannot(&format!("the pod `{name}`"), error))?;
        if !answer.success() {
            return Err(refused(name, &answer.words()));
        }
        let found = Found::read(&answer.text())
            .ok_or_else(|| refused(name, "its machine, its CPUs and its capabilities could not be read"))?;
        let fail = |reason: String, hint: &str| StartError { reason, hint: Some(hint.to_owned()) };
        if found.boot != boot_id(system) {
            return Err(fail(
                format!("the pod `{name}` is on another machine ({})", found.arch),
                "run tactus on its node (`kubectl get pod -o wide` shows it)",
            ));
        }
        if found.capabilities >> CAP_SYS_NICE & 1 == 0 {
            return Err(fail(
                format!(
                    "processes in the pod `{name}` have no CAP_SYS_NICE: no thread gets a real-time priority"
                ),
                "add SYS_NICE and IPC_LOCK to its container's securityContext.capabilities.add (`tactus tune files kubernetes` \
writes such a pod), and let it run as root",
            ));
        }
        let cpus = found.cpus.and(&machine.online);
        let best = cpus.and(&machine.measuring());
        let measuring = if best.is_empty() { cpus.clone() } else { best };
        Ok(Layout { cpus: cpus.iter().map(|cpu| (cpu, cpu)).collect(), measuring })
    }

    fn start(&self, setting: &Setting<'_>) -> Result<Box<dyn Running>, StartError> {
        let bytes = probe::own().map_err(|error| cannot("no probe", error))?;
        let (marker, id) = setting.guardian.marker();
        let (file, size) = (format!(".{}-probe", container_name(setting)), bytes.len().to_string());
        let variable = format!("{marker}={id}");
        let words = executing(setting.spec, ["-c", TAKE_IN, "sh", &file, &size, &variable]);
        let command = Invocation::new(words).with_env(setting.guardian.marker());
        let name = setting.spec.attach.as_deref().unwrap_or_default();
        let failed = |error| cannot(&format!("the pod `{name}`"), error);
        let mut child = setting.system.spawn(&command).map_err(failed)?;
        let (Some(reader), Some(writer)) = (child.take_stdout(), child.take_stdin()) else {
            return Err(cannot(name, "the client has no stdin and stdout"));
        };
        let mut client = Piped::new(child, Vec::new(), Vec::new());
        match write_within(writer, bytes, setting.patience) {
            Ok(writer) => Ok(Box::new(Executed { client, stream: Some(Stream { reader, writer }) })),
            Err(error) if error.kind() == ErrorKind::TimedOut => {
                Err(refused(name, "it does not accept the probe"))
            }
            Err(_) => Err(refused(name, &client.last_words().unwrap_or_default())),
        }
    }
}

/// The value of a key; one of the wrong kind has been refused by `check`.
fn option<'s>(spec: &'s plan::Environment, key: &str) -> Option<&'s str> {
    support::text(spec, key, "a name").ok().flatten()
}

/// The command that has the pod's `sh` execute something.
fn executing<'w>(spec: &plan::Environment, words: impl IntoIterator<Item = &'w str>) -> Vec<String> {
    let mut command = vec![option(spec, "client").unwrap_or(CLIENT).to_owned()];
    for key in ["context", "namespace"] {
        command.extend(option(spec, key).map(|value| format!("--{key}={value}")));
    }
    command.extend(["exec".to_owned(), "-i".into()]);
    command.extend(option(spec, "container").map(|value| format!("--container={value}")));
    command.extend([spec.attach.clone().unwrap_or_default(), "--".into(), "sh".into()]);
    command.extend(words.into_iter().map(str::to_owned));
    command
}

/// The answers of a container.
struct Found {
    arch: String,
    boot: String,
    capabilities: u64,
    cpus: CpuSet,
}

impl Found {
    fn read(answer: &str) -> Option<Self> {
        let mut lines = answer.lines();
        let (arch, boot) = (lines.next()?.trim().to_owned(), lines.next()?.trim().to_owned());
        let field = |key: &str| lines.clone().find_map(|line| line.strip_prefix(key)).map(str::trim);
        let capabilities = u64::from_str_radix(field("CapEff:")?, 16).ok()?;
        let cpus: CpuSet = field("Cpus_allowed_list:")?.parse().ok()?;
        (!cpus.is_empty() && !boot.is_empty()).then_some(Self { arch, boot, capabilities, cpus })
    }
}

/// The client's words, with what helps against the known ones.
fn refused(name: &str, words: &str) -> StartError {
    let hints = [
        (
            "executable file not found",
            "the image has no shell, which is needed to put the probe in. Give the pod a sidecar that has \
`sh`, and name it with `container`; or measure the container on its node, by kind podman or docker",
        ),
        (
            "no such file or directory",
            "the image has no shell: give the pod a sidecar that has `sh`, and name it with `container`",
        ),
        (
            "(NotFound)",
            "is the name right, and the namespace? `kubectl get pods --all-namespaces` lists them",
        ),
        ("(Forbidden)", "this user needs the right to create pods/exec in that namespace"),
        ("container not found", "name a running container of the pod with `container`"),
        ("cannot exec into a container in a completed pod", "the pod has ended: name a running one"),
        ("connection to the server", "does kubectl reach the cluster? check with `kubectl cluster-info`"),
        ("can hold a program", "mount an emptyDir with `medium: Memory` on /tmp"),
    ];
    let hint = hints.iter().find(|(word, _)| words.contains(word)).map(|(_, hint)| (*hint).to_owned());
    // Only the last line: the client's earlier attempts do not matter.
    let last = last_lines(words, 1);
    StartError { reason: format!("the pod `{name}` cannot be attached to: {last}"), hint }
}

/// A probe in a pod, and the client that carries its stream.
struct Executed {
    client: Piped,
    stream: Option<Stream>,
}

impl Running for Executed {
    fn take_stream(&mut self) -> Option<Stream> {
        self.stream.take()
    }

    fn after_hello(&mut self) -> Result<Vec<Note>, StartError> {
        self.client.after_hello()
    }

    fn evidence(&self, facts: &Facts) -> Evidence {
        self.client.evidence(facts)
    }

    fn last_words(&mut self) -> Option<String> {
        self.client.last_words()
    }

    fn stop(&mut self) {
        self.client.stop();
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use tactus_system::Memory;

    use super::*;

    const BOOT: &str = "0f1e2d3c-0000-4000-8000-000000000000";

    fn spec(options: &[(&str, &str)]) -> plan::Environment {
        let options = options.iter().map(|(key, value)| ((*key).to_owned(), (*value).into())).collect();
        plan::Environment {
            kind: "pod".into(),
            attach: Some("plc-0".into()),
            options,
            ..plan::Environment::default()
        }
    }

    fn machine() -> Topology {
        let cpus: CpuSet = "0-7".parse().unwrap();
        Topology { online: cpus.clone(), allowed: cpus, ..Topology::default() }
    }

    fn attached(code: i32, stdout: &str, stderr: &str) -> Result<Layout, StartError> {
        let system = Memory::new().file("/proc/sys/kernel/random/boot_id", format!("{BOOT}\n")).answer(
            &["kubectl", "exec", "-i", "plc-0", "--", "sh"],
            code,
            stdout,
            stderr,
        );
        ENTRY.attached(&spec(&[]), &system, &machine())
    }

    fn answer(boot: &str, capabilities: &str, cpus: &str) -> String {
        format!("x86_64\n{boot}\nName:\tcat\nCapEff:\t{capabilities}\nCpus_allowed_list:\t{cpus}\n")
    }

    #[test]
    fn the_layout_is_that_of_the_pods_cpuset() {
        let layout = attached(0, &answer(BOOT, "00000000a88425fb", "4-5"), "").unwrap();
        assert_eq!(layout.cpus, [(4, 4), (5, 5)]);
    }

    #[test]
    fn a_pod_that_cannot_be_measured_is_refused_with_what_would_help() {
        let elsewhere = attached(0, &answer("another", "00000000a88425fb", "4"), "").unwrap_err();
        assert!(elsewhere.reason.contains("another machine"), "{elsewhere}");
        let weak = attached(0, &answer(BOOT, "00000000a80425fb", "4"), "").unwrap_err();
        assert!(weak.reason.contains("CAP_SYS_NICE") && weak.hint.unwrap().contains("securityContext"));
        for cut in ["", "x86_64\n", "x86_64\n\nCapEff:\tzz\n", &answer(BOOT, "00000000a88425fb", "")] {
            assert!(attached(0, cut, "").is_err(), "{cut}");
        }
    }

    #[test]
    fn what_kubectl_says_is_told_with_its_remedy() {
        // Written after Kubernetes' documentation and sources: no cluster was at hand.
        for (words, remedy) in [
            ("Error from server (NotFound): pods \"plc-0\" not found", "namespace"),
            (
                "Error from server (Forbidden): pods \"plc-0\" is forbidden: User \"ada\" cannot create resource \"pods/exec\"",
                "pods/exec",
            ),
            (
                "error: Internal error occurred: error executing command in container: failed to exec in container: \
failed to start exec \"0\": OCI runtime exec failed: exec failed: unable to start container process: exec: \"sh\": executable \
file not found in $PATH: unknown",
                "sidecar",
            ),
            (
                "error: cannot exec into a container in a completed pod; current phase is Succeeded",
                "has ended",
            ),
            (
                "The connection to the server localhost:8080 was refused - did you specify the right host or port?",
                "reach",
            ),
        ] {
            let error = attached(1, "", words).unwrap_err();
            assert!(error.reason.contains(words), "{error}");
            assert!(error.hint.unwrap().contains(remedy), "{words}");
        }
    }

    #[test]
    fn every_key_reaches_the_client() {
        let spec =
            spec(&[("client", "oc"), ("namespace", "line1"), ("context", "plant"), ("container", "rt")]);
        let words = executing(&spec, ["-c", "true"]).join(" ");
        assert_eq!(words, "oc --context=plant --namespace=line1 exec -i --container=rt plc-0 -- sh -c true");
    }

    #[test]
    fn a_pod_must_be_named_and_its_client_be_there() {
        let reason = |spec: &plan::Environment, machine: &Memory| match ENTRY.usable_as(spec, machine) {
            Usable::Yes { .. } => "usable".to_owned(),
            Usable::No { reason, .. } => reason,
        };
        let with = Memory::new().program("kubectl");
        assert_eq!(reason(&spec(&[]), &with), "usable");
        assert!(reason(&spec(&[]), &Memory::new()).contains("kubectl is not installed"));
        assert!(reason(&spec(&[("client", "oc")]), &with).contains("oc is not installed"));
        let nameless = plan::Environment { attach: None, ..spec(&[]) };
        assert!(reason(&nameless, &with).contains("does not name a pod"));
    }

    proptest! {
        #[test]
        fn no_answer_is_too_strange(answer in "(.|\n){0,200}") {
            let _ = attached(0, &answer, "");
        }
    }
}
