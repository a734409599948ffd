//! The arguments of QEMU, as in `/proc/PID/cmdline` with blanks between them: which of them are kept, and how they are
//! read.
//!
//! A command line holds secrets of other people (`-object secret,data=`, passwords of iSCSI, `-smbios`, `-fw_cfg`,
//! names of disks), and facts go into bundles, which are passed on. So only [what the audit reads](KEPT) is kept.
//!
//! An option's value is a list of `key=value` with commas between (a doubled comma is one), or an object of JSON. The
//! latter is libvirt's form of `-object`, `-device`, `-blockdev` and, since 2023, `-netdev`. Both are read into the
//! same list: `cache.direct` is `on` whether it was `cache.direct=on` or `"cache":{"direct":true}`. Blanks within a
//! value cannot be told from those between two.

use serde_json::Value;

/// Options beyond this are not looked at.
const MOST: usize = 4096;
/// The longest value that is kept, in characters.
const LONGEST: usize = 128;

/// Keys that name the kind of an option where its first word does not.
const KINDS: [&str; 5] = ["driver", "qom-type", "type", "accel", "model"];

/// The options that are kept: their names, whether the first word of the value is, and the keys whose values are. All
/// others are left out, with their values.
const KEPT: &[(&[&str], bool, &[&str])] = &[
    (&["name"], true, &["guest", "debug-threads"]),
    (&["machine", "M"], true, &["type", "accel", "kernel-irqchip", "mem-merge", "usb", "pflash0", "pflash1"]),
    (&["accel"], true, &["accel", "kernel-irqchip"]),
    // Its features are on or off.
    (&["cpu"], true, &[]),
    (&["m"], true, &["size"]),
    (&["overcommit"], false, &["mem-lock", "cpu-pm"]),
    (&["object"], true, &["qom-type", "id", "size", "prealloc", "merge", "policy", "host-nodes"]),
    (
        &["device"],
        true,
        &["driver", "id", "host", "sysfsdev", "netdev", "iothread", "iothread-vq-mapping.0.iothread"],
    ),
    (&["netdev"], true, &["type", "id", "vhost", "vhostfd", "vhostfds"]),
    (&["nic"], true, &["type", "model", "vhost", "vhostfd", "vhostfds"]),
    (
        &["drive"],
        false,
        &["id", "if", "media", "format", "driver", "cache", "cache.direct", "readonly", "read-only", "file"],
    ),
    (
        &["blockdev"],
        false,
        &["driver", "node-name", "read-only", "cache.direct", "file.driver", "file.cache.direct"],
    ),
    (&["vga"], true, &[]),
    (
        &["S", "nodefaults", "enable-kvm", "mem-prealloc", "usb", "usbdevice", "hda", "hdb", "hdc", "hdd"],
        false,
        &[],
    ),
    // `none`, or an address and a password.
    (&["spice", "vnc"], false, &[]),
];

/// The objects that are kept: others are secrets, certificates, authorizations.
const OBJECTS: [&str; 2] = ["memory-backend-", "iothread"];

/// The options of a command line, in their order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Arguments {
    options: Vec<Parameter>,
    /// Whether the end is missing, so that the absence of an option proves nothing.
    pub cut: bool,
}

/// One option.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Parameter {
    /// Its name without dashes: `device`.
    pub option: String,
    /// The first word of its value, if that has no key: `virtio-net-pci` of a device, `host` of a processor. Also
    /// `driver`, `qom-type` or `type` of JSON.
    pub kind: String,
    values: Vec<(String, String)>,
}

impl Arguments {
    /// Reads a command line.
    #[must_use]
    pub fn parse(text: &str, cut: bool) -> Self {
        Self::of(text.split_whitespace().skip(1), cut)
    }

