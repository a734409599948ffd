//! The generated command line, in a menu entry of GRUB's, by GRUB's own parser.

use std::path::Path;
use std::process::Command;

use tactus_audit::{Intent, Subject};
use tactus_model::finding::Role;
use tactus_tune::generate::{self, GenerateRequest, GuestOptions};
use tactus_tune::plan::{Choice, Plan};
use tactus_tune::profile;

use crate::common::{has, machine, run, words};

fn checked(entry: &str, dir: &Path) -> bool {
    let file = dir.join("grub.cfg");
    std::fs::write(&file, entry).unwrap();
    run(Command::new("grub-script-check").arg(&file)).status.success()
}

#[test]
fn grub_parses_the_command_line_of_each_machine() {
    if !has("grub-script-check") {
        return;
    }
    for (name, vendor) in [("x86_64", "GenuineIntel"), ("x86_64", "AuthenticAMD"), ("aarch64", "")] {
        let facts = machine(name, vendor, 8);
        let intent = Intent { isolated: Some("2-4,6-7".parse().unwrap()), ..Intent::default() };
        let subject = Subject::new(&facts, Role::Host, &intent);
        let stock = profile::find("realtime-virtual-host").unwrap();
        let plan = Plan::new(&subject, stock, &Choice::default());
        let changes: Vec<_> = plan.entries.into_iter().map(|step| step.change).collect();
        let request = GenerateRequest {
            subject: &subject,
            profile: stock.name,
            changes: &changes,
            withheld: &plan.withheld,
            options: &GuestOptions::default(),
            says: generate::of_check,
        };
        let output = (generate::find("grub").unwrap().generate)(&request).unwrap();
        // As grub-mkconfig reads it, and writes it into the entry of a kernel.
        let script =
            format!("GRUB_CMDLINE_LINUX=\n{}\nprintf %s \"$GRUB_CMDLINE_LINUX\"", output.files[0].text);
        let read = run(Command::new("sh").args(["-euc", &script]));
        let line = words(&read);
        assert!(read.status.success() && line.contains(" isolcpus=managed_irq,domain,2-4,6,7 "), "{line}");
        let dir = tempfile::tempdir().unwrap();
        let entry = |line: &str| format!("menuentry 'x' {{\n linux /vmlinuz root=/dev/vda1 ro {line}\n}}\n");
        assert!(checked(&entry(&line), dir.path()), "{line}");
        assert!(!checked(&entry(&format!("{line} \"")), dir.path()), "an open quote is seen");
    }
}
