use std::fmt;
use std::str::FromStr;

use brisk_kernels::{Activation, DType, Kernel};

use crate::stored::promoted;
use crate::{Error, Graph, Tensor};

/// What the operations that gain from it compute with: [`Graph::autocast`].
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
    /// Products of f16, whose largest number is 65504: gradients want a scaled loss.
    F16,
    /// Products of bf16, which has the range of f32 and three digits.
    Bf16,
}

impl Precision {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::F32, Self::F16, Self::Bf16];

    /// The type that products are stored in.
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

/// A precision, and operations that are to have another one.
///
/// # Examples
/// ```
/// use brisk_tensor::{Autocast, Precision};
///
/// // Halves, but for the products of pairs.
/// let region = Autocast::new(Precision::F16).with("batched_matmul", Precision::F32);
/// assert_eq!(region.overrides.len(), 1);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Autocast {
    /// That of the operations that gain from it.
    pub precision: Precision,
    /// Operations by name, and the precision that each is to have whatever list it is in; of two for one name the later counts. One for `activate` holds
    /// for activations that `linear`, `conv2d` and `batch_norm` are given, too.
    pub overrides: Vec<(String, Precision)>,
}

impl Autocast {
    /// Without exceptions.
    pub fn new(precision: Precision) -> Self {
        Self { precision, overrides: Vec::new() }
    }

    /// With one more operation that is to have a precision of its own.
    pub fn with(mut self, operation: impl Into<String>, precision: Precision) -> Self {
        self.overrides.push((operation.into(), precision));
        self
    }

    fn check(&self) -> Result<(), Error> {
        match self.overrides.iter().find(|(name, _)| class(name).is_none()) {
            None => Ok(()),
            Some((found, _)) => {
                let known = [&LOW[..], &FULL, &AS_GIVEN].concat().join(", ");
                Err(Error::UnknownOperation { found: found.clone(), known })
            }
        }
    }

    fn of(&self, op: &'static str) -> Class {
        match (self.override_of(op), class(op).expect("every operation is on a list")) {
            (Some(Precision::F32), _) => Class::Full,
            (Some(precision), _) => Class::Low(precision),
            (None, Class::Low(_)) if self.precision != Precision::F32 => Class::Low(self.precision),
            (None, Class::Full) if self.precision != Precision::F32 => Class::Full,
            (None, _) => Class::AsGiven,
        }
    }

    fn override_of(&self, op: &str) -> Option<Precision> {
        self.overrides.iter().rev().find(|(name, _)| name == op).map(|&(_, precision)| precision)
    }
}

impl From<Precision> for Autocast {
    fn from(precision: Precision) -> Self {
        Self::new(precision)
    }
}

/// What autocast does with an operation.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Class {
    /// Its operands are rounded, and its result is stored so.
    Low(Precision),
    /// Its result is f32. Operands stay as they are stored: kernels compute in f32 whatever they read.
    Full,
    /// Its result has the type of its operands, f32 where they differ.
    AsGiven,
}

/// Products, which are what takes the time.
const LOW: [&str; 4] = ["batched_matmul", "conv2d", "linear", "matmul"];

/// What adds up many values, or is steep.
const FULL: [&str; 8] = ["bce_with_logits", "cross_entropy", "layer_norm", "log_softmax", "mse_loss", "norm", "softmax", "sum"];

/// The rest.
const AS_GIVEN: [&str; 13] = [
    "activate",
    "add",
    "avg_pool2d",
    "batch_norm",
    "columns",
    "concat_columns",
    "dropout",
    "embedding",
    "max",
    "max_pool2d",
    "mean",
    "min",
    "multiply",
];

fn class(op: &str) -> Option<Class> {
    let lists = [(&LOW[..], Class::Low(Precision::F32)), (&FULL, Class::Full), (&AS_GIVEN, Class::AsGiven)];
    lists.into_iter().find(|(names, _)| names.contains(&op)).map(|(_, class)| class)
}

