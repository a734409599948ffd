//! `tactus report BUNDLE --certificate`.

use std::ffi::OsStr;
use std::path::Path;

use tactus_bundle::{self as bundle, Trust};
use tactus_report::certificate::{Certificate, CertificateError, Given, html, pdf};
use tactus_system::Directory;

use super::{to_file, unwritten};
use crate::exit::{Exit, Failure};
use crate::output;
use crate::say::say;

/// The certificate beside the files of a bundle, in both of its formats.
const FILES: [(&str, Write); 2] = [("certificate.pdf", pdf), ("certificate.html", page)];

/// Writes a certificate in a format.
type Write = fn(&Certificate) -> Result<Vec<u8>, CertificateError>;

/// Writes the certificate of the bundle in an open directory. It goes into the file that the user named, as PDF or as
/// HTML by the end of its name, or to stdout as PDF. Without a name both go beside the files of the bundle.
pub fn certificate(bundle: &Directory, given: &Given, out: Option<&Path>) -> Result<Exit, Failure> {
    let write = out.map(by_name).transpose()?;
    // A certificate is only for a bundle that is complete and matches its checksums.
    let sealed = bundle::sealed(bundle)?;
    let contents = bundle::read_from(bundle, Trust::Whole)?;
    // Somebody may have put another manifest there between the two.
    if contents.manifest.files != sealed.manifest.files {
        return Err(Failure::say(
            "the bundle changed while it was read",
            "wait until it is no longer written to",
        ));
    }
    let certificate = Certificate::of(&contents, &sealed.sha256, given).map_err(failed)?;
    match out.zip(write) {
        Some((out, write)) if out.as_os_str() == "-" => output::bytes(&write(&certificate).map_err(failed)?)?,
        Some((out, write)) => {
            to_file(out, &write(&certificate).map_err(failed)?)?;
            said(out);
        }
        None => {
            // All or nothing: a certificate that cannot be written in one format is in no other either.
            let written = FILES.map(|(name, write)| write(&certificate).map(|bytes| (name, bytes)));
            for written in written {
                let (name, bytes) = written.map_err(failed)?;
                let path = bundle.path().join(name);
                bundle.replace(name, &bytes).map_err(|error| unwritten(&path, &error))?;
                said(&path);
            }
        }
    }
    Ok(Exit::Good)
}

fn said(path: &Path) {
    say(format_args!("certificate: {}", path.display()));
}

fn failed(error: CertificateError) -> Failure {
    let hint = error.hint();
    Failure::new(error, hint)
}

fn page(certificate: &Certificate) -> Result<Vec<u8>, CertificateError> {
    html(certificate).map(String::into_bytes)
}

/// The format that the name of a file asks for.
fn by_name(out: &Path) -> Result<Write, Failure> {
    let ending = out.extension().and_then(OsStr::to_str).map(str::to_ascii_lowercase);
    match ending.as_deref() {
        _ if out.as_os_str() == "-" => Ok(pdf),
        Some("pdf") => Ok(pdf),
        Some("html" | "htm") => Ok(page),
        _ => Err(Failure::say(
            format!("{} is neither a PDF nor a page of HTML", out.display()),
            "a certificate is PDF or HTML: `--out FILE.pdf` or `--out FILE.html`",
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_name_says_the_format() {
        for (name, is_known) in
            [("a.pdf", true), ("a.PDF", true), ("a.html", true), ("-", true), ("a", false), ("a.png", false)]
        {
            assert_eq!(by_name(Path::new(name)).is_ok(), is_known, "{name}");
        }
    }
}
