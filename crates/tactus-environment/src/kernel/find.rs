//! Guest kernels on this machine: in /boot, in the cache, by path.

use std::cmp::Ordering;
use std::io;
use std::path::{Path, PathBuf};

use serde::Serialize;

pub use crate::StartError as KernelError;
use tactus_system::{System, cache_dir};
use tracing::info;

use super::arch::OWN;
use super::image::{Image, identify};

/// Where a kernel was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Origin {
    /// Installed on this machine.
    Boot,
    /// Fetched by `tactus kernel fetch`.
    Cache,
    /// Named by its path.
    Path,
}

/// A kernel that a guest can boot.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Kernel {
    /// Its name in a plan: its release, or its path.
    pub name: String,
    /// The image.
    pub path: PathBuf,
    /// The directory of its modules, if it has one.
    pub modules_dir: Option<PathBuf>,
    /// Its release, as `uname -r` in the guest will say; empty when the image does not tell.
    pub release: String,
    /// Where it was found.
    pub origin: Origin,
    /// Whether it is a PREEMPT_RT kernel.
    pub preempt_rt: bool,
    /// The architecture that it is for: `x86_64`, `aarch64`.
    pub arch: &'static str,
}

impl Kernel {
    /// The kernel's configuration with its release, where it lies beside the image (Debian, Ubuntu,
    /// SUSE) or beside the modules (Fedora).
    #[must_use]
    pub fn config(&self, system: &dyn System) -> Option<(String, Vec<u8>)> {
        if self.release.is_empty() {
            return None;
        }
        let beside = self.path.parent().map(|dir| dir.join(format!("config-{}", self.release)));
        let modules = self.modules_dir.as_ref().map(|dir| dir.join("config"));
        let read = |path: PathBuf| system.read_regular(&path, LONGEST_CONFIG).ok();
        let text =
            beside.into_iter().chain(modules).find_map(|path| read(path).filter(|text| is_config(text)))?;
        Some((self.release.clone(), text))
    }
}

/// The longest configuration that a guest is given: one has 300 KB.
const LONGEST_CONFIG: u64 = 4 << 20;

/// Whether this is a kernel's configuration and nothing else. Beside an image that came with a plan, this name may be
/// a link to any file of this machine, and the guest would get its bytes.
fn is_config(text: &[u8]) -> bool {
    text.split(|byte| *byte == b'\n')
        .all(|line| line.is_empty() || line.starts_with(b"#") || line.starts_with(b"CONFIG_"))
}

