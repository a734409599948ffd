//! Packed files: unpacking gives the packed bytes, or an error.

use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;
use proptest::prelude::*;

use super::*;
use crate::import::{Options, read};

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn xz(bytes: &[u8]) -> Vec<u8> {
    liblzma::encode_all(bytes, 1).unwrap()
}

fn zstd(bytes: &[u8]) -> Vec<u8> {
    ruzstd::encoding::compress_to_vec(bytes, ruzstd::encoding::CompressionLevel::Fastest)
}

type Pack = fn(&[u8]) -> Vec<u8>;

const PACKERS: [(&str, Pack); 3] = [("gzip", gzip), ("xz", xz), ("zstd", zstd)];

/// A stream of `-v`.
fn stream(lines: u64) -> String {
    (0..lines).map(|n| format!("{:8}:{:8}:{:8}\n", n % 2, n / 2, n * n % 977)).collect()
}

fn unpacked(bytes: &[u8]) -> io::Result<Vec<u8>> {
    let packing = Packing::of(bytes).unwrap();
    let mut found = Vec::new();
    packing.unpack(bytes).map_err(|error| io::Error::other(error.to_string()))?.read_to_end(&mut found)?;
    Ok(found)
}

#[test]
fn a_packed_file_is_read_as_what_was_packed() {
    let text = stream(20_000);
    let plain = read(text.as_bytes(), Options::default()).unwrap();
    for (name, pack) in PACKERS {
        let found = read(pack(text.as_bytes()).as_slice(), Options::default()).unwrap();
        assert_eq!(found[0].series, plain[0].series, "{name}");
    }
}

#[test]
fn files_that_were_packed_one_by_one_and_put_together_are_all_there() {
    let text = stream(3_000);
    let (first, second) = text.split_at(text.len() / 2);
    for (name, pack) in PACKERS {
        let both = [pack(first.as_bytes()), pack(second.as_bytes())].concat();
        assert_eq!(unpacked(&both).unwrap(), text.as_bytes(), "{name}");
    }
    // A frame that is to be skipped, as pzstd writes it.
    let skipped = [&[0x50, 0x2a, 0x4d, 0x18, 3, 0, 0, 0, 1, 2, 3][..], &zstd(text.as_bytes())].concat();
    assert_eq!(unpacked(&skipped).unwrap(), text.as_bytes());
}

#[test]
fn a_packed_file_that_is_cut_or_spoiled_is_refused_with_its_line() {
    let text = stream(20_000);
    for (name, pack) in PACKERS {
        let packed = pack(text.as_bytes());
        for end in [packed.len() / 2, packed.len() - 1, packed.len() - 5] {
            let error = read(&packed[..end], Options::default()).unwrap_err().to_string();
            let said = error.contains("cannot be unpacked");
            assert!(said, "{name} cut at {end} of {}: {error}", packed.len());
        }
        let mut spoiled = packed.clone();
        let middle = spoiled.len() / 2;
        spoiled[middle] ^= 0x55;
        spoiled[middle + 1] ^= 0xaa;
        let found = read(spoiled.as_slice(), Options::default());
        assert!(found.is_err(), "{name}: its checksum says it");
    }
}

#[test]
fn what_unpacks_to_more_than_any_measurement_is_given_up() {
    // As long as it may be without being suspicious, and a little more.
    let length = SLACK + (8 << 20);
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    io::copy(&mut io::repeat(b' ').take(length), &mut encoder).unwrap();
    let small = encoder.finish().unwrap();
    let taken = Rc::new(Cell::new(0));
    let mut bounded = Bounded { from: io::repeat(b' ').take(length), taken, made: 0 };
    let error = io::copy(&mut bounded, &mut io::sink()).unwrap_err();
    assert!(error.to_string().contains("no measurement compresses that well"), "{error}");
    // gzip makes a thousandth of it at best: as long as that is little, it is let through.
    let mut whole = Packing::Gzip.unpack(small.as_slice()).unwrap();
    assert_eq!(io::copy(&mut whole, &mut io::sink()).unwrap(), length);
}

#[test]
fn a_bomb_is_a_line_without_an_end() {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    io::copy(&mut io::repeat(b'1').take(64 << 20), &mut encoder).unwrap();
    let error = read(encoder.finish().unwrap().as_slice(), Options::default()).unwrap_err();
    assert!(error.to_string().contains("its format is unknown"), "{error}");
}

#[test]
fn what_asks_for_more_memory_than_it_needs_is_refused() {
    // A frame of zstd whose window is 2 GiB.
    let frame = [0x28, 0xb5, 0x2f, 0xfd, 0x00, 0xa8, 0x01, 0x00, 0x00];
    let error = read(&frame[..], Options::default()).unwrap_err().to_string();
    assert!(error.contains("cannot be unpacked"), "{error}");
}

#[test]
fn packings_that_are_not_read_name_the_command_that_unpacks_them() {
    for (first, command) in [
        (&b"BZh91AY&SY"[..], "bzip2 -dc FILE | tactus convert -"),
        (&[0x04, 0x22, 0x4d, 0x18, 0x60, 0x40][..], "lz4 -dc FILE | tactus convert -"),
        (&b"LZIP\x01\x0c"[..], "lzip -dc FILE | tactus convert -"),
        (&b"PK\x03\x04\x14\x00"[..], "unzip -p FILE | tactus convert -"),
    ] {
        let error = read(first, Options::default()).unwrap_err();
        assert_eq!(error.hint.as_deref(), Some(command), "{error}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn no_packed_bytes_are_too_strange(packer in 0..PACKERS.len(), at in any::<prop::sample::Index>(), bytes in proptest::collection::vec(any::<u8>(), 1..20)) {
        let mut packed = PACKERS[packer].1(stream(50).as_bytes());
        let at = at.index(packed.len());
        packed.iter_mut().skip(at).zip(&bytes).for_each(|(old, new)| *old = *new);
        let _ = read(packed.as_slice(), Options::default());
    }
}
