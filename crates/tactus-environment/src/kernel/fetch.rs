//! Fetches a guest kernel with the distribution's own package manager, which checks its signature,
//! and unpacks it into the cache. Nothing is installed.

use std::path::{Path, PathBuf};
use std::time::Duration;

use tactus_system::{Invocation, System};

use super::apt::{Apt, failed};
use super::find::{Kernel, KernelError, Origin, images, kernels_dir};

/// A kernel with its modules is 70 to 150 MB.
const DOWNLOAD: Duration = Duration::from_secs(30 * 60);
const UNPACKING: Duration = Duration::from_secs(10 * 60);
/// Where there is no cache.
const NO_PLACE: &str = "set TACTUS_CACHE_DIR to a directory of yours";

/// Fetches the newest kernel of a sort (`rt`, `standard`) or the kernel of a package, for an
/// architecture (`x86_64`, `aarch64`). `progress` hears
/// each step. Where a distribution keeps its PREEMPT_RT kernel behind a subscription, `rt` is the
/// standard kernel, and `progress` hears that too.
///
/// # Errors
/// When the package manager cannot do it; with its own words, and what to do.
pub fn fetch(
    system: &dyn System,
    wanted: &str,
    arch: &str,
    progress: &mut dyn FnMut(&str),
) -> Result<Kernel, KernelError> {
    for tool in ["apt-get", "apt-cache", "dpkg-deb", "dpkg"] {
        if system.find_program(tool).is_none() {
            return Err(elsewhere(system));
        }
    }
    let store = kernels_dir(system).map_err(|error| failed(&error.to_string(), Some(NO_PLACE)))?;
    system
        .make_own_dir(&store)
        .map_err(|error| failed(&format!("{}: {error}", store.display()), Some(NO_PLACE)))?;
    sweep(&store, system);
    let dir = store.join(format!(".fetch-{}", std::process::id()));
    let result = Apt::new(system, arch, &dir.join("apt"), progress).and_then(|apt| {
        let packages = resolve(&apt, wanted, progress)?;
        unpack(&apt, &packages, &dir, progress)
    });
    let removed = system.remove(&dir);
    let kernel = result?;
    removed.map_err(|error| failed(&format!("{}: {error}", dir.display()), None))?;
    Ok(kernel)
}

/// The packages that hold the wanted kernel: the image first.
fn resolve(apt: &Apt<'_>, wanted: &str, progress: &mut dyn FnMut(&str)) -> Result<Vec<String>, KernelError> {
    let arch = &apt.arch;
    let rt = [format!("linux-image-rt-{arch}"), "linux-image-realtime".to_owned()];
    let standard =
        [format!("linux-image-{arch}"), "linux-image-virtual".to_owned(), "linux-image-generic".to_owned()];
    let found = match wanted {
        "rt" => first(apt, &rt).or_else(|| {
            let found = first(apt, &standard)?;
            progress(
                "note: the public repositories of this distribution have no PREEMPT_RT kernel (Ubuntu: `pro \
enable realtime-kernel`); fetching its standard kernel. To use another one, give its path: kernel = \
\"/path/to/bzImage\"",
            );
            Some(found)
        }),
        "standard" => first(apt, &standard),
        package => first(apt, &[package.to_owned()]),
    };
    found.ok_or_else(|| {
        let hint = "`apt-get update` fetches the lists of packages; `apt-cache search linux-image` shows the kernels";
        failed(&format!("the package manager has no kernel `{wanted}`"), Some(hint))
    })
}

/// The image package, behind the first of these names that the package manager can download, with its dependencies of
/// the same release. Those are the modules (Ubuntu), or the whole kernel (Debian since Linux 7.0: `linux-base-*`,
/// `linux-binary-*`, `linux-modules-*`).
fn first(apt: &Apt<'_>, names: &[String]) -> Option<Vec<String>> {
    names.iter().find_map(|name| {
        let image = concrete(apt, name)?;
        let release = format!("-{}", release(&image)?);
        let mut packages = vec![image.clone()];
        packages.extend(depends(apt, &image).into_iter().filter(|other| other.ends_with(&release)));
        Some(packages)
    })
}