/// All kernels of this machine, newest first.
///
/// # Errors
/// When somebody else could have put kernels into the cache.
pub fn list(system: &dyn System) -> Result<Vec<Kernel>, KernelError> {
    let mut kernels = images(Path::new("/"), Origin::Boot, system);
    let fetched = match kernels_dir(system) {
        Ok(dir) => system.list(&dir).unwrap_or_default(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
        Err(error) => {
            let hint = "set TACTUS_CACHE_DIR to a directory of yours that no other user can write to".into();
            return Err(KernelError { reason: error.to_string(), hint: Some(hint) });
        }
    };
    for dir in fetched {
        kernels.extend(images(&dir, Origin::Cache, system));
    }
    // The sort is stable: of two with one name the installed one stays.
    kernels.sort_by(|a, b| newer(&b.release, &a.release));
    kernels.dedup_by(|a, b| a.name == b.name);
    Ok(kernels)
}

/// The directory of fetched kernels, which only this user can have filled.
pub(super) fn kernels_dir(system: &dyn System) -> io::Result<PathBuf> {
    let dir = cache_dir(system)?.join("kernels");
    let named = |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", dir.display()));
    system.is_own_dir(&dir).map_err(named)?;
    Ok(dir)
}

fn default_file(arch: &str, system: &dyn System) -> io::Result<PathBuf> {
    let name = if arch == OWN { "default".to_owned() } else { format!("default-{arch}") };
    Ok(kernels_dir(system)?.join(name))
}

/// The images below `root`: in `boot`, or beside their modules (Fedora, Arch, Debian since Linux 7.0).
pub(super) fn images(root: &Path, origin: Origin, system: &dyn System) -> Vec<Kernel> {
    let in_boot = system.list(&root.join("boot")).unwrap_or_default().into_iter().filter(|path| {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        // Rescue images contain their own initramfs, and have no modules.
        name.starts_with("vmlinuz-") && !name.contains("rescue")
    });
    let modules = MODULES.into_iter().flat_map(|dir| system.list(&root.join(dir)).unwrap_or_default());
    let files = in_boot.chain(modules.map(|dir| dir.join("vmlinuz")));
    files.filter_map(|path| kernel(&path, root, origin, system).ok()).collect()
}

/// Where the modules of every release have a directory.
const MODULES: [&str; 2] = ["lib/modules", "usr/lib/modules"];

/// The largest image that is looked at: an unstripped vmlinux with debugging information has some 500 MB.
pub(super) const LARGEST: u64 = 1 << 30;

fn kernel(path: &Path, root: &Path, origin: Origin, system: &dyn System) -> Result<Kernel, KernelError> {
    let bytes = system.read_regular(path, LARGEST).map_err(|error| KernelError {
        reason: format!("{}: {error}", path.display()),
        hint: Some("name a kernel of `tactus kernel list`, or the path of a readable bzImage".into()),
    })?;
    let (version, arch) = match identify(&bytes) {
        Image::BzImage { version, .. } => (version, "x86_64"),
        Image::Arm64 => (String::new(), "aarch64"),
        // EM_AARCH64 of elf(5).
        Image::Elf if bytes.get(0x12..0x14) == Some(&[183, 0]) => (String::new(), "aarch64"),
        Image::Elf => (String::new(), "x86_64"),
        Image::Other(found) => {
            return Err(KernelError {
                reason: format!("{} is not a kernel: it is {found}", path.display()),
                hint: Some("a guest boots a bzImage, as in /boot/vmlinuz-*, or a vmlinux".into()),
            });
        }
    };
    let file = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    // An arm64 image does not say its release: its name does, or that of the directory of its modules.
    let above = path.parent().filter(|dir| dir.parent().is_some_and(|dir| dir.ends_with("modules")));
    let directory = above.and_then(Path::file_name).and_then(|name| name.to_str());
    let words = [version.split_whitespace().next(), file.strip_prefix("vmlinuz-"), directory];
    let release = words.into_iter().flatten().find(|word| is_release(word)).unwrap_or_default().to_owned();
    let trees = MODULES.map(|dir| root.join(dir).join(&release));
    let beside = path.parent().filter(|dir| system.exists(&dir.join("modules.builtin"))).map(Path::to_owned);
    let modules_dir =
        trees.into_iter().filter(|dir| !release.is_empty() && system.exists(dir)).chain(beside).next();
    Ok(Kernel {
        name: if origin == Origin::Path || release.is_empty() {
            path.display().to_string()
        } else {
            release.clone()
        },
        path: path.into(),
        modules_dir,
        preempt_rt: is_rt(&release, &version),
        release,
        origin,
        arch,
    })
}

/// Whether a word in an image can be a release. It becomes part of paths to files that the guest gets: an image must
/// not name another place of this machine.
fn is_release(word: &str) -> bool {
    !word.contains('/') && !word.starts_with('.')
}

/// Whether a kernel is PREEMPT_RT, from its release (`6.1.0-56-rt-amd64`, `5.15.0-1032-realtime`,
/// `5.10.0-rt17`) or its version string.
fn is_rt(release: &str, version: &str) -> bool {
    let word = |part: &str| {
        part == "realtime"
            || part.strip_prefix("rt").is_some_and(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()))
    };
    version.contains("PREEMPT_RT")
        || version.contains("PREEMPT RT")
        || release.split(['-', '.', '_', '+']).any(word)
}

/// Compares releases as people do: numbers as numbers.
fn newer(a: &str, b: &str) -> Ordering {
    parts(a).cmp(&parts(b))
}

