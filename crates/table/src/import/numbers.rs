use super::{EXACT_LIMIT, expected};
use crate::dtype::DType;
use crate::remedy::{Expected, Remedy};

/// How the values of an array are stored in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Numbers {
    pub(crate) dtype: DType,
    pub(crate) byte_order: ByteOrder,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ByteOrder {
    #[cfg_attr(not(feature = "npy"), expect(dead_code, reason = "IDX has the other order only"))]
    Little,
    Big,
}

/// Values as a table stores them.
#[derive(Debug)]
pub(crate) enum Values {
    U8(Vec<u8>),
    I64(Vec<i64>),
    F32(Vec<f32>),
}

/// A value that cannot be stored.
#[derive(Debug)]
pub(crate) struct Unfit {
    pub(crate) index: usize,
    pub(crate) found: String,
    pub(crate) expected: &'static Expected,
}

/// How features that are NaN or infinite are treated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum NotFinite {
    /// They are errors.
    #[default]
    Error,
    /// They are kept.
    Keep,
}

impl Values {
    /// Empty, for features of `dtype`: bytes stay bytes, everything else becomes `f32`.
    pub(crate) fn of_features(dtype: DType) -> Self {
        if dtype == DType::U8 { Self::U8(Vec::new()) } else { Self::F32(Vec::new()) }
    }

    /// Empty, for labels of `dtype`: bytes and booleans become bytes, other integers `i64`, the rest `f32`.
    pub(crate) fn of_labels(dtype: DType) -> Self {
        match dtype {
            DType::Bool | DType::U8 => Self::U8(Vec::new()),
            DType::F16 | DType::BF16 | DType::F32 | DType::F64 => Self::F32(Vec::new()),
            _ => Self::I64(Vec::new()),
        }
    }

    /// Their type in the table, and their bytes.
    pub(crate) fn stored(&self) -> (DType, &[u8]) {
        match self {
            Self::U8(values) => (DType::U8, values),
            Self::I64(values) => (DType::I64, bytemuck::cast_slice(values)),
            Self::F32(values) => (DType::F32, bytemuck::cast_slice(values)),
        }
    }
}

impl Numbers {
    pub(crate) fn n_bytes(self) -> usize {
        self.dtype.n_bytes()
    }

    /// Replaces the content of `out` by the features in `bytes`, which are complete.
    pub(crate) fn features(self, bytes: &[u8], not_finite: NotFinite, out: &mut Values) -> Result<(), Unfit> {
        self.convert(bytes, out)?;
        match (out, not_finite) {
            (Values::F32(floats), NotFinite::Keep) => self.check_range(bytes, floats),
            (Values::F32(floats), NotFinite::Error) => self.check_finite(bytes, floats, &FEATURE),
            _ => Ok(()),
        }
    }

    /// Like [`features`](Self::features) for labels, which must be finite.
    pub(crate) fn labels(self, bytes: &[u8], out: &mut Values) -> Result<(), Unfit> {
        self.convert(bytes, out)?;
        if let Values::F32(floats) = out { self.check_finite(bytes, floats, &LABEL) } else { Ok(()) }
    }

    fn convert(self, bytes: &[u8], out: &mut Values) -> Result<(), Unfit> {
        match out {
            Values::U8(out) => {
                out.clear();
                match self.dtype {
                    DType::Bool => out.extend(bytes.iter().map(|&byte| u8::from(byte != 0))),
                    _ => out.extend_from_slice(bytes),
                }
            }
            Values::I64(out) => self.integers(bytes, out)?,
            Values::F32(out) => self.floats(bytes, out),
        }
        Ok(())
    }

    /// Like [`features`](Self::features) for weights.
    pub(crate) fn weights(self, bytes: &[u8], out: &mut Vec<f32>) -> Result<(), Unfit> {
        self.floats(bytes, out);
        self.check_finite(bytes, out, &WEIGHT)?;
        match out.iter().position(|&weight| weight < 0.0) {
            Some(index) => Err(Unfit { index, found: out[index].to_string(), expected: &WEIGHT }),
            None => Ok(()),
        }
    }

    /// How many of the numbers of at least [`EXACT_LIMIT`] differ from the `f32` that they became, and the first of them.
    pub(crate) fn rounded(self, bytes: &[u8], floats: &[f32]) -> (u64, Option<(f64, f32)>) {
        let order = self.byte_order;
        let found = |numbers: &mut dyn Iterator<Item = (f64, bool)>| {
            let mut rounded =
                numbers.zip(floats).filter(|((_, is_exact), _)| !is_exact).map(|((number, _), &float)| (number, float));
            let first = rounded.next();
            (first.map_or(0, |_| 1 + rounded.count() as u64), first)
        };
        macro_rules! whole {
            ($integer:ty) => {
                found(&mut values(bytes, order, <$integer>::from_le_bytes).map(|n| (n as f64, i128::from(n) == n as f32 as i128)))
            };
        }
        match self.dtype {
            DType::U32 => whole!(u32),
            DType::I32 => whole!(i32),
            DType::U64 => whole!(u64),
            DType::I64 => whole!(i64),
            DType::F64 => found(&mut values(bytes, order, f64::from_le_bytes).map(|x| {
                let is_large = x.abs() >= EXACT_LIMIT && x.is_finite();
                (x, !is_large || f64::from(x as f32) == x)
            })),
            _ => (0, None),
        }
    }

