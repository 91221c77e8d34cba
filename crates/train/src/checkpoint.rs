//! Named tensors and what is to be known about them, as one safetensors file, or several beside an index.

pub(crate) mod index;

#[cfg(target_endian = "big")]
compile_error!("checkpoints are little-endian and are written as they lie in memory; this machine is big-endian");

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::str::FromStr;

use safetensors::SafeTensors;
use safetensors::tensor::{Dtype, Metadata, TensorInfo};

use crate::Error;
use crate::atomic_file::write_atomically;
use index::{Index, is_index};

/// Everything a run needs to go on: named `f32` and `u32` tensors, and named strings beside them.
///
/// On disk it is one safetensors file, which Python reads with no code of ours, and the same content gives the same bytes. Saving
/// is atomic: whoever opens the path finds the checkpoint from before or all of the new one, whenever the machine goes down. A file
/// that is loaded is checked first; one that is cut off, or written for another model, is an error that names file, tensor and what
/// was expected.
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
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Checkpoint {
    tensors: BTreeMap<String, Tensor>,
    metadata: BTreeMap<String, String>,
    /// Where it was loaded from.
    path: Option<PathBuf>,
}

/// The values of one tensor, row-major.
#[derive(Clone, Debug, PartialEq)]
pub enum Values {
    /// Single precision.
    F32(Vec<f32>),
    /// Whole numbers, such as counters and keys.
    U32(Vec<u32>),
}

#[derive(Clone, Debug, PartialEq)]
struct Tensor {
    shape: Vec<usize>,
    values: Values,
}

impl Checkpoint {
    /// An empty one.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a tensor: a `Vec` of `f32` or `u32`, row-major.
    ///
    /// # Errors
    /// [`Error::ValueCount`] if `shape` has another number of values; [`Error::DuplicateTensor`]; [`Error::ReservedName`].
    pub fn insert(&mut self, name: impl Into<String>, shape: &[usize], values: impl Into<Values>) -> Result<(), Error> {
        let (name, values) = (name.into(), values.into());
        let expected = n_values(shape);
        if expected != values.len() {
            return Err(Error::ValueCount { tensor: name, shape: shape.to_vec(), expected, found: values.len() });
        }
        if name == "__metadata__" {
            return Err(Error::ReservedName);
        }
        if self.tensors.contains_key(&name) {
            return Err(Error::DuplicateTensor { tensor: name });
        }
        self.tensors.insert(name, Tensor { shape: shape.to_vec(), values });
        Ok(())
    }

    /// Adds a named string, or replaces it. [`Checkpoint::metadata`] parses it back.
    pub fn insert_metadata(&mut self, key: impl Into<String>, value: impl ToString) {
        self.metadata.insert(key.into(), value.to_string());
    }

    /// The values of a tensor that is `f32` and has this shape.
    ///
    /// # Errors
    /// [`Error::MissingTensor`], [`Error::TensorMismatch`].
    pub fn f32(&self, name: &str, shape: &[usize]) -> Result<&[f32], Error> {
        match self.checked(name, Values::F32_NAME, shape)? {
            Tensor { values: Values::F32(values), .. } => Ok(values),
            tensor => Err(self.mismatch(name, Values::F32_NAME, shape, tensor)),
        }
    }

    /// The values of a tensor that is `u32` and has this shape.
    ///
    /// # Errors
    /// [`Error::MissingTensor`], [`Error::TensorMismatch`].
    pub fn u32(&self, name: &str, shape: &[usize]) -> Result<&[u32], Error> {
        match self.checked(name, Values::U32_NAME, shape)? {
            Tensor { values: Values::U32(values), .. } => Ok(values),
            tensor => Err(self.mismatch(name, Values::U32_NAME, shape, tensor)),
        }
    }

    /// Whether there is a tensor of this name.
    pub(crate) fn contains(&self, name: &str) -> bool {
        self.tensors.contains_key(name)
    }

    /// All tensors, by name in alphabetical order: name, shape, values.
    pub fn tensors(&self) -> impl Iterator<Item = (&str, &[usize], &Values)> {
        self.tensors.iter().map(|(name, tensor)| (name.as_str(), tensor.shape.as_slice(), &tensor.values))
    }

