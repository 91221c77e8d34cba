//! Where the parts of a table are in a file, checked for consistency.

use std::fs::File;
use std::io::Read;
use std::ops::Range;
use std::path::{Path, PathBuf};

use brisk_atomic_file::special_file;

use crate::checksum::{BLOCK_BYTES, checksum};
use crate::dtype::DType;
use crate::error::{Error, FormatError};
use crate::format::{CHECKSUMS, Layout, PREFIX_BYTES, TableMetadata, Tensor, header_bytes};
#[cfg(feature = "remote")]
use crate::remote::Object;
use crate::schema::Weights;
use crate::tensor_names::{LabelsFrom, TensorNames};

/// The parts that rows consist of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    Features,
    Labels,
    Categories,
    Weights,
}

impl Part {
    pub(crate) const ALL: [Self; 4] = [Self::Features, Self::Labels, Self::Categories, Self::Weights];
}

#[derive(Debug)]
pub struct Parts {
    pub(crate) n_rows: usize,
    pub(crate) n_cols: usize,
    pub(crate) data_start: usize,
    /// The CRC-32 of everything before `data_start`.
    pub(crate) header_crc32: u32,
    pub(crate) features: Tensor,
    /// `None` if the table was opened without labels.
    pub(crate) labels: Option<Tensor>,
    pub(crate) categories: Option<Tensor>,
    pub(crate) weights: Option<Tensor>,
    pub(crate) checksums: Option<Tensor>,
    pub(crate) metadata: TableMetadata,
}

impl Parts {
    pub(crate) fn tensor(&self, part: Part) -> Option<&Tensor> {
        match part {
            Part::Features => Some(&self.features),
            Part::Labels => self.labels.as_ref(),
            Part::Categories => self.categories.as_ref(),
            Part::Weights => self.weights.as_ref(),
        }
    }

    pub(crate) fn row_bytes(&self, tensor: &Tensor) -> usize {
        // Cannot overflow: the tensor has at least that many bytes, or no rows. The product of the other dimensions was checked
        // without zeros.
        tensor.shape[1..].iter().product::<usize>() * tensor.dtype.n_bytes()
    }

    /// The byte range of some rows of a tensor in the file. The rows must be within the table.
    pub(crate) fn range_of(&self, tensor: &Tensor, rows: Range<usize>) -> Range<usize> {
        let row = self.row_bytes(tensor);
        tensor.range.start + rows.start * row..tensor.range.start + rows.end * row
    }

    pub(crate) fn n_categories(&self) -> usize {
        self.categories.as_ref().map_or(0, |tensor| tensor.shape[1])
    }

    /// The number of labels per row; 1 if the table was opened without labels.
    pub(crate) fn n_labels(&self) -> usize {
        self.labels.as_ref().and_then(|tensor| tensor.shape.get(1)).copied().unwrap_or(1)
    }

    pub(crate) fn row_weights(&self) -> Weights {
        if self.weights.is_some() { Weights::Present } else { Weights::Absent }
    }

    pub(crate) fn label_dtype(&self) -> DType {
        self.labels.as_ref().map_or(DType::F32, |tensor| tensor.dtype)
    }

    /// A block that a checksum covers, by its index.
    pub(crate) fn summed_block(&self, block: usize, sums: &Tensor) -> Range<usize> {
        match block.checked_sub(1) {
            None => 0..self.data_start,
            Some(block) => {
                let start = self.data_start + block * BLOCK_BYTES;
                start..sums.range.start.min(start + BLOCK_BYTES)
            }
        }
    }

    /// Reads the header of a table of `n_bytes` with `read`, which is called for ranges that follow one another from the start.
    pub(crate) fn read(
        path: &Path,
        n_bytes: u64,
        names: &TensorNames,
        mut read: impl FnMut(Range<usize>) -> Result<Vec<u8>, Error>,
    ) -> Result<Self, Error> {
        let format = |reason| Error::Format { path: path.to_owned(), reason };
        if n_bytes < PREFIX_BYTES as u64 {
            return Err(format(FormatError::HeaderPastEnd { header_end: PREFIX_BYTES as u64, file_bytes: n_bytes }));
        }
        let mut header = read(0..PREFIX_BYTES)?;
        let first_eight = header[..PREFIX_BYTES].try_into().expect("it has that length");
        let header_end = PREFIX_BYTES + header_bytes(first_eight, n_bytes).map_err(format)?;
        header.extend(read(PREFIX_BYTES..header_end)?);
        let layout = Layout::parse(&header[PREFIX_BYTES..], n_bytes).map_err(format)?;
        Self::find(layout, checksum(&header), names).map_err(format)
    }

    /// Reads the header of a table on a server, and tells the object where its rows are.
    #[cfg(feature = "remote")]
    pub(crate) fn of_object(object: &Object) -> Result<Self, Error> {
        let parts = Self::read(object.path(), object.n_bytes(), &TensorNames::default(), |range| object.read_plain(range))?;
        object.set_data(parts.data_start, parts.header_crc32, parts.checksums.as_ref().map(|sums| sums.range.clone()));
        Ok(parts)
    }