    fn floats(self, bytes: &[u8], out: &mut Vec<f32>) {
        out.clear();
        let order = self.byte_order;
        match self.dtype {
            DType::Bool => out.extend(bytes.iter().map(|&byte| f32::from(u8::from(byte != 0)))),
            DType::U8 => out.extend(bytes.iter().map(|&byte| f32::from(byte))),
            DType::I8 => out.extend(bytes.iter().map(|&byte| f32::from(i8::from_ne_bytes([byte])))),
            DType::U16 => out.extend(values(bytes, order, u16::from_le_bytes).map(f32::from)),
            DType::I16 => out.extend(values(bytes, order, i16::from_le_bytes).map(f32::from)),
            DType::F16 => out.extend(values(bytes, order, half::f16::from_le_bytes).map(half::f16::to_f32)),
            DType::BF16 => out.extend(values(bytes, order, half::bf16::from_le_bytes).map(half::bf16::to_f32)),
            DType::U32 => out.extend(values(bytes, order, u32::from_le_bytes).map(|value| value as f32)),
            DType::I32 => out.extend(values(bytes, order, i32::from_le_bytes).map(|value| value as f32)),
            DType::F32 => out.extend(values(bytes, order, f32::from_le_bytes)),
            DType::U64 => out.extend(values(bytes, order, u64::from_le_bytes).map(|value| value as f32)),
            DType::I64 => out.extend(values(bytes, order, i64::from_le_bytes).map(|value| value as f32)),
            DType::F64 => out.extend(values(bytes, order, f64::from_le_bytes).map(|value| value as f32)),
        }
    }

    fn integers(self, bytes: &[u8], out: &mut Vec<i64>) -> Result<(), Unfit> {
        out.clear();
        let order = self.byte_order;
        match self.dtype {
            DType::I8 => out.extend(bytes.iter().map(|&byte| i64::from(i8::from_ne_bytes([byte])))),
            DType::U16 => out.extend(values(bytes, order, u16::from_le_bytes).map(i64::from)),
            DType::I16 => out.extend(values(bytes, order, i16::from_le_bytes).map(i64::from)),
            DType::U32 => out.extend(values(bytes, order, u32::from_le_bytes).map(i64::from)),
            DType::I32 => out.extend(values(bytes, order, i32::from_le_bytes).map(i64::from)),
            DType::I64 => out.extend(values(bytes, order, i64::from_le_bytes)),
            DType::U64 => {
                for (index, value) in values(bytes, order, u64::from_le_bytes).enumerate() {
                    let fits = i64::try_from(value).map_err(|_| Unfit { index, found: value.to_string(), expected: &LABEL });
                    out.push(fits?);
                }
            }
            other => unreachable!("labels of {other} are stored as bytes or floats, see `Values::of_labels`"),
        }
        Ok(())
    }

    fn check_finite(self, bytes: &[u8], floats: &[f32], expected: &'static Expected) -> Result<(), Unfit> {
        match floats.iter().position(|value| !value.is_finite()) {
            Some(index) => {
                let found = self.exact(bytes, index);
                let expected = if found.is_finite() { &expected::IN_RANGE } else { expected };
                Err(Unfit { index, found: found.to_string(), expected })
            }
            None => Ok(()),
        }
    }

    /// Checks that infinities were infinities before the conversion.
    fn check_range(self, bytes: &[u8], floats: &[f32]) -> Result<(), Unfit> {
        if self.dtype != DType::F64 {
            return Ok(());
        }
        let too_large = |&index: &usize| floats[index].is_infinite() && self.exact(bytes, index).is_finite();
        match (0..floats.len()).find(too_large) {
            Some(index) => Err(Unfit { index, found: self.exact(bytes, index).to_string(), expected: &expected::IN_RANGE }),
            None => Ok(()),
        }
    }

    /// One of the floats, before it was rounded.
    fn exact(self, bytes: &[u8], index: usize) -> f64 {
        let n = self.n_bytes();
        let bytes = &bytes[index * n..][..n];
        if self.dtype == DType::F64 {
            return values(bytes, self.byte_order, f64::from_le_bytes).next().expect("the slice holds one value");
        }
        let mut one = Vec::with_capacity(1);
        self.floats(bytes, &mut one);
        f64::from(one[0])
    }
}

const FEATURE: Expected = Expected { what: "a finite number", remedies: &[Remedy::Correct, Remedy::KeepNotFinite] };
const LABEL: Expected = Expected { what: "a label, which is a finite number and, if whole, fits an i64", remedies: &[] };
const WEIGHT: Expected = Expected { what: "a weight, which is a finite number of at least 0", remedies: &[] };

/// Decodes the values in `bytes`.
fn values<const N: usize, T>(bytes: &[u8], order: ByteOrder, from_le: fn([u8; N]) -> T) -> impl Iterator<Item = T> {
    let (values, _) = bytes.as_chunks::<N>();
    values.iter().map(move |&bytes| match order {
        ByteOrder::Little => from_le(bytes),
        ByteOrder::Big => {
            let mut bytes = bytes;
            bytes.reverse();
            from_le(bytes)
        }
    })
}
