//! The module by which the kernel of a Linux guest answers an interrupt card (docs/design/card.md). It is built for
//! each guest, with the headers of its kernel, where these are installed.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tactus_model::undo::{MARKER, Undo};
use tactus_system::guardian::Guardian;
use tactus_system::{Invocation, System};

use super::{Kernel, KernelError, Module};

/// Its name, as the kernel knows it.
const NAME: &str = "tactus_card";
/// Its source.
const SOURCE: &str = include_str!("../../module/tactus_card.c");
/// The file that the kernel's makefiles read.
const KBUILD: &str = "obj-m := tactus_card.o\n";
/// It takes a second or two on a machine that does nothing else.
const BUILDING: Duration = Duration::from_secs(180);
/// One has 300 KB, most of it to debug it.
const LARGEST: u64 = 16 << 20;

/// Why it cannot be built for a kernel, and the remedy; `None` if it can be tried.
#[must_use]
pub fn obstacle(kernel: &Kernel, system: &dyn System) -> Option<String> {
    let (reason, remedy) = missing(kernel, system)?;
    Some(format!("{reason}; {remedy}"))
}

fn missing(kernel: &Kernel, system: &dyn System) -> Option<(String, String)> {
    if let Err(error) = headers(kernel, system) {
        let release = if kernel.release.is_empty() { &kernel.name } else { &kernel.release };
        return Some(match error.kind() {
            io::ErrorKind::PermissionDenied => (
                format!(
                    "no handler is built for the guest's kernel: its headers ({release}) are not used: {error}"
                ),
                "files there run as this user during the build: give the directory to root (`chown -R \
                 root:`), or install the headers of a package"
                    .into(),
            ),
            _ => (
                format!(
                    "no handler can be built for the guest's kernel: its headers ({release}) are not installed"
                ),
                format!(
                    "install them (Debian, Ubuntu: `apt-get install linux-headers-{release}`; Fedora: `dnf install \
                     kernel-devel-{release}`)"
                ),
            ),
        });
    }
    let tool = ["make", "gcc"].into_iter().find(|tool| system.find_program(tool).is_none())?;
    Some((
        format!("no handler can be built for the guest's kernel: {tool} is not installed"),
        format!("install it (Debian, Ubuntu: `apt-get install {tool}`; Fedora: `dnf install {tool}`)"),
    ))
}

/// Where the headers of a kernel lie. The release comes from an image, so it is not trusted as a path. The first
/// place is a link to wherever the kernel was built. That can be another user's directory, or a missing one that any
/// user can make again. Only root and this user may have written the files there, because make runs them.
fn headers(kernel: &Kernel, system: &dyn System) -> io::Result<PathBuf> {
    let release = Some(&kernel.release).filter(|release| !release.is_empty());
    let release = release.ok_or(io::ErrorKind::NotFound)?;
    let places = [
        format!("/lib/modules/{release}/build"),
        format!("/usr/src/linux-headers-{release}"),
        format!("/usr/src/kernels/{release}"),
    ];
    let places = places.map(|place| Path::new(&place).join("Makefile"));
    let found = places.into_iter().find(|makefile| system.exists(makefile)).ok_or(io::ErrorKind::NotFound)?;
    // The makefile may be a link: make reads the files beside the link.
    system.believed(&found)?;
    match found.parent() {
        Some(dir) => system.believed(dir),
        None => Err(io::ErrorKind::NotFound.into()),
    }
}

/// Builds it below `workspace`. The processes that make has started end with it, also after a timeout, and when
/// tactus is killed meanwhile.
///
/// # Errors
/// The missing part; or the compiler's words.
pub fn build(
    kernel: &Kernel,
    workspace: &Path,
    guardian: &Guardian,
    system: &dyn System,
) -> Result<Module, KernelError> {
    if let Some((reason, remedy)) = missing(kernel, system) {
        return Err(KernelError { reason, hint: Some(remedy) });
    }
    let headers = headers(kernel, system)
        .map_err(|error| KernelError { reason: format!("its headers: {error}"), hint: None })?;
    let dir = workspace.join("card-module");
    let failed = |path: &Path, error: &io::Error| KernelError {
        reason: format!("{}: {error}", path.display()),
        hint: None,
    };
    system.make_dir(&dir).map_err(|error| failed(&dir, &error))?;
    for (name, text) in [("tactus_card.c", SOURCE), ("Kbuild", KBUILD)] {
        let path = dir.join(name);
        system.write(&path, text.as_bytes()).map_err(|error| failed(&path, &error))?;
    }
    let words = ["make", "-C", &headers.display().to_string(), &format!("M={}", dir.display()), "modules"]
        .map(str::to_owned);
    // A separate mark: the mark of the run is on processes that stay.
    let mark = format!("{}-module", guardian.id());
    let promise = guardian.promise(Undo::KillMarked(mark.clone()));
    let promise = promise.map_err(|error| failed(Path::new("make"), &error))?;
    let make = Invocation::new(words).within(BUILDING).with_env(("LC_ALL", "C")).with_env((MARKER, &mark));
    let made = system.run(&make);
    promise.revert().map_err(|error| failed(Path::new("make"), &error))?;
    let made = made.map_err(|error| failed(Path::new("make"), &error))?;
    if !made.success() {
        return Err(KernelError {
            reason: format!("the handler for the guest's kernel was not built: {}", made.words()),
            hint: Some(format!(
                "`make -C {} M=DIRECTORY modules` builds any module with these headers",
                headers.display()
            )),
        });
    }
    let path = dir.join(format!("{NAME}.ko"));
    let bytes = system.read_regular(&path, LARGEST).map_err(|error| failed(&path, &error))?;
    Ok(Module { name: NAME.into(), bytes })
}

