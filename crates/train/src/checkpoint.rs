//! Named tensors and strings, as one safetensors file, or several with an index.
//!
//! Checkpoints are written beside the training, the next one only when the previous ones are on disk. This bounds memory, keeps
//! the order of files, and lets a run be killed at any moment. Tensors of checkpoints of one moment share memory
//! ([`SharedSlice`]), which the next snapshot uses again. Replicas write while training waits, since they communicate to write.

pub(crate) mod checksum;
mod foreign;
mod format;
pub(crate) mod head;
pub(crate) mod index;
pub(crate) mod kind;
mod layout;
mod shared_slice;
pub(crate) mod source;
mod tensor_data;

#[cfg(target_endian = "big")]
compile_error!("checkpoints are little-endian and are written as they lie in memory; this machine is big-endian");

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::io::{self, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use brisk_atomic_file::{listed, read_regular_file, write_atomically};
use checksum::Content;
use head::Head;
use index::{Index, ReadFile, is_index};
use safetensors::tensor::{Metadata, TensorInfo};
use source::Source;

use crate::error::Error;

pub(crate) use format::FORMAT_VERSION;
pub use shared_slice::SharedSlice;
pub use tensor_data::TensorData;

/// Everything that a run needs to resume: named `f32` and `u32` tensors, and named strings.
///
/// On disk it is one safetensors file, which Python reads without any code of brisk; the same content gives the same bytes.
/// Saving is atomic: after a crash the path has the previous checkpoint or all of the new one.
///
/// A file is checked when it is loaded. Its metadata has a format version, `brisk.format_version`, and a CRC-32 of the whole
/// file, `brisk.crc32`, so that a changed bit anywhere in it is an error. A newer format is refused. Names of strings that begin
/// with `brisk.` are reserved.
///
/// # Examples
/// ```no_run
/// use brisk_train::Checkpoint;
///
/// let mut checkpoint = Checkpoint::new();
/// checkpoint.insert("linear.weight", &[2, 3], vec![0.5_f32; 6])?;
/// checkpoint.insert("random.counter", &[2], vec![7_u32, 0])?;
/// checkpoint.insert_metadata("step", 1200);
/// checkpoint.save("last.safetensors")?;
///
/// let checkpoint = Checkpoint::load("last.safetensors")?;
/// let weight: &[f32] = checkpoint.f32("linear.weight", &[2, 3])?;
/// let step: u64 = checkpoint.metadata("step", "a number of steps")?;
/// # Ok::<(), brisk_train::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Checkpoint {
    tensors: BTreeMap<String, Tensor>,
    metadata: BTreeMap<String, String>,
    /// `None` for a file from before the format had versions.
    format_version: Option<u32>,
    /// Where it was loaded from.
    path: Option<PathBuf>,
    /// The fingerprint of the whole, if this is the [part](crate::Training::load_checkpoint) that one replica needs.
    whole: Option<u64>,
}

impl Default for Checkpoint {
    fn default() -> Self {
        let (tensors, metadata) = Default::default();
        Self { tensors, metadata, format_version: Some(FORMAT_VERSION), path: None, whole: None }
    }
}

#[derive(Clone, Debug, PartialEq)]
struct Tensor {
    shape: Vec<usize>,
    values: TensorData,
    /// Which of the elements `values` are; `None` for all of them.
    part: Option<Range<usize>>,
}

/// The elements of a tensor that a replica needs.
#[derive(Debug, Clone)]
pub(crate) struct Part {
    pub(crate) own: Range<usize>,
    /// How many elements the tensor has.
    pub(crate) len: usize,
}

/// Where the values of a tensor are among the bytes of a file that a replica has read, and which of the elements they are.
pub(crate) type Found<'b> = (&'b [u8], Option<Range<usize>>);

impl Checkpoint {
    /// An empty checkpoint.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a tensor: a `Vec` of `f32` or `u32`, or a [`SharedSlice`], row-major.
    ///
    /// # Errors
    /// [`Error::CheckpointEntry`] if `shape` does not have as many elements as there are values, if there is a tensor of this
    /// name already, and for the name `__metadata__`, which safetensors files keep for themselves.
    pub fn insert(&mut self, name: impl Into<String>, shape: &[usize], values: impl Into<TensorData>) -> Result<(), Error> {
        let (name, values) = (name.into(), values.into());
        let expected = n_values(shape);
        if expected != values.len() {
            let expected = format!("{expected}, for shape {shape:?}");
            return Err(self.entry("tensor", &name, format!("{} values", values.len()), expected));
        }
        if name == "__metadata__" {
            let found = "the name that safetensors files keep for their metadata".to_owned();
            return Err(self.entry("tensor", &name, found, "another"));
        }
        if self.tensors.contains_key(&name) {
            return Err(self.entry("tensor", &name, "in the checkpoint already".to_owned(), "a name of its own"));
        }
        self.tensors.insert(name, Tensor { shape: shape.to_vec(), values, part: None });
        Ok(())
    }