/// The real package behind one that only stands for the newest kernel.
fn concrete(apt: &Apt<'_>, name: &str) -> Option<String> {
    let dependencies = depends(apt, name);
    let image = dependencies.into_iter().find(|other| is_versioned(other));
    match image {
        Some(image) if !is_versioned(name) => Some(image),
        _ if is_versioned(name) && available(apt, name) => Some(name.to_owned()),
        _ => None,
    }
}

/// `linux-image-6.1.0-56-rt-amd64`, not `linux-image-rt-amd64`.
fn is_versioned(package: &str) -> bool {
    release(package).is_some()
}

/// The release in the name of an image package: `6.1.0-56-rt-amd64`.
fn release(package: &str) -> Option<&str> {
    let rest = package.strip_prefix("linux-image-")?;
    let rest = rest.strip_prefix("unsigned-").unwrap_or(rest);
    rest.starts_with(|c: char| c.is_ascii_digit()).then_some(rest)
}

fn available(apt: &Apt<'_>, package: &str) -> bool {
    apt.ask(&["show", "--no-all-versions", package]).contains("Filename:")
}

fn depends(apt: &Apt<'_>, package: &str) -> Vec<String> {
    let text = apt.ask(&["depends", "--important", package]);
    let lines = text.lines().filter_map(|line| line.trim().trim_start_matches('|').split_once("epends: "));
    lines.map(|(_, name)| name.trim().to_owned()).filter(|name| !name.starts_with('<')).collect()
}

/// The size of a package for the progress line.
fn size(apt: &Apt<'_>, package: &str) -> String {
    let text = apt.ask(&["show", "--no-all-versions", package]);
    let bytes = text.lines().find_map(|line| line.strip_prefix("Size: ")?.trim().parse::<u64>().ok());
    bytes.map(|bytes| format!(" ({} MB)", bytes.div_ceil(1_000_000))).unwrap_or_default()
}

fn unpack(
    apt: &Apt<'_>,
    packages: &[String],
    dir: &Path,
    progress: &mut dyn FnMut(&str),
) -> Result<Kernel, KernelError> {
    let system = apt.system;
    let at = |path: &Path, error: &std::io::Error| failed(&format!("{}: {error}", path.display()), None);
    let (downloads, tree) = (dir.join("deb"), dir.join("tree"));
    for dir in [&downloads, &tree] {
        system.make_dir(dir).map_err(|error| at(dir, &error))?;
    }
    for package in packages {
        progress(&format!("downloading {package}{}", size(apt, package)));
        apt.run(&apt.get(&["download", package], DOWNLOAD).in_dir(&downloads))?;
    }
    for deb in system.list(&downloads).map_err(|error| at(&downloads, &error))? {
        progress(&format!("unpacking {}", deb.file_name().unwrap_or_default().to_string_lossy()));
        let words = ["dpkg-deb", "-x", &deb.to_string_lossy(), &tree.to_string_lossy()].map(str::to_owned);
        apt.run(&Invocation::new(words).within(UNPACKING))?;
    }
    let unpacked = images(&tree, Origin::Cache, system).into_iter().next();
    let unpacked =
        unpacked.ok_or_else(|| failed(&format!("no kernel image in {}", packages.join(", ")), None))?;
    // Without one it would take the place of all kernels.
    if unpacked.release.is_empty() {
        return Err(failed(&format!("the kernel of {} has no release", packages[0]), None));
    }
    let home = kernels_dir(system)
        .map_err(|error| failed(&error.to_string(), Some(NO_PLACE)))?
        .join(&unpacked.release);
    system.remove(&home).map_err(|error| at(&home, &error))?;
    system.rename(&tree, &home).map_err(|error| at(&home, &error))?;
    let kernel = images(&home, Origin::Cache, system).into_iter().next();
    kernel.ok_or_else(|| failed(&format!("{} contains no kernel image", home.display()), None))
}

