//! `tactus report BUNDLE --sign KEY` and `--verify`: signatures of OpenSSH over a list of checksums, which names the manifest
//! of the bundle, with the checksum of every other file, and its certificates.

use std::io::{self, Read as _};
use std::path::Path;
use std::time::{Duration, Instant};

use tactus_bundle::{self as bundle, BundleError, Covered, SIGNATURE, SUMS};
use tactus_system::{Child, Directory, Finished, Invocation, Real, System};

use crate::commands::execute::scratch_directory;
use crate::exit::{Exit, Failure};
use crate::output;
use crate::say::say;

/// The tool that makes and verifies signatures.
const TOOL: &str = "ssh-keygen";
/// The purpose of the signature: one with another namespace does not count for a bundle.
const NAMESPACE: &str = "tactus";
/// The file that the tool makes beside the signed file.
const MADE: &str = "SHA256SUMS.sig";
/// Longest signature, in bytes: that of the largest RSA key is 3 KiB.
const LONGEST: u64 = 64 * 1024;
/// How long a user may take for a passphrase or a touch of a key.
const PATIENCE: Duration = Duration::from_secs(180);
/// How long verifying may take.
const VERIFIED_WITHIN: Duration = Duration::from_secs(30);
/// Between two looks at whether it has ended.
const LOOK: Duration = Duration::from_millis(5);
/// The hint for a user without the tool.
const INSTALL: &str = "install OpenSSH: `apt install openssh-client`";

/// Signs the bundle in an open directory with a key of OpenSSH: a private one, or a public one whose private one an agent
/// has. The list and its signature lie beside the manifest.
pub fn sign(bundle: &Directory, key: &Path) -> Result<Exit, Failure> {
    has_tool()?;
    // A damaged bundle is not signed.
    let sealed = bundle::sealed(bundle)?;
    let sums = bundle::sums(bundle, &sealed)?;
    let signature = made(sums.as_bytes(), key)?;
    for (name, bytes) in [(SUMS, sums.as_bytes()), (SIGNATURE, &signature)] {
        let path = bundle.path().join(name);
        bundle.replace(name, bytes).map_err(|error| super::unwritten(&path, &error))?;
    }
    let certificates = bundle::beside(bundle)?;
    let beside = certificates.iter().map(|name| format!(" and {name}")).collect::<String>();
    let signature = bundle.path().join(SIGNATURE);
    say(format_args!("signed: the files that the manifest names{beside}: {}", signature.display()));
    Ok(Exit::Good)
}

/// A signature over these bytes.
fn made(bytes: &[u8], key: &Path) -> Result<Vec<u8>, Failure> {
    let hint = "give the private key of `ssh-keygen -t ed25519`, or its public key if an agent has it \
        (`ssh-add -l`)";
    let failed = |why: String| Failure::say(format!("the bundle was not signed: {why}"), hint);
    let scratch = scratch_directory()?;
    let dir = Directory::open(scratch.path())?;
    dir.install(SUMS, bytes, 0o600)?;
    let file = scratch.path().join(SUMS);
    let words = ["-Y", "sign", "-n", NAMESPACE, "-f", &text(key)?, &text(&file)?].map(str::to_owned);
    let command = Invocation::new([TOOL.to_owned()].into_iter().chain(words)).within(PATIENCE);
    let ended = Real.run(&command).map_err(|error| failed(error.to_string()))?;
    if !ended.success() {
        return Err(failed(ended.words()));
    }
    dir.read(MADE, LONGEST).map_err(|error| failed(format!("{TOOL} wrote no signature: {error}")))
}

