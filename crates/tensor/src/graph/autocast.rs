use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use brisk_kernels::DType;

use crate::error::Error;

/// The name of the operation that applies an activation, by which overrides also refer to the activations of other operations.
pub(crate) const ACTIVATE: &str = "activate";

/// The precision of products within [`Graph::autocast`](crate::Graph::autocast).
///
/// # Examples
/// ```
/// use brisk_tensor::{DType, Precision};
///
/// let precision: Precision = "bf16".parse()?;
/// assert_eq!((precision, precision.dtype(), precision.to_string()), (Precision::Bf16, DType::Bf16, "bf16".to_owned()));
/// # Ok::<(), brisk_tensor::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Precision {
    /// f32 throughout.
    #[default]
    F32,
    /// Products in f16, whose largest finite number is 65504; scale the loss to keep gradients in range.
    F16,
    /// Products in bf16, which has the range of f32 and about three decimal digits.
    Bf16,
}

impl Precision {
    /// All precisions.
    pub const ALL: [Self; 3] = [Self::F32, Self::F16, Self::Bf16];

    /// The dtype in which products are stored.
    pub const fn dtype(self) -> DType {
        match self {
            Self::F32 => DType::F32,
            Self::F16 => DType::F16,
            Self::Bf16 => DType::Bf16,
        }
    }
}

impl fmt::Display for Precision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::F32 => "f32",
            Self::F16 => "f16",
            Self::Bf16 => "bf16",
        })
    }
}

impl FromStr for Precision {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let named = Self::ALL.into_iter().find(|precision| precision.to_string() == text);
        named.ok_or_else(|| Error::UnknownPrecision { found: text.to_owned() })
    }
}

/// A precision, and exceptions for single operations.
///
/// # Examples
/// ```
/// use brisk_tensor::{Autocast, Precision};
///
/// // f16, except for batched matrix products.
/// let region = Autocast::new(Precision::F16).with("batched_matmul", Precision::F32);
/// assert_eq!(region.overrides.len(), 1);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Autocast {
    /// The precision of the operations with [`AutocastRule::Lower`].
    pub precision: Precision,
    /// Operations by name, each with the precision it gets whatever its [`AutocastRule`] says; of two with the same name the
    /// later one counts. An override of `activate` also applies to the activations of `linear`, `conv2d` and `batch_norm`. An
    /// override that applies to no operation of the region is an error.
    pub overrides: Vec<(String, Precision)>,
}

impl Autocast {
    /// A precision without exceptions.
    pub fn new(precision: Precision) -> Self {
        Self { precision, overrides: Vec::new() }
    }

    /// Adds an exception for one operation.
    pub fn with(mut self, operation: impl Into<String>, precision: Precision) -> Self {
        self.overrides.push((operation.into(), precision));
        self
    }

    pub(super) fn override_of(&self, op: &str) -> Option<Precision> {
        self.overrides.iter().rev().find(|(name, _)| name == op).map(|&(_, precision)| precision)
    }

    /// The dtype to which the operands of `op` are cast, and the dtype of its result; `None` for the dtype of the operands.
    pub(super) fn casts(&self, op: &str, rule: AutocastRule) -> (Option<DType>, Option<DType>) {
        let lower = |precision: Precision| (Some(precision.dtype()), Some(precision.dtype()));
        match (self.override_of(op), rule) {
            (Some(Precision::F32), _) => (None, Some(DType::F32)),
            (Some(precision), _) => lower(precision),
            (None, _) if self.precision == Precision::F32 => (None, None),
            (None, AutocastRule::Lower) => lower(self.precision),
            (None, AutocastRule::Full) => (None, Some(DType::F32)),
            (None, AutocastRule::Promote) => (None, None),
        }
    }
}

impl From<Precision> for Autocast {
    fn from(precision: Precision) -> Self {
        Self::new(precision)
    }
}

/// What [`Graph::autocast`](crate::Graph::autocast) does with an operation.
///
/// # Reference
/// The three lists of `torch.autocast` for CUDA.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum AutocastRule {
    /// Operands are cast to the lower precision and the result is stored in it. For products, which take most of the time.
    Lower,
    /// The result is f32. Operands are not cast, since kernels compute in f32 whatever they read. For operations that add many
    /// values or are steep.
    Full,
    /// The result has the dtype of the operands; f32 if they differ. For all other operations.
    Promote,
}

/// A region while it is recorded.
#[derive(Debug)]
pub(crate) struct AutocastRegion {
    pub(super) autocast: Autocast,
    /// The operations recorded in it, each once, and those that an override was looked up for.
    pub(super) recorded: BTreeSet<&'static str>,
}

impl AutocastRegion {
    /// Whether every override applied to something.
    pub(super) fn check(&self) -> Result<(), Error> {
        let Some((found, _)) = self.autocast.overrides.iter().find(|(name, _)| !self.recorded.contains(name.as_str())) else {
            return Ok(());
        };
        let recorded = self.recorded.iter().copied().collect::<Vec<_>>().join(", ");
        Err(Error::UnusedOverride { found: found.clone(), recorded })
    }
}
