//! The smallest archive that container engines take for an image.

/// Bytes of a block, the unit of the format.
const BLOCK: usize = 512;

/// A POSIX (ustar) archive that holds one program, executable by everybody. `None` when the name is too
/// long for its field.
pub fn of_program(name: &str, bytes: &[u8]) -> Option<Vec<u8>> {
    let mut header = [0; BLOCK];
    let mut put = |at: usize, text: &[u8]| header[at..at + text.len()].copy_from_slice(text);
    if name.len() > 99 {
        return None;
    }
    put(0, name.as_bytes());
    put(100, b"0000755\0");
    put(108, b"0000000\0");
    put(116, b"0000000\0");
    put(124, format!("{:011o}\0", bytes.len()).as_bytes());
    put(136, b"00000000000\0");
    // The sum is taken with spaces in its own field.
    put(148, b"        ");
    put(156, b"0");
    put(257, b"ustar\x0000");
    let sum: u32 = header.iter().map(|byte| u32::from(*byte)).sum();
    header[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    let mut archive = header.to_vec();
    archive.extend_from_slice(bytes);
    // Padding, and two empty blocks at the end.
    archive.resize(archive.len().next_multiple_of(BLOCK) + 2 * BLOCK, 0);
    Some(archive)
}

#[cfg(test)]
mod tests {
    use tactus_system::{Invocation, Real, System};

    use super::*;

    #[test]
    fn tar_reads_the_archive_and_finds_the_program() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("image.tar");
        let content: Vec<u8> = (0..1500u32).map(|n| u8::try_from(n % 251).unwrap()).collect();
        Real.write(&path, &of_program("probe", &content).unwrap()).unwrap();
        let words = ["tar", "-xf", path.to_str().unwrap(), "-C", dir.path().to_str().unwrap()];
        let done = Real.run(&Invocation::new(words)).unwrap();
        assert!(done.success() && done.stderr.is_empty(), "{}", done.words());
        let probe = dir.path().join("probe");
        assert_eq!(Real.read(&probe).unwrap(), content);
        let mode = Real.run(&Invocation::new(["stat", "-c", "%a", probe.to_str().unwrap()])).unwrap();
        assert_eq!(mode.text().trim(), "755");
    }

    #[test]
    fn a_name_that_does_not_fit_is_refused() {
        assert_eq!(of_program(&"x".repeat(100), b""), None);
    }
}
