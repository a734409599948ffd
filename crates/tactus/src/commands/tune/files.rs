//! `tactus tune files`: files for what is set elsewhere than at run time.

use std::io;
use std::path::{Path, PathBuf};

use tactus_audit::{Intent, Subject};
use tactus_model::change::Change;
use tactus_model::facts::Facts;
use tactus_model::finding::Role;
use tactus_model::text::quoted;
use tactus_report::units::listed;
use tactus_system::{Real, System};
use tactus_tune::generate::{
    self, Accel, File, GENERATORS, GenerateError, GenerateRequest, GuestOptions, Output, libvirt,
};
use tactus_tune::plan::{Choice, Plan};
use tactus_tune::profile;

use crate::cli::{FilesAccel, TuneFiles};
use crate::commands::facts::Seen;
use crate::commands::{audit, facts};
use crate::exit::{Exit, Failure};
use crate::output;
use crate::say::say;
use crate::synonyms;

pub fn files(arguments: &TuneFiles) -> Result<Exit, Failure> {
    let names: Vec<&str> = GENERATORS.iter().map(|generator| generator.name).collect();
    let generator = generate::find(&arguments.what).ok_or_else(|| {
        Failure::say(
            format!("there is no generator `{}`", arguments.what),
            format!("use one of {}", names.join(", ")),
        )
    })?;
    let purpose = generator.purpose;
    let profile = arguments.profile.as_deref().unwrap_or(purpose.profile());
    let profile = profile::find(synonyms::profile(profile))
        .ok_or_else(|| refused(&GenerateError::UnknownProfile(profile.to_owned())))?;
    let own = arguments.patch.as_deref().map(|file| domain(file, generator.name)).transpose()?;

    let facts = facts(arguments)?;
    let role = if profile.guest { Role::Guest } else { Role::Host };
    let intent = Intent { isolated: arguments.isolate.clone(), ..Intent::default() };
    let subject = Subject::new(&facts, role, &intent);
    if arguments.isolate.is_some() {
        audit::possible(&subject, |_| true)?;
    }
    let choice = Choice { with: arguments.with.clone(), ..Choice::default() };
    let plan = Plan::new(&subject, profile, &choice);
    if let Some(unknown) = plan.refusals.iter().find(|refusal| refusal.what.starts_with("--with ")) {
        return Err(Failure::say(unknown.what.clone(), unknown.hint.clone()));
    }
    let changes: Vec<Change> = plan.entries.into_iter().map(|step| step.change).collect();
    let options = GuestOptions {
        name: arguments.name.clone().unwrap_or_else(|| purpose.name().to_owned()),
        vcpus: arguments.vcpus,
        memory: arguments.memory,
        page: arguments.pages.or(purpose.page()),
        accel: arguments.accel.map(|accel| match accel {
            FilesAccel::Kvm => Accel::Kvm,
            FilesAccel::Tcg => Accel::Tcg,
        }),
    };
    let request = GenerateRequest {
        subject: &subject,
        profile: profile.name,
        changes: &changes,
        withheld: &plan.withheld,
        options: &options,
        says: generate::of_check,
    };
    let output = match own {
        Some((file, text)) => patched(&file, &text, &request),
        None => (generator.generate)(&request),
    }
    .map_err(|refusal| refused(&refusal))?;

    for note in &output.notes {
        say(format_args!("note: {note}"));
    }
    if arguments.json {
        output::json(&output.files)?;
    } else if arguments.out == Path::new("-") {
        output::data(&joined(&output.files))?;
    } else {
        write(&output.files, arguments)?;
    }
    Ok(Exit::Good)
}

fn refused(refusal: &GenerateError) -> Failure {
    Failure::say(refusal.to_string(), refusal.hint())
}

/// The longest domain that is read: libvirt's own are below 100 KiB.
const LONGEST: u64 = 1 << 20;

/// A user's own domain.
fn domain(file: &Path, generator: &str) -> Result<(String, String), Failure> {
    if generator != "libvirt" {
        return Err(Failure::say(
            format!("--patch is for libvirt, not for {generator}"),
            "leave --patch out",
        ));
    }
    let name = file.display().to_string();
    let hint = "give it the output of `virsh dumpxml --inactive NAME`";
    let bytes =
        Real.read_regular(file, LONGEST).map_err(|error| Failure::say(format!("{name}: {error}"), hint))?;
    let text = String::from_utf8(bytes).map_err(|error| Failure::say(format!("{name}: {error}"), hint))?;
    Ok((name, text))
}

fn patched(file: &str, text: &str, request: &GenerateRequest<'_>) -> Result<Output, GenerateError> {
    let (text, mut output) = libvirt::patch(text, file, request)?;
    let name =
        Path::new(file).file_name().map_or_else(|| file.to_owned(), |n| n.to_string_lossy().into_owned());
    let belongs = format!("libvirt (virsh define {})", quoted(&name));
    output.files = vec![File { belongs, name, mode: 0o644, text }];
    Ok(output)
}