/// Removes what a fetch left that was killed.
fn sweep(store: &Path, system: &dyn System) {
    let left = |path: &PathBuf| {
        let pid = path.file_name()?.to_str()?.strip_prefix(".fetch-")?.to_owned();
        (!system.exists(&Path::new("/proc").join(pid))).then_some(())
    };
    for path in system.list(store).unwrap_or_default().iter().filter(|path| left(path).is_some()) {
        // A leftover that cannot be removed does no harm.
        let _ = system.remove(path);
    }
}

/// The advice for a machine without apt.
fn elsewhere(system: &dyn System) -> KernelError {
    let release = system.text("/etc/os-release").unwrap_or_default();
    let field = |key: &str| {
        let value = release.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix('='));
        value.unwrap_or_default().trim_matches('"').to_owned()
    };
    let family = format!(" {} {} ", field("ID"), field("ID_LIKE"));
    let is = |name: &str| family.contains(&format!(" {name} "));
    let how = if is("rhel") || is("centos") {
        "`dnf install kernel-rt-core` (repository `rt` or `nfv`) or `dnf install kernel-core`"
    } else if is("fedora") {
        "`dnf install kernel-core` (Fedora has no PREEMPT_RT kernel; use one from the copr repository \
            kwizart/kernel-longterm, or your own build)"
    } else if is("arch") {
        "`pacman -S linux-rt` or `pacman -S linux`"
    } else if is("suse") || is("opensuse") {
        "`zypper install kernel-rt` or `zypper install kernel-default`"
    } else if is("alpine") {
        "`apk add linux-virt` (Alpine has no PREEMPT_RT kernel)"
    } else {
        "install a kernel package"
    };
    let name = field("PRETTY_NAME");
    let name = if name.is_empty() { "this system".to_owned() } else { name };
    failed(
        &format!("kernels are fetched by apt-get, which {name} does not have"),
        Some(&format!(
            "{how}; `tactus kernel list` then finds it in /boot. Or name the path of any bzImage in the plan"
        )),
    )
}

#[cfg(test)]
mod tests {
    use tactus_system::Memory;

    use super::*;
    use crate::kernel::OWN;