/// Verifies the bundle in an open directory. Its files must match the manifest, the manifest and the certificates
/// must match the list, and the signature must be one of this list. Unsigned files are named. With a file of allowed
/// signers (ssh-keygen(1)) one of them must have signed. A bundle that differs ends with [`Exit::Findings`].
pub fn verify(bundle: &Directory, signers: Option<&Path>) -> Result<Exit, Failure> {
    has_tool()?;
    let sealed = match bundle::sealed(bundle) {
        Ok(sealed) => sealed,
        Err(error @ BundleError::Altered { .. }) => return Ok(differs(&error)),
        Err(error) => return Err(error.into()),
    };
    let read = |name: &str| {
        bundle.read(name, LONGEST).map_err(|error| {
            let path = bundle.path().join(name);
            Failure::say(
                format!("{}: {error}", path.display()),
                "sign it first: `tactus report BUNDLE --sign KEY`",
            )
        })
    };
    let (signature, sums) = (read(SIGNATURE)?, read(SUMS)?);
    let covered = match bundle::covered(bundle, &sealed, &String::from_utf8_lossy(&sums)) {
        Ok(covered) => covered,
        Err(error @ BundleError::Altered { .. }) => return Ok(differs(&error)),
        Err(error) => return Err(error.into()),
    };
    // The one that was read is the one that is verified.
    let scratch = scratch_directory()?;
    Directory::open(scratch.path())?.install(MADE, &signature, 0o600)?;
    let file = text(&scratch.path().join(MADE))?;
    match signed_by(&sums, &file, signers)? {
        Ok(who) => {
            output::text(&format!("{}{who}\nSHA-256 of the manifest: {}\n", told(&covered), sealed.sha256))?;
            Ok(Exit::Good)
        }
        Err(why) => Ok(differs(&why)),
    }
}

/// The signed files, and the unsigned files beside them.
fn told(Covered { certificates, unsigned }: &Covered) -> String {
    let mut said = "All files of the manifest are as they were signed".to_owned();
    if !certificates.is_empty() {
        said += &format!(", and so is {}", certificates.join(", "));
    }
    said += ".\n";
    if !unsigned.is_empty() {
        said += &format!("Not signed: {}.\n", unsigned.join(", "));
    }
    said
}

/// The signer of these bytes, in a sentence. The inner error: no allowed signer signed them.
fn signed_by(bytes: &[u8], file: &str, signers: Option<&Path>) -> Result<Result<String, String>, Failure> {
    let key = fed(&["-Y", "check-novalidate", "-n", NAMESPACE, "-s", file], bytes)?;
    if !key.success() {
        return Ok(Err(format!("the signature does not belong to this bundle: {}", key.words())));
    }
    let key = key_of(&key.text());
    let Some(signers) = signers else {
        let unknown = "The owner of that key was not checked: use `--signers FILE`.";
        return Ok(Ok(format!("Signed with {key}. {unknown}")));
    };
    let signers = text(signers)?;
    let found = fed(&["-Y", "find-principals", "-s", file, "-f", &signers], &[])?;
    let text = found.text();
    let principals = || text.lines().map(str::trim).filter(|name| !name.is_empty());
    let mut why = found.words();
    for name in principals().filter(|_| found.success()) {
        let words = ["-Y", "verify", "-n", NAMESPACE, "-s", file, "-f", &signers, "-I", name];
        let verified = fed(&words, bytes)?;
        if verified.success() {
            return Ok(Ok(format!("Signed by {name} with {key}.")));
        }
        why = verified.words();
    }
    Ok(Err(format!("the signature is not by an allowed signer; its key is {key}: {why}")))
}

/// "ED25519 key SHA256:..." of what the tool says of a good signature.
fn key_of(said: &str) -> String {
    let line = said.lines().next().unwrap_or_default().trim();
    line.split_once(" with ").map_or(line, |(_, key)| key).to_owned()
}

/// Says what is wrong with a bundle.
fn differs(why: &dyn std::fmt::Display) -> Exit {
    say(format_args!("NOT VERIFIED: {why}"));
    Exit::Findings
}

/// Runs the tool, which reads these bytes.
fn fed(words: &[&str], bytes: &[u8]) -> Result<Finished, Failure> {
    let failed = |error: io::Error| Failure::say(format!("{TOOL}: {error}"), INSTALL);
    let words = [TOOL].into_iter().chain(words.iter().copied());
    let mut child = Real.spawn(&Invocation::new(words)).map_err(failed)?;
    if let Some(mut stdin) = child.take_stdin() {
        match stdin.write_all(bytes) {
            // One that has seen enough reads no further.
            Err(error) if error.kind() != io::ErrorKind::BrokenPipe => return Err(failed(error)),
            _ => {}
        }
    }
    let mut stdout = Vec::new();
    if let Some(said) = child.take_stdout() {
        said.take(LONGEST).read_to_end(&mut stdout).map_err(failed)?;
    }
    let code = ended(child.as_mut()).map_err(failed)?;
    Ok(Finished { code, stdout, stderr: child.stderr().into_bytes() })
}

