use super::dropout_cpu;
use crate::core::module::part;
use crate::core::sizes::check_sizes;
use crate::core::stored_form::{StoredForm, sharing, with_element};
use crate::core::stored_types::{Group, Template};
use crate::{Adapter, Arg, Cost, DType, Dispatch, Error, Kernel, STATE_LEN, TwinArgs};

const DROPOUT: Template = Template::new(
    &[part!("dropout.wgsl"), part!("../core/random_words.wgsl")],
    &[Group::one("X").loads(), Group::one("Y").stores()],
);

/// Dropout: each element is 0 with probability `p`, else divided by `1 - p`, which preserves the mean.
///
/// Word `i % 4` of Philox block `[i / 4, 0, stream, t]` decides whether element `i` is kept in step `t` ([`Philox`](crate::Philox)), so the result depends
/// only on the seed, the stream, `state.step` and the element. The gradient is the same kernel, applied to `grad_y` in the same step.
///
/// # Shapes
/// `x`, `y`: `[n]`; `state`: [`STATE_LEN`].
/// # Dtypes
/// f32, or f16 and bf16 by [`stored`](crate::stored); `state` u32. Both executors keep the same elements.
/// # Reference
/// Srivastava et al. 2014, *Dropout*; `torch.nn.functional.dropout`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Dropout {
    /// Elements.
    pub n: usize,
    /// The probability of setting an element to 0, 0 to 1.
    pub p: f32,
    /// The seed of the run.
    pub seed: u64,
    /// Distinguishes the dropouts of one step.
    pub stream: u32,
}

impl Dropout {
    /// The minimum 24-bit draw that keeps an element, and the factor of elements that are kept.
    pub(crate) fn threshold_and_scale(&self) -> (u32, f32) {
        #[expect(clippy::cast_possible_truncation, reason = "it is at most 2^24")]
        let threshold = (f64::from(self.p) * f64::from(1 << 24)).ceil() as u32;
        (threshold, if self.p < 1.0 { 1.0 / (1.0 - self.p) } else { 0.0 })
    }
}

impl Kernel for Dropout {
    fn name(&self) -> &'static str {
        "dropout"
    }

    fn args(&self) -> Vec<Arg> {
        vec![Arg::read("x", DType::F32, self.n), Arg::read("state", DType::U32, STATE_LEN), Arg::write("y", DType::F32, self.n)]
    }

    fn check(&self) -> Result<(), Error> {
        if !(0.0..=1.0).contains(&self.p) {
            return Err(Error::Unsupported { kernel: self.name(), found: format!("p = {}", self.p), expected: "0 <= p <= 1" });
        }
        check_sizes(self, &[("n", self.n)])
    }

    fn dispatches(&self, adapter: &Adapter) -> Result<Vec<Dispatch>, Error> {
        self.stored_dispatches(&[DType::F32], adapter)
    }

    fn twin(&self, args: &mut TwinArgs<'_>) {
        with_element!(args.dtype("x"), T => dropout_cpu::run::<T>(self, args.read("x"), args.read("state"), args.write("y")));
    }

    fn stored_as(&self, dtypes: &[DType]) -> Option<Box<dyn Kernel>> {
        self.stored_form(dtypes)
    }

    fn cost(&self) -> Cost {
        Cost { flops: self.n as u64, bytes: 8 * self.n as u64 }
    }
}

impl StoredForm for Dropout {
    fn nearest(&self, dtypes: &[DType]) -> Option<Vec<DType>> {
        sharing(self, &[0, 2], dtypes)
    }

    fn stored_dispatches(&self, dtypes: &[DType], _: &Adapter) -> Result<Vec<Dispatch>, Error> {
        let (threshold, scale) = self.threshold_and_scale();
        #[expect(clippy::cast_possible_truncation, reason = "these are the halves")]
        let [low, high] = [self.seed as u32, (self.seed >> 32) as u32];
        let module = DROPOUT.module(&[("X", dtypes[0]), ("Y", dtypes[0])]);
        let dropout = Dispatch::elementwise(self.name(), "kernels.dropout", module, self.n.div_ceil(4))?
            .param("n", self.n)
            .param("stream", self.stream)
            .param("key_low", low)
            .param("key_high", high)
            .param("threshold", threshold)
            .param("scale", scale);
        Ok(vec![dropout.bind(&self.args(), ["x", "state"], ["y"])?])
    }
}