    fn own(machine: &Memory) -> Apt<'_> {
        Apt::new(machine, OWN, Path::new("/apt"), &mut |_| ()).unwrap()
    }

    fn debian() -> Memory {
        ["apt-get", "apt-cache", "dpkg-deb", "dpkg"]
            .into_iter()
            .fold(Memory::new().root(), Memory::program)
            .answer(&["dpkg", "--print-architecture"], 0, "amd64\n", "")
            .answer(&["apt-cache"], 100, "", "E: No packages found")
    }

    fn knows(machine: Memory, meta: &str, image: &str, more: &str) -> Memory {
        machine
            .answer(
                &["apt-cache", "depends", "--important", meta],
                0,
                &format!("{meta}\n  Depends: {image}\n"),
                "",
            )
            .answer(
                &["apt-cache", "depends", "--important", image],
                0,
                &format!("{image}\n  PreDepends: <dpkg>\n |Depends: kmod\n{more}"),
                "",
            )
            .answer(
                &["apt-cache", "show", "--no-all-versions", image],
                0,
                "Filename: pool/x.deb\nSize: 70533964\n",
                "",
            )
    }

    #[test]
    fn the_meta_package_leads_to_the_newest_kernel() {
        let machine = knows(debian(), "linux-image-rt-amd64", "linux-image-6.1.0-56-rt-amd64", "");
        let apt = own(&machine);
        let packages = resolve(&apt, "rt", &mut |_| panic!("nothing to say")).unwrap();
        assert_eq!(packages, ["linux-image-6.1.0-56-rt-amd64"]);
        assert_eq!(resolve(&apt, "linux-image-6.1.0-56-rt-amd64", &mut |_| ()).unwrap(), packages);
        assert_eq!(size(&apt, &packages[0]), " (71 MB)");
    }

    #[test]
    fn where_there_is_no_rt_kernel_the_standard_one_is_taken_and_that_is_said() {
        let modules = "  Depends: linux-modules-6.8.0-31-generic\n";
        let machine = knows(debian(), "linux-image-generic", "linux-image-6.8.0-31-generic", modules);
        let mut said = Vec::new();
        let packages = resolve(&own(&machine), "rt", &mut |step| said.push(step.to_owned())).unwrap();
        assert_eq!(packages, ["linux-image-6.8.0-31-generic", "linux-modules-6.8.0-31-generic"]);
        assert!(said[0].contains("standard kernel") && said[0].contains("Ubuntu"), "{said:?}");
    }

    #[test]
    fn a_kernel_in_several_packages_is_fetched_whole() {
        // `apt-cache depends --important` of Debian sid.
        let release = "7.2.13+deb14-rt-amd64";
        let more = "  PreDepends: linux-base
 |Depends: dracut
 |Depends: initramfs-tools
  Depends: <linux-initramfs-tool>
    dracut
    initramfs-tools
    tiny-initramfs
  Depends: linux-base-7.2.13+deb14-rt-amd64
  Depends: linux-binary-7.2.13+deb14-rt-amd64
  Depends: linux-modules-7.2.13+deb14-rt-amd64
";
        let machine =
            knows(debian(), "linux-image-rt-amd64", &format!("linux-image-{release}"), more).answer(
                &["apt-cache", "depends", "--important", "linux-image-rt-amd64"],
                0,
                "linux-image-rt-amd64\n  Depends: linux-base-rt-amd64\n  Depends: linux-image-7.2.13+deb14-rt-amd64\n",
                "",
            );
        let packages = resolve(&own(&machine), "rt", &mut |_| panic!("nothing to say")).unwrap();
        let expected = ["image", "base", "binary", "modules"].map(|part| format!("linux-{part}-{release}"));
        assert_eq!(packages, expected);
    }

    #[test]
    fn a_kernel_of_another_architecture_comes_from_separate_lists() {
        let mut said = Vec::new();
        let machine = debian().answer(&["apt-get"], 100, "", "E: The repository does not have arm64");
        let other = if OWN == "x86_64" { "aarch64" } else { "x86_64" };
        let error = fetch(&machine, "rt", other, &mut |step| said.push(step.to_owned())).unwrap_err();
        let options = ["APT::Architectures::=", "Dir::State=", "Dir::Cache=", " update"];
        assert!(options.iter().all(|option| error.reason.contains(option)), "{error}");
        assert!(error.reason.contains("does not have arm64"), "{error}");
        assert!(said[0].contains("kept separate"), "{said:?}");
        assert!(
            !machine.exists(&kernels_dir(&machine).unwrap().join(format!(".fetch-{}", std::process::id())))
        );
    }

    #[test]
    fn the_package_managers_own_words_are_kept() {
        let machine = knows(debian(), "linux-image-rt-amd64", "linux-image-6.1.0-56-rt-amd64", "").answer(
            &["apt-get"],
            100,
            "",
            "E: Failed to fetch http://deb.debian.org/x 404 Not Found",
        );
        let error = fetch(&machine, "rt", OWN, &mut |_| ()).unwrap_err();
        assert!(error.reason.contains("404 Not Found"), "{error:?}");
        let unknown = fetch(&machine, "vmlinux-9", OWN, &mut |_| ()).unwrap_err();
        assert!(unknown.reason.contains("vmlinux-9") && unknown.hint.is_some(), "{unknown:?}");
    }

    #[test]
    fn other_distributions_are_told_exactly_what_to_do() {
        for (release, says) in [
            ("ID=fedora\n", "dnf install kernel-core"),
            ("ID=\"rocky\"\nID_LIKE=\"rhel centos fedora\"\n", "kernel-rt-core"),
            ("ID=arch\nPRETTY_NAME=\"Arch Linux\"\n", "pacman -S linux-rt"),
            ("", "install a kernel package"),
        ] {
            let error =
                fetch(&Memory::new().file("/etc/os-release", release), "rt", OWN, &mut |_| ()).unwrap_err();
            assert!(error.hint.as_ref().unwrap().contains(says), "{error:?}");
        }
    }
}