    fn of<'a>(words: impl Iterator<Item = &'a str>, cut: bool) -> Self {
        let mut options: Vec<(&str, String)> = Vec::new();
        let read = |options: &[(&str, String)], cut| Self {
            options: options.iter().map(|(name, value)| read(name, value)).collect(),
            cut,
        };
        for word in words {
            match option(word) {
                Some(_) if options.len() == MOST => return read(&options, true),
                Some(name) => options.push((name, String::new())),
                None => {
                    if let Some((_, value)) = options.last_mut() {
                        if !value.is_empty() {
                            value.push(' ');
                        }
                        value.push_str(word);
                    }
                }
            }
        }
        read(&options, cut)
    }

    /// Every occurrence of an option.
    pub fn all<'a>(&'a self, option: &'a str) -> impl DoubleEndedIterator<Item = &'a Parameter> {
        self.options.iter().filter(move |parameter| parameter.option == option)
    }

    /// Whether the option is there.
    #[must_use]
    pub fn has(&self, option: &str) -> bool {
        self.all(option).next().is_some()
    }

    /// The last value that one of these options gives a key.
    #[must_use]
    pub fn last(&self, options: &[&str], key: &str) -> Option<&str> {
        self.options.iter().rev().filter(|p| options.contains(&p.option.as_str())).find_map(|p| p.get(key))
    }

    /// The kind that the last occurrence names.
    #[must_use]
    pub fn kind(&self, option: &str) -> Option<&str> {
        let of = |p: &&Parameter| p.option == option && !p.kind.is_empty();
        self.options.iter().rev().find(of).map(|p| p.kind.as_str())
    }

    /// The devices that are named.
    pub fn devices(&self) -> impl Iterator<Item = &Parameter> {
        self.all("device")
    }
}

/// The kept part of a command line, with blanks between: the program's name, and the options that the audit reads. JSON
/// becomes a list.
#[must_use]
pub fn kept<'a>(mut words: impl Iterator<Item = &'a str>) -> String {
    let program = words.next().unwrap_or_default();
    let program = plain(program.rsplit('/').next().unwrap_or(program));
    let options = Arguments::of(words, false).options;
    std::iter::once(program).chain(options.iter().filter_map(Parameter::kept)).collect::<Vec<_>>().join(" ")
}

impl Parameter {
    /// The kept part of it, as an option of a command line.
    fn kept(&self) -> Option<String> {
        let named = |names: &&[&str]| names.contains(&self.option.as_str());
        let (_, with_kind, keys) = KEPT.iter().find(|(names, ..)| named(names))?;
        if self.option == "object" && !OBJECTS.iter().any(|object| self.kind.starts_with(object)) {
            return None;
        }
        let derived = KINDS.iter().any(|key| keys.contains(key) && self.get(key) == Some(&self.kind));
        let is_kind = *with_kind && !derived && !self.kind.starts_with('{') || self.kind == "none";
        let kind = Some(plain(&self.kind)).filter(|kind| is_kind && !kind.is_empty());
        let wanted = |key: &str, value: &str| {
            let listed = |name: &&str| same(name, key) || is_element(key, name);
            keys.iter().any(listed) || self.option == "cpu" && flag(value).is_some()
        };
        let values = self.values.iter().filter(|(key, value)| wanted(key, value));
        let values = values.map(|(key, value)| {
            let value = if key == "file" { place(value) } else { plain(value) };
            format!("{}={value}", plain(key))
        });
        let value = kind.into_iter().chain(values).collect::<Vec<_>>().join(",");
        Some(format!("-{} {value}", self.option).trim_end().to_owned())
    }

    /// The last value of a key; `-` and `_` are the same in keys, as they are to QEMU.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&str> {
        self.values.iter().rev().find(|(found, _)| same(found, key)).map(|(_, value)| value.as_str())
    }

    /// A key that is on or off.
    #[must_use]
    pub fn flag(&self, key: &str) -> Option<bool> {
        flag(self.get(key)?)
    }

    /// Its name: its id, else its kind.
    #[must_use]
    pub fn name(&self) -> &str {
        self.get("id").unwrap_or(&self.kind)
    }
}

