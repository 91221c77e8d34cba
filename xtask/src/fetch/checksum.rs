//! Checksums of published files.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;

use md5::{Digest as _, Md5};
use sha2::Sha256;

/// A published checksum, in hexadecimal. If a source publishes only an MD5 sum, that is checked: it detects damage, though not
/// forgery.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Checksum {
    Md5(&'static str),
    Sha256(&'static str),
}

impl Checksum {
    /// The published digits.
    pub(super) fn expected(self) -> &'static str {
        match self {
            Self::Md5(hex) | Self::Sha256(hex) => hex,
        }
    }

    /// The name of the algorithm.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Md5(_) => "MD5",
            Self::Sha256(_) => "SHA-256",
        }
    }

    /// The checksum of a file, by the same algorithm.
    pub(super) fn of_file(self, path: &Path) -> io::Result<String> {
        let mut file = File::open(path)?;
        match self {
            Self::Md5(_) => digest(&mut file, Md5::new()),
            Self::Sha256(_) => digest(&mut file, Sha256::new()),
        }
    }
}

fn digest<D: sha2::Digest>(file: &mut File, mut digest: D) -> io::Result<String> {
    let mut buffer = vec![0; 1 << 20];
    loop {
        match file.read(&mut buffer)? {
            0 => break,
            n => digest.update(&buffer[..n]),
        }
    }
    Ok(digest.finalize().iter().map(|byte| format!("{byte:02x}")).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checksums_are_those_of_the_standards() {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let path = dir.path().join("abc");
        std::fs::write(&path, "abc").expect("it can be written");
        // RFC 1321, section A.5, and FIPS 180-4's example.
        for checksum in [
            Checksum::Md5("900150983cd24fb0d6963f7d28e17f72"),
            Checksum::Sha256("ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"),
        ] {
            assert_eq!(checksum.of_file(&path).expect("it can be read"), checksum.expected(), "{}", checksum.name());
        }
    }
}
