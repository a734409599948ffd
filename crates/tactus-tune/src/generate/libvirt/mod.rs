//! A libvirt domain.

mod domain;
mod edit;
mod limits;
mod place;
mod settings;
#[cfg(test)]
mod tests;
mod threads;
mod tree;

pub use domain::patch;
pub use place::{Placed, place};
use tactus_audit::Arch;
pub use tree::Tree;

use super::comment::{Marks, header, xml_comment};
use super::{Accel, File, GenerateError, GenerateRequest, Generator, Output, Placement, Purpose, guest};

/// The entry of the table.
pub static ENTRY: Generator = Generator {
    name: "libvirt",
    about: "A libvirt domain of a real-time guest, after libvirt's own guide: each vCPU pinned to an isolated CPU of \
one NUMA node and run with FIFO priority 1, everything else of it on the housekeeping CPUs, its memory locked, in huge \
pages and on the same node, no device that it can do without. With --patch a user's own domain is changed instead, and \
everything else in it stays byte for byte as it is. With --accel tcg what QEMU cannot emulate is left out.",
    purpose: Purpose::Guest,
    generate,
};

fn generate(request: &GenerateRequest<'_>) -> Result<Output, GenerateError> {
    let guest = settings::guest(request)?;
    let (arch, machine) = match request.subject.machine.as_str() {
        "x86_64" => ("x86_64", "q35"),
        "aarch64" => ("aarch64", "virt"),
        machine => return Err(GenerateError::Machine { what: "a domain", machine: machine.to_owned() }),
    };
    let name = &request.options.name;
    let mut notes = placement_notes(&guest.placement);
    if guest.accel == Accel::Tcg {
        notes.extend(settings::drops(request));
    }
    let line = guest::kernel_line(request, &guest.placement);
    let inside = format!("Inside the guest (guest-isolation), its kernel's command line: {line}");
    let slice = format!(
        "slice-cpus: where systemd limits machine.slice (AllowedCPUs=), it must allow {} and {}.",
        guest.placement.set(),
        guest.placement.emulator
    );
    let mut more = vec![inside, slice];
    more.extend(notes.iter().cloned());
    let more: Vec<&str> = more.iter().map(String::as_str).collect();
    let mut text = header(
        request,
        Marks::Xml,
        "libvirt",
        &format!("edit the disk and the network, then virsh define {name}.xml and virsh start {name}"),
        &format!("virsh destroy {name}; virsh undefine {name}"),
        &more,
    );
    text += &skeleton(request, arch, machine, guest.placement.count());
    for setting in settings::settings(&guest) {
        edit::apply(&mut text, &setting).map_err(|reason| GenerateError::Domain {
            file: format!("{name}.xml"),
            reason,
            hint: "this is a mistake in tactus".into(),
        })?;
    }
    let belongs = format!("libvirt (virsh define {name}.xml)");
    Ok(Output { files: vec![File { name: format!("{name}.xml"), belongs, mode: 0o644, text }], notes })
}

/// What any guest has, in the request in which libvirt writes it.
fn skeleton(request: &GenerateRequest<'_>, arch: &str, machine: &str, vcpus: usize) -> String {
    let name = &request.options.name;
    let x86 = request.subject.is(Arch::X86);
    // arm64's `virt` boots a disk by UEFI.
    let os = if x86 { "<os>" } else { "<os firmware='efi'>" };
    let apic = if x86 { "<apic/>" } else { "<gic version='3'/>" };
    let console =
        xml_comment("    ", "console-logging: for emergencies; keep the guest's kernel quiet on it");
    let disk = xml_comment("    ", "disk-image: raw, allocated in full, on a local disk");
    let net = xml_comment(
        "    ",
        "io-path: vhost works in the host's kernel. A whole device (hostdev, vfio-passthrough) is better still",
    );
    let queues = vcpus.clamp(1, 8);
    format!(
        "<domain type='kvm'>
  <name>{name}</name>
  {os}
    <type arch='{arch}' machine='{machine}'>hvm</type>
    <boot dev='hd'/>
  </os>
  <features>
    <acpi/>
    {apic}
  </features>
  <clock offset='utc'/>
  <devices>
{disk}    <disk type='file' device='disk'>
      <driver name='qemu' type='raw' cache='none' io='native' iothread='1'/>
      <source file='/var/lib/libvirt/images/{name}.raw'/>
      <target dev='vda' bus='virtio'/>
    </disk>
{net}    <interface type='network'>
      <source network='default'/>
      <model type='virtio'/>
      <driver name='vhost' queues='{queues}'/>
    </interface>
{console}    <console type='pty'/>
  </devices>
</domain>
"
    )
}

/// What the user should know of where the guest stands.
pub(super) fn placement_notes(placement: &Placement) -> Vec<String> {
    let mut notes = Vec::new();
    if !placement.idle.is_empty() {
        notes.push(format!(
            "smt: CPUs {} are hardware threads beside the vCPUs' and must stay idle; better turn SMT off",
            placement.idle
        ));
    }
    notes.extend(placement.mixture());
    if placement.threads > 1 {
        notes.push(
            "smt: two vCPUs share each core, and each slows the other; use fewer vCPUs than isolated cores, or turn SMT off"
                .into(),
        );
    }
    notes
}