/// A flag of QEMU's (`qapi_bool_parse`).
#[must_use]
pub fn flag(text: &str) -> Option<bool> {
    match text {
        "on" | "yes" | "true" | "y" => Some(true),
        "off" | "no" | "false" | "n" => Some(false),
        _ => None,
    }
}

/// Bytes of a size as `-m` and `size=` take it; a bare number is `unit` bytes each.
#[must_use]
pub fn bytes(text: &str, unit: u64) -> Option<u64> {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (digits, suffix) = text.split_at(end);
    let unit = match suffix {
        "" => unit,
        "b" | "B" => 1,
        "k" | "K" => 1 << 10,
        "m" | "M" => 1 << 20,
        "g" | "G" => 1 << 30,
        "t" | "T" => 1 << 40,
        _ => return None,
    };
    digits.parse::<u64>().ok()?.checked_mul(unit)
}

/// The name of an option: `-m`, `--machine`. A negative number is not an option.
fn option(word: &str) -> Option<&str> {
    let name = word.strip_prefix("--").or_else(|| word.strip_prefix('-'))?;
    name.starts_with(|c: char| c.is_ascii_alphabetic()).then_some(name)
}

/// Whether a key is an element of a list of JSON: `host-nodes.0`.
fn is_element(key: &str, list: &str) -> bool {
    let number = key.strip_prefix(list).and_then(|rest| rest.strip_prefix('.'));
    number.is_some_and(|number| !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()))
}

/// The place of a disk, without its name: `nbd:`, `/dev/` or `/`.
fn place(file: &str) -> String {
    let protocol = file.split(':').next().filter(|_| file.contains(':') && !file.starts_with('/'));
    match protocol {
        Some(protocol) => format!("{}:", plain(protocol)),
        None if file.starts_with("/dev/") => "/dev/".to_owned(),
        None => "/".to_owned(),
    }
}

/// A value that neither ends nor begins an option, and is not endless.
fn plain(value: &str) -> String {
    let known = |c: char| c.is_alphanumeric() || "_.:/+-".contains(c);
    value.chars().take(LONGEST).map(|c| if known(c) { c } else { '?' }).collect()
}

fn same(one: &str, other: &str) -> bool {
    let dashed = |byte: u8| if byte == b'_' { b'-' } else { byte };
    one.len() == other.len() && one.bytes().zip(other.bytes()).all(|(a, b)| dashed(a) == dashed(b))
}

fn read(option: &str, value: &str) -> Parameter {
    let mut parameter = Parameter { option: option.to_owned(), ..Parameter::default() };
    if let Some(json) = value.starts_with('{').then(|| serde_json::from_str(value).ok()).flatten() {
        flatten("", &json, &mut parameter.values);
        let kind = ["driver", "qom-type", "type"].iter().find_map(|key| parameter.get(key));
        parameter.kind = kind.unwrap_or_default().to_owned();
        return parameter;
    }
    for (at, part) in parts(value).into_iter().enumerate() {
        match part.split_once('=') {
            Some((key, value)) => parameter.values.push((key.to_owned(), value.to_owned())),
            None if at == 0 => parameter.kind = part,
            // `+feature`, `-feature` and bare words of a processor: `pmu` is `pmu=on`.
            None => {
                let (key, value) = match part.split_at_checked(1) {
                    Some(("+", key)) => (key, "on"),
                    Some(("-", key)) => (key, "off"),
                    _ => (part.as_str(), "on"),
                };
                parameter.values.push((key.to_owned(), value.to_owned()));
            }
        }
    }
    if parameter.kind.is_empty() {
        let kind = KINDS.iter().find_map(|key| parameter.get(key));
        parameter.kind = kind.unwrap_or_default().to_owned();
    }
    parameter
}