fn facts(arguments: &TuneFiles) -> Result<Facts, Failure> {
    let Some(path) = &arguments.from else {
        let mut facts = facts::now()?;
        profile::complete(&mut facts, &Real);
        return Ok(facts);
    };
    recorded_host(path)
}

/// The recorded facts of a host: of a bundle, or of a file.
pub fn recorded_host(path: &Path) -> Result<Facts, Failure> {
    let tuned = tuned(audit::recorded(path)?, path)?;
    if !tuned.is_host {
        say(format_args!(
            "note: these are the facts of `{}`, the only system of the bundle",
            tuned.environment
        ));
    }
    Ok(tuned.facts)
}

/// The system that is tuned: the host, or the only one there is.
fn tuned(mut systems: Vec<Seen>, path: &Path) -> Result<Seen, Failure> {
    if systems.iter().any(|system| system.is_host) {
        systems.retain(|system| system.is_host);
    }
    if systems.len() == 1 {
        return Ok(systems.remove(0));
    }
    let names: Vec<String> = systems.iter().map(|system| format!("`{}`", system.environment)).collect();
    Err(Failure::say(
        format!("{} has facts of several systems: {}", path.display(), listed(&names, ", ")),
        "name one of the files in its directory facts",
    ))
}

/// Files as one text; several with a line before each.
fn joined(files: &[File]) -> String {
    match files {
        [only] => only.text.clone(),
        _ => files
            .iter()
            .map(|file| format!("==> {} <== belongs to {}\n{}", file.name, file.belongs, file.text))
            .collect::<Vec<_>>()
            .join("\n"),
    }
}

fn write(files: &[File], arguments: &TuneFiles) -> Result<(), Failure> {
    let out = &arguments.out;
    let text = out.as_os_str().as_encoded_bytes();
    let several = Real.list(out).is_ok() || files.len() > 1 || text.ends_with(b"/");
    let named = out.file_name().map(Path::new).filter(|_| !several);
    let dir = if several { out } else { out.parent().unwrap_or(Path::new("")) };
    let failed = |path: &Path, error: &io::Error| {
        Failure::say(format!("{}: {error}", path.display()), "name a writable place with --out")
    };
    // Once for all of them: who owns what is above cannot lead some of them elsewhere.
    let opened = output::directory(dir).map_err(|error| failed(out, &error))?;
    let name = |file: &'_ File| named.map_or_else(|| PathBuf::from(&file.name), Path::to_owned);
    let there = files.iter().map(name).find(|name| opened.entry(name).is_ok());
    if let Some(there) = there.filter(|_| !arguments.force) {
        return Err(Failure::say(
            format!("{} already exists", dir.join(there).display()),
            "name another place with --out, or overwrite with --force",
        ));
    }
    for file in files {
        let target = dir.join(name(file));
        output::file(&opened, &name(file), file.text.as_bytes(), file.mode)
            .map_err(|error| failed(&target, &error))?;
        say(format_args!("wrote {}; it belongs to {}", target.display(), file.belongs));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use tactus_bundle::Trust;
    use tactus_model::bundle::Contents;
    use tactus_model::plan::Environment;

    use super::*;

    /// The system that is tuned by a bundle with the facts of `container`, `guest` and `host`, after a change.
    fn tuned_after(change: impl Fn(&mut Contents)) -> Result<String, String> {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../tactus-bundle/tests/recorded/environments");
        let mut contents = tactus_bundle::read(Path::new(path), Trust::Whole).unwrap();
        change(&mut contents);
        let tuned = tuned(audit::systems(&contents), Path::new("bundle"));
        tuned.map(|system| system.environment).map_err(|failure| failure.words())
    }

    fn environment<'a>(contents: &'a mut Contents, name: &str) -> &'a mut Environment {
        contents.plan.environment.get_mut(name).unwrap()
    }

    #[test]
    fn the_host_of_a_bundle_is_tuned_and_no_system_that_tactus_attached_to_or_reached_by_ssh() {
        let host = Ok("host".to_owned());
        assert_eq!(tuned_after(|_| {}), host);
        for name in ["container", "guest"] {
            assert_eq!(tuned_after(|all| environment(all, name).attach = Some("plc".into())), host, "{name}");
            assert_eq!(tuned_after(|all| environment(all, name).kind = "ssh".into()), host, "{name}");
        }
    }

    #[test]
    fn without_a_host_the_only_system_of_a_bundle_is_tuned_and_of_several_none() {
        let without = |names: &[&str]| {
            tuned_after(|all| names.iter().for_each(|name| drop(all.facts.remove(*name).unwrap())))
        };
        assert_eq!(without(&["host", "guest"]), Ok("container".into()));
        let said = "bundle has facts of several systems: `container`, `guest`";
        assert_eq!(without(&["host"]), Err(said.into()));
        let of_two_states = tuned_after(|all| {
            let facts = all.facts.remove("host").unwrap();
            all.facts.insert("host@a".into(), facts.clone());
            all.facts.insert("host@b".into(), facts);
        });
        assert_eq!(of_two_states, Err("bundle has facts of several systems: `host@a`, `host@b`".into()));
    }
}