fn parts(release: &str) -> Vec<(u64, &str)> {
    let words = release.split(|c: char| !c.is_ascii_alphanumeric());
    words.map(|word| word.parse().map_or((0, word), |number| (number, ""))).collect()
}

/// The kernel that a plan names for a guest of an architecture: `rt` or `standard` (the newest of each), a name of
/// [`list`], or the path of an image.
///
/// # Errors
/// When this kernel does not exist, or the file is not a kernel, or one for another architecture.
pub fn find(wanted: &str, arch: &str, system: &dyn System) -> Result<Kernel, KernelError> {
    let found = look(wanted, arch, system)
        .inspect_err(|error| info!(wanted, arch, why = error.reason, "no kernel was chosen"))?;
    if found.arch == arch {
        info!(wanted, arch, path = %found.path.display(), "the kernel {} was chosen", found.name);
        return Ok(found);
    }
    Err(KernelError {
        reason: format!("the kernel {} is for {}, but the guest is {arch}", found.name, found.arch),
        hint: Some(format!("set `arch = \"{}\"` for the guest, or name a kernel for {arch}", found.arch)),
    })
}

fn look(wanted: &str, arch: &str, system: &dyn System) -> Result<Kernel, KernelError> {
    if wanted.contains('/') {
        let path = Path::new(wanted);
        // A kernel that was unpacked somewhere (`X/boot/vmlinuz-1`) has its modules beside it.
        let unpacked =
            path.parent().and_then(Path::parent).filter(|root| system.exists(&root.join("lib/modules")));
        return kernel(path, unpacked.unwrap_or(Path::new("/")), Origin::Path, system);
    }
    let kernels = list(system)?;
    let mut fit = kernels.iter().filter(|kernel| kernel.arch == arch);
    let found = match wanted {
        "rt" => fit.find(|kernel| kernel.preempt_rt),
        "standard" => fit.find(|kernel| !kernel.preempt_rt),
        name => kernels.iter().find(|kernel| kernel.name == name),
    };
    found.cloned().ok_or_else(|| {
        let names: Vec<&str> = kernels.iter().map(|kernel| kernel.name.as_str()).collect();
        let have =
            if names.is_empty() { String::new() } else { format!("; available: {}", names.join(", ")) };
        let (of, option) = if arch == OWN {
            (String::new(), String::new())
        } else {
            (format!(" for {arch}"), format!(" --arch {arch}"))
        };
        let what = match wanted {
            "rt" => format!("no PREEMPT_RT kernel{of}"),
            "standard" => format!("no standard kernel{of}"),
            name => format!("no kernel called `{name}`"),
        };
        let fetch = if ["rt", "standard"].contains(&wanted) || wanted.starts_with("linux-image-") {
            wanted
        } else {
            "rt"
        };
        let fetch = format!("`tactus kernel fetch {fetch}{option}` downloads one");
        let hint = match wanted {
            "rt" | "standard" => format!("{fetch}; `tactus kernel use PATH` chooses a bzImage of yours"),
            _ => format!("`tactus kernel list` lists the kernels; {fetch}; the path of a bzImage also works"),
        };
        KernelError { reason: format!("{what} for guests was found{have}"), hint: Some(hint) }
    })
}

/// The default kernel for guests of an architecture: the one that `tactus kernel use` named, else the newest
/// PREEMPT_RT one, else the newest.
///
/// # Errors
/// When this machine has no kernel for them.
pub fn chosen(arch: &str, system: &dyn System) -> Result<Kernel, KernelError> {
    if let Ok(name) = default_file(arch, system).and_then(|file| system.read(&file)) {
        return find(String::from_utf8_lossy(&name).trim(), arch, system);
    }
    find("rt", arch, system).or_else(|rt| find("standard", arch, system).map_err(|_| rt))
}

