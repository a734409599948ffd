//! Unpacks what kernels and modules are packed with. Pure: bytes in, bytes out, never more than a
//! limit.

use std::io::{self, Read};

/// The most that is unpacked, in bytes; a kernel with all its debug information stays below it. A fuzzer's inputs are
/// small, and so is its time.
pub const LIMIT: u64 = if cfg!(fuzzing) { 1 << 20 } else { 1 << 30 };

/// The payload of a bzImage, unpacked: gzip, xz, zstd, lz4 or lzma, told by its first bytes.
///
/// # Errors
/// When it has another format, or is damaged, or larger than [`LIMIT`].
pub fn payload(bytes: &[u8]) -> io::Result<Vec<u8>> {
    match bytes {
        [0x1f, 0x8b, ..] => all(flate2::read::GzDecoder::new(bytes), LIMIT),
        // The kernel's build appends the unpacked size to every format that does not hold it itself,
        // which the lz4 reader would take for another block.
        [rest @ .., _, _, _, _] => stream(rest, LIMIT),
        _ => Err(damaged("it is too short")),
    }
}

/// A kernel module as it lies in the file system: plain, or with the suffix of its compressor; at most `limit` bytes
/// unpacked.
///
/// # Errors
/// As for [`payload`].
pub fn module(name: &str, bytes: Vec<u8>, limit: u64) -> io::Result<Vec<u8>> {
    match name.rsplit('.').next() {
        Some("gz") => all(flate2::read::GzDecoder::new(&bytes[..]), limit),
        Some("xz" | "zst" | "lz4") => stream(&bytes, limit),
        _ if u64::try_from(bytes.len()).unwrap_or(u64::MAX) > limit => Err(too_large()),
        _ => Ok(bytes),
    }
}

fn stream(bytes: &[u8], limit: u64) -> io::Result<Vec<u8>> {
    match bytes {
        [0xfd, b'7', b'z', b'X', b'Z', 0, ..] => all(liblzma::read::XzDecoder::new(bytes), limit),
        [0x28, 0xb5, 0x2f, 0xfd, ..] => {
            let decoder = ruzstd::decoding::StreamingDecoder::new(bytes);
            all(decoder.map_err(|error| damaged(&error.to_string()))?, limit)
        }
        [0x02, 0x21, 0x4c, 0x18, ..] | [0x04, 0x22, 0x4d, 0x18, ..] => {
            all(lz4_flex::frame::FrameDecoder::new(bytes), limit)
        }
        [0x5d, 0, 0, ..] => {
            let decoder = liblzma::stream::Stream::new_lzma_decoder(LIMIT).map_err(io::Error::from)?;
            all(liblzma::read::XzDecoder::new_stream(bytes, decoder), limit)
        }
        _ => Err(damaged("its compression is unknown (known are gzip, xz, zstd, lz4, lzma)")),
    }
}

fn all(reader: impl Read, limit: u64) -> io::Result<Vec<u8>> {
    let limit = limit.min(LIMIT);
    let mut bytes = Vec::new();
    let read = reader.take(limit + 1).read_to_end(&mut bytes)?;
    if u64::try_from(read).unwrap_or(u64::MAX) > limit {
        return Err(too_large());
    }
    Ok(bytes)
}

fn too_large() -> io::Error {
    damaged("it unpacks to more than the size of any kernel")
}

fn damaged(words: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, words)
}

#[cfg(test)]
pub(super) mod tests {
    use std::io::Write;

    use proptest::prelude::*;

    use super::*;

    fn text() -> Vec<u8> {
        b"the kernel itself, again and again; ".repeat(400)
    }

    pub(in crate::kernel) fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    fn packed() -> Vec<(&'static str, Vec<u8>)> {
        let size = u32::try_from(text().len()).unwrap().to_le_bytes();
        let mut xz = liblzma::encode_all(&text()[..], 1).unwrap();
        let mut zstd =
            ruzstd::encoding::compress_to_vec(&text()[..], ruzstd::encoding::CompressionLevel::Fastest);
        // The legacy frame that the kernel's build writes: magic, then blocks with their length.
        let block = lz4_flex::block::compress(&text());
        let mut lz4 = 0x184c_2102u32.to_le_bytes().to_vec();
        lz4.extend(u32::try_from(block.len()).unwrap().to_le_bytes());
        lz4.extend(block);
        for packed in [&mut xz, &mut zstd, &mut lz4] {
            packed.extend(size);
        }
        vec![("gzip", gzip(&text())), ("xz", xz), ("zstd", zstd), ("lz4", lz4)]
    }

    #[test]
    fn every_packer_of_the_kernels_build_is_undone() {
        for (name, bytes) in packed() {
            assert!(payload(&bytes).unwrap_or_else(|error| panic!("{name}: {error}")) == text(), "{name}");
        }
    }

    #[test]
    fn a_cut_payload_is_an_error_and_never_half_a_kernel() {
        for (name, bytes) in packed() {
            for end in [bytes.len() / 2, bytes.len() - 9, 5, 0] {
                let result = payload(&bytes[..end]);
                assert!(
                    result.is_err() || name == "lz4" && result.unwrap().len() < text().len(),
                    "{name} cut to {end}"
                );
            }
        }
    }

    #[test]
    fn what_grows_without_end_is_stopped() {
        let bomb = gzip(&vec![0; 1 << 20]);
        let error = all(flate2::read::GzDecoder::new(&bomb[..]), 1 << 16).unwrap_err();
        assert!(error.to_string().contains("size"), "{error}");
    }

    #[test]
    fn modules_are_unpacked_by_the_end_of_their_name() {
        assert_eq!(module("a.ko", b"plain".to_vec(), 5).unwrap(), b"plain");
        assert!(module("a.ko.gz", gzip(&text()), LIMIT).unwrap() == text());
        assert!(module("a.ko.xz", b"no xz".to_vec(), LIMIT).is_err());
    }

    proptest! {
        #[test]
        fn no_bytes_make_the_unpacker_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200), magic in 0usize..5) {
            let magics: [&[u8]; 5] = [b"\x1f\x8b\x08", b"\xfd7zXZ\0", b"\x28\xb5\x2f\xfd", b"\x02\x21\x4c\x18", b""];
            let _ = payload(&[magics[magic], &bytes].concat());
        }
    }
}