    /// Adds a named string, or replaces it. [`Checkpoint::metadata`] parses it. Names that begin with `brisk.` are not written.
    pub fn insert_metadata(&mut self, key: impl Into<String>, value: impl ToString) {
        self.metadata.insert(key.into(), value.to_string());
    }

    /// The values of a tensor that is `f32` and has this shape.
    ///
    /// # Errors
    /// [`Error::CheckpointEntry`].
    pub fn f32(&self, name: &str, shape: &[usize]) -> Result<&[f32], Error> {
        self.f32_within(name, shape, 0..n_values(shape))
    }

    /// Some of the values of a tensor that is `f32` and has this shape.
    pub(crate) fn f32_within(&self, name: &str, shape: &[usize], elements: Range<usize>) -> Result<&[f32], Error> {
        let (values, part) = self.f32_part(name, shape)?;
        let start = elements.start.checked_sub(part.start);
        let within = start.and_then(|start| values.get(start..start + elements.len()));
        within.ok_or_else(|| {
            let found = format!("elements {} to {}, of this replica only", part.start, part.end);
            self.entry("tensor", name, found, "all of it; load the checkpoint with `DataParallel::load_checkpoint`")
        })
    }

    /// Checks that there is a tensor of this name that is `f32` and has this shape.
    pub(crate) fn check_f32(&self, name: &str, shape: &[usize]) -> Result<(), Error> {
        self.f32_part(name, shape).map(drop)
    }

    fn f32_part(&self, name: &str, shape: &[usize]) -> Result<(&[f32], Range<usize>), Error> {
        match self.checked(name, "f32", shape)? {
            Tensor { values: TensorData::F32(values), part, .. } => Ok((values, part.clone().unwrap_or(0..values.len()))),
            tensor => Err(self.mismatch(name, "f32", shape, tensor)),
        }
    }

    /// All values of an `f32` tensor of one dimension, if there is one of this name.
    pub(crate) fn f32_if_any(&self, name: &str) -> Result<Option<Vec<f32>>, Error> {
        self.shape(name).map(|shape| Ok(self.f32(name, &[shape.iter().product()])?.to_vec())).transpose()
    }

    /// The values of a tensor that is `u32` and has this shape.
    ///
    /// # Errors
    /// [`Error::CheckpointEntry`].
    pub fn u32(&self, name: &str, shape: &[usize]) -> Result<&[u32], Error> {
        match self.checked(name, "u32", shape)? {
            Tensor { values: TensorData::U32(values), .. } => Ok(values),
            tensor => Err(self.mismatch(name, "u32", shape, tensor)),
        }
    }

    /// The shape of a tensor, if there is one of this name.
    pub(crate) fn shape(&self, name: &str) -> Option<&[usize]> {
        self.tensors.get(name).map(|tensor| tensor.shape.as_slice())
    }

    pub(crate) fn contains(&self, name: &str) -> bool {
        self.tensors.contains_key(name)
    }

    /// All tensors, by name in alphabetical order: name, shape, values. There are fewer values of some if it was loaded by
    /// [`Training::load_checkpoint`](crate::Training::load_checkpoint).
    pub fn tensors(&self) -> impl Iterator<Item = (&str, &[usize], &TensorData)> {
        self.tensors.iter().map(|(name, tensor)| (name.as_str(), tensor.shape.as_slice(), &tensor.values))
    }

    /// A named string, parsed. `expected` describes the value for the error, such as `"a number of steps"`.
    ///
    /// # Errors
    /// [`Error::CheckpointEntry`] if it is missing or does not parse.
    pub fn metadata<T: FromStr>(&self, key: &str, expected: &'static str) -> Result<T, Error> {
        let found = self.metadata.get(key);
        let refused = || {
            let found = found.map_or("missing".to_owned(), |found| format!("{found:?}"));
            self.entry("metadata", key, found, expected)
        };
        found.and_then(|found| found.parse().ok()).ok_or_else(refused)
    }

