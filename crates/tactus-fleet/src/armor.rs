//! A bundle as text, for engines that keep what a job prints and no file: an archive in base64 between two lines, with its
//! checksum. A log that is cut, in whichever place, is no bundle.

use std::io;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use tactus_system::Directory;

use crate::name::sha256;
use crate::pack::pack;

const BEGIN: &str = "-----BEGIN TACTUS BUNDLE-----";
const END: &str = "-----END TACTUS BUNDLE-----";
const SUM: &str = "sha256: ";
/// The same of an archive that comes by another way than the word.
const ARCHIVE_SUM: &str = "archive-sha256: ";
/// Columns of the text: no container runtime breaks such a line.
const COLUMNS: usize = 76;
/// The part of a container's last words that Kubernetes keeps, in bytes.
const MOST_WORD: usize = 4096;
/// The longest manifest, in bytes.
const MOST_MANIFEST: u64 = 16 << 20;

/// A bundle as text, and its manifest as the last word of a container; where that is too long, its SHA-256.
///
/// # Errors
/// When it cannot be read.
pub fn written(bundle: &Directory) -> io::Result<(String, String)> {
    let archive = pack(bundle, Vec::new())?;
    let manifest = bundle.read("manifest.json", MOST_MANIFEST)?;
    let mut text = format!("{BEGIN}\n{SUM}{}\n", sha256(&archive));
    let letters = STANDARD.encode(&archive);
    for line in letters.as_bytes().chunks(COLUMNS) {
        text.push_str(&String::from_utf8_lossy(line));
        text.push('\n');
    }
    text += &format!("{END}\n");
    let word = String::from_utf8(manifest).ok().filter(|word| word.len() <= MOST_WORD);
    Ok((text, word.unwrap_or_else(|| format!("{SUM}{}", last_sum(bundle)))))
}

fn last_sum(bundle: &Directory) -> String {
    bundle.read("manifest.json", MOST_MANIFEST).map(|bytes| sha256(&bytes)).unwrap_or_default()
}

/// The last archive in a log, if all of it is there.
///
/// # Errors
/// With what is missing, in words.
pub fn read(log: &str) -> Result<Vec<u8>, &'static str> {
    let (_, text) = log.rsplit_once(BEGIN).ok_or("no bundle is in the job's log")?;
    let (text, _) = text.split_once(END).ok_or("the bundle in the job's log is cut")?;
    let (sum, letters) = text
        .trim_start()
        .strip_prefix(SUM)
        .and_then(|text| text.split_once('\n'))
        .ok_or("the bundle in the job's log is cut")?;
    let letters: String = letters.split_whitespace().collect();
    let bytes = STANDARD.decode(letters).map_err(|_| "the bundle in the job's log is cut or altered")?;
    if sha256(&bytes) == sum.trim() {
        Ok(bytes)
    } else {
        Err("the bundle in the job's log is cut or altered")
    }
}

/// SHA-256 of the manifest that a container's last word is, or says.
#[must_use]
pub fn manifest_sum(word: &str) -> Option<String> {
    match word.strip_prefix(SUM) {
        Some(sum) => Some(sum.trim().to_owned()),
        None => word.starts_with('{').then(|| sha256(word.as_bytes())),
    }
}

/// The last word of a container whose archive has this sum.
#[must_use]
pub fn archive_word(sum: &str) -> String {
    format!("{ARCHIVE_SUM}{sum}\n")
}

/// The sum of the archive that a container's last word tells.
#[must_use]
pub fn archive_sum(word: &str) -> Option<&str> {
    word.strip_prefix(ARCHIVE_SUM).map(str::trim)
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "a bundle is made beside the door")]
mod tests {
    use super::*;

    fn text(manifest: &str) -> (String, String) {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("manifest.json"), manifest).unwrap();
        std::fs::write(dir.path().join("events.jsonl"), "{}\n".repeat(5000)).unwrap();
        written(&Directory::open(dir.path()).unwrap()).unwrap()
    }

    #[test]
    fn the_last_bundle_of_a_log_is_read_among_other_lines() {
        let (text, word) = text("{\"a\": 1}");
        let log = format!("measuring\n{BEGIN}\nsha256: 00\nAAAA\n{END}\n{text}done\n");
        let bytes = read(&log).unwrap();
        let to = tempfile::tempdir().unwrap();
        crate::pack::unpack(&bytes[..], &Directory::open(to.path()).unwrap()).unwrap();
        let manifest = std::fs::read(to.path().join("manifest.json")).unwrap();
        assert_eq!(manifest_sum(&word), Some(sha256(&manifest)));
    }

    #[test]
    fn a_log_that_is_cut_or_altered_anywhere_is_no_bundle() {
        let (text, _) = text("{}");
        assert!(read("").is_err() && read("nothing").is_err());
        for end in (0..text.len() - 1).step_by(3) {
            assert!(read(&text[..end]).is_err(), "cut at {end} of {}", text.len());
        }
        let lines: Vec<&str> = text.lines().collect();
        for gone in 0..lines.len() {
            let rest = [&lines[..gone], &lines[gone + 1..]].concat().join("\n");
            assert!(read(&rest).is_err(), "without line {gone}");
        }
    }

    #[test]
    fn of_a_manifest_that_is_too_long_for_a_last_word_its_sum_is_told() {
        let long = format!("{{\"a\": \"{}\"}}", "x".repeat(5000));
        let (_, word) = text(&long);
        assert!(word.len() < MOST_WORD, "{word}");
        assert_eq!(manifest_sum(&word), Some(sha256(long.as_bytes())));
        assert_eq!(manifest_sum("killed"), None);
    }
}
