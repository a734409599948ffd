//! Facts of the boot: the command line and the like, without secrets. A bundle is read by more people than these
//! files.

/// Files of GRUB: assignments of a shell. Only the lines with parameters are kept.
const GRUB: &str = "/etc/default/grub";
/// A parameter is secret if its name contains one of these words.
const SECRET: [&str; 8] = ["passw", "passphrase", "secret", "token", "pwd", "sshpw", "credential", "psk"];
/// It is also secret if a part of its name is one of these words, or ends with "key": `rd.luks.key`, not `vconsole.keymap`.
const SECRET_PARTS: [&str; 5] = ["pass", "pw", "auth", "sig", "signature"];
/// How the variables of GRUB begin that are parameters of the kernel.
const GRUB_LINE: &str = "GRUB_CMDLINE_LINUX";

/// Services whose file of arguments may contain any argument.
const SERVICES: [&str; 2] = ["/irqbalance", "/stalld"];

/// Whether a file has parameters of the kernel, or of a service: TuneD's variables become parameters of the kernel.
pub fn is_of_boot(path: &str) -> bool {
    ["/boot/", "/etc/tuned/", GRUB].iter().any(|beginning| path.starts_with(beginning))
        || ["/proc/cmdline", "/etc/kernel/cmdline"].contains(&path)
        || path.starts_with("/etc/") && SERVICES.iter().any(|name| path.ends_with(name))
}

/// The lines that have parameters, and no value of one whose name says that it is a secret.
pub fn without_secrets(path: &str, text: &str) -> String {
    let is_grub = path.starts_with(GRUB);
    let kept = text.lines().filter(|line| {
        let line = line.trim_start();
        let line = line.strip_prefix("export ").unwrap_or(line);
        // A menu of GRUB has the hashes of its passwords.
        (!is_grub || line.starts_with(GRUB_LINE))
            && !["password", "password_pbkdf2"].contains(&line.split(' ').next().unwrap_or_default())
    });
    let lines: Vec<String> = kept.map(masked).collect();
    lines.join("\n")
}

/// A line whose secrets are masked. Of an assignment of GRUB the words are in the quotes of its value.
fn masked(line: &str) -> String {
    let (name, words) = match line.split_once('=') {
        Some((name, value)) if name.contains(GRUB_LINE) => (format!("{name}="), value),
        _ => (String::new(), line),
    };
    let quote = words.chars().next().filter(|c| !name.is_empty() && ['"', '\''].contains(c));
    let Some(quote) = quote else { return name + &words_without_secrets(words) };
    let inside = &words[1..];
    let (inside, end) =
        inside.rsplit_once(quote).map_or((inside, None), |(inside, rest)| (inside, Some(rest)));
    let end = end.map_or_else(String::new, |rest| format!("{quote}{rest}"));
    format!("{name}{quote}{}{end}", words_without_secrets(inside))
}

/// The kernel's own line about parameters that it does not know: it lists them as they were given.
pub fn unknown_parameters(line: &str) -> String {
    let parts = line.split_once('"').and_then(|(before, rest)| Some((before, rest.rsplit_once('"')?)));
    parts.map_or_else(
        || words_without_secrets(line),
        |(before, (inside, after))| format!("{before}\"{}\"{after}", words_without_secrets(inside)),
    )
}

/// Words that blanks part, unless they stand between double quotes: the kernel knows no others.
pub fn words_without_secrets(words: &str) -> String {
    let (mut out, mut word, mut is_quoted) = (String::new(), String::new(), false);
    for c in words.chars() {
        if c.is_whitespace() && !is_quoted {
            out += &without_secret(&word);
            out.push(c);
            word.clear();
            continue;
        }
        is_quoted ^= c == '"';
        word.push(c);
    }
    out + &without_secret(&word)
}

/// Removes the value of a parameter if it holds a secret. That shows in the parameter's name, in a password before an
/// `@` (`netroot=iscsi:user:PASSWORD@host`), or in a name within the value (`url=https://host?token=SECRET`).
fn without_secret(word: &str) -> String {
    let Some((name, value)) = word.split_once('=').filter(|(_, value)| !value.is_empty()) else {
        return word.to_owned();
    };
    let is_named = names_a_secret(name)
        || value
            .split(|c: char| "?&;, '\"".contains(c))
            .any(|part| part.split_once('=').is_some_and(|(name, _)| names_a_secret(name)));
    let has_password = value.split_once('@').is_some_and(|(before, _)| before.contains(':'));
    if is_named || has_password { format!("{name}=(not kept)") } else { word.to_owned() }
}