    /// The same; `None` if there is no string of this name.
    pub(crate) fn metadata_if_any<T: FromStr>(&self, key: &str, expected: &'static str) -> Result<Option<T>, Error> {
        self.has_metadata(key).then(|| self.metadata(key, expected)).transpose()
    }

    pub(crate) fn has_metadata(&self, key: &str) -> bool {
        self.metadata.contains_key(key)
    }

    /// The version of the file's format; `None` if it was written by an earlier version of brisk, or by another program. Such a
    /// file has no checksum either.
    pub fn format_version(&self) -> Option<u32> {
        self.format_version
    }

    /// All named strings, in alphabetical order.
    pub fn all_metadata(&self) -> impl Iterator<Item = (&str, &str)> {
        self.metadata.iter().map(|(key, value)| (key.as_str(), value.as_str()))
    }

    /// A number that differs if tensors or strings do: FNV-1a over the bytes of the file. Of a checkpoint of several files of
    /// which each replica has read a part, it is over their headers, which have their checksums.
    pub fn fingerprint(&self) -> u64 {
        if let Some(fingerprint) = self.whole {
            return fingerprint;
        }
        let mut hash = Fnv::default();
        // Writing to the hash cannot fail, nor can making the header.
        drop(self.write_to(&mut hash));
        hash.0
    }

    /// Writes the file, replacing an earlier one only once the new one is complete.
    ///
    /// # Errors
    /// [`Error::Write`]. An earlier file at this path is then unchanged, and no partial file is left.
    /// # Cost
    /// One pass over the tensors for the checksum, one to write them; then a wait until they are on disk.
    pub fn save(&self, path: impl AsRef<Path>) -> Result<(), Error> {
        Ok(write_atomically(path.as_ref(), |writer| self.write_to(writer))?)
    }

    /// Reads and checks a file; or all files of an index, `NAME.safetensors.index.json`, which is also used if `NAME.safetensors`
    /// does not exist.
    ///
    /// Files of other programs may have tensors of other types: f16, bf16 and f64 are converted to f32, whole numbers to
    /// [`TensorData::I64`]. See also [`oihw_to_ohwi`](Self::oihw_to_ohwi).
    ///
    /// # Errors
    /// [`Error::Io`] if it cannot be read or is not a regular file; [`Error::WrongFile`] for a file of another kind;
    /// [`Error::Damaged`] if it is truncated or changed, or a file lacks a tensor that its index lists; [`Error::WrongFile`] if a
    /// newer version of brisk wrote it; [`Error::CheckpointEntry`] if it has tensors of further types, or values that would
    /// overflow.
    pub fn load(path: impl AsRef<Path>) -> Result<Self, Error> {
        Self::load_by(path.as_ref(), &mut |_, path| Ok(read_regular_file(path)))
    }

    /// Checks a checkpoint without its values, so that a wrong path is an error before hours of work: that it is one, and that
    /// all of its files are there, with the lengths that they should have.
    ///
    /// # Errors
    /// Those of [`load`](Self::load), apart from those of the values.
    pub fn check_heads(path: impl AsRef<Path>) -> Result<(), Error> {
        let path = path.as_ref();
        let missing = || {
            let cause = std::fs::metadata(path).err().unwrap_or_else(|| io::ErrorKind::NotFound.into());
            Error::io(path, "read the checkpoint")(cause)
        };
        Self::strings_in(Source::Folder, path)?.map(drop).ok_or_else(missing)
    }