    /// A named string as what it stands for. `expected` is for the error, such as `"a number of steps"`.
    ///
    /// # Errors
    /// [`Error::Metadata`] if it is missing or does not parse.
    pub fn metadata<T: FromStr>(&self, key: &str, expected: &'static str) -> Result<T, Error> {
        let found = self.metadata.get(key);
        found.and_then(|found| found.parse().ok()).ok_or_else(|| self.foreign_metadata(key, expected))
    }

    /// The error that an entry is not what is expected of it here.
    pub(crate) fn foreign_metadata(&self, key: &str, expected: &'static str) -> Error {
        Error::Metadata { checkpoint: self.name(), key: key.to_owned(), found: self.metadata.get(key).cloned(), expected }
    }

    /// All named strings, in alphabetical order.
    pub fn all_metadata(&self) -> impl Iterator<Item = (&str, &str)> {
        self.metadata.iter().map(|(key, value)| (key.as_str(), value.as_str()))
    }

    /// A number that differs where tensors or strings do: FNV-1a over the bytes of the file.
    pub fn fingerprint(&self) -> u64 {
        let mut hash = Fnv(0xcbf2_9ce4_8422_2325);
        // Writing to it cannot fail; a header of any length is one.
        drop(self.write_to(&mut hash));
        hash.0
    }

    /// Writes the file, or leaves what is there.
    ///
    /// # Errors
    /// [`Error::Write`]. Nothing is left behind, and a file from before is still whole.
    /// # Cost
    /// The size of the tensors, written once, and waiting until the disk has them.
    pub fn save(&self, path: impl AsRef<Path>) -> Result<(), Error> {
        write_atomically(path.as_ref(), |writer| self.write_to(writer))
    }

    /// Reads and checks a whole file; or all files of an index, `NAME.safetensors.index.json`, which is also looked for where there is no `NAME.safetensors`.
    ///
    /// # Errors
    /// [`Error::Io`] if it cannot be read, [`Error::Damaged`] if it is cut off or no safetensors file, or a file lacks a tensor that its index says it has;
    /// [`Error::ForeignDType`] if it holds other types.
    pub fn load(path: impl AsRef<Path>) -> Result<Self, Error> {
        let path = path.as_ref();
        let index = if is_index(path) || !path.exists() { Index::load_if_any(path)? } else { None };
        index.map_or_else(|| Self::load_file(path), |index| Self::load_indexed(&Index::path_of(path), &index))
    }

    fn load_indexed(path: &Path, index: &Index) -> Result<Self, Error> {
        let mut whole = Self { path: Some(path.to_owned()), ..Self::default() };
        for file in index.files() {
            let mut part = Self::load_file(&path.with_file_name(file))?;
            whole.tensors.append(&mut part.tensors);
            whole.metadata.append(&mut part.metadata);
        }
        match index.tensors.iter().find(|(name, _)| !whole.tensors.contains_key(*name)) {
            None => Ok(whole),
            Some((name, file)) => {
                let reason = format!("tensor `{name}` is not in `{file}`");
                Err(Error::Damaged { path: path.to_owned(), len_bytes: 0, reason })
            }
        }
    }

    fn load_file(path: &Path) -> Result<Self, Error> {
        let bytes =
            fs::read(path).map_err(|source| Error::Io { path: path.to_owned(), action: "read the checkpoint", source })?;
        let damaged = |reason: safetensors::SafeTensorError| Error::Damaged {
            path: path.to_owned(),
            len_bytes: bytes.len() as u64,
            reason: reason.to_string(),
        };
        let (_, header) = SafeTensors::read_metadata(&bytes).map_err(damaged)?;
        let mut tensors = BTreeMap::new();
        for (name, view) in SafeTensors::deserialize(&bytes).map_err(damaged)?.tensors() {
            let values = match view.dtype() {
                Dtype::F32 => Values::F32(copied(view.data())),
                Dtype::U32 => Values::U32(copied(view.data())),
                other => return Err(Error::ForeignDType { path: path.to_owned(), tensor: name, found: other.to_string() }),
            };
            tensors.insert(name, Tensor { shape: view.shape().to_vec(), values });
        }
        let metadata = header.metadata().iter().flatten().map(|(key, value)| (key.clone(), value.clone())).collect();
        Ok(Self { tensors, metadata, path: Some(path.to_owned()) })
    }