    fn find(layout: Layout, header_crc32: u32, names: &TensorNames) -> Result<Self, FormatError> {
        let found = || layout.tensors.iter().map(|tensor| tensor.name.clone()).collect();
        let required = |name: &str| {
            let tensor = layout.tensor(name).cloned();
            tensor.ok_or_else(|| FormatError::MissingTensor { tensor: name.to_owned(), found: found() })
        };
        let mut features = required(&names.features)?;
        let mut labels = match &names.labels {
            LabelsFrom::Tensor(name) => Some(required(name)?),
            LabelsFrom::Zero => None,
        };
        let (categories, weights) = (layout.tensor(&names.categories).cloned(), layout.tensor(&names.weights).cloned());

        if features.shape.len() == 1 {
            features.shape.push(1);
        }
        let [n_rows, ref row_shape @ ..] = features.shape[..] else {
            return Err(unfit(&features, "[n, …]".to_owned()));
        };
        let only_categories = row_shape == [0] && categories.is_some();
        if row_shape.contains(&0) && !only_categories {
            return Err(unfit(&features, "[n, columns] with at least one column".to_owned()));
        }
        if let Some(labels) = &mut labels {
            let is_fit = match labels.shape[..] {
                [n] => n == n_rows,
                [n, n_labels] => n == n_rows && n_labels > 0,
                _ => false,
            };
            if !is_fit {
                let expected = format!("shape [{n_rows}] or [{n_rows}, columns], one row for each row of `{}`", features.name);
                return Err(unfit(labels, expected));
            }
            if labels.shape == [n_rows, 1] {
                labels.shape.truncate(1);
            }
        }
        if let Some(weights) = weights.as_ref().filter(|weights| weights.shape != [n_rows] || weights.dtype != DType::F32) {
            return Err(unfit(weights, format!("F32 of shape [{n_rows}], one for each row of `{}`", features.name)));
        }
        let n_categories = match &categories {
            None => 0,
            Some(Tensor { dtype: DType::U32, shape, .. }) if shape.len() == 2 && shape[0] == n_rows && shape[1] > 0 => shape[1],
            Some(tensor) => {
                return Err(unfit(tensor, format!("U32 of shape [{n_rows}, columns], a row for each of `{}`", features.name)));
            }
        };
        let n_cols = row_shape.iter().product();
        let metadata = TableMetadata::parse(&layout.metadata, row_shape, n_categories)?;
        // In a file of another program, a tensor of that name may be anything.
        let checksums = layout.tensor(CHECKSUMS).filter(|_| metadata.is_ours).cloned();
        if let Some(sums) = &checksums {
            let n_sums = 1 + (sums.range.start - layout.data_start).div_ceil(BLOCK_BYTES);
            if sums.dtype != DType::U32 || sums.shape != [n_sums] {
                return Err(unfit(sums, format!("U32 of shape [{n_sums}], one for each block")));
            }
        }
        for tensor in [Some(&features), labels.as_ref(), categories.as_ref(), weights.as_ref(), checksums.as_ref()] {
            let Some(Tensor { name, dtype, range, .. }) = tensor else { continue };
            if range.start % dtype.n_bytes() != 0 {
                return Err(FormatError::Misaligned { tensor: name.clone(), dtype: *dtype, start: range.start as u64 });
            }
        }
        let data_start = layout.data_start;
        Ok(Self { n_rows, n_cols, data_start, header_crc32, features, labels, categories, weights, checksums, metadata })
    }
}

fn unfit(tensor: &Tensor, expected: String) -> FormatError {
    FormatError::TensorShape { tensor: tensor.name.clone(), dtype: tensor.dtype, found: tensor.shape.clone(), expected }
}

/// A file whose header has been read and is that of a table.
#[derive(Debug)]
pub(crate) struct Opened {
    pub(crate) path: PathBuf,
    /// Positioned after the header.
    pub(crate) file: File,
    pub(crate) n_bytes: u64,
    pub(crate) parts: Parts,
}

impl Opened {
    pub(crate) fn at(path: &Path) -> Result<Self, Error> {
        Self::named(path, &TensorNames::default())
    }

    pub(crate) fn named(path: &Path, names: &TensorNames) -> Result<Self, Error> {
        let io = Error::io(path, "read");
        let mut file = open_file(path)?;
        let n_bytes = file.metadata().map_err(io)?.len();
        let parts = Parts::read(path, n_bytes, names, |range| {
            let mut bytes = vec![0; range.len()];
            file.read_exact(&mut bytes).map_err(io)?;
            Ok(bytes)
        })?;
        Ok(Self { path: path.to_owned(), file, n_bytes, parts })
    }
}

/// Opens a regular file; a folder, pipe or device is an error.
pub(crate) fn open_file(path: &Path) -> Result<File, Error> {
    if let Some(found) = special_file(path) {
        return Err(Error::NotAFile { path: path.to_owned(), found });
    }
    File::open(path).map_err(Error::io(path, "open"))
}

/// The first bytes of a file, fewer if it is shorter, and the file, which was read up to there.
#[cfg(feature = "import")]
pub(crate) fn first_bytes(path: &Path, n: u64) -> Result<(Vec<u8>, File), Error> {
    let (mut file, mut start) = (open_file(path)?, Vec::new());
    let read = Read::by_ref(&mut file).take(n).read_to_end(&mut start);
    read.map_err(Error::io(path, "read"))?;
    Ok((start, file))
}