fn names_a_secret(name: &str) -> bool {
    let lower = name.to_ascii_lowercase();
    let mut parts = lower.split(|c: char| !c.is_ascii_alphanumeric());
    SECRET.iter().any(|part| lower.contains(part))
        || parts.any(|part| SECRET_PARTS.contains(&part) || part.ends_with("key"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_line_about_unknown_parameters_has_no_secret_either() {
        let line = "Unknown kernel command line parameters \"netroot=iscsi:u:HUNTER2@host BOOT_IMAGE=/v a=\"b token=HUNTER3\"\", \
will be passed to user space.";
        let kept = unknown_parameters(line);
        assert!(!kept.contains("HUNTER"), "{kept}");
        assert!(
            kept.contains("BOOT_IMAGE=/v") && kept.ends_with("\", will be passed to user space."),
            "{kept}"
        );
        assert_eq!(unknown_parameters("Unknown: token=HUNTER2"), "Unknown: token=(not kept)");
    }

    #[test]
    fn no_secret_of_a_boot_loader_comes_into_a_bundle() {
        let grub = "# password_pbkdf2 root grub.pbkdf2.HUNTER1\nGRUB_PASSWORD=HUNTER3\n\
                    GRUB_CMDLINE_LINUX=\"isolcpus=1 rd.iscsi.password=HUNTER2 quiet\"\n";
        let kept = without_secrets("/etc/default/grub.d/99.cfg", grub);
        assert_eq!(kept, "GRUB_CMDLINE_LINUX=\"isolcpus=1 rd.iscsi.password=(not kept) quiet\"");
        let last = without_secrets("/proc/cmdline", "rd.iscsi.password=HUNTER2");
        assert_eq!(last, "rd.iscsi.password=(not kept)");
        let variables = "isolated_cores=2-23\ncmdline_add=rd.iscsi.password=HUNTER2 quiet\n";
        let kept = "isolated_cores=2-23\ncmdline_add=(not kept) quiet";
        assert_eq!(without_secrets("/etc/tuned/realtime-variables.conf", variables), kept);
        for path in ["/etc/tuned/realtime-variables.conf", "/etc/default/irqbalance", "/etc/sysconfig/stalld"]
        {
            assert!(is_of_boot(path), "{path}");
        }
    }

    #[test]
    fn a_secret_is_masked_however_it_is_written() {
        for (line, kept) in [
            ("a=1 rd.iscsi.password=\"HUNTER2\" b", "a=1 rd.iscsi.password=(not kept) b"),
            ("rd.iscsi.password=\"HUNTER 2\" b", "rd.iscsi.password=(not kept) b"),
            ("\"rd.iscsi.password=HUNTER 2\" b", "\"rd.iscsi.password=(not kept) b"),
            ("password=pass", "password=(not kept)"),
            ("netroot=iscsi:user:HUNTER2@192.0.2.1::3260", "netroot=(not kept)"),
            (
                "systemd.set_credential=passwd.hashed-password.root:HUNTER2",
                "systemd.set_credential=(not kept)",
            ),
            ("password=", "password="),
            ("siderolink.api=https://omni?jointoken=HUNTER2", "siderolink.api=(not kept)"),
            ("inst.ks=https://host/ks?a=1&token=HUNTER2", "inst.ks=(not kept)"),
            ("wifi.psk=HUNTER2 x.api_key=HUNTER2 b", "wifi.psk=(not kept) x.api_key=(not kept) b"),
            (
                "tailscale.authkey=HUNTER2 luks.passphrase=HUNTER2",
                "tailscale.authkey=(not kept) luks.passphrase=(not kept)",
            ),
            ("inst.sshpw=HUNTER2 x=https://h/?sv=1&sig=HUNTER2", "inst.sshpw=(not kept) x=(not kept)"),
            ("cifsroot=//h/s,user=u,pass=HUNTER2", "cifsroot=(not kept)"),
            ("systemd.setenv=DB_PASSWORD=HUNTER2", "systemd.setenv=(not kept)"),
            ("foo=it's rd.iscsi.password=HUNTER2 quiet", "foo=it's rd.iscsi.password=(not kept) quiet"),
        ] {
            assert_eq!(without_secrets("/proc/cmdline", line), kept);
            let menu = format!("options {line}");
            assert_eq!(without_secrets("/boot/loader/entries/a.conf", &menu), format!("options {kept}"));
        }
        for (line, kept) in [
            (
                "GRUB_CMDLINE_LINUX='password=\"HUNTER2\" quiet'",
                "GRUB_CMDLINE_LINUX='password=(not kept) quiet'",
            ),
            ("GRUB_CMDLINE_LINUX+=\" token=HUNTER2\" # x", "GRUB_CMDLINE_LINUX+=\" token=(not kept)\" # x"),
            ("GRUB_CMDLINE_LINUX=password=HUNTER2", "GRUB_CMDLINE_LINUX=password=(not kept)"),
            ("GRUB_CMDLINE_LINUX=\"password=HUNTER2", "GRUB_CMDLINE_LINUX=\"password=(not kept)"),
        ] {
            assert_eq!(without_secrets("/etc/default/grub", line), kept);
        }
        assert_eq!(without_secrets("/boot/grub/grub.cfg", "password_pbkdf2 root grub.pbkdf2.HUNTER2"), "");
    }

    #[test]
    fn parameters_stay_as_they_are() {
        let line = "BOOT_IMAGE=/vmlinuz root=UUID=1-2 vconsole.keymap=de isolcpus=managed_irq,domain,1-3 nohz_full=1-3  quiet";
        assert_eq!(without_secrets("/proc/cmdline", line), line);
        let entry = "title Debian\noptions root=/dev/sda1 isolcpus=1";
        assert_eq!(without_secrets("/boot/loader/entries/a.conf", entry), entry);
        assert!(is_of_boot("/boot/firmware/cmdline.txt") && !is_of_boot("/etc/os-release"));
    }
}
