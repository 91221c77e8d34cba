use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use brisk_kernels::{Activation, DType};

use crate::error::Error;
use crate::graph::Graph;
use crate::graph::operation::{AutocastRule, Operation, Signature};
use crate::graph::stored::promoted;
use crate::graph::tensor::Tensor;

/// The name of the operation that applies an activation, by which overrides also refer to the activations of other operations.
pub(crate) const ACTIVATE: &str = "activate";

/// The precision of products within [`Graph::autocast`].
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

    fn override_of(&self, op: &str) -> Option<Precision> {
        self.overrides.iter().rev().find(|(name, _)| name == op).map(|&(_, precision)| precision)
    }

    /// The dtype to which the operands of `op` are cast, and the dtype of its result; `None` for the dtype of the operands.
    fn casts(&self, op: &str, rule: AutocastRule) -> (Option<DType>, Option<DType>) {
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

/// A region while it is recorded.
#[derive(Debug)]
pub(crate) struct AutocastRegion {
    autocast: Autocast,
    /// The operations recorded in it, each once, and those that an override was looked up for.
    recorded: BTreeSet<&'static str>,
}

impl AutocastRegion {
    /// Whether every override applied to something.
    fn check(&self) -> Result<(), Error> {
        let Some((found, _)) = self.autocast.overrides.iter().find(|(name, _)| !self.recorded.contains(name.as_str())) else {
            return Ok(());
        };
        let recorded = self.recorded.iter().copied().collect::<Vec<_>>().join(", ");
        Err(Error::UnusedOverride { found: found.clone(), recorded })
    }
}

impl Graph {
    /// Records the operations of `record` with products in a lower precision. It is for the forward pass and the loss; the
    /// backward pass uses the dtypes of its forward pass.
    ///
    /// Parameters stay f32, and so do their gradients. Products read cast copies, one for each parameter however often it is
    /// used. What happens to an operation is its [`AutocastRule`]:
    /// - `Lower`: operands are cast and the result has that dtype: `linear`, `matmul`, `batched_matmul`, `conv2d`;
    /// - `Full`: the result is f32: `softmax`, `log_softmax`, `layer_norm`, `group_norm`, `rms_norm`, `sum`, `norm` and the
    ///   losses;
    /// - `Promote`: the dtype of the operands, f32 where they differ: all others, such as `activate`, `batch_norm`, `add`.
    ///
    /// Sums are kept in f32 whatever dtype values are stored in. Regions nest, and the innermost one counts; within
    /// [`Precision::F32`] every operation is of the third kind. [`Graph::report`] lists the dtypes that resulted.
    ///
    /// # Errors
    /// [`Error::UnusedOverride`] for an override that names no operation of the region.
    /// # Reference
    /// `torch.autocast`, with its lists for CUDA.
    /// # Examples
    /// ```
    /// use brisk_tensor::{Activation, DType, Graph, Precision};
    ///
    /// let graph = Graph::inference("halves");
    /// let x = graph.constant("x", &[0.1; 32], &[4, 8]);
    /// let weight = graph.constant("weight", &[0.2; 16], &[2, 8]);
    /// let (logits, scores) = graph.autocast(Precision::F16, || {
    ///     let logits = x.linear(&weight, None, Activation::identity());
    ///     let scores = logits.softmax(1);
    ///     (logits, scores)
    /// });
    /// assert_eq!((logits.dtype(), scores.dtype()), (DType::F16, DType::F32));
    /// ```
    #[track_caller]
    pub fn autocast<T>(&self, region: impl Into<Autocast>, record: impl FnOnce() -> T) -> T {
        let region = AutocastRegion { autocast: region.into(), recorded: BTreeSet::new() };
        let outer = self.inner_mut().autocast.replace(region);
        let ended = self.at_end(|inner| inner.autocast = outer);
        let recorded = record();
        let checked = self.inner().autocast.as_ref().map_or(Ok(()), AutocastRegion::check);
        drop(ended);
        self.catch(checked);
        recorded
    }

    /// Records an operation that ends in `activation`: within its own kernel, or as an operation after it where the backward pass
    /// needs the activation's input or an override sets the precision of `activate`.
    #[track_caller]
    pub(crate) fn apply_activated<O: Operation>(
        &self,
        activation: &Activation,
        operation: impl Fn(Activation) -> O,
        inputs: &[&Tensor],
    ) -> Tensor {
        let is_overridden = self.overrides_activation();
        let stored = self.activation_of(activation, &operation(Activation::identity()).signature(), inputs);
        if stored.is_identity() || stored.from_output.is_some() && !is_overridden {
            return self.apply(operation(stored), inputs);
        }
        self.apply(operation(Activation::identity()), inputs).activate(activation.clone())
    }

    /// The activation of an operation with this signature, whose derivative depends on the dtype of its result.
    pub(crate) fn activation_of(&self, activation: &Activation, signature: &Signature, inputs: &[&Tensor]) -> Activation {
        let inner = self.inner();
        let dtype = inner.autocast.as_ref().and_then(|region| region.autocast.casts(signature.name, signature.autocast).1);
        let operands = inputs.iter().take(signature.n_operands).map(|input| input.dtype());
        activation.clone().stored_as(dtype.unwrap_or_else(|| promoted(operands)))
    }

    /// Whether an override sets the precision of `activate`.
    pub(crate) fn overrides_activation(&self) -> bool {
        self.inner_mut().autocast.as_mut().is_some_and(|region| {
            region.recorded.insert(ACTIVATE);
            region.autocast.override_of(ACTIVATE).is_some()
        })
    }

    /// Casts the operands of `op` as the innermost region requires, and returns the dtype of its result.
    pub(crate) fn cast_operands(&self, op: &'static str, rule: AutocastRule, operands: &mut [Tensor]) -> Result<DType, Error> {
        let (operand_dtype, result_dtype) = self.inner_mut().autocast.as_mut().map_or((None, None), |region| {
            region.recorded.insert(op);
            region.autocast.casts(op, rule)
        });
        if let Some(dtype) = operand_dtype {
            for operand in &mut *operands {
                *operand = self.rounded(operand, dtype)?;
            }
        }
        Ok(result_dtype.unwrap_or_else(|| promoted(operands.iter().map(Tensor::dtype))))
    }
}
