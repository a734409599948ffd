//! QEMU by itself.

use tactus_audit::Arch;
use tactus_model::text::quoted;

use super::comment::{Marks, comment, header};
use super::libvirt::placement_notes;
use super::{
    Accel, File, GenerateError, GenerateRequest, Generator, Output, Page, Placement, Purpose, guest,
};

/// The entry of the table.
pub static ENTRY: Generator = Generator {
    name: "qemu",
    about: "Two scripts for a real-time guest without libvirt. One starts QEMU on the housekeeping CPUs, stopped, \
with its memory locked, reserved and on the node of its CPUs. The other asks QEMU's monitor for the vCPU threads, \
and gives each its isolated CPU and FIFO priority 1. Only then the guest runs. With --accel tcg features that QEMU \
cannot emulate are left out.",
    purpose: Purpose::Guest,
    generate,
};

/// An argument, its value, its check, and why.
type Argument = (&'static str, String, &'static str, &'static str);

fn generate(request: &GenerateRequest<'_>) -> Result<Output, GenerateError> {
    let placement = request.placement(2)?;
    let program = match request.subject.machine.as_str() {
        machine @ ("x86_64" | "aarch64") => format!("qemu-system-{machine}"),
        machine => {
            return Err(GenerateError::Machine { what: "a QEMU command line", machine: machine.to_owned() });
        }
    };
    let name = &request.options.name;
    let mut notes = placement_notes(&placement);
    if request.accel() == Accel::Tcg {
        let x86 = request.subject.is(Arch::X86);
        let dropped: &[&str] = if x86 {
            &[
                "cpu-passthrough: the guest gets every feature that QEMU can emulate (-cpu max)",
                "kvm-hint-dedicated",
                "guest-tsc-deadline",
                "vpmu-off",
                "irqchip-in-kernel",
            ]
        } else {
            &[
                "cpu-passthrough: the guest gets every feature that QEMU can emulate (-cpu max)",
                "vpmu-off",
                "irqchip-in-kernel",
            ]
        };
        notes.extend(
            dropped.iter().map(|what| format!("dropped, because QEMU emulates the processor (TCG): {what}")),
        );
    }
    let inside = format!(
        "guest-isolation: set on the command line of the guest's kernel: {}",
        guest::kernel_line(request, &placement)
    );
    let mut more: Vec<&str> = vec![&inside];
    more.extend(notes.iter().map(String::as_str));
    let install = format!(
        "keep both scripts in one directory; as root: ./{name}-qemu.sh -drive file=...,format=raw,cache=none,aio=native,if=virtio (or -kernel ...)"
    );
    let undo = format!("end the guest, or kill QEMU; nothing else is changed. Sockets: /run/{name}.qmp");

    let mut text = "#!/bin/sh\n".to_owned();
    text += &header(request, Marks::Hash, "qemu", &install, &undo, &more);
    text += "set -eu\nhere=$(dirname \"$0\")\n\n";
    for (argument, value, check, why) in arguments(request, &placement)? {
        text += &comment("", &format!("{check}: {why}"));
        text += &if value.is_empty() {
            format!("set -- {argument} \"$@\"\n")
        } else {
            format!("set -- {argument} {} \"$@\"\n", quoted(&value))
        };
    }
    text += "\n";
    text += &comment(
        "",
        "emulator-pin: QEMU and all its threads start on the housekeeping CPUs. QEMU=, QMP= and HOUSE= in the \
environment select another program, socket or set of CPUs.",
    );
    text += &format!("qmp=${{QMP:-/run/{name}.qmp}}\n");
    text += &format!(
        "taskset -c \"${{HOUSE:-{}}}\" \"${{QEMU:-{program}}}\" -qmp \"unix:$qmp,server=on,wait=off\" \"$@\" &\nqemu=$!\n",
        placement.emulator
    );
    text += "trap 'kill \"$qemu\" 2>/dev/null || :' INT TERM\n";
    text += &comment(
        "",
        "vcpu-pin, vcpu-fifo: the vCPUs go to their CPUs while the guest is stopped; then it runs.",
    );
    text += &format!(
        "if ! python3 \"$here/{name}-pin.py\" \"$qmp\"; then\n  kill \"$qemu\"\n  wait \"$qemu\" || :\n  exit 1\nfi\nwait \"$qemu\"\n"
    );

    let pin = pin(request, &placement);
    let file = |name: String, text| File {
        belongs: format!("anywhere, together: ./{name}"),
        name,
        mode: 0o755,
        text,
    };
    Ok(Output {
        files: vec![file(format!("{name}-qemu.sh"), text), file(format!("{name}-pin.py"), pin)],
        notes,
    })
}

fn arguments(request: &GenerateRequest<'_>, placement: &Placement) -> Result<Vec<Argument>, GenerateError> {
    let (memory, page) = request.memory()?;
    let x86 = request.subject.is(Arch::X86);
    let kvm = request.accel() == Accel::Kvm;
    let machine = match (x86, kvm) {
        (true, true) => "q35,accel=kvm,kernel-irqchip=on,hpet=off",
        (true, false) => "q35,accel=tcg,hpet=off",
        (false, true) => "virt,accel=kvm,gic-version=host",
        (false, false) => "virt,accel=tcg,gic-version=3",
    };
    let cpu = match (x86, kvm) {
        (true, true) => "host,tsc-deadline=on,pmu=off,kvm-hint-dedicated=on",
        (false, true) => "host,pmu=off",
        (_, false) => "max",
    };
    let backend = match page {
        Page::Base => format!("memory-backend-ram,id=m0,size={memory},prealloc=on,merge=off"),
        Page::M2 | Page::G1 => {
            let path = if page == Page::G1 { "/dev/hugepages1G" } else { "/dev/hugepages" };
            format!("memory-backend-file,id=m0,size={memory},mem-path={path},prealloc=on,merge=off")
        }
    };
    let bind = placement.node.map(|node| format!(",host-nodes={node},policy=bind")).unwrap_or_default();
    let memory_why = match page {
        Page::G1 => {
            "pages of 1 GiB, allocated before the guest starts, not merged, on the node of its CPUs. Reserve them at \
boot (generate grub) and mount them: mount -t hugetlbfs -o pagesize=1G none /dev/hugepages1G"
        }
        Page::M2 => {
            "pages of 2 MiB, allocated before the guest starts, not merged, on the node of its CPUs. Reserve them at \
boot (generate grub)"
        }
        Page::Base => "all pages allocated before the guest starts, not merged, on the node of its CPUs",
    };
    let (count, threads) = (placement.count(), placement.threads);
    let topology = format!("{count},sockets=1,cores={},threads={threads}", count / threads);
    Ok(vec![
        ("-S", String::new(), "vcpu-pin", "it is stopped until its vCPUs are on their CPUs"),
        (
            "-name",
            format!("{},debug-threads=on", request.options.name),
            "vcpu-pin",
            "the threads have names that tools show",
        ),
        (
            "-machine",
            format!("{machine},mem-merge=off,memory-backend=m0"),
            if kvm { "irqchip-in-kernel" } else { "hpet" },
            if kvm {
                "interrupts do not leave the kernel; no slow clock, no merged memory"
            } else {
                "no slow clock, no merged memory"
            },
        ),
        (
            "-cpu",
            cpu.into(),
            "cpu-passthrough",
            if kvm {
                "the host's processor, its deadline timer, no counters to switch; the hint (kvm-hint-dedicated) is \
wrong if CPUs are shared. Risk: no migration to other models"
            } else {
                "every feature that QEMU can emulate"
            },
        ),
        ("-smp", topology, "llc-sharing", "the guest knows which of its CPUs share a core"),
        ("-m", memory.to_string(), "guest-hugepages", "the size of the object below"),
        ("-object", backend + &bind, "guest-hugepages", memory_why),
        (
            "-overcommit",
            "mem-lock=on".into(),
            "mem-lock",
            "all of QEMU is locked into memory; needs CAP_IPC_LOCK or the limit memlock. With cpu-pm=on the guest \
idles without exits (guest-idle-ownership), and may bring its CPUs into deep idle states",
        ),
        ("-nodefaults", String::new(), "no-extra-devices", "no default devices"),
        ("-display", "none".into(), "no-extra-devices", "no screen either"),
    ])
}

fn pin(request: &GenerateRequest<'_>, placement: &Placement) -> String {
    let pins = placement
        .cpus
        .iter()
        .enumerate()
        .map(|(vcpu, cpu)| format!("{vcpu}: {cpu}"))
        .collect::<Vec<_>>()
        .join(", ");
    let undo = "nothing: the threads end with the guest";
    let head = header(request, Marks::Hash, "qemu", "the other script calls it", undo, &[]);
    format!(
        r#"#!/usr/bin/env python3
{head}"""Pins the vCPUs of a stopped guest, makes them FIFO, and lets the guest run: pin.py SOCKET."""

import json
import os
import socket
import sys
import time

# vcpu-pin: each vCPU has a dedicated isolated CPU; vCPU 0 does housekeeping inside the guest.
PINS = {{{pins}}}
# vcpu-fifo: above every ordinary thread, vCPU 0 too: the others wait for locks that it holds, and it has a
# dedicated CPU here. Nova and KubeVirt leave vCPU 0 out, since their emulator threads may share its CPU.
# Safe only with the pins: other threads on the CPU of a busy FIFO thread never run.
PRIORITY = 1


def connect(path):
    for _ in range(100):
        try:
            monitor = socket.socket(socket.AF_UNIX)
            monitor.settimeout(30)
            monitor.connect(path)
            return monitor.makefile("rw")
        except OSError:
            monitor.close()
            time.sleep(0.1)
    sys.exit(f"error: {{path}}: QEMU's monitor does not answer")


def ask(monitor, command):
    monitor.write(json.dumps({{"execute": command}}) + "\n")
    monitor.flush()
    for line in monitor:
        answer = json.loads(line)
        if "error" in answer:
            sys.exit(f"error: QEMU refuses {{command}}: {{answer['error']['desc']}}")
        if "return" in answer:
            return answer["return"]
    sys.exit(f"error: QEMU ended at {{command}}")


def main():
    monitor = connect(sys.argv[1])
    ask(monitor, "qmp_capabilities")
    vcpus = {{cpu["cpu-index"]: cpu["thread-id"] for cpu in ask(monitor, "query-cpus-fast")}}
    if set(vcpus) != set(PINS):
        sys.exit(f"error: the guest has the vCPUs {{sorted(vcpus)}}, the pins are for {{sorted(PINS)}}")
    for vcpu, thread in sorted(vcpus.items()):
        try:
            os.sched_setaffinity(thread, {{PINS[vcpu]}})
            os.sched_setscheduler(thread, os.SCHED_FIFO, os.sched_param(PRIORITY))
        except OSError as error:
            sys.exit(f"error: vCPU {{vcpu}} (thread {{thread}}) on CPU {{PINS[vcpu]}}: {{error}}")
    ask(monitor, "cont")


main()
"#
    )
}

#[cfg(test)]
mod tests {
    use super::super::testing::{shown, three};
    use super::super::{Accel, GenerateError};
    use super::ENTRY;

    #[test]
    fn the_scripts_of_each_machine() {
        for (name, machine) in three() {
            insta::assert_snapshot!(format!("qemu_{name}"), shown(&machine.generate(&ENTRY).unwrap()));
        }
    }

    #[test]
    fn an_emulated_guest_says_what_it_lost() {
        let [(_, machine), ..] = three();
        let output = machine.options(|options| options.accel = Some(Accel::Tcg)).generate(&ENTRY).unwrap();
        let text = &output.files[0].text;
        assert!(text.contains("\nset -- -cpu max ") && !text.contains("set -- -cpu host"));
        assert!(output.notes.iter().filter(|note| note.contains("dropped")).count() >= 4);
    }

    #[test]
    fn uneven_memory_and_unfit_names_are_refused() {
        let [(_, machine), ..] = three();
        let uneven = machine.clone().options(|options| {
            options.memory = Some("1025M".parse().unwrap());
            options.page = Some(super::Page::G1);
        });
        assert!(matches!(uneven.generate(&ENTRY).unwrap_err(), GenerateError::UnevenMemory { .. }));
        for bad in ["", "-a", "A", "a b", "a;b", "a'", "é", "../a", &"a".repeat(41)] {
            let named = machine.clone().options(|options| options.name = bad.to_owned());
            assert!(matches!(named.generate(&ENTRY).unwrap_err(), GenerateError::BadName(_)), "{bad}");
        }
    }
}