/// Makes a kernel the default for guests of its architecture.
///
/// # Errors
/// When the kernel does not exist, or the choice cannot be written down.
pub fn use_(system: &dyn System, wanted: &str) -> Result<Kernel, KernelError> {
    // A later command may run in another directory.
    let absolute = std::path::absolute(wanted).ok().filter(|_| wanted.contains('/'));
    let absolute = absolute.as_ref().and_then(|path| path.to_str());
    let kernel = look(absolute.unwrap_or(wanted), OWN, system)?;
    let hint = || Some("name the kernel in the plan instead: `kernel = \"...\"`".into());
    let file = default_file(kernel.arch, system)
        .map_err(|error| KernelError { reason: error.to_string(), hint: hint() })?;
    // `rt` stays `rt`: the newest of the day.
    let word = if ["rt", "standard"].contains(&wanted) { wanted } else { &kernel.name };
    let above = file.parent().unwrap_or(Path::new("/"));
    system
        .make_own_dir(above)
        .and_then(|()| system.install(&file, format!("{word}\n").as_bytes(), 0o644))
        .map_err(|error| KernelError { reason: format!("{}: {error}", file.display()), hint: hint() })?;
    Ok(kernel)
}

#[cfg(test)]
mod tests {
    use tactus_system::Memory;

    use super::super::image::tests::bzimage_of;
    use super::*;

    /// Every kernel in these tests is a bzImage but one.
    const ARCH: &str = "x86_64";
    const RT: &str = "6.1.0-56-rt-amd64 (debian-kernel@lists.debian.org) #1 SMP PREEMPT_RT Debian 6.1.192-2";

    fn machine() -> Memory {
        Memory::new()
            .root()
            .file(
                "/boot/vmlinuz-6.1.0-9-amd64",
                bzimage_of("6.1.0-9-amd64 (x) #1 SMP PREEMPT_DYNAMIC", b"xxxxx"),
            )
            .file(
                "/boot/vmlinuz-6.1.0-13-amd64",
                bzimage_of("6.1.0-13-amd64 (x) #1 SMP PREEMPT_DYNAMIC", b"xxxxx"),
            )
            .file("/boot/vmlinuz-broken", "not a kernel")
            .file("/boot/config-6.1.0-13-amd64", "CONFIG_X=y")
            .file("/lib/modules/6.1.0-13-amd64/modules.builtin", "")
            .file(
                "/var/cache/tactus/kernels/6.1.0-56-rt-amd64/boot/vmlinuz-6.1.0-56-rt-amd64",
                bzimage_of(RT, b"xxxxx"),
            )
            .file(
                "/var/cache/tactus/kernels/6.1.0-56-rt-amd64/lib/modules/6.1.0-56-rt-amd64/modules.builtin",
                "",
            )
    }

    #[test]
    fn kernels_are_found_in_boot_and_in_the_cache_newest_first() {
        let names: Vec<(String, bool)> =
            list(&machine()).unwrap().into_iter().map(|k| (k.name, k.preempt_rt)).collect();
        let expected = [("6.1.0-56-rt-amd64", true), ("6.1.0-13-amd64", false), ("6.1.0-9-amd64", false)];
        assert_eq!(names, expected.map(|(name, rt)| (name.to_owned(), rt)));
    }

    #[test]
    fn a_kernel_that_lies_beside_its_modules_is_found_with_them() {
        let (release, arm_release) = ("7.2.13+deb14-rt-amd64", "7.2.13+deb14-rt-arm64");
        let modules =
            |release: &str| format!("/var/cache/tactus/kernels/{release}/usr/lib/modules/{release}");
        let mut arm = vec![0; 0x40];
        arm[0x38..0x3c].copy_from_slice(b"ARM\x64");
        let machine = machine()
            .file(
                format!("{}/vmlinuz", modules(release)),
                bzimage_of(&format!("{release} (x) #1 SMP PREEMPT_RT"), b"xxxxx"),
            )
            .file(format!("{}/modules.builtin", modules(release)), "")
            .file(format!("{}/config", modules(release)), "CONFIG_Z=y")
            .file(format!("{}/vmlinuz", modules(arm_release)), arm);
        let found = find("rt", ARCH, &machine).unwrap();
        assert_eq!((found.name.as_str(), found.origin), (release, Origin::Cache));
        assert_eq!(found.modules_dir, Some(modules(release).into()));
        assert_eq!(found.config(&machine).unwrap().1, b"CONFIG_Z=y");
        // An arm64 image does not say its release.
        let arm = find("rt", "aarch64", &machine).unwrap();
        assert_eq!((arm.name.as_str(), arm.modules_dir), (arm_release, Some(modules(arm_release).into())));
    }