impl Graph {
    /// Records what `record` records with products in a lower precision: forward pass and loss, not the backward pass, which takes the types
    /// of its forward.
    ///
    /// Parameters stay f32, and so do their gradients; products read rounded copies, one for each parameter however often it is used. What an operation
    /// does is in one of three lists:
    /// - rounded operands, and a result of that type: `linear`, `matmul`, `batched_matmul`, `conv2d`;
    /// - a result in f32: `softmax`, `log_softmax`, `layer_norm`, `sum`, `norm`, `cross_entropy`, `bce_with_logits`, `mse_loss`;
    /// - the type of the operands, f32 where they differ: all others, such as `activate`, `batch_norm`, `add`.
    ///
    /// In whatever type values are stored, sums are f32. Regions nest, and the innermost counts; within [`Precision::F32`] every operation is of the
    /// third kind. [`Graph::report`] says what came of it.
    ///
    /// # Errors
    /// [`Error::UnknownOperation`] for an override of something that is not there; what `record` returns.
    /// # Reference
    /// `torch.autocast`, with its lists for CUDA.
    /// # Examples
    /// ```
    /// use brisk_tensor::{Activation, DType, Graph, Precision};
    ///
    /// let graph = Graph::inference("halves");
    /// let x = graph.constant("x", &[0.1; 32], &[4, 8])?;
    /// let weight = graph.constant("weight", &[0.2; 16], &[2, 8])?;
    /// let (logits, scores) = graph.autocast(Precision::F16, || {
    ///     let logits = x.linear(&weight, None, Activation::Identity)?;
    ///     let scores = logits.softmax()?;
    ///     Ok((logits, scores))
    /// })?;
    /// assert_eq!((logits.dtype(), scores.dtype()), (DType::F16, DType::F32));
    /// # Ok::<(), brisk_tensor::Error>(())
    /// ```
    pub fn autocast<T>(&self, region: impl Into<Autocast>, record: impl FnOnce() -> Result<T, Error>) -> Result<T, Error> {
        let region = region.into();
        region.check()?;
        let outer = self.inner_mut().autocast.replace(region);
        let _region = self.at_end(|inner| inner.autocast = outer);
        record()
    }

    /// Whether an operation that is given `activation` has it in its own kernel: not where the backward pass needs what lies between, nor where `activate`
    /// is to have a precision of its own.
    pub(crate) fn fuses(&self, activation: Activation) -> bool {
        let is_overridden = || self.inner().autocast.as_ref().is_some_and(|region| region.override_of("activate").is_some());
        activation == Activation::Identity || activation.has_grad_from_output() && !is_overridden()
    }

    /// What `op` reads in the place of `operands`, and the type of its result. The kernel is checked first, so that nothing is recorded for one
    /// that is refused.
    pub(crate) fn operands<const N: usize>(
        &self,
        op: &'static str,
        kernel: &impl Kernel,
        operands: [&Tensor; N],
    ) -> Result<(DType, [Tensor; N]), Error> {
        let mut operands = operands.map(Tensor::clone);
        let dtype = self.cast_operands(op, kernel, &mut operands)?;
        Ok((dtype, operands))
    }

    /// The same for operands of any number.
    pub(crate) fn cast_operands(&self, op: &'static str, kernel: &impl Kernel, operands: &mut [Tensor]) -> Result<DType, Error> {
        kernel.check().map_err(brisk_program::Error::from)?;
        let class = self.inner().autocast.as_ref().map_or(Class::AsGiven, |region| region.of(op));
        match class {
            Class::Full => Ok(DType::F32),
            Class::AsGiven => Ok(promoted(operands.iter().map(Tensor::dtype))),
            Class::Low(precision) => {
                for operand in operands {
                    *operand = self.rounded(operand, precision.dtype())?;
                }
                Ok(precision.dtype())
            }
        }
    }
}