/// How a command ended.
fn ended(child: &mut dyn Child) -> io::Result<Option<i32>> {
    let until = Instant::now() + VERIFIED_WITHIN;
    loop {
        match child.try_wait()? {
            Some(code) => return Ok(code),
            None if Instant::now() > until => return Err(io::ErrorKind::TimedOut.into()),
            None => std::thread::sleep(LOOK),
        }
    }
}

fn has_tool() -> Result<(), Failure> {
    match Real.find_program(TOOL) {
        Some(_) => Ok(()),
        None => Err(Failure::say(format!("{TOOL} is not installed"), INSTALL)),
    }
}

/// A path as a word of a command, which is never taken for an option.
fn text(path: &Path) -> Result<String, Failure> {
    let whole = std::path::absolute(path)?;
    let text = whole.to_str().map(str::to_owned);
    text.ok_or_else(|| Failure::say(format!("{} is not UTF-8", path.display()), "give it another name"))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::path::PathBuf;

    use tactus_model::bundle::{FORMAT, Machine, Manifest};
    use tactus_model::event::RunStatus;

    use super::*;

    /// A bundle of one file, and keys of two people.
    struct Signed {
        dir: tempfile::TempDir,
        bundle: Directory,
    }

    const PLAN: &str = "name = 'signed'\n";

    impl Signed {
        /// `None` if signing is impossible here.
        fn new() -> Option<Self> {
            if Real.find_program(TOOL).is_none() {
                eprintln!("SKIPPED: {TOOL} is not installed");
                return None;
            }
            let dir = tempfile::tempdir().unwrap();
            let bundle = Directory::create(&dir.path().join("bundle")).unwrap();
            bundle.install("plan.toml", PLAN.as_bytes(), 0o644).unwrap();
            let manifest = Manifest {
                format: FORMAT,
                tactus: "0.1.0".into(),
                plan: "signed".into(),
                started: "2026-11-20T09:14:01Z".into(),
                finished: Some("2026-11-20T09:15:32Z".into()),
                status: RunStatus::Complete,
                machine: Machine::default(),
                files: BTreeMap::from([("plan.toml".to_owned(), tactus_fleet::sha256(PLAN.as_bytes()))]),
                sessions: Vec::new(),
                asked: None,
            };
            bundle.install("manifest.json", &serde_json::to_vec(&manifest).unwrap(), 0o644).unwrap();
            let made = Self { dir, bundle };
            for name in ["engineer", "stranger"] {
                let key = text(&made.path(name)).unwrap();
                let words = [TOOL, "-q", "-t", "ed25519", "-N", "", "-C", name, "-f", &key];
                assert!(Real.run(&Invocation::new(words)).unwrap().success());
            }
            Some(made)
        }

        fn path(&self, name: &str) -> PathBuf {
            self.dir.path().join(name)
        }

        /// A file in which this person may sign.
        fn allowed(&self, name: &str) -> PathBuf {
            let public = Real.read(&self.path(&format!("{name}.pub"))).unwrap();
            let line = format!("{name}@example.com {}", String::from_utf8(public).unwrap());
            let path = self.path(&format!("allowed-{name}"));
            Real.write(&path, line.as_bytes()).unwrap();
            path
        }

        fn verify(&self, signers: Option<&Path>) -> Exit {
            verify(&self.bundle, signers).unwrap()
        }
    }

    #[test]
    fn what_was_signed_is_verified_until_a_byte_changes() {
        let Some(signed) = Signed::new() else { return };
        let unsigned = verify(&signed.bundle, None).unwrap_err();
        assert!(unsigned.words().contains(SIGNATURE), "{}", unsigned.words());
        assert_eq!(sign(&signed.bundle, &signed.path("engineer")).unwrap(), Exit::Good);
        // The signature damages nothing.
        bundle::verify(&signed.bundle).unwrap();
        assert_eq!(signed.verify(None), Exit::Good);
        signed.bundle.replace("plan.toml", b"name = 'Signed'\n").unwrap();
        let why = bundle::verify(&signed.bundle).unwrap_err().to_string();
        assert!(why.contains("plan.toml"), "{why}");
        assert_eq!(signed.verify(None), Exit::Findings);
        assert!(sign(&signed.bundle, &signed.path("engineer")).is_err(), "nobody signs what is damaged");
        // A manifest that says so, too, is another one than that which was signed.
        signed.bundle.replace("plan.toml", PLAN.as_bytes()).unwrap();
        assert_eq!(signed.verify(None), Exit::Good);
        let mut manifest = signed.bundle.read("manifest.json", LONGEST).unwrap();
        manifest.push(b'\n');
        signed.bundle.replace("manifest.json", &manifest).unwrap();
        assert_eq!(signed.verify(None), Exit::Findings);
    }

    /// A person who passes a bundle on could put another certificate beside it.
    #[test]
    fn a_certificate_is_signed_with_the_bundle_and_what_came_later_is_named() {
        let Some(signed) = Signed::new() else { return };
        signed.bundle.install("certificate.html", b"MET", 0o644).unwrap();
        assert_eq!(sign(&signed.bundle, &signed.path("engineer")).unwrap(), Exit::Good);
        let covered = || {
            let sealed = bundle::sealed(&signed.bundle).unwrap();
            let sums = signed.bundle.read(SUMS, LONGEST).unwrap();
            bundle::covered(&signed.bundle, &sealed, &String::from_utf8_lossy(&sums))
        };
        assert_eq!(told(&covered().unwrap()).lines().count(), 1, "{:?}", covered());
        signed.bundle.install("certificate.pdf", b"forged", 0o644).unwrap();
        signed.bundle.install("extra.txt", b"forged", 0o644).unwrap();
        let said = told(&covered().unwrap());
        assert!(
            said.contains("so is certificate.html.\nNot signed: certificate.pdf, extra.txt.\n"),
            "{said}"
        );
        assert_eq!(signed.verify(None), Exit::Good);
        signed.bundle.replace("certificate.html", b"MET!").unwrap();
        assert!(covered().unwrap_err().to_string().contains("certificate.html"));
        assert_eq!(signed.verify(None), Exit::Findings);
        // Nor is a list of another bundle, or of files elsewhere, believed.
        for list in ["", "00  manifest.json\n", "x  /etc/passwd\n"] {
            signed.bundle.replace(SUMS, list.as_bytes()).unwrap();
            assert_eq!(signed.verify(None), Exit::Findings, "{list}");
        }
    }

    /// The engineer signs what he has looked at.
    #[test]
    fn what_somebody_planted_under_the_name_of_a_certificate_is_not_signed() {
        let Some(signed) = Signed::new() else { return };
        for name in ["certificate.en.html", "certificate.000", "certificate.x. Signed by boss"] {
            signed.bundle.install(name, b"MET", 0o644).unwrap();
        }
        assert_eq!(sign(&signed.bundle, &signed.path("engineer")).unwrap(), Exit::Good);
        let sums = signed.bundle.read(SUMS, LONGEST).unwrap();
        assert_eq!(String::from_utf8_lossy(&sums).lines().count(), 1, "the manifest alone");
        let sealed = bundle::sealed(&signed.bundle).unwrap();
        let covered = bundle::covered(&signed.bundle, &sealed, &String::from_utf8_lossy(&sums)).unwrap();
        assert_eq!((covered.certificates.len(), covered.unsigned.len()), (0, 3), "{covered:?}");
    }

    #[test]
    fn only_those_who_may_sign_are_believed() {
        let Some(signed) = Signed::new() else { return };
        sign(&signed.bundle, &signed.path("engineer")).unwrap();
        let [engineer, stranger] = ["engineer", "stranger"].map(|name| signed.allowed(name));
        assert_eq!(signed.verify(Some(&engineer)), Exit::Good);
        assert_eq!(signed.verify(Some(&stranger)), Exit::Findings);
        let sums = signed.bundle.read(SUMS, LONGEST).unwrap();
        let file = text(&signed.path("bundle").join(SIGNATURE)).unwrap();
        let who = signed_by(&sums, &file, Some(&engineer)).unwrap().unwrap();
        assert!(who.starts_with("Signed by engineer@example.com with ED25519 key SHA256:"), "{who}");
        assert!(
            signed_by(&sums, &file, Some(&stranger))
                .unwrap()
                .unwrap_err()
                .contains("not by an allowed signer")
        );
    }

    #[test]
    fn a_key_that_is_not_there_signs_nothing() {
        let Some(signed) = Signed::new() else { return };
        let failure = sign(&signed.bundle, &signed.path("nobody")).unwrap_err();
        assert!(failure.words().starts_with("the bundle was not signed: "), "{}", failure.words());
        assert!(signed.bundle.entry(SIGNATURE).is_err());
    }
}