    #[test]
    fn a_plan_names_a_kernel_by_word_name_or_path() {
        let machine = machine();
        assert_eq!(find("rt", ARCH, &machine).unwrap().origin, Origin::Cache);
        assert_eq!(find("standard", ARCH, &machine).unwrap().name, "6.1.0-13-amd64");
        assert_eq!(find("6.1.0-9-amd64", ARCH, &machine).unwrap().modules_dir, None);
        let by_path = find("/boot/vmlinuz-6.1.0-13-amd64", ARCH, &machine).unwrap();
        assert_eq!(by_path.modules_dir, Some("/lib/modules/6.1.0-13-amd64".into()));
        assert_eq!(by_path.origin, Origin::Path);
        let missing = find("7.0", ARCH, &machine).unwrap_err();
        assert!(missing.reason.contains("6.1.0-9-amd64"), "{missing:?}");
    }

    #[test]
    fn a_kernels_configuration_lies_beside_it_or_beside_its_modules() {
        let machine = machine()
            .file("/lib/modules/6.9.0/vmlinuz", bzimage_of("6.9.0 (x) #1", b"xxxxx"))
            .file("/lib/modules/6.9.0/modules.builtin", "");
        let machine = machine.file("/lib/modules/6.9.0/config", "CONFIG_Y=y");
        let config = |name: &str| find(name, ARCH, &machine).unwrap().config(&machine);
        let expected = |release: &str, text: &str| Some((release.to_owned(), text.as_bytes().to_owned()));
        assert_eq!(config("6.1.0-13-amd64"), expected("6.1.0-13-amd64", "CONFIG_X=y"));
        assert_eq!(config("6.9.0"), expected("6.9.0", "CONFIG_Y=y"));
        assert_eq!(config("6.1.0-9-amd64"), None);
    }

    #[test]
    fn an_image_that_names_another_place_as_its_release_gets_nothing_from_there() {
        for release in ["/root/.kube", "../../root/.kube", ".."] {
            let machine = Memory::new()
                .file("/k/image", bzimage_of(&format!("{release} #1 SMP"), b"xxxxx"))
                .file(Path::new("/lib/modules").join(release).join("config"), "a secret");
            let kernel = find("/k/image", ARCH, &machine).unwrap();
            assert_eq!((kernel.release.as_str(), kernel.modules_dir.clone()), ("", None));
            assert_eq!(kernel.config(&machine), None);
        }
    }

    #[test]
    fn what_is_no_kernels_configuration_stays_here_wherever_it_lies() {
        let config = |text: &str| {
            let machine = Memory::new()
                .file("/k/image", bzimage_of("6.9.0 (x) #1", b"xxxxx"))
                .file("/k/config-6.9.0", text);
            find("/k/image", ARCH, &machine).unwrap().config(&machine)
        };
        assert!(
            config("#\n# Linux/x86 6.9.0 Kernel Configuration\n#\nCONFIG_X=y\n\n# CONFIG_Y is not set\n")
                .is_some()
        );
        assert_eq!(config("root:$y$j9T$F5Jx5fExrKuPp53xLKQ..1$:19000:0:99999:7:::\n"), None);
        assert_eq!(config("CONFIG_X=y\n-----BEGIN OPENSSH PRIVATE KEY-----\n"), None);
    }

