//! The first part of a file: what is in it, and where.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use safetensors::tensor::{Metadata, TensorInfo};

use super::checksum::Content;
use super::kind::{LENGTH_BYTES, MAX_HEADER_BYTES, not_a_model};
use super::{format, kind};
use crate::error::Error;

/// The bytes before the values of tensors, parsed.
#[derive(Debug)]
pub(crate) struct Head {
    pub(crate) bytes: Vec<u8>,
    header: Metadata,
}

impl Head {
    /// The first bytes of a file, all of its head if it has one.
    pub(crate) fn read(file: &mut File) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        file.by_ref().take(LENGTH_BYTES as u64).read_to_end(&mut bytes)?;
        if let Some(len) = bytes.first_chunk() {
            let len = u64::from_le_bytes(*len).min(MAX_HEADER_BYTES);
            file.take(len).read_to_end(&mut bytes)?;
        }
        Ok(bytes)
    }

    /// The head of a file of `len_bytes` bytes, the first of which are `bytes`.
    pub(crate) fn parse(bytes: &[u8], len_bytes: u64, path: &Path) -> Result<Self, Error> {
        if let Some(found) = kind::foreign(bytes) {
            return Err(not_a_model(path.to_owned(), found));
        }
        let damaged = |reason| Error::Damaged { path: path.to_owned(), len_bytes: Some(len_bytes), reason };
        if let Some(reason) = kind::misfit(bytes, len_bytes) {
            return Err(damaged(reason));
        }
        let cut_off = || damaged("it has become shorter while it was read".to_owned());
        let header_bytes = u64::from_le_bytes(*bytes.first_chunk().ok_or_else(cut_off)?) as usize;
        let bytes = bytes.get(..LENGTH_BYTES + header_bytes).ok_or_else(cut_off)?;
        let header: Metadata =
            serde_json::from_slice(&bytes[LENGTH_BYTES..]).map_err(|error| damaged(format!("invalid header: {error}")))?;
        Ok(Self { bytes: bytes.to_vec(), header })
    }

    /// The tensors, in alphabetical order, with their places among the bytes that follow.
    pub(crate) fn tensors(&self) -> Vec<(String, &TensorInfo)> {
        let mut tensors: Vec<_> = self.header.tensors().into_iter().collect();
        tensors.sort_unstable_by(|(a, _), (b, _)| a.cmp(b));
        tensors
    }

    /// The named strings.
    pub(crate) fn strings(&self) -> impl Iterator<Item = (&String, &String)> {
        self.header.metadata().iter().flatten()
    }

    /// Checks the bytes that follow, and returns the version of the format.
    pub(super) fn check(&self, data: &Content, path: &Path) -> Result<Option<u32>, Error> {
        let version = self.header.metadata().as_ref().and_then(|strings| strings.get(format::KEY));
        format::check(path, version.map(String::as_str), &self.bytes, data)
    }
}