/// Between commas; a doubled comma is one of the text.
fn parts(value: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    let mut chars = value.chars().peekable();
    while let Some(c) = chars.next() {
        if c == ',' && chars.next_if_eq(&',').is_none() {
            parts.push(String::new());
        } else if let Some(part) = parts.last_mut() {
            part.push(c);
        }
    }
    parts
}

fn flatten(prefix: &str, json: &Value, values: &mut Vec<(String, String)>) {
    let key = |name: &str| if prefix.is_empty() { name.to_owned() } else { format!("{prefix}.{name}") };
    match json {
        Value::Object(map) => map.iter().for_each(|(name, value)| flatten(&key(name), value, values)),
        Value::Array(list) => {
            list.iter().enumerate().for_each(|(n, value)| flatten(&key(&n.to_string()), value, values));
        }
        Value::Bool(on) => values.push((prefix.to_owned(), if *on { "on" } else { "off" }.to_owned())),
        Value::String(text) => values.push((prefix.to_owned(), text.clone())),
        Value::Number(number) => values.push((prefix.to_owned(), number.to_string())),
        Value::Null => {}
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn lists_and_json_say_the_same() {
        let list = Arguments::parse(
            "/usr/bin/qemu-system-x86_64 -name guest=rt,debug-threads=on -S --machine pc-q35-8.2,accel=kvm,kernel_irqchip=on \
-cpu host,+tsc-deadline,pmu=off,-x2apic -drive file=/a,,b.raw,format=raw -blockdev driver=raw,node-name=d,cache.direct=on",
            false,
        );
        assert_eq!(list.last(&["name"], "guest"), Some("rt"));
        assert!(list.has("S"));
        assert_eq!(list.kind("machine"), Some("pc-q35-8.2"));
        assert_eq!(list.last(&["machine"], "kernel-irqchip"), Some("on"));
        let cpu = list.all("cpu").next().unwrap();
        assert_eq!(
            (cpu.kind.as_str(), cpu.flag("tsc_deadline"), cpu.flag("pmu")),
            ("host", Some(true), Some(false))
        );
        assert_eq!(cpu.flag("x2apic"), Some(false));
        assert_eq!(list.last(&["drive"], "file"), Some("/a,b.raw"));
        let json = Arguments::parse(
            r#"qemu -blockdev {"driver":"raw","node-name":"d","cache":{"direct":true}} -m size=4194304k"#,
            false,
        );
        for arguments in [&list, &json] {
            let disk = arguments.all("blockdev").next().unwrap();
            assert_eq!((disk.kind.as_str(), disk.flag("cache.direct")), ("raw", Some(true)));
        }
        assert_eq!(json.last(&["m"], "size").and_then(|size| bytes(size, 1)), Some(4 << 30));
    }

    #[test]
    fn no_secret_of_a_command_line_is_kept() {
        let line = [
            "/home/SECRET/bin/qemu-system-x86_64",
            "-name",
            "guest=rt,debug-threads=on,process=SECRET",
            "-object",
            "secret,id=SECRET,data=SECRET",
            "-object",
            r#"{"qom-type":"secret","id":"masterKey0","format":"raw","file":"/SECRET"}"#,
            "-object",
            r#"{"host-nodes":[0,1],"id":"ram","mem-path":"/SECRET","prealloc":true,"qom-type":"memory-backend-file"}"#,
            "-object",
            r#"{"qom-type":"memory-backend-file","data":"SECRET"#,
            "-iscsi",
            "user=SECRET,password=SECRET",
            "-smbios",
            "type=11,value=io.systemd.credential:root.pw=SECRET",
            "-fw_cfg",
            "name=opt/x,string=SECRET",
            "-drive",
            "file=nbd://u:SECRET@host/SECRET,if=none,id=d0,format=raw,file.password-secret=SECRET",
            "-drive",
            "file=/srv/SECRET,cache=none",
            "-blockdev",
            r#"{"driver":"https","url":"https://u:SECRET@h","username":"SECRET","password-secret":"SECRET","node-name":"n"}"#,
            "-blockdev",
            "driver=iscsi,password=SECRET,initiator-name=SECRET,node-name=m",
            "-device",
            "virtio-blk-pci,drive=SECRET,serial=SECRET,id=disk0",
            "-netdev",
            "user,id=n0,hostfwd=tcp::SECRET,smb=/SECRET",
            "-vnc",
            ":0,password-secret=SECRET",
            "-spice",
            "port=5900,password=SECRET",
            "-usbdevice",
            "disk:/SECRET",
            "-hda",
            "/SECRET",
            "-append",
            "-name SECRET",
            "-kernel",
            "/SECRET",
            "-cpu",
            "host,pmu=off,+x2apic,model-id=SECRET",
            "-chardev",
            "socket,path=/SECRET",
            "-m",
            "size=4G",
        ];
        let text = kept(line.into_iter());
        assert!(!text.contains("SECRET"), "{text}");
        assert_eq!(
            text,
            "qemu-system-x86_64 -name guest=rt,debug-threads=on \
-object host-nodes.0=0,host-nodes.1=1,id=ram,prealloc=on,qom-type=memory-backend-file \
-drive file=nbd:,if=none,id=d0,format=raw -drive file=/,cache=none -blockdev driver=https,node-name=n \
-blockdev driver=iscsi,node-name=m -device virtio-blk-pci,id=disk0 -netdev user,id=n0 -vnc -spice -usbdevice -hda \
-cpu host,pmu=off,x2apic=on -m size=4G"
        );
    }

    #[test]
    fn what_is_kept_stays_as_it_is_when_it_is_kept_again() {
        let line = "qemu -machine q35,accel=kvm,kernel_irqchip=on -vga none -vnc none -nic none -cpu max,-pmu -m 4G \
-device vfio-pci,host=3b:00.0 -blockdev driver=raw,cache.direct=on -accel accel=kvm -S -enable-kvm";
        let once = kept(line.split(' '));
        assert_eq!(once, line.replace("-pmu", "pmu=off"));
        assert_eq!(kept(once.split(' ')), once);
        let injected = kept(["qemu", "-name", "guest=a -enable-kvm\u{1b}", "-cpu", "x=y -S"].into_iter());
        assert_eq!(injected, "qemu -name guest=a?-enable-kvm? -cpu");
    }

    #[test]
    fn sizes_are_read_as_qemu_reads_them() {
        assert_eq!(bytes("4096", 1 << 20), Some(4 << 30));
        assert_eq!(bytes("4G", 1 << 20), Some(4 << 30));
        for bad in ["", "G", "-4", "4Gi", "99999999999999999999", "18446744073709551615T"] {
            assert_eq!(bytes(bad, 1), None, "{bad}");
        }
    }

    #[test]
    fn broken_json_and_endless_lines_are_no_harm() {
        let broken = Arguments::parse(r#"qemu -device {"driver":"virtio-net-pci","id"#, true);
        assert!(broken.cut && broken.devices().count() == 1);
        let endless = Arguments::parse(&format!("qemu {}", "-S ".repeat(100_000)), false);
        assert!(endless.cut && endless.all("S").count() == MOST);
        let deep = format!("qemu -device {}", "{\"a\":".repeat(20_000));
        assert_eq!(Arguments::parse(&deep, false).devices().count(), 1);
    }

    proptest! {
        #[test]
        fn no_text_makes_the_reader_panic(text in "(-[a-z]{0,3}|[a-z=,+-]{0,6}|[{}\":]{0,6}|é| |\t){0,60}") {
            let arguments = Arguments::parse(&text, false);
            for parameter in &arguments.options {
                let _ = (parameter.name(), parameter.get("a"), bytes(&parameter.kind, 1));
            }
            let once = kept(text.split(' '));
            prop_assert_eq!(kept(once.split(' ')), once);
        }
    }
}