#[cfg(test)]
mod tests {
    use tactus_system::{Memory, Real};

    use super::super::{OWN, Origin};
    use super::*;

    const RELEASE: &str = "6.1.0-56-rt-amd64";
    const MAKEFILE: &str = "/usr/src/linux-headers-6.1.0-56-rt-amd64/Makefile";

    fn guardian() -> Guardian {
        Guardian::start(&Real).unwrap()
    }

    fn kernel(release: &str) -> Kernel {
        Kernel {
            name: "guest".into(),
            path: "/boot/vmlinuz".into(),
            modules_dir: None,
            release: release.into(),
            origin: Origin::Cache,
            preempt_rt: true,
            arch: OWN,
        }
    }

    #[test]
    fn without_headers_or_a_compiler_it_says_what_to_install() {
        let machine = Memory::new().program("make").program("gcc");
        let said = obstacle(&kernel(RELEASE), &machine).unwrap();
        assert!(
            said.contains("headers (6.1.0-56-rt-amd64)") && said.contains("linux-headers-6.1.0-56-rt-amd64"),
            "{said}"
        );
        let said = obstacle(&kernel(""), &machine).unwrap();
        assert!(said.contains("(guest) are not installed"), "{said}");
        let machine = Memory::new().file(MAKEFILE, "").program("make");
        assert!(obstacle(&kernel(RELEASE), &machine).unwrap().contains("gcc is not installed"));
        let machine = machine.program("gcc");
        assert_eq!(obstacle(&kernel(RELEASE), &machine), None);
    }

    #[test]
    fn headers_that_somebody_else_has_written_build_nothing() {
        for of_others in [MAKEFILE, "/usr/src/linux-headers-6.1.0-56-rt-amd64"] {
            let machine = Memory::new().file(MAKEFILE, "").program("make").program("gcc");
            let machine = machine.answer(&["make"], 0, "", "").of_others(of_others);
            let said = obstacle(&kernel(RELEASE), &machine).unwrap();
            assert!(said.contains("belongs to user 12345") && said.contains("chown"), "{said}");
            let error = build(&kernel(RELEASE), Path::new("/run/w"), &guardian(), &machine).unwrap_err();
            assert!(error.reason.contains("not trusted") && machine.calls().is_empty(), "{error:?}");
        }
    }

    #[test]
    fn the_compilers_words_are_kept() {
        let machine = Memory::new().file(MAKEFILE, "").program("make").program("gcc").answer(
            &["make"],
            2,
            "",
            "gcc-12: not found\nmake: *** [Makefile:1013: modules] Error 2",
        );
        let error = build(&kernel(RELEASE), Path::new("/run/w"), &guardian(), &machine).unwrap_err();
        assert!(error.reason.contains("gcc-12: not found") && error.hint.is_some(), "{error:?}");
    }

    #[test]
    fn what_make_has_started_carries_a_mark_by_which_it_is_ended() {
        let machine =
            Memory::new().file(MAKEFILE, "").program("make").program("gcc").answer(&["make"], 2, "", "no");
        let guardian = guardian();
        let (variable, run) = guardian.marker();
        build(&kernel(RELEASE), Path::new("/run/w"), &guardian, &machine).unwrap_err();
        let make = machine.invocations().pop().unwrap();
        let (_, mark) = make.env.iter().find(|(name, _)| name == variable).expect("it has a mark");
        assert!(mark.starts_with(run) && mark != run, "what else the run has started stays: {mark}");
    }

    #[test]
    fn what_was_built_is_the_module_and_nothing_else() {
        let machine =
            Memory::new().file(MAKEFILE, "").program("make").program("gcc").answer(&["make"], 0, "", "");
        let missing = build(&kernel(RELEASE), Path::new("/run/w"), &guardian(), &machine).unwrap_err();
        assert!(missing.reason.contains("tactus_card.ko"), "{missing:?}");
        let machine = machine.file("/run/w/card-module/tactus_card.ko", "ELF");
        let module = build(&kernel(RELEASE), Path::new("/run/w"), &guardian(), &machine).unwrap();
        assert_eq!((module.name.as_str(), &*module.bytes), ("tactus_card", &b"ELF"[..]));
    }
}