    /// Writes the file's bytes, for those who keep checkpoints elsewhere than in a file.
    ///
    /// # Errors
    /// The writer's.
    pub fn write_to(&self, writer: &mut impl Write) -> io::Result<()> {
        let header = self.header()?;
        writer.write_all(&(header.len() as u64).to_le_bytes())?;
        writer.write_all(&header)?;
        for tensor in self.tensors.values() {
            writer.write_all(tensor.values.as_bytes())?;
        }
        Ok(())
    }

    /// The header, padded so that the tensors start at a multiple of eight, as the format wants it.
    fn header(&self) -> io::Result<Vec<u8>> {
        let mut end = 0;
        let infos = self.tensors.iter().map(|(name, Tensor { shape, values })| {
            let start = end;
            end += values.as_bytes().len();
            (name.clone(), TensorInfo { dtype: values.safetensors_dtype(), shape: shape.clone(), data_offsets: (start, end) })
        });
        let infos = infos.collect();
        let strings: HashMap<_, _> = self.metadata.clone().into_iter().collect();
        let header = Metadata::new(Some(strings), infos).map_err(io::Error::other)?;
        // By way of a value, whose maps are ordered by key, so that the same checkpoint gives the same bytes.
        let mut header = serde_json::to_vec(&serde_json::to_value(header)?)?;
        header.resize(header.len().next_multiple_of(8), b' ');
        Ok(header)
    }

    fn checked(&self, name: &str, expected: &'static str, shape: &[usize]) -> Result<&Tensor, Error> {
        match self.tensors.get(name) {
            Some(tensor) if tensor.shape == shape => Ok(tensor),
            Some(tensor) => Err(self.mismatch(name, expected, shape, tensor)),
            None => Err(Error::MissingTensor {
                checkpoint: self.name(),
                tensor: name.to_owned(),
                expected,
                shape: shape.to_vec(),
                found: self.tensors.keys().cloned().collect(),
            }),
        }
    }

    fn mismatch(&self, name: &str, expected: &'static str, shape: &[usize], tensor: &Tensor) -> Error {
        Error::TensorMismatch {
            checkpoint: self.name(),
            tensor: name.to_owned(),
            expected,
            shape: shape.into(),
            found: tensor.values.dtype(),
            found_shape: tensor.shape.clone().into(),
        }
    }

    fn name(&self) -> String {
        self.path.as_ref().map_or("checkpoint, not saved yet".to_owned(), |path| path.display().to_string())
    }
}

impl Values {
    const F32_NAME: &str = "f32";
    const U32_NAME: &str = "u32";

    /// How many there are.
    pub fn len(&self) -> usize {
        match self {
            Self::F32(values) => values.len(),
            Self::U32(values) => values.len(),
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// `f32` or `u32`.
    pub fn dtype(&self) -> &'static str {
        match self {
            Self::F32(_) => Self::F32_NAME,
            Self::U32(_) => Self::U32_NAME,
        }
    }

    /// The values as they lie in memory and in a file.
    pub fn as_bytes(&self) -> &[u8] {
        match self {
            Self::F32(values) => bytemuck::cast_slice(values),
            Self::U32(values) => bytemuck::cast_slice(values),
        }
    }

    fn safetensors_dtype(&self) -> Dtype {
        match self {
            Self::F32(_) => Dtype::F32,
            Self::U32(_) => Dtype::U32,
        }
    }
}

impl From<Vec<f32>> for Values {
    fn from(values: Vec<f32>) -> Self {
        Self::F32(values)
    }
}

impl From<Vec<u32>> for Values {
    fn from(values: Vec<u32>) -> Self {
        Self::U32(values)
    }
}

struct Fnv(u64);

impl Write for Fnv {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 = bytes.iter().fold(self.0, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3));
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// `usize::MAX` where that overflows: no `Vec` is that long.
fn n_values(shape: &[usize]) -> usize {
    if shape.contains(&0) { 0 } else { shape.iter().fold(1, |product: usize, &n| product.saturating_mul(n)) }
}

/// The values of bytes that start anywhere.
fn copied<T: bytemuck::Pod>(bytes: &[u8]) -> Vec<T> {
    let mut values = vec![T::zeroed(); bytes.len() / size_of::<T>()];
    bytemuck::cast_slice_mut(&mut values).copy_from_slice(bytes);
    values
}