    /// The named strings only; `None` if there is no such checkpoint.
    pub(crate) fn strings_in(source: Source<'_>, path: &Path) -> Result<Option<Self>, Error> {
        let mut strings = Self::default();
        let mut add = |path: &Path, head: io::Result<(u64, Vec<u8>)>| {
            let (n_bytes, bytes) = head.map_err(Error::io(path, "read the checkpoint"))?;
            Head::parse(&bytes, n_bytes, path)?.strings().for_each(|(key, value)| strings.insert_metadata(key, value));
            Ok::<_, Error>(())
        };
        let is_missing = |head: &io::Result<_>| head.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::NotFound);
        let head = if is_index(path) { None } else { Some(source.read_head(path)).filter(|head| !is_missing(head)) };
        if let Some(head) = head {
            add(path, head)?;
            return Ok(Some(strings));
        }
        let Some(index) = Index::load_if_any(path, &mut |_, path| Ok(source.read(path)))? else { return Ok(None) };
        for file in index.files() {
            let of_replica = path.with_file_name(file);
            let head = source.read_head(&of_replica);
            if is_missing(&head) {
                return Err(Error::damaged(Index::path_of(path), None, format!("its file `{file}` is missing")));
            }
            add(&of_replica, head)?;
        }
        Ok(Some(strings))
    }

    /// [`load`](Self::load) with the bytes of files as `read` returns them; it is also given the number of the file, from 0 for
    /// an index and for the first file.
    pub(crate) fn load_by(path: &Path, read: &mut ReadFile<'_>) -> Result<Self, Error> {
        let index = match Self::find(path, read)? {
            Stored::File(whole) => return Ok(whole),
            Stored::Index(index) => index,
        };
        Self::of_parts(&Index::path_of(path), &index, &mut |number, path| Self::of_file(path, read(number, path)?))
    }

    /// The checkpoint, if it is one file, or the index of its files.
    pub(crate) fn find(path: &Path, read: &mut ReadFile<'_>) -> Result<Stored, Error> {
        let file = if is_index(path) { None } else { Some(read(0, path)?) };
        let is_missing = |file: &io::Result<_>| file.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::NotFound);
        if file.as_ref().is_none_or(is_missing)
            && let Some(index) = Index::load_if_any(path, read)?
        {
            return Ok(Stored::Index(index));
        }
        let file = file.map_or_else(|| read(0, path), Ok)?;
        Self::of_file(path, file).map(Stored::File)
    }

    /// The same, if it has parts of tensors as that which one replica needs of a checkpoint whose files have these heads.
    pub(crate) fn part_of(mut self, heads: &Fnv) -> Self {
        self.whole = self.tensors.values().any(|tensor| tensor.part.is_some()).then_some(heads.0);
        self
    }

    /// The checkpoint of the index at `path`; `load` loads a file, of a number.
    pub(crate) fn of_parts(path: &Path, index: &Index, load: &mut LoadPart<'_>) -> Result<Self, Error> {
        let mut whole = Self { format_version: index.format_version, path: Some(path.to_owned()), ..Self::default() };
        let damaged = |reason: String| Error::Damaged { path: path.to_owned(), len_bytes: None, reason };
        for (number, file) in index.files().into_iter().enumerate() {
            let path = path.with_file_name(file);
            let mut part = match load(number, &path) {
                Err(Error::Io { cause, .. }) if cause.kind() == io::ErrorKind::NotFound => {
                    return Err(damaged(format!("its file `{file}` is missing")));
                }
                part => part?,
            };
            whole.tensors.append(&mut part.tensors);
            whole.metadata.append(&mut part.metadata);
            whole.format_version = whole.format_version.min(part.format_version);
        }
        match index.tensors.iter().find(|(name, _)| !whole.tensors.contains_key(*name)) {
            None => Ok(whole),
            Some((name, file)) => Err(damaged(format!("tensor `{name}` is not in `{file}`"))),
        }
    }

    fn of_file(path: &Path, bytes: io::Result<Vec<u8>>) -> Result<Self, Error> {
        let bytes = bytes.map_err(|cause| Error::Io { path: path.to_owned(), action: "read the checkpoint", cause })?;
        Ok(Self { path: Some(path.to_owned()), ..Self::parse(&bytes, path)? })
    }

    /// Reads and checks the bytes of a file, as [`Checkpoint::write_to`] writes them.
    ///
    /// # Errors
    /// As [`Checkpoint::load`].
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, Error> {
        Self::parse(bytes, Path::new("checkpoint"))
    }

    fn parse(bytes: &[u8], path: &Path) -> Result<Self, Error> {
        let head = Head::parse(bytes, bytes.len() as u64, path)?;
        let data = &bytes[head.bytes.len()..];
        Self::of_head(&head, &Content::of([data]), path, |_, info| (&data[info.data_offsets.0..info.data_offsets.1], None))
    }

    /// A checkpoint of the values that `found` returns. `content` is that of all bytes after the head.
    pub(crate) fn of_head<'b>(
        head: &Head,
        content: &Content,
        path: &Path,
        found: impl Fn(&str, &TensorInfo) -> Found<'b>,
    ) -> Result<Self, Error> {
        let mut checkpoint = Self { format_version: head.check(content, path)?, ..Self::default() };
        for (name, info) in head.tensors() {
            let (bytes, part) = found(&name, info);
            let Some(values) = foreign::converted(info.dtype, bytes) else {
                let file = Self { path: Some(path.to_owned()), ..Self::default() };
                let expected = "a type and values that brisk can convert to f32 or i64; save it as F32";
                return Err(file.entry("tensor", &name, format!("{} {:?}", info.dtype, info.shape), expected));
            };
            checkpoint.tensors.insert(name, Tensor { shape: info.shape.clone(), values, part });
        }
        let metadata = head.strings().filter(|(key, _)| !is_reserved(key));
        checkpoint.metadata = metadata.map(|(key, value)| (key.clone(), value.clone())).collect();
        Ok(checkpoint)
    }

    /// Writes the file's bytes, for programs that keep checkpoints elsewhere than in files.
    ///
    /// # Errors
    /// The writer's.
    pub fn write_to(&self, writer: &mut impl Write) -> io::Result<()> {
        if self.whole.is_some() {
            let cause = "it is the part of a checkpoint that one replica needs; load it with `DataParallel::load_checkpoint`";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, cause));
        }
        let header = self.header()?;
        let mut head = [&(header.len() as u64).to_le_bytes()[..], &header].concat();
        let data = || self.tensors.values().map(|tensor| tensor.values.as_bytes());
        checksum::seal(&mut head, &Content::of(data()));
        writer.write_all(&head)?;
        data().try_for_each(|bytes| writer.write_all(bytes))
    }

    /// The header, padded to a multiple of eight bytes as the format requires, with a checksum of zeros.
    fn header(&self) -> io::Result<Vec<u8>> {
        let mut end = 0;
        let infos = self.tensors.iter().map(|(name, Tensor { shape, values, .. })| {
            let start = end;
            end += values.as_bytes().len();
            (name.clone(), TensorInfo { dtype: values.safetensors_dtype(), shape: shape.clone(), data_offsets: (start, end) })
        });
        let infos = infos.collect();
        let own = [(format::KEY, FORMAT_VERSION.to_string()), (checksum::KEY, checksum::UNSET.to_owned())];
        let strings = self.metadata.iter().filter(|(key, _)| !is_reserved(key)).map(|(key, value)| (key.clone(), value.clone()));
        let strings: HashMap<_, _> = strings.chain(own.map(|(key, value)| (key.to_owned(), value))).collect();
        let header = Metadata::new(Some(strings), infos).map_err(io::Error::other)?;
        // Converted to a JSON value first, whose maps are ordered by key, so that the same checkpoint gives the same bytes.
        let mut header = serde_json::to_vec(&serde_json::to_value(header)?)?;
        header.resize(header.len().next_multiple_of(8), b' ');
        Ok(header)
    }

    fn checked(&self, name: &str, expected: &'static str, shape: &[usize]) -> Result<&Tensor, Error> {
        match self.tensors.get(name) {
            Some(tensor) if tensor.shape == shape => Ok(tensor),
            Some(tensor) => Err(self.mismatch(name, expected, shape, tensor)),
            None => {
                let names: Vec<String> = self.tensors.keys().cloned().collect();
                let has = listed(&names);
                let expected = format!("{expected} {shape:?}; it has {has}: was it written for another model or optimizer?");
                Err(self.entry("tensor", name, "missing".to_owned(), expected))
            }
        }
    }

    fn mismatch(&self, name: &str, expected: &'static str, shape: &[usize], tensor: &Tensor) -> Error {
        let found = format!("{} {:?}", tensor.values.dtype(), tensor.shape);
        self.entry("tensor", name, found, format!("{expected} {shape:?}; was it written for another model?"))
    }

    fn entry(&self, kind: &'static str, name: &str, found: String, expected: impl Into<Cow<'static, str>>) -> Error {
        Error::CheckpointEntry { checkpoint: self.name(), kind, name: name.to_owned(), found, expected: expected.into() }
    }

    /// How error messages name it.
    pub(crate) fn name(&self) -> String {
        self.path.as_ref().map_or("checkpoint".to_owned(), |path| path.display().to_string())
    }
}

/// Whether a string is reserved for the file format.
fn is_reserved(key: &str) -> bool {
    key.starts_with("brisk.")
}

/// What is at a path.
pub(crate) enum Stored {
    File(Checkpoint),
    Index(Index),
}

/// Loads a file, of a number.
pub(crate) type LoadPart<'f> = dyn FnMut(usize, &Path) -> Result<Checkpoint, Error> + 'f;

/// The hash FNV-1a.
pub(crate) struct Fnv(u64);

impl Default for Fnv {
    fn default() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
}

impl Write for Fnv {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 = bytes.iter().fold(self.0, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3));
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The number of values; `usize::MAX`, which no `Vec` has, if the product overflows.
fn n_values(shape: &[usize]) -> usize {
    if shape.contains(&0) { 0 } else { shape.iter().fold(1, |product: usize, &n| product.saturating_mul(n)) }
}
