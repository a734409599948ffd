//! What a boot is told, without what is nobody's business: a bundle is read by more people than these files are.

/// Files of GRUB: a shell's assignments, of which the lines of parameters are kept.
const GRUB: &str = "/etc/default/grub";
/// Names of parameters whose values are kept from readers.
const SECRET: [&str; 4] = ["passw", "secret", "token", "pwd"];

/// Whether a file has parameters of the kernel.
pub fn is_of_boot(path: &str) -> bool {
    path.starts_with(GRUB)
        || path.starts_with("/boot/")
        || ["/proc/cmdline", "/etc/kernel/cmdline", "/etc/tuned/bootcmdline"].contains(&path)
}

/// The lines that have parameters, and no value of one whose name says that it is a secret.
pub fn without_secrets(path: &str, text: &str) -> String {
    let is_grub = path.starts_with(GRUB);
    let kept = text.lines().filter(|line| {
        let line = line.trim_start();
        let line = line.strip_prefix("export ").unwrap_or(line);
        !is_grub || line.starts_with("GRUB_CMDLINE_LINUX")
    });
    let lines: Vec<String> = kept.map(masked).collect();
    lines.join("\n")
}

/// A line whose secrets are masked: the value up to the next blank or quote.
fn masked(line: &str) -> String {
    let mut words = Vec::new();
    for word in line.split(' ') {
        let parameter = word.rsplit(['"', '\'']).find(|part| part.contains('=')).unwrap_or(word);
        let secret = parameter.split_once('=').filter(|(name, _)| {
            let name = name.to_ascii_lowercase();
            SECRET.iter().any(|part| name.contains(part))
        });
        match secret {
            Some((_, value)) if !value.is_empty() => words.push(word.replacen(value, "(not kept)", 1)),
            _ => words.push(word.to_owned()),
        }
    }
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_secret_of_a_boot_loader_comes_into_a_bundle() {
        let grub = "# password_pbkdf2 root grub.pbkdf2.HUNTER1\nGRUB_PASSWORD=HUNTER3\n\
                    GRUB_CMDLINE_LINUX=\"isolcpus=1 rd.iscsi.password=HUNTER2 quiet\"\n";
        let kept = without_secrets("/etc/default/grub.d/99.cfg", grub);
        assert_eq!(kept, "GRUB_CMDLINE_LINUX=\"isolcpus=1 rd.iscsi.password=(not kept) quiet\"");
        let last = without_secrets("/proc/cmdline", "rd.iscsi.password=HUNTER2");
        assert_eq!(last, "rd.iscsi.password=(not kept)");
    }

    #[test]
    fn parameters_stay_as_they_are() {
        let line = "BOOT_IMAGE=/vmlinuz root=UUID=1-2 isolcpus=managed_irq,domain,1-3 nohz_full=1-3  quiet";
        assert_eq!(without_secrets("/proc/cmdline", line), line);
        let entry = "title Debian\noptions root=/dev/sda1 isolcpus=1";
        assert_eq!(without_secrets("/boot/loader/entries/a.conf", entry), entry);
        assert!(is_of_boot("/boot/firmware/cmdline.txt") && !is_of_boot("/etc/os-release"));
    }
}