    #[test]
    fn a_file_that_is_no_kernel_is_refused_by_what_it_is() {
        let error = find("/boot/config-6.1.0-13-amd64", ARCH, &machine()).unwrap_err();
        assert_eq!(error.reason, "/boot/config-6.1.0-13-amd64 is not a kernel: it is a text file");
        assert!(find("/boot/none", ARCH, &machine()).unwrap_err().reason.contains("/boot/none"));
    }

    #[test]
    fn a_machine_without_kernels_says_how_to_get_one() {
        let error = chosen(ARCH, &Memory::new()).unwrap_err();
        assert_eq!(error.reason, "no PREEMPT_RT kernel for guests was found");
        assert!(error.hint.unwrap().contains("tactus kernel fetch rt"));
    }

    #[test]
    fn a_pipe_a_device_and_a_file_beyond_all_kernels_are_refused_at_once() {
        let dir = tempfile::tempdir().unwrap();
        let fifo = dir.path().join("fifo");
        rustix::fs::mknodat(rustix::fs::CWD, &fifo, rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
        let sparse = tempfile::NamedTempFile::new().unwrap();
        sparse.as_file().set_len(2 << 30).unwrap();
        for (path, word) in [
            (fifo.as_path(), "not a regular file"),
            (Path::new("/dev/zero"), "not a regular file"),
            (dir.path(), "not a regular file"),
            (sparse.path(), "longer than 1GiB"),
        ] {
            let error = find(&path.display().to_string(), ARCH, &tactus_system::Real).unwrap_err();
            assert!(error.reason.contains(word) && error.hint.is_some(), "{error:?}");
        }
    }

    #[test]
    fn kernels_of_another_architecture_are_kept_apart() {
        let mut arm = vec![0; 0x40];
        arm[0x38..0x3c].copy_from_slice(b"ARM\x64");
        let release = "6.1.0-99-rt-arm64";
        let path = format!("/var/cache/tactus/kernels/{release}/boot/vmlinuz-{release}");
        let machine = machine().file(&path, arm);
        assert_eq!(find("rt", ARCH, &machine).unwrap().name, "6.1.0-56-rt-amd64");
        let found = find("rt", "aarch64", &machine).unwrap();
        assert_eq!((found.name.as_str(), found.arch, found.preempt_rt), (release, "aarch64", true));
        let error = find(release, ARCH, &machine).unwrap_err();
        assert!(error.reason.contains("is for aarch64"), "{error:?}");
        assert!(error.hint.unwrap().contains("arch = \"aarch64\""));
        let none = find("standard", "aarch64", &machine).unwrap_err();
        assert!(none.hint.unwrap().contains("fetch standard --arch aarch64") || OWN == "aarch64");
        use_(&machine, release).unwrap();
        assert_eq!(chosen(ARCH, &machine).unwrap().name, "6.1.0-56-rt-amd64");
        assert_eq!(chosen("aarch64", &machine).unwrap().name, release);
    }

    #[test]
    fn the_default_is_the_newest_rt_kernel_until_somebody_says_otherwise() {
        let machine = machine();
        assert!(chosen(ARCH, &machine).unwrap().preempt_rt);
        use_(&machine, "6.1.0-9-amd64").unwrap();
        assert_eq!(chosen(ARCH, &machine).unwrap().name, "6.1.0-9-amd64");
        assert!(use_(&machine, "7.0").is_err());
        assert_eq!(chosen(ARCH, &machine).unwrap().name, "6.1.0-9-amd64");
    }

    #[test]
    fn rt_is_told_from_the_release_or_the_version() {
        for release in
            ["6.1.0-56-rt-amd64", "5.15.0-1032-realtime", "5.10.0-rt17", "4.18.0-193.rt13.51.el8.x86_64"]
        {
            assert!(is_rt(release, ""), "{release}");
        }
        assert!(is_rt("6.12.1", "6.12.1 (x) #1 SMP PREEMPT_RT Thu"));
        for release in ["6.1.0-13-amd64", "6.1.0-start", "5.4.0-rtl8", "6.1-virt"] {
            assert!(!is_rt(release, "#1 SMP PREEMPT_DYNAMIC"), "{release}");
        }
    }
}
